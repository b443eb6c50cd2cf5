"""`headwater serve` as a process: both protocols, an orderly end; what it refuses."""

from __future__ import annotations

import http.client
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import headwater
from headwater.cli.serve import main
from tests.harness.patience import PATIENCE_S
from tests.server.http.client import basic

COMMAND = (sys.executable, "-c", "from headwater.cli.main import run; run()", "serve")
QUICK = ("--port", "0", "--http-port", "0", "--socket", "none", "--set", "eager_spark=false")


@contextmanager
def served(*arguments: str, **variables: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server that has started, and the port of its HTTP; stopped by SIGTERM at the end."""
    process = subprocess.Popen(
        [*COMMAND, *QUICK, *arguments],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | variables,
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            found = re.search(r"HTTP: http://[\d.]+:(\d+)/", line)
            if found:
                yield process, int(found.group(1))
                break
        else:
            raise AssertionError("it did not start")
        process.send_signal(signal.SIGTERM)
        rest = process.stderr.read()
        assert process.wait(PATIENCE_S) == 0, rest
        assert "everything acknowledged is on disk" in rest
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def ask(
    port: int, method: str, path: str, body: str | None = None, **headers: str
) -> tuple[int, str]:
    """One request."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        client.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        answer = client.getresponse()
        return answer.status, answer.read().decode()
    finally:
        client.close()


def test_rows_outlive_the_process(tmp_path: Path) -> None:
    """What was acknowledged before SIGTERM is there afterwards, sealed; so are users."""
    data = str(tmp_path / "data")
    config = tmp_path / "serve.toml"
    config.write_text(f'[serve]\npath = "{data}"\n')
    with served("--config", str(config), HEADWATER_PASSWORD="pw") as (_process, port):
        me = basic("headwater", "pw")
        assert ask(port, "POST", "/sql", "SHOW TABLES", Content_Type="text/plain")[0] == 401
        for text in (
            "CREATE STREAMING TABLE e (a BIGINT) TIMESTAMP BY a",
            "CREATE USER ada PASSWORD 'p' ROLE READER",
        ):
            status, said = ask(
                port, "POST", "/sql", text, Content_Type="text/plain", Authorization=me
            )
            assert status == 200, said
        rows = ask(
            port, "POST", "/tables/e", '{"a":1}\n{"a":2}\n', Content_Type="application/jsonl",
            Authorization=me,
        )  # fmt: skip
        assert rows[0] == 200
    with headwater.connect(data, settings={"eager_spark": False}) as db:
        assert db.sql("SELECT a FROM e").rows() == [(1,), (2,)]
        assert db.sql("SHOW USERS").rows()[0][:2] == ("ada", "reader")
        assert db.sql(
            "SELECT value FROM headwater.metrics WHERE name = 'table.e.unsealed_bytes'"
        ).rows() == [(0,)]


def test_it_does_not_listen_beyond_this_machine_unprotected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without password and TLS it refuses, names both, and exits with 1; so it does for HTTP alone."""
    monkeypatch.delenv("HEADWATER_PASSWORD", raising=False)
    everywhere = "0.0.0.0"
    for flags in (
        {"host": everywhere},
        {"http_host": everywhere},
        {"host": everywhere, "tls_elsewhere": True},
    ):
        given = {"path": str(tmp_path / "data"), **flags}
        assert main(given, {"eager_spark": "false"}) == 1
        said = capsys.readouterr().err.replace("\n", " ")
        assert "the server has no users with passwords" in said
        assert ("no TLS" in said) == ("tls_elsewhere" not in flags)


def test_it_says_how_to_connect(tmp_path: Path) -> None:
    """The Unix socket in a folder of a session, which others cannot enter; the file goes with the server."""
    runtime = tempfile.mkdtemp(prefix="hw-")
    command = [*COMMAND, str(tmp_path / "data"), "--port", "0", "--http-port", "0"]
    process = subprocess.Popen(
        [*command, "--set", "eager_spark=false"],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"XDG_RUNTIME_DIR": runtime},
    )
    assert process.stderr is not None
    try:
        said = "".join(itertools.takewhile(lambda line: "Ctrl-C" not in line, process.stderr))
        found = re.search(r"psql -h (/\S+) -p (\d+) -U headwater", said)
        assert found is not None, said
        folder = Path(found.group(1))
        assert folder.parent == Path(runtime)
        assert folder.stat().st_mode & 0o077 == 0
        assert (folder / f".s.PGSQL.{found.group(2)}").is_socket()
        assert "needs no password" in said
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
    assert list(folder.iterdir()) == []
    shutil.rmtree(runtime)


def test_a_port_that_is_taken_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another program has the port: the error names it and says what to do; it is no fault of ours."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen(1)
        port = other.getsockname()[1]
        flags = {"path": str(tmp_path / "data"), "port": port, "http_port": 0, "socket": "none"}
        assert main(flags, {"eager_spark": "false"}) == 1
    error = capsys.readouterr().err
    assert f"error: port {port} is in use by another program (55006)" in error
    assert "--port" in error
    assert "fault of Headwater" not in error
