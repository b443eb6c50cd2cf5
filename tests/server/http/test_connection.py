"""Connections: limits of size and time, broken clients, slow readers, an orderly end."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

import headwater
from headwater.errors import Error
from headwater.kernel.cancellation import Cancellation
from headwater.result import Result
from headwater.server.http import server as http_server
from headwater.server.http.connection import WRITE_AHEAD
from headwater.server.http.rows_out import PART_BYTES
from headwater.server.http.server import HttpOptions, HttpServer
from tests.harness.patience import PATIENCE_S
from tests.server.http.client import Client
from tests.server.live import Live

HOST = b" HTTP/1.1\r\nHost: localhost\r\n"
GOOD = (
    b"GET /health" + HOST + b"\r\n",
    b"GET /ready" + HOST + b"Connection: close\r\n\r\n",
    b"POST /sql"
    + HOST
    + b'Content-Type: application/json\r\nContent-Length: 21\r\n\r\n{"sql":"SHOW TABLES"}',
    b"POST /sql" + HOST + b"Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"b\r\nSHOW TABLES\r\n0\r\n\r\n",
    b"POST /tables/t?header=false" + HOST + b"Batch-Id: x\r\nContent-Type: text/csv\r\n"
    b"Content-Length: 4\r\n\r\n1,2\n",
    b"GET /subscribe/q" + HOST + b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
)
WORDS = (
    b"\r\n", b"\n", b"\x00", b": ", b"%", b"%00", b"/..", b"Content-Length: 99999999999999999999",
    b"Transfer-Encoding: chunked\r\n", b"Content-Length: -1\r\n", b"Expect: 100-continue\r\n", b"\xff\xfe",
    b"HTTP/9.9", b"ffffffff\r\n", b"Host: a\r\n", b"Origin: http://x\r\n", b"A" * 40_000,
)  # fmt: skip


def raw(live: Live, data: bytes, *, end: bool = True) -> bytes:
    """What the server answers to bytes, until it closes."""
    with socket.create_connection((live.host, live.port), timeout=PATIENCE_S) as client:
        try:
            client.sendall(data)
            if end:
                client.shutdown(socket.SHUT_WR)
            parts = []
            while part := client.recv(65536):
                parts.append(part)
        except (ConnectionResetError, BrokenPipeError):
            return b""
        return b"".join(parts)


def mutated(data: bytes, dice: random.Random) -> bytes:
    """A request with a few things wrong."""
    changed = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(changed) + 1)
        act = dice.randrange(4)
        if act == 0:
            changed[at:at] = dice.choice(WORDS)
        elif act == 1:
            del changed[at : at + dice.randint(1, 20)]
        elif act == 2:
            changed[at:at] = changed[at : at + 30]
        elif at < len(changed):
            changed[at] = dice.randrange(256)
    return bytes(changed)


def test_malformed_requests(live: Live, client: Client) -> None:
    """Thousands of broken requests: each gets an answer of HTTP or a closed connection, none harms."""
    dice = random.Random(7)
    for number in range(2000):
        data = mutated(GOOD[number % len(GOOD)], dice)
        answer = raw(live, data)
        assert answer == b"" or answer.startswith((b"HTTP/1.1 ", b"\x88")), data
        assert b" 500 " not in answer.partition(b"\r\n")[0], data
    assert client.ask("GET", "/health").status == 200
    assert len(live.server.waiting) + len(live.server.connections) == 1


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"400"),
        (b"GET /health HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 100_000 + b"\r\n\r\n", b"431"),
        (b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", b"400"),
        (
            b"POST /sql HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"400",
        ),
        (b"POST /sql HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n", b"413"),
    ],
)
def test_heads_that_are_refused(live: Live, head: bytes, status: bytes) -> None:
    """Doubtful or oversized requests are answered and the connection is closed, without waiting."""
    assert raw(live, head, end=False).split(b" ", 2)[1] == status


def test_bodies_have_a_bound(plain: headwater.Database, live: Live) -> None:
    """A body in chunks without an end is refused at the bound, not kept."""
    plain.sql("SET message_mb = 1")
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    head = b"POST /sql HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = raw(live, head + chunk * 17, end=False)
    assert answer.split(b" ", 2)[1] == b"413"
    with Client(live) as client:
        large = client.ask("POST", "/sql", b"x" * ((1 << 20) + 1), Content_Type="text/plain")
        assert (large.status, large.sqlstate) == (413, "54000")


def test_clients_that_send_slowly_are_let_go(plain: headwater.Database, live: Live) -> None:
    """Half a head, half a body, or nothing at all: the connection ends after http_idle_s."""
    plain.sql("SET http_idle_s = 0.2")
    assert raw(live, b"GET /health HTTP/1.1\r\n", end=False).split(b" ", 2)[1] == b"408"
    body = b"POST /sql HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nSHOW"
    assert raw(live, body, end=False).split(b" ", 2)[1] == b"408"
    assert raw(live, b"", end=False) == b""


def test_requests_follow_each_other(live: Live) -> None:
    """Three requests sent at once are answered in turn; 100-continue is said when a body is awaited."""
    one = b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n"
    answer = raw(live, one * 2 + one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert answer.count(b"HTTP/1.1 200 OK") == 3
    waiting = (
        b"POST /sql HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
        b"Expect: 100-continue\r\nContent-Length: 11\r\n\r\n"
    )
    with socket.create_connection((live.host, live.port), timeout=PATIENCE_S) as client:
        client.sendall(waiting)
        assert client.recv(1000).startswith(b"HTTP/1.1 100 ")
        client.sendall(b"SHOW TABLES")
        assert client.recv(1000).startswith(b"HTTP/1.1 200 ")


def test_connections_have_a_bound() -> None:
    """One more than allowed is told so, health is answered all the same; when one goes, another may come."""
    with headwater.connect(settings={"eager_spark": False, "connections": 2}) as db:  # noqa: SIM117
        with Live(HttpServer(db, HttpOptions(port=0))) as live:
            with Client(live) as first:
                with Client(live) as second:
                    assert first.sql("SHOW TABLES").status == 200
                    assert second.sql("SHOW TABLES").status == 200
                    with Client(live) as third:
                        refused = third.sql("SHOW TABLES")
                        assert (refused.status, refused.sqlstate) == (503, "53300")
                        assert third.ask("GET", "/health").status == 200
                        assert third.ask("GET", "/ready").status in (200, 503)
                live.wait_until(lambda: len(live.server.connections) == 1)
                with Client(live) as third:
                    assert third.sql("SHOW TABLES").status == 200


def test_slow_readers_cost_bounded_memory(plain: headwater.Database, live: Live) -> None:
    """Clients that ask for much and take nothing: what waits for each is bounded; a reader gets all."""
    count = 60_000
    plain.sql("CREATE TABLE big (a BIGINT, b STRING)")
    plain.insert("big", pa.table({"a": pa.array(range(count)), "b": ["x" * 200] * count}))
    request = (
        b"POST /sql HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
        b"Content-Length: 20\r\n\r\nSELECT a, b FROM big"
    )
    sockets = [socket.create_connection((live.host, live.port)) for _ in range(5)]
    try:
        for client in sockets:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall(request)
        server = live.server
        assert isinstance(server, HttpServer)
        live.wait_until(lambda: _waiting(server) > WRITE_AHEAD)
        with Client(live) as other:
            assert other.ask("GET", "/health").status == 200
            found = other.sql("SELECT a, b FROM big")
            assert found.json["row_count"] == len(found.json["rows"]) == count
        assert _waiting(server) <= len(sockets) * (WRITE_AHEAD + 8 * PART_BYTES)
    finally:
        for client in sockets:
            client.close()


def _waiting(server: HttpServer) -> int:
    return sum(c.writer.transport.get_write_buffer_size() for c in list(server.connections))


@contextmanager
def long_statement(
    database: headwater.Database, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[threading.Event, threading.Event, list[str]]]:
    """Statements wait for an event, or until they are cancelled; the reasons of that."""
    begun, go_on, reasons = threading.Event(), threading.Event(), []

    def statement(text: str, cancellation: Cancellation, role: str, **_: object) -> Result:
        with cancellation.on_cancel(go_on.set):
            begun.set()
            assert go_on.wait(PATIENCE_S)
        try:
            cancellation.check()
        except Error as error:
            reasons.append(error.message)
            raise
        return Result("DONE")

    monkeypatch.setattr(database, "statement", statement)
    yield begun, go_on, reasons


def test_a_statement_has_a_limit_of_time(
    plain: headwater.Database, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`timeout_s` cancels the statement and the client is told."""
    with long_statement(plain, monkeypatch) as (_begun, _go_on, reasons):
        answer = client.ask("POST", "/sql?timeout_s=0.05", "SHOW TABLES", Content_Type="text/plain")
    assert (answer.status, answer.sqlstate) == (504, "57014")
    assert "0.05" in reasons[0]


