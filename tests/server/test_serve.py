"""`headwater serve`: whom it lets in from where, TLS, and that it stops cleanly."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import headwater
from headwater.cli.serve import given_login, given_password
from headwater.errors import SettingError
from headwater.server.peers import Peer
from headwater.server.serve import check_reach, is_loopback, tls_context
from headwater.server.wire import server as wire_server
from headwater.server.wire.server import WireOptions
from tests.server.live import LiveServer

LOCAL = ("127.0.0.1", "127.1.2.3", "::1", "localhost")
OPEN = ("0.0.0.0", "::", "192.0.2.1")


def test_addresses() -> None:
    """Only loopback addresses are this machine's alone."""
    assert all(map(is_loopback, LOCAL))
    assert not any(map(is_loopback, OPEN))
    with pytest.raises(SettingError, match="not known"):
        is_loopback("no-such-host.invalid")


@pytest.mark.parametrize("host", [LOCAL[0], OPEN[0]])
@pytest.mark.parametrize("users", [0, 1])
@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("insecure", [False, True])
def test_reach(host: str, users: int, tls: bool, insecure: bool) -> None:
    """Beyond this machine: passwords and TLS, or an explicit word."""
    allowed = host in LOCAL or insecure or (bool(users) and tls)
    if allowed:
        check_reach(host, users=users, tls=tls, insecure=insecure)
        return
    with pytest.raises(SettingError, match="TLS" if users else "users"):
        check_reach(host, users=users, tls=tls, insecure=insecure)


def test_passwords_come_from_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without either there are no users; an empty file is an error, not a password."""
    monkeypatch.delenv("HEADWATER_PASSWORD", raising=False)
    assert given_password("") == ""
    file = tmp_path / "password"
    file.write_text("secret\n")
    assert given_password(str(file)) == "secret"
    monkeypatch.setenv("HEADWATER_PASSWORD", "other")
    assert given_password("") == "other"
    assert "HEADWATER_PASSWORD" not in os.environ
    file.write_text("\n")
    with pytest.raises(SettingError, match="no password"):
        given_password(str(file))


def test_an_admin_who_was_given_counts_as_one() -> None:
    """Nobody is warned that there is no admin while one can log in; without that one, they are."""
    with headwater.connect(":memory:", settings={"eager_spark": False}) as db:
        assert given_login("", db) is None
        assert "role admin" in str(db.sql("CREATE USER ann PASSWORD 'p' ROLE READER").notice)
        login = given_login("secret", db)
        assert login is not None
        assert "secret" not in str(login.verifier)
        assert db.sql("CREATE USER bob PASSWORD 'p' ROLE READER").notice is None
        assert db.sql("DROP USER ann").notice is None


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for this machine, signed by itself."""
    found, key = folder / "server.crt", folder / "server.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-out", found, "-keyout", key],
        check=True, capture_output=True,
    )  # fmt: skip
    return found, key


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_tls(tmp_path: Path) -> None:
    """A client that requires TLS gets it, and the certificate that was given."""
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    found, key = certificate(tmp_path)
    options = WireOptions(port=0, tls=tls_context(found, key))
    settings = {"eager_spark": False}
    with (
        headwater.connect(":memory:", settings=settings) as db,
        LiveServer(db, options=options) as live,
        psycopg.connect(
            host=live.host, port=live.port, user="me", sslmode="verify-ca", sslrootcert=str(found)
        ) as client,
    ):
        assert client.pgconn.ssl_in_use
        assert client.execute("SELECT 1").fetchall() == [(1,)]
    with pytest.raises(SettingError, match="cannot be used"):
        tls_context(key, key)


def test_too_many_connections() -> None:
    """One connection beyond the bound is told so; when one leaves, there is room again."""
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    settings = {"eager_spark": False, "connections": 1}
    with headwater.connect(":memory:", settings=settings) as db, LiveServer(db) as live:
        with psycopg.connect(live.dsn):
            with pytest.raises(psycopg.OperationalError, match="too many connections"):
                psycopg.connect(live.dsn)
            ended = next(iter(live.server.connections.values())).ended
        live.wait_for(ended)
        psycopg.connect(live.dsn).close()


def test_other_machines_need_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that is not of this machine is refused without TLS, and without users."""
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    monkeypatch.setattr(wire_server, "peer_of", lambda *_, **__: Peer("192.0.2.1"))
    tls = None if shutil.which("openssl") is None else tls_context(*certificate(tmp_path))
    settings = {"eager_spark": False}
    with headwater.connect(":memory:", settings=settings) as db:
        for options, word in (
            (WireOptions(port=0), "no users"),
            (WireOptions(port=0, tls=tls), "need TLS" if tls else "no users"),
        ):
            refused = pytest.raises(psycopg.OperationalError, match=word)
            with LiveServer(db, options=options) as live, refused:
                psycopg.connect(live.dsn)
        with LiveServer(db, options=WireOptions(port=0, trust_anyone=True)) as live:
            psycopg.connect(live.dsn).close()


def test_stopping_ends_what_runs() -> None:
    """A server that stops ends its clients' statements; the clients are told."""
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    settings = {"eager_spark": False}
    with headwater.connect(":memory:", settings=settings) as db:
        db.sql("CREATE STREAMING TABLE s (at INT) TIMESTAMP BY at")
        db.sql("CREATE CONTINUOUS QUERY q AS SELECT * FROM s [ROWS 1] SAMPLE 1 ROWS")
        with LiveServer(db) as live:
            client = psycopg.connect(live.dsn, autocommit=True)
            client.pgconn.send_query(b"SUBSCRIBE q")
            client.pgconn.flush()
            connection = next(iter(live.server.connections.values()))
            live.wait_until(lambda: connection._task is not None)
        with pytest.raises(psycopg.OperationalError):
            client.execute("SELECT 1")
        client.close()
