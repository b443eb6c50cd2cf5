"""Connections that do not log in, passwords that are guessed, names that are asked after: nobody is shut out
or given away, over PostgreSQL's protocol and over HTTP alike."""

from __future__ import annotations

import base64
import contextlib
import re
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater
from headwater.cli.serve import given_login
from headwater.execute.verifiers import make_verifier
from headwater.server.attempts import MOST_FAILURES, Attempts
from headwater.server.http.server import HttpOptions, HttpServer
from headwater.server.serve import tls_context
from headwater.server.users import ServerUsers
from headwater.server.wire import messages as m
from headwater.server.wire.server import WireOptions
from tests.harness.patience import PATIENCE_S
from tests.server.frontend import ScramClient, encoded, error_fields, replies_of
from tests.server.http.client import Client, basic
from tests.server.live import Live, LiveServer
from tests.server.test_serve import certificate

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
SMALL = {
    "eager_spark": False, "connections": 4, "connections_reserved": 1, "waiting_logins": 20,
    "waiting_logins_per_address": 10, "login_timeout_s": 60,
}  # fmt: skip
HALF_HEAD = b"GET /health HTTP/1.1\r\nHost: loc"
HALF_STARTUP = encoded(m.Startup(3, 0, {"user": "me"}))[:-3]
CALLS = 120


@pytest.fixture
def plain(request: pytest.FixtureRequest) -> Iterator[headwater.Database]:
    """A database with small bounds."""
    given = getattr(request, "param", {})
    with headwater.connect(settings=SMALL | given) as database:
        yield database


@contextlib.contextmanager
def sockets(live: Live, count: int, words: bytes) -> Iterator[list[socket.socket]]:
    """Connections that say something, and then nothing more; the oldest first."""
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(count):
            where = (live.host, live.port)
            client = stack.enter_context(socket.create_connection(where, timeout=PATIENCE_S))
            found.append(client)
            with contextlib.suppress(OSError):
                client.sendall(words)
        yield found


def is_cut_off(client: socket.socket) -> bool:
    """Whether the server ends a connection; waits for it."""
    try:
        while client.recv(4096):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        return False
    return True


def logged_in(live: LiveServer, user: str, password: str, **more: Any) -> Any:
    return psycopg.connect(
        host=live.host, port=live.port, user=user, password=password, dbname="x", **more
    )


# Silent sockets


@pytest.mark.parametrize("words", [b"", encoded(m.SslRequest()), HALF_STARTUP])
def test_silent_sockets_shut_nobody_out(plain: headwater.Database, words: bytes) -> None:
    """More of them than every bound: a real client logs in at once, and what is kept of them is bounded."""
    with LiveServer(plain) as live, sockets(live, CALLS, words) as silent:
        assert is_cut_off(silent[0])
        with psycopg.connect(live.dsn, autocommit=True) as client:
            assert client.execute("SELECT 1").fetchall() == [(1,)]
            assert len(live.server.guests.all()) <= 10 + 1
            numbers = live.server.guests.numbers()
        assert numbers["wire.dropped_logins"] >= CALLS - 10
        assert numbers["wire.refused_connections"] == 0


@pytest.mark.parametrize("words", [b"", HALF_HEAD])
def test_half_heads_do_not_silence_health(plain: headwater.Database, words: bytes) -> None:
    """HTTP: health, the console and statements are answered while others hold half heads open."""
    with (
        Live(HttpServer(plain, HttpOptions(port=0))) as live,
        sockets(live, CALLS, words) as silent,
    ):
        assert is_cut_off(silent[0])
        for path in ("/health", "/"):
            with Client(live) as client:
                assert client.ask("GET", path).status == 200
        with Client(live) as client:
            assert client.sql("SHOW TABLES").status == 200
        assert len(live.server.waiting) <= 10
        assert live.server.dropped_logins >= CALLS - 10


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_handshakes_that_do_not_end_are_counted(plain: headwater.Database, tmp_path: Path) -> None:
    """With TLS nothing of HTTP has come yet; over the wire a handshake that fails leaves nothing."""
    tls = tls_context(*certificate(tmp_path))
    with Live(HttpServer(plain, HttpOptions(port=0, tls=tls))) as live:
        with sockets(live, CALLS, b"\x16\x03\x01"):
            live.wait_until(lambda: live.server.dropped_logins >= CALLS - 10)
            assert len(live.server.waiting) <= 10
        live.wait_until(lambda: not len(live.server.waiting))
    with LiveServer(plain, options=WireOptions(port=0, tls=tls)) as wire:
        with socket.create_connection((wire.host, wire.port), timeout=PATIENCE_S) as client:
            client.sendall(encoded(m.SslRequest()))
            assert client.recv(1) == b"S"
            client.sendall(b"this is no TLS, whatever else it may be")
            with contextlib.suppress(OSError):
                while client.recv(1000):
                    pass
        wire.wait_until(lambda: not wire.server.guests.all())