def test_a_client_that_goes_cancels_its_statement(
    plain: headwater.Database, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for the result any more, so it is not computed."""
    with long_statement(plain, monkeypatch) as (begun, go_on, reasons):
        with socket.create_connection((live.host, live.port)) as gone:
            gone.sendall(GOOD[3])
            assert begun.wait(PATIENCE_S)
        assert go_on.wait(PATIENCE_S)
        live.wait_until(lambda: len(live.server.connections) == 0)
    assert reasons == ["the client has gone"]


def test_a_server_that_stops_lets_requests_end(
    plain: headwater.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request under way is answered before the listener is gone; idle connections are not kept."""
    answers = []
    with long_statement(plain, monkeypatch) as (begun, go_on, _reasons):
        live = Live(HttpServer(plain, HttpOptions(port=0)))
        live.__enter__()
        idle, busy = Client(live), Client(live)
        assert idle.ask("GET", "/health").status == 200
        asks = threading.Thread(target=lambda: answers.append(busy.sql("SHOW TABLES")))
        asks.start()
        assert begun.wait(PATIENCE_S)
        stops = threading.Thread(target=lambda: live.__exit__(None, None, None))
        stops.start()
        live.wait_until(lambda: live.server.stopping)
        go_on.set()
        for thread in (asks, stops):
            thread.join(PATIENCE_S)
        assert (answers[0].status, answers[0].headers["connection"]) == (200, "close")
        idle.close()
        busy.close()


def test_a_server_that_stops_cancels_what_takes_too_long(
    plain: headwater.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After drain_s the statement is cancelled, and the server stops."""
    plain.sql("SET drain_s = 0.1")
    answers = []
    with long_statement(plain, monkeypatch) as (begun, _go_on, reasons):
        with Live(HttpServer(plain, HttpOptions(port=0))) as live, Client(live) as client:
            asks = threading.Thread(target=lambda: answers.append(client.sql("SHOW TABLES")))
            asks.start()
            assert begun.wait(PATIENCE_S)
        asks.join(PATIENCE_S)
    assert reasons == ["the server stops"]
    assert answers[0].sqlstate == "57014"


def test_defects_do_not_show_their_insides(
    plain: headwater.Database, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception that nobody foresaw is answered with XX000 and its kind, and the server goes on."""

    def broken(*_given: object) -> Result:
        raise KeyError("secret")

    monkeypatch.setattr(plain, "statement", broken)
    answer = client.sql("SHOW TABLES")
    assert (answer.status, answer.sqlstate) == (500, "XX000")
    assert b"secret" not in answer.body
    assert client.ask("GET", "/health").status == 200
    assert http_server.is_local("127.0.0.1")
