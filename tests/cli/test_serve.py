"""`headwater serve` as a process: both protocols, an orderly end, a restart that goes on; what it refuses."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.server.http.client import basic

COMMAND = (sys.executable, "-c", "from headwater.cli.main import run; run()", "serve")
QUICK = ("--port", "0", "--http-port", "0", "--set", "eager_spark=false")


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
        assert process.wait(60) == 0, rest
        assert "everything acknowledged is on disk" in rest
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def ask(
    port: int, method: str, path: str, body: str | None = None, **headers: str
) -> tuple[int, str]:
    """One request."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        client.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        answer = client.getresponse()
        return answer.status, answer.read().decode()
    finally:
        client.close()


def test_rows_outlive_the_process(tmp_path: Path) -> None:
    """What was acknowledged before SIGTERM is there after a restart; so are users."""
    data = str(tmp_path / "data")
    with served(data, HEADWATER_PASSWORD="pw") as (_process, port):
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
    config = tmp_path / "serve.toml"
    config.write_text(f'[serve]\npath = "{data}"\n')
    with served("--config", str(config)) as (_process, port):
        ada = basic("ada", "p")
        found = ask(
            port, "POST", "/sql", "SELECT a FROM e", Content_Type="text/plain",
            Accept="application/x-ndjson", Authorization=ada,
        )  # fmt: skip
        assert found == (200, '{"a":1}\n{"a":2}\n')


def test_it_does_not_listen_beyond_this_machine_unprotected(tmp_path: Path) -> None:
    """Without password and TLS it refuses, names both, and exits with 1; so it does for HTTP alone."""
    for flags in (
        ("--host", "0.0.0.0"),
        ("--http-host", "0.0.0.0"),
        ("--host", "0.0.0.0", "--tls-elsewhere"),
    ):
        done = subprocess.run(
            [*COMMAND, str(tmp_path / "data"), *QUICK, *flags],
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 1
        assert "users with passwords" in done.stderr
        assert ("TLS" in done.stderr.partition("hint")[0]) == ("--tls-elsewhere" not in flags)