@pytest.mark.parametrize("plain", [{"login_timeout_s": 0.2}], indirect=True)
def test_a_login_has_a_deadline(plain: headwater.Database) -> None:
    """Silence is cut off; one who was asked for the password is told why; HTTP gets 408."""
    plain.sql("CREATE USER ada PASSWORD 'p' ROLE ADMIN")
    with LiveServer(plain, plain.users) as live:
        with sockets(live, 1, b"") as silent:
            assert is_cut_off(silent[0])
        with socket.create_connection((live.host, live.port), timeout=PATIENCE_S) as client:
            client.sendall(encoded(m.Startup(3, 0, {"user": "ada"})))
            said = b""
            while data := client.recv(4096):
                said += data
        (_, error) = replies_of(said)[-1]
        assert error_fields(error)["C"] == "57014"
        with logged_in(live, "ada", "p") as client:
            (connection,) = live.server.connections.values()
            assert connection._patience.cancelled()
            assert client.execute("SELECT 1").fetchall() == [(1,)]
    with (
        Live(HttpServer(plain, HttpOptions(port=0))) as live,
        socket.create_connection((live.host, live.port), timeout=PATIENCE_S) as half,
    ):
        half.sendall(HALF_HEAD)
        assert half.recv(1000).startswith(b"HTTP/1.1 408 ")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
@pytest.mark.parametrize("plain", [{"login_timeout_s": 0.2}], indirect=True)
def test_a_handshake_has_a_deadline(plain: headwater.Database, tmp_path: Path) -> None:
    """One that stops half way is cut off, and nothing is kept of it, on both protocols."""
    tls = tls_context(*certificate(tmp_path))
    with LiveServer(plain, options=WireOptions(port=0, tls=tls)) as live:
        with sockets(live, 5, encoded(m.SslRequest())) as silent:
            assert all(map(is_cut_off, silent))
        live.wait_until(lambda: not live.server.guests.all())
    with Live(HttpServer(plain, HttpOptions(port=0, tls=tls))) as live:
        with sockets(live, 5, b"\x16\x03\x01") as silent:
            assert all(map(is_cut_off, silent))
        live.wait_until(lambda: not len(live.server.waiting))


# Places


@pytest.mark.parametrize("tls", [False, True])
def test_the_last_places_are_an_admins(
    plain: headwater.Database, tmp_path: Path, tls: bool
) -> None:
    """Readers are told that there are too many, in words that their driver shows; admins get in."""
    if tls and shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    plain.sql("CREATE USER ada PASSWORD 'a' ROLE ADMIN; CREATE USER rob PASSWORD 'r' ROLE READER")
    context = tls_context(*certificate(tmp_path)) if tls else None
    options = WireOptions(port=0, tls=context)
    with LiveServer(plain, plain.users, options) as live, contextlib.ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(logged_in(live, "rob", "r"))
        for sslmode in ("prefer", "disable"):
            with pytest.raises(psycopg.OperationalError) as caught:
                logged_in(live, "rob", "r", sslmode=sslmode)
            assert "too many connections" in str(caught.value)
            assert "SSL exchange" not in str(caught.value)
        with pytest.raises(psycopg.OperationalError, match="authentication failed"):
            logged_in(live, "rob", "wrong")
        stack.enter_context(logged_in(live, "ada", "a"))
        with pytest.raises(psycopg.OperationalError, match="too many connections"):
            logged_in(live, "ada", "a")


def test_the_last_places_are_an_admins_over_http(plain: headwater.Database) -> None:
    """503 and 53300 for readers, while an admin and health are answered; a refused login takes no place."""
    plain.sql("CREATE USER ada PASSWORD 'a' ROLE ADMIN; CREATE USER rob PASSWORD 'r' ROLE READER")
    with (
        Live(HttpServer(plain, HttpOptions(port=0))) as live,
        contextlib.ExitStack() as stack,
    ):

        def asked(header: str | None) -> int:
            return stack.enter_context(Client(live, header)).ask("GET", "/console/names").status

        reader = basic("rob", "r")
        assert [asked(basic("rob", "x")) for _ in range(5)] == [401] * 5
        assert [asked(reader) for _ in range(4)] == [200, 200, 200, 503]
        assert asked(basic("ada", "a")) == 200
        with Client(live) as client:
            assert client.ask("GET", "/health").status == 200


