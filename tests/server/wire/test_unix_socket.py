"""The Unix socket: where it is, whom it lets in, and what becomes of the file."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import headwater
from headwater.errors import SettingError, StorageError
from headwater.server.wire.unix_socket import UnixListener, bound, chosen_folder, default_folder
from tests.harness.patience import PATIENCE_S
from tests.server.live import LiveServer
from tests.server.test_peers import NOBODY, as_root, linux, spoken_by

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")


@contextmanager
def listening(folder: Path) -> Iterator[tuple[headwater.Database, Path, int]]:
    """A database without users, the path of its socket, and the port in its name."""
    with headwater.connect(settings={"eager_spark": False}) as db, LiveServer(db, db.users) as live:
        unix = UnixListener(live.server, folder)
        live.wait(unix.start())
        try:
            yield db, folder / f".s.PGSQL.{live.port}", live.port
        finally:
            live.wait(unix.stop())


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose path is short enough, which others may enter."""
    with tempfile.TemporaryDirectory(prefix="hw-") as found:
        os.chmod(found, 0o755)
        yield Path(found)


@linux
def test_our_own_user_needs_no_password(short: Path) -> None:
    """As psycopg and psql look for it; once there are users, a password is wanted here too."""
    with listening(short) as (db, path, port):
        assert path.is_socket()
        with psycopg.connect(host=str(short), port=port, user="me", autocommit=True) as client:
            assert client.execute("SELECT 1").fetchall() == [(1,)]
            client.execute("CREATE USER ada PASSWORD 'p' ROLE ADMIN")
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(host=str(short), port=port, user="me")
        psycopg.connect(host=str(short), port=port, user="ada", password="p").close()
        assert len(db.users) == 1
    assert list(short.iterdir()) == []


@pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
def test_psql_finds_it(short: Path) -> None:
    """`psql -h FOLDER -p PORT`."""
    with listening(short) as (_, _path, port):
        found = subprocess.run(
            ["psql", "-h", short, "-p", str(port), "-U", "me", "-Atc", "SELECT 1", "headwater"],
            capture_output=True, text=True, timeout=PATIENCE_S,
        )  # fmt: skip
    assert found.stdout == "1\n", found.stderr


@linux
@as_root
def test_another_os_user_does_not_get_in(short: Path) -> None:
    """Even one who can reach the folder."""
    with listening(short) as (_, path, _port):
        assert "only the OS user of the server" in spoken_by(NOBODY, "", path=str(path))
        assert "client_encoding" in spoken_by(0, "", path=str(path))


def test_what_a_killed_server_left_makes_way(short: Path) -> None:
    """A socket that nobody answers at is replaced; one that is answered is not, nor is another file."""
    path = short / ".s.PGSQL.1"
    bound(path).close()
    with bound(path) as found:
        found.listen()
        with pytest.raises(StorageError, match="in use") as caught:
            bound(path)
        assert caught.value.sqlstate == "55006"
    path.unlink()
    path.write_text("mine")
    with pytest.raises(OSError, match="in use"):
        bound(path)
    assert path.read_text() == "mine"
    with pytest.raises(SettingError, match="too long"):
        bound(short / ("x" * 200))


def test_a_server_does_not_remove_the_socket_of_another(short: Path) -> None:
    """Somebody put another file in its place: it stays."""
    with listening(short) as (_, path, _port):
        path.unlink()
        path.write_text("mine")
    assert path.read_text() == "mine"


def test_where_it_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the system gives a service, a session, or a folder of our own under /tmp."""
    service, session = {"RUNTIME_DIRECTORY": "/run/a:/run/b"}, {"XDG_RUNTIME_DIR": "/run/user/7"}
    assert default_folder(service | session) == Path("/run/a")
    assert default_folder(session) == Path("/run/user/7/headwater")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    own = chosen_folder("", {})
    assert own == tmp_path / f"headwater-sockets-{os.geteuid()}"
    assert stat.S_IMODE(own.stat().st_mode) == 0o700
    assert chosen_folder("", {}) == own
    own.chmod(0o777)
    with pytest.raises(StorageError, match="somebody else's"):
        chosen_folder("", {})
    own.rmdir()
    own.symlink_to(tmp_path)
    with pytest.raises(StorageError, match="somebody else's"):
        chosen_folder("", {})
    assert chosen_folder("none", {}) is None
    assert chosen_folder(str(tmp_path), {}) == tmp_path
    with pytest.raises(StorageError, match="cannot be made"):
        chosen_folder(str(tmp_path / "a" / "b"), {})


def test_it_can_be_stopped_before_it_was_started(short: Path) -> None:
    """As `serve` does where a listener before it failed."""
    with headwater.connect(settings={"eager_spark": False}) as db, LiveServer(db) as live:
        asyncio.run(UnixListener(live.server, short).stop())
        with socket.socket(socket.AF_UNIX) as client, pytest.raises(FileNotFoundError):
            client.connect(str(short / f".s.PGSQL.{live.port}"))
