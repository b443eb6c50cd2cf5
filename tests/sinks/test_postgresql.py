"""PostgreSQL out, against a real server: exactly once, upserts, lost connections. No Spark needed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater
from benchmarks import postgres
from headwater.connectors import runner as attempts
from headwater.sinks import runner
from headwater.sinks.options import SinkOptions
from headwater.sinks.postgresql import PostgresqlTarget
from headwater.sinks.target import SinkBatch, SinkName, SinkProgress
from tests.harness.patience import until
from tests.sinks.flowing import (
    Connect,
    expected,
    feed,
    make_query,
    status,
    wait_for,
    wait_for_rows,
)

pytestmark = pytest.mark.skipif(
    postgres.why_missing() is not None, reason=postgres.why_missing() or ""
)


@pytest.fixture
def asked(postgresql: str) -> Iterator[Any]:
    """A connection; tables of earlier tests are gone."""
    with postgres.connect(postgresql) as connection:
        connection.execute("DROP TABLE IF EXISTS q, headwater_sinks")
        yield connection


def test_appended_once_over_restarts_and_lost_connections(
    connect: Connect, folder: Path, postgresql: str, asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends the sink's connection again and again; every row is there once."""
    monkeypatch.setattr(attempts, "FIRST_PAUSE_S", 0.001)
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'headwater'"
    with connect(folder) as db:
        make_query(db)
        db.sql(f"CREATE SINK k FROM q INTO '{postgresql}' WITH (batch_rows = 1)")
        for number in range(10):
            feed(db, number, 1)
            asked.execute(end)
        wait_for_rows(db, "k", 20)
    with connect(folder) as db:
        feed(db, 10, 1)
        wait_for_rows(db, "k", 22)
    assert asked.execute("SELECT k, s, _t FROM q ORDER BY _t, k").fetchall() == expected(0, 11)
    assert asked.execute("SELECT name, row_count FROM headwater_sinks").fetchall() == [("k", 22)]