# Guessing


def test_both_listeners_count_together(plain: headwater.Database) -> None:
    """Wrong passwords over the wire and over HTTP are one count; then not even the right one shows."""
    plain.sql(
        "CREATE USER ada PASSWORD 'right' ROLE ADMIN; CREATE USER bob PASSWORD 'b' ROLE READER"
    )
    attempts = Attempts()
    wire = LiveServer(plain, plain.users, attempts=attempts)
    with wire, Live(HttpServer(plain, HttpOptions(port=0), attempts=attempts)) as web:
        for number in range(MOST_FAILURES - 5):
            with pytest.raises(psycopg.OperationalError, match="authentication failed"):
                logged_in(wire, "ADA" if number % 2 else "ada", "wrong")
        for _ in range(5):
            with Client(web, basic("ada", "wrong")) as client:
                assert client.ask("GET", "/console/names").status == 401
        with pytest.raises(psycopg.OperationalError, match="too many wrong passwords") as caught:
            logged_in(wire, "ada", "right")
        assert "try again in" in str(caught.value)
        with Client(web, basic("ada", "right")) as client:
            assert client.ask("GET", "/console/names").status == 429
        logged_in(wire, "bob", "b").close()


def test_guesses_that_were_begun_together_tell_no_more(plain: headwater.Database) -> None:
    """Logins that were begun before the bound: no more than the bound's number is told right or wrong."""
    plain.sql("CREATE USER ada PASSWORD 'right' ROLE ADMIN")
    plain.sql("SET waiting_logins = 100; SET waiting_logins_per_address = 100")
    with LiveServer(plain, plain.users) as live, contextlib.ExitStack() as stack:
        begun = []
        for number in range(MOST_FAILURES + 3):
            scram = ScramClient("right" if number > MOST_FAILURES else "wrong")
            where = (live.host, live.port)
            client = stack.enter_context(socket.create_connection(where, timeout=PATIENCE_S))
            client.sendall(encoded(m.Startup(3, 0, {"user": "ada"})))
            client.recv(4096)
            client.sendall(encoded(m.Password(scram.first())))
            [(_, body)] = replies_of(client.recv(4096))
            begun.append((client, scram.final(body[4:])))
        said = []
        for client, proof in begun:
            client.sendall(encoded(m.Password(proof)))
            [(_, body)] = replies_of(client.recv(4096))
            said.append(error_fields(body)["C"])
        assert said == ["28P01"] * MOST_FAILURES + ["28000"] * 3


def test_a_client_that_only_asks_for_the_salt_counts_as_nothing(plain: headwater.Database) -> None:
    """psql without a password connects once before it asks for one."""
    plain.sql("CREATE USER ada PASSWORD 'right' ROLE ADMIN")
    with LiveServer(plain, plain.users) as live:
        for _ in range(MOST_FAILURES + 1):
            with socket.create_connection((live.host, live.port), timeout=PATIENCE_S) as client:
                client.sendall(encoded(m.Startup(3, 0, {"user": "ada"})))
                client.recv(4096)
        logged_in(live, "ada", "right").close()


# Names


def salt(live: LiveServer, user: str) -> bytes:
    """The salt that a user is told."""
    with socket.create_connection((live.host, live.port), timeout=PATIENCE_S) as client:
        client.sendall(encoded(m.Startup(3, 0, {"user": user})))
        client.recv(4096)
        client.sendall(encoded(m.Password(ScramClient("x").first())))
        [(_, body)] = replies_of(client.recv(4096))
    found = re.search(rb"s=([^,]+)", body)
    assert found is not None
    return base64.b64decode(found.group(1))


def test_names_are_not_told_over_a_restart(folder: Path) -> None:
    """Users, the given admin and names that nobody has: all keep their salt, in every spelling."""
    seen = []
    for _ in range(2):
        with headwater.connect(folder, settings=SMALL) as db:
            db.sql("CREATE USER IF NOT EXISTS wim PASSWORD 'p' ROLE ADMIN")
            users = ServerUsers(db.users, given_login("secret", db))
            with LiveServer(db, users) as live:
                names = ("wim", "WIM", "ghost", "Ghost", "headwater", "HEADWATER", "other")
                found = {name: salt(live, name) for name in names}
                logged_in(live, "headwater", "secret").close()
        for name in ("wim", "ghost", "headwater"):
            assert found[name] == found[name.swapcase()] if name != "ghost" else found["Ghost"]
        seen.append(found)
    assert seen[0] == seen[1]
    assert len({*seen[0].values()}) == 4
    assert all(len(each) == len(make_verifier("p", b"x" * 16).salt) for each in seen[0].values())
