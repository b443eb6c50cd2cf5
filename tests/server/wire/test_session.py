"""Sessions over the wire: what a client gets wrong, cursors, transactions; without Spark."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

import headwater
from benchmarks.serve.loader import Client
from headwater.server.wire import messages as m
from headwater.sql import scripts
from headwater.sql.statements.base import Statement
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


def test_a_time_without_an_offset_is_read_in_the_zone_that_is_set(live: LiveServer) -> None:
    """In the text, and as a parameter in either format."""
    winter, summer = "2024-01-01 10:00", "2024-07-01 10:00:00.5"
    expected = [datetime(2024, 1, 1, 9, tzinfo=UTC), datetime(2024, 7, 1, 8, 0, 0, 500_000, UTC)]
    with psycopg.connect(live.dsn, autocommit=True) as client:
        client.execute("SET time_zone = 'Europe/Berlin'")
        try:
            literals = client.execute(
                f"SELECT '{winter}'::timestamptz, '{summer}'::timestamp with time zone"
            ).fetchone()
            parameters = client.execute(
                "SELECT %s::timestamptz, %b::timestamptz", (winter, summer)
            ).fetchone()
            client.execute("CREATE STREAMING TABLE z (at TIMESTAMP NOT NULL) TIMESTAMP BY at")
            for text in (winter, summer):
                client.execute("INSERT INTO z VALUES (%s::timestamptz)", (text,))
            stored = client.execute("SELECT at FROM z").fetchall()
        finally:
            client.execute("SET time_zone = 'UTC'")
        utc = client.execute("SELECT %s::timestamptz", (winter,)).fetchone()
    assert literals == parameters == tuple(expected)
    assert stored == [(moment,) for moment in expected]
    assert utc == (datetime(2024, 1, 1, 10, tzinfo=UTC),)


def rows_of(replies: list[tuple[str, bytes]]) -> list[bytes]:
    """The values of rows of one column."""
    return [body[6:] for kind, body in replies if kind == "D"]


def test_values_go_into_a_scan_that_was_read_once(
    live: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No statement is read again for another value; what is no plain scan is."""
    with raw(live) as client:
        asked(client, m.Parse("p", "SELECT k FROM s WHERE k >= $1 LIMIT $2", (23, 20)), m.Sync())
        asked(client, m.Parse("q", "SELECT k FROM v WHERE k >= $1", (23,)), m.Sync())
        read: list[str] = []
        parse = scripts.parse

        def noted(text: str, **others: str) -> Statement:
            read.append(text)
            return parse(text, **others)

        monkeypatch.setattr(scripts, "parse", noted)

        def found(name: str, *values: bytes | None) -> list[bytes]:
            series = [
                m.Bind("", name, (), values, ()),
                m.DescribeMessage("P", ""),
                m.Execute("", 0),
            ]
            replies = asked(client, *series, m.Sync())
            assert [kind for kind, _ in replies if kind != "D"] == list("2TCZ")
            return rows_of(replies)

        assert found("p", b"7", b"5") == [b"7", b"8"]
        assert found("p", b"8", b"5") == [b"8"]
        assert found("p", b"7", b"1") == [b"7"]
        assert found("p", None, b"5") == []
        assert not read
        assert found("q", b"8") == [b"8"]
        assert read == ["SELECT k FROM v WHERE k >= 8"]
        database = live.server.database
        database.sql("DROP VIEW v")
        database.sql("DROP TABLE s")
        database.sql("CREATE TABLE s (k BIGINT)")
        database.sql("INSERT INTO s VALUES (9)")
        assert found("p", b"7", b"5") == [b"9"], "the table of that name is another one now"


def test_a_scan_with_values_keeps_to_its_transaction(live: LiveServer) -> None:
    with raw(live) as client:
        asked(client, m.Parse("p", "SELECT k FROM s WHERE k = $1", (23,)), m.Sync())
        series = [m.Bind("", "p", (), (b"7",), ()), m.Execute("", 0), m.Sync()]
        asked(client, m.QueryMessage("BEGIN"))
        assert rows_of(asked(client, *series)) == [b"7"]
        asked(client, m.QueryMessage("SELEKT"))
        assert sqlstate(asked(client, *series)) == "25P02"
        asked(client, m.QueryMessage("ROLLBACK"))
        assert rows_of(asked(client, *series)) == [b"7"]
        live.server.database.sql("DROP VIEW v")
        live.server.database.sql("DROP TABLE s")
        replies = asked(client, *series)
        assert sqlstate(replies) == "42P01"
        (body,) = (body for kind, body in replies if kind == "E")
        assert error_fields(body)["P"] == "15", "the place of s in the text that was prepared"
