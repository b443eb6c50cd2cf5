"""Sessions over the wire: what a client gets wrong, cursors, transactions; without Spark."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

import headwater
from benchmarks.serve.loader import Client
from headwater.server.wire import messages as m
from tests.harness.patience import PATIENCE_S
from tests.server.frontend import encoded, error_fields, replies_of
from tests.server.live import LiveServer

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")


@pytest.fixture
def live() -> Iterator[LiveServer]:
    """A server over a stream of two rows and a view of it."""
    settings = {"eager_spark": False}
    with headwater.connect(":memory:", settings=settings) as db, LiveServer(db) as server:
        db.sql("CREATE STREAMING TABLE s (k INT)")
        db.sql("INSERT INTO s VALUES (7), (8)")
        db.sql("CREATE VIEW v AS SELECT k, count(*) AS n FROM s GROUP BY k")
        yield server


def raw(live: LiveServer) -> Client:
    """A connection that sends any message."""
    client = Client((live.host, live.port), "tester", "headwater")
    client.socket.settimeout(PATIENCE_S)
    return client


def asked(client: Client, *series: m.Message) -> list[tuple[str, bytes]]:
    """What comes back for messages of which the last one ends a series."""
    client.socket.sendall(b"".join(map(encoded, series)))
    data = b""
    while b"Z\0\0\0\x05" not in data:
        part = client.socket.recv(1 << 16)
        assert part, "the server closed the connection"
        data += part
    return replies_of(data)


def sqlstate(replies: list[tuple[str, bytes]]) -> str:
    """The SQLSTATE of the one error."""
    (body,) = (body for kind, body in replies if kind == "E")
    return error_fields(body)["C"]


def test_formats_that_do_not_fit_end_the_statement_alone(live: LiveServer) -> None:
    """Too few, too many or unknown formats are errors of the client's; the connection goes on."""
    with raw(live) as client:
        for _ in range(3):
            asked(client, m.QueryMessage("SELECT * FROM v"))  # its answer is known then
        asked(client, m.Parse("p", "SELECT $1, $2, $3", (23, 23, 23)), m.Sync())
        values = (b"1", b"2", b"3")
        assert sqlstate(asked(client, m.Bind("", "p", (0, 0), values, ()), m.Sync())) == "08P01"
        assert sqlstate(asked(client, m.Bind("", "p", (7,), values, ()), m.Sync())) == "22023"
        for text in ("SELECT * FROM v", "SELECT k FROM s"):
            asked(client, m.Parse("", text, ()), m.Sync())
            series = [m.Bind("", "", (), (), (1, 1, 1)), m.Execute("", 0), m.Sync()]
            assert sqlstate(asked(client, *series)) == "08P01"
        assert asked(client, m.QueryMessage("SELECT k FROM s"))[-1] == ("Z", b"I")


def test_a_known_series_of_a_view_with_other_columns_now(live: LiveServer) -> None:
    """Formats for each column, and then the view has one more: an error, and the connection goes on."""
    with raw(live) as client:
        asked(client, m.QueryMessage("SELECT * FROM v"))
        asked(client, m.Parse("x", "SELECT * FROM v", ()), m.Sync())
        series = [m.Bind("", "x", (), (), (1, 1)), m.Execute("", 0), m.Sync()]
        for _ in range(3):
            assert [kind for kind, _ in asked(client, *series)] == list("2DDCZ")
        database = live.server.database
        database.sql("CREATE OR REPLACE VIEW v AS SELECT k, count(*) n, sum(k) t FROM s GROUP BY k")
        database.sql("SELECT * FROM v")
        for _ in range(2):
            assert sqlstate(asked(client, *series)) == "08P01"


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_cursors_end_with_their_transaction(live: LiveServer, end: str) -> None:
    """The name is free again, in both protocols; a cursor WITH HOLD stays, with the rows it had."""
    with raw(live) as client, psycopg.connect(live.dsn, autocommit=True) as other:
        other.execute("DECLARE held CURSOR WITH HOLD FOR SELECT k FROM s")
        other.execute("INSERT INTO s VALUES (9)")
        for _ in range(2):
            asked(client, m.QueryMessage("BEGIN"))
            assert (
                asked(client, m.QueryMessage("DECLARE c CURSOR FOR SELECT k FROM s"))[0][0] == "C"
            )
            asked(client, m.QueryMessage(end))
            other.execute("BEGIN")
            other.execute("DECLARE c CURSOR FOR SELECT k FROM s")
            other.execute(end)
        assert sqlstate(asked(client, m.QueryMessage("FETCH 1 FROM c"))) == "34000"
        assert other.execute("FETCH ALL FROM held").fetchall() == [(7,), (8,)]
        other.execute("CLOSE held")


@pytest.mark.parametrize(
    "text", ["COPY s FROM '/nowhere.csv' CSV", "INSERT INTO s FROM STREAM 'csv:/nowhere'"]
)
def test_rows_that_cannot_wait_are_refused_in_a_transaction(live: LiveServer, text: str) -> None:
    """Rows that ROLLBACK could not take back are not added before COMMIT."""
    with raw(live) as client:
        asked(client, m.QueryMessage("BEGIN"))
        assert sqlstate(asked(client, m.QueryMessage(text))) == "0A000"


LARGE = "SELECT count(*) FROM pg_type a, pg_type b, pg_type c, pg_type d, pg_type e, pg_type f"


def test_a_statement_can_be_cancelled_when_no_more_clients_may_come() -> None:
    """A cancellation comes over a connection of its own; that one needs no room."""
    settings = {"eager_spark": False, "connections": 1}
    with (
        headwater.connect(":memory:", settings=settings) as db,
        LiveServer(db) as live,
        psycopg.connect(live.dsn, autocommit=True) as client,
    ):
        with pytest.raises(psycopg.OperationalError, match="too many connections"):
            psycopg.connect(live.dsn)
        found: list[str] = []

        def run() -> None:
            try:
                client.execute(LARGE)
            except psycopg.errors.QueryCanceled as error:
                found.append(str(error))

        live.wait_until(lambda: len(live.server.connections) == 1)
        (connection,) = live.server.connections.values()
        thread = threading.Thread(target=run)
        thread.start()
        live.wait_until(lambda: connection.machine.is_busy)
        client.cancel_safe()
        thread.join(PATIENCE_S)
        assert len(found) == 1


def test_a_time_with_an_offset_is_that_moment(live: LiveServer) -> None:
    """The client casts a text of its own: what it calls timestamptz keeps its offset."""
    moment, texts = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), ("05:04:05+02:00", "02:34:05-00:30")
    with psycopg.connect(live.dsn, autocommit=True) as client:
        client.execute("CREATE STREAMING TABLE m (at TIMESTAMP NOT NULL) TIMESTAMP BY at")
        for cast in ("timestamptz", "timestamp with time zone"):
            for text in texts:
                client.execute(f"INSERT INTO m VALUES (%s::{cast})", (f"2026-01-02 {text}",))
        found = client.execute("SELECT at FROM m").fetchall()
    assert found == [(moment,)] * 4