def test_a_lost_answer_is_no_second_write(
    db: headwater.Database, postgresql: str, asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Committed, but the sink does not hear of it: it asks the server where it is."""
    monkeypatch.setattr(attempts, "FIRST_PAUSE_S", 0.001)
    write, lost = PostgresqlTarget.write, [True, False, True]

    def answer_lost(self: PostgresqlTarget, batch: Any) -> None:
        write(self, batch)
        if lost and lost.pop():
            raise ConnectionError("no answer")

    monkeypatch.setattr(PostgresqlTarget, "write", answer_lost)
    make_query(db)
    feed(db, 0, 4)
    db.sql(f"CREATE SINK k FROM q INTO '{postgresql}' WITH (batch_rows = 1)")
    wait_for_rows(db, "k", 8)
    assert lost == []
    assert asked.execute("SELECT k, s, _t FROM q ORDER BY _t, k").fetchall() == expected(0, 4)


def test_upserts_by_key_and_time_and_by_key(
    db: headwater.Database, postgresql: str, asked: Any
) -> None:
    """With a key a second sink writes over the same rows; `latest` keeps one row of each key."""
    asked.execute("DROP TABLE IF EXISTS newest")
    make_query(db)
    feed(db, 0, 3)
    for name in ("a", "b"):
        db.sql(f"CREATE SINK {name} FROM q INTO '{postgresql}' WITH (key = 'k')")
    options = "table = 'public.newest', key = 'k', latest = true"
    db.sql(f"CREATE SINK c FROM q INTO '{postgresql}' WITH ({options})")
    for name in ("a", "b", "c"):
        wait_for_rows(db, name, 6)
    assert asked.execute("SELECT k, s, _t FROM q ORDER BY _t, k").fetchall() == expected(0, 3)
    found = asked.execute("SELECT k, s, _t FROM newest ORDER BY k").fetchall()
    assert found == expected(2, 1)


def test_changes_keep_a_table_as_the_result_is(
    db: headwater.Database, postgresql: str, asked: Any
) -> None:
    """EMIT CHANGES with `latest`: a key that is no longer in the result leaves the table."""
    make_query(db, "EMIT CHANGES")
    feed(db, 0, 1)
    db.sql(f"CREATE SINK k FROM q INTO '{postgresql}' WITH (key = 'k', latest = true)")
    db.insert("m", [{"t": 3, "k": 2, "v": 7}])
    db.advance("m", 4)
    db.flush()
    wait_for(db, "k", lambda s: s.last_time == "4")
    assert asked.execute("SELECT * FROM q").fetchall() == [(2, 7, 4)]


def test_what_the_server_refuses_is_shown(
    db: headwater.Database, postgresql: str, asked: Any
) -> None:
    """A table of another shape: the server's words, and no row; mended, the sink goes on."""
    asked.execute("CREATE TABLE q (k int)")
    make_query(db)
    db.sql(f"CREATE SINK k FROM q INTO '{postgresql}'")
    feed(db, 0, 1)
    found = wait_for(db, "k", lambda s: s.attempts > 0)
    assert 'column "s" of relation "q" does not exist' in (found.last_error or "")
    asked.execute("ALTER TABLE q ADD s bigint, ADD _t bigint")
    wait_for_rows(db, "k", 2)
    assert status(db, "k").last_error is None


def test_two_processes_do_not_write_for_one_sink(
    db: headwater.Database, postgresql: str, asked: Any
) -> None:
    """Somebody else moved the place: nothing is written from the old one."""
    make_query(db)
    db.sql(f"CREATE SINK k FROM q INTO '{postgresql}'")
    feed(db, 0, 1)
    wait_for_rows(db, "k", 2)
    asked.execute("UPDATE headwater_sinks SET token = 'other'")
    feed(db, 1, 1)
    found = wait_for(db, "k", lambda s: s.attempts > 0 or s.state == "failed")
    assert found.last_error is not None
    assert asked.execute("SELECT count(*) FROM q").fetchone() == (2,)


@pytest.mark.parametrize("key", [(), ("i",)])
def test_values_of_every_type(postgresql: str, asked: Any, key: tuple[str, ...]) -> None:
    """Appended by COPY or written over by key: the server holds what the result holds."""
    values: dict[str, tuple[pa.DataType, Any]] = {
        "i": (pa.int8(), 7),
        "b": (pa.int64(), 2**62),
        "f": (pa.float32(), 0.5),
        "x": (pa.float64(), 0.1),
        "n": (pa.decimal128(20, 4), Decimal("12345678901234.5678")),
        "ok": (pa.bool_(), True),
        "s": (pa.string(), "ä\t\\N\n'"),
        "y": (pa.binary(), b"\x00\xff"),
        "d": (pa.date32(), date(2026, 1, 2)),
        "at": (pa.timestamp("us", "UTC"), datetime(2026, 1, 2, 3, 4, 5, 6, UTC)),
        "wall": (pa.timestamp("us"), datetime(2026, 1, 2, 3, 4, 5)),
        "a": (pa.list_(pa.struct([("k", pa.int32())])), [{"k": 1}]),
        "_t": (pa.int64(), 1),
    }
    schema = pa.schema([(name, type_) for name, (type_, _) in values.items()])
    first = {name: value for name, (_, value) in values.items()}
    rows = [first, {**dict.fromkeys(values), "i": 8, "_t": 1}]
    batch = SinkBatch(pa.Table.from_pylist(rows, schema), 0, SinkProgress("token", 2))
    target = PostgresqlTarget(postgresql, SinkName("k", "f00d"), "q", SinkOptions(key=key))
    assert target.open(schema) is None
    target.write(batch)
    target.close()
    found = asked.execute("SELECT * FROM q ORDER BY i").fetchall()
    assert found == [tuple(row.values()) for row in rows]
    again = PostgresqlTarget(postgresql, SinkName("k", "f00d"), "q", SinkOptions(key=key))
    assert again.open(schema) == SinkProgress("token", 2)
    again.close()


def test_a_key_may_be_null(db: headwater.Database, postgresql: str, asked: Any) -> None:
    """Rows whose key is NULL are one row of the table, come and go."""
    make_query(db, "EMIT CHANGES")
    db.sql(f"CREATE SINK k FROM q INTO '{postgresql}' WITH (key = 'k', latest = true)")
    for t, k, v in ((1, None, 5), (3, None, 6), (3, 1, 7), (5, 1, 7)):
        db.insert("m", [{"t": t, "k": k, "v": v}])
    db.advance("m", 4)
    wait_for(db, "k", lambda s: s.last_time == "4")
    found = asked.execute("SELECT k, s FROM q ORDER BY k").fetchall()
    assert found == [(1, 7), (None, 6)]
    db.advance("m", 6)
    wait_for(db, "k", lambda s: s.last_time == "6")
    assert asked.execute("SELECT k, s FROM q").fetchall() == [(1, 7)]


def test_a_user_who_may_make_no_tables(
    db: headwater.Database, postgresql: str, asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where an admin made both tables, the right to write them is enough."""
    monkeypatch.setattr(attempts, "FIRST_PAUSE_S", 0.001)
    asked.execute("DROP ROLE IF EXISTS writer; CREATE ROLE writer LOGIN")
    asked.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    make_query(db)
    db.sql(f"CREATE SINK k FROM q INTO '{postgresql.replace('bench@', 'writer@')}'")
    found = wait_for(db, "k", lambda s: s.attempts > 0)
    assert "permission denied for schema public" in (found.last_error or "")
    asked.execute("CREATE TABLE q (k int, s bigint, _t bigint)")
    asked.execute(
        "CREATE TABLE headwater_sinks (key text PRIMARY KEY, name text NOT NULL,"
        " token text, row_count bigint NOT NULL, written_at timestamptz NOT NULL)"
    )
    asked.execute("GRANT SELECT, INSERT, UPDATE ON q, headwater_sinks TO writer")
    feed(db, 0, 1)
    wait_for_rows(db, "k", 2)
    db.sql("DROP SINK k")
    asked.execute("DROP OWNED BY writer; DROP ROLE writer")


def test_a_write_that_hangs_is_cut(
    db: headwater.Database, postgresql: str, asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody holds a lock on the table: DROP SINK ends all the same, and nothing was written."""
    monkeypatch.setattr(runner, "STOP_PATIENCE_S", 0.5)
    make_query(db)
    asked.execute("CREATE TABLE q (k int, s bigint, _t bigint)")
    waiting = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE application_name = 'headwater' AND wait_event_type = 'Lock'"
    )
    with asked.transaction():
        asked.execute("LOCK TABLE q")
        db.sql(f"CREATE SINK k FROM q INTO '{postgresql}'")
        feed(db, 0, 1)
        with postgres.connect(postgresql) as other:
            until(lambda: other.execute(waiting).fetchone() == (1,))
            db.sql("DROP SINK k")
            until(lambda: other.execute(waiting).fetchone() == (0,))
    assert asked.execute("SELECT count(*) FROM q").fetchone() == (0,)
    until(lambda: not any(t.name.startswith("headwater-sink") for t in threading.enumerate()))
