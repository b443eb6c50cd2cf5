"""A table of a real PostgreSQL server as a source: types, order, an interrupted run. No Spark needed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import headwater
from benchmarks import postgres
from headwater.sources.pulled import PulledRunner
from tests.harness.patience import PATIENCE_S, until
from tests.sinks.flowing import Connect
from tests.sources.feeding import wait_for_rows, wait_for_state

pytestmark = pytest.mark.skipif(
    postgres.why_missing() is not None, reason=postgres.why_missing() or ""
)


@pytest.fixture
def asked(postgresql: str) -> Iterator[Any]:
    """A connection; the table of an earlier test is gone."""
    with postgres.connect(postgresql) as connection:
        connection.execute("DROP TABLE IF EXISTS t")
        yield connection


def test_a_table_comes_whole_and_in_order(
    db: headwater.Database, postgresql: str, asked: Any
) -> None:
    """Columns go by name in any case; NULL and types are kept; then the source is finished."""
    asked.execute('CREATE TABLE t ("AT" timestamptz, n numeric(9, 2), d date, s text, other int)')
    asked.execute(
        "INSERT INTO t VALUES ('2026-01-02 00:00Z', 1.25, '2026-01-02', 'ä', 1),"
        " ('2026-01-01 00:00Z', NULL, NULL, NULL, 2)"
    )
    db.sql(
        "CREATE STREAMING TABLE t (at TIMESTAMP, n DECIMAL(9, 2), d DATE, s STRING, more INT)"
        " TIMESTAMP BY at"
    )
    db.sql(f"CREATE SOURCE s INTO t FROM '{postgresql}'")
    assert wait_for_state(db, "s", "finished").row_count == 2
    assert db.sql("SELECT * FROM t ORDER BY at").rows() == [
        (datetime(2026, 1, 1, tzinfo=UTC), None, None, None, None),
        (datetime(2026, 1, 2, tzinfo=UTC), Decimal("1.25"), date(2026, 1, 2), "ä", None),
    ]
    assert db.sql("SELECT late_count FROM headwater.late_rows").rows() == [(0,)]


def test_an_interrupted_snapshot_goes_on(
    connect: Connect, folder: Path, postgresql: str, asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped in the middle, it goes on after the rows that are stored; none twice."""
    asked.execute("CREATE TABLE t AS SELECT n AS ts, n * 2 AS v FROM generate_series(999, 0, -1) n")
    insert = PulledRunner._insert

    def stops_after(self: PulledRunner, found: Any) -> None:
        insert(self, found)
        self.stopping.set()

    with connect(folder) as db:
        db.sql("CREATE STREAMING TABLE t (ts BIGINT, v BIGINT) TIMESTAMP BY ts")
        with monkeypatch.context() as patch:
            patch.setattr(PulledRunner, "_insert", stops_after)
            db.sql(f"CREATE SOURCE s INTO t FROM '{postgresql}' WITH (batch_rows = 300)")
            runner = db._context.sources.runner("s")
            assert runner is not None
            runner._thread.join(PATIENCE_S)
        stored = len(db.sql("SELECT ts FROM t"))
        assert 0 < stored <= 300
    with connect(folder) as db:
        wait_for_rows(db, "s", 1000)
        wait_for_state(db, "s", "finished")
        rows = db.sql("SELECT ts, v FROM t ORDER BY ts").rows()
    assert rows == [(n, 2 * n) for n in range(1000)]


def test_what_cannot_be_read_is_shown(db: headwater.Database, postgresql: str, asked: Any) -> None:
    """A table that is not there, one without the time; made, RESUME reads it."""
    db.sql("CREATE STREAMING TABLE t (ts BIGINT, v BIGINT) TIMESTAMP BY ts")
    db.sql(f"CREATE SOURCE s INTO t FROM '{postgresql}'")
    error = wait_for_state(db, "s", "failed").last_error
    assert 'relation "t" does not exist' in (error or "")
    asked.execute("CREATE TABLE t (v bigint)")
    db.sql("RESUME SOURCE s")
    error = wait_for_state(db, "s", "failed").last_error
    assert "t has no column ts (42703)" in (error or "")
    asked.execute("ALTER TABLE t ADD ts bigint; INSERT INTO t VALUES (7, 1)")
    db.sql("RESUME SOURCE s")
    wait_for_rows(db, "s", 1)
    wait_for_state(db, "s", "finished")


def test_a_source_that_waits_for_the_server_can_be_dropped(
    db: headwater.Database, postgresql: str, asked: Any
) -> None:
    """Somebody holds a lock on the table; no thread of the source is left, nor its statement."""
    db.sql("CREATE STREAMING TABLE t (ts BIGINT, v BIGINT) TIMESTAMP BY ts")
    asked.execute("CREATE TABLE t (ts bigint, v bigint)")
    waiting = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE application_name = 'headwater' AND wait_event_type = 'Lock'"
    )
    with asked.transaction():
        asked.execute("LOCK TABLE t")
        db.sql(f"CREATE SOURCE s INTO t FROM '{postgresql}'")
        with postgres.connect(postgresql) as other:
            until(lambda: other.execute(waiting).fetchone() == (1,))
            db.sql("DROP SOURCE s")
            until(lambda: other.execute(waiting).fetchone() == (0,))
    assert not [t for t in threading.enumerate() if t.name.startswith("headwater-source")]


def test_values_that_have_no_type_of_their_own_here(
    db: headwater.Database, postgresql: str, asked: Any
) -> None:
    """Documents and identifiers come as texts, lists as lists, bytes as bytes, NaN as NaN."""
    asked.execute(
        "CREATE TABLE t (ts bigint, u uuid, j jsonb, a int[], b bytea, x float8, c char(3))"
    )
    asked.execute(
        "INSERT INTO t VALUES (1, '00000000-0000-0000-0000-000000000001', '{\"k\": [1, null]}',"
        " '{1,null}', '\\x00ff', 'NaN', 'ab')"
    )
    db.sql(
        "CREATE STREAMING TABLE t (ts BIGINT, u STRING, j STRING, a ARRAY<INT>, b BINARY, x DOUBLE,"
        " c STRING) TIMESTAMP BY ts"
    )
    db.sql(f"CREATE SOURCE s INTO t FROM '{postgresql}'")
    wait_for_state(db, "s", "finished")
    ((_, u, j, a, b, x, c),) = db.sql("SELECT * FROM t").rows()
    assert (u[-3:], json.loads(j), a, b, c) == (
        "001",
        {"k": [1, None]},
        [1, None],
        b"\x00\xff",
        "ab",
    )
    assert x != x
