"""Sources on Structured Streaming: files and Spark's own formats, exactly once, start to end."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import headwater
from headwater.errors import StorageError
from tests.harness.patience import PATIENCE_S
from tests.sources.feeding import QUICK, put, runner, status, wait_for_rows, wait_for_state

TABLE = "CREATE STREAMING TABLE t (vid INT, spd DOUBLE, ts BIGINT NOT NULL) TIMESTAMP BY ts"
Connect = Callable[..., headwater.Database]


@pytest.fixture
def incoming(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    return folder


def test_csv_by_header_with_late_rows_pause_and_drop(
    db: headwater.Database, incoming: Path
) -> None:
    db.sql(f"{TABLE} WATERMARK INTERVAL '5' SECONDS")
    db.sql(f"CREATE SOURCE s INTO t FROM 'csv:{incoming}' WITH (header = true, {QUICK})")
    put(incoming, "a.csv", "ts,extra,VID\n3,x,30\n1,x,10\n20,x,40\n2,x,\n")
    wait_for_rows(db, "s", 4)
    rows = db.sql("SELECT ts, vid, spd, _late FROM t").rows()
    assert rows == [
        (1, 10, None, False),
        (2, None, None, False),
        (3, 30, None, False),
        (20, 40, None, False),
    ]
    assert db.sql("SELECT clock, closed FROM headwater.tables").rows() == [("3", "2")]
    put(incoming, "b.csv", "ts,extra,VID\n2,y,11\n16,y,12\n")
    wait_for_rows(db, "s", 6)
    assert db.sql("SELECT ts, vid FROM t WHERE _late").rows() == [(2, 11)]
    assert os.getpid() not in {report.process for report in runner(db, "s").reports}
    db.sql("PAUSE SOURCE s")
    put(incoming, "c.csv", "ts,extra,VID\n30,z,13\n")
    assert status(db, "s").state == "paused"
    db.sql("RESUME SOURCE s")
    wait_for_rows(db, "s", 7)
    put(incoming, "d.csv", "ts,extra,VID\n31,z,many\n")
    found = wait_for_state(db, "s", "failed")
    assert "many" in (found.last_error or "") or "d.csv" in (found.last_error or "")
    assert found.row_count == 7
    checkpoint = runner(db, "s").feed.checkpoint
    db.sql("DROP SOURCE s")
    assert not checkpoint.exists()
    assert len(db.sql("SELECT * FROM t")) == 7


def test_a_stream_with_a_reader_keeps_what_a_source_brings(
    db: headwater.Database, incoming: Path
) -> None:
    """Partitions of unequal length leave numbers out: that is no row missing."""
    db.sql("CREATE STREAM t (vid INT, ts BIGINT NOT NULL) TIMESTAMP BY ts")
    db.sql("CREATE VIEW v AS SELECT vid, count(*) AS n FROM t GROUP BY vid")
    for number, count in enumerate((3, 11, 7, 1)):
        lines = "".join(f"{row % 3},{100 * number + row}\n" for row in range(count))
        put(incoming, f"{number}.csv", "vid,ts\n" + lines)
    db.sql(f"CREATE SOURCE s INTO t FROM 'csv:{incoming}' WITH (header = true, {QUICK})")
    wait_for_rows(db, "s", 22)
    assert sorted(db.sql("SELECT * FROM v").rows()) == [(0, 9), (1, 7), (2, 6)]
    put(incoming, "later.csv", "vid,ts\n2,900\n")
    wait_for_rows(db, "s", 23)
    assert sorted(db.sql("SELECT * FROM v").rows()) == [(0, 9), (1, 7), (2, 7)]


def test_json_and_parquet_into_one_table(db: headwater.Database, incoming: Path) -> None:
    db.sql("CREATE STREAMING TABLE t (name STRING, at TIMESTAMP, tags ARRAY<INT>) TIMESTAMP BY at")
    (incoming / "j").mkdir()
    (incoming / "p").mkdir()
    db.sql(f"CREATE SOURCE j INTO t FROM 'json:{incoming}/j' WITH ({QUICK})")
    db.sql(f"CREATE SOURCE p INTO t FROM 'parquet:{incoming}/p' WITH ({QUICK})")
    rows = [{"at": f"2026-01-01T00:00:0{i}Z", "tags": [i]} for i in range(3)]
    put(incoming / "j", "a.json", "\n".join(json.dumps(row) for row in rows))
    wait_for_rows(db, "j", 3)
    clock = "SELECT clock FROM headwater.tables WHERE name = 't'"
    assert db.sql(clock).rows() == [(None,)]  # the Parquet source has no row yet
    at = pa.array([1767225601_500000], pa.timestamp("us", "UTC"))
    table = pa.table({"name": ["x"], "at": at})
    pq.write_table(table, incoming / "p" / ".a.parquet")
    (incoming / "p" / ".a.parquet").rename(incoming / "p" / "a.parquet")
    wait_for_rows(db, "p", 1)
    assert db.sql(clock).rows() == [("2026-01-01 00:00:01.500000+00:00",)]
    found = db.sql("SELECT name, tags FROM t").rows()
    assert found == [(None, [0]), (None, [1]), ("x", None), (None, [2])]


@pytest.mark.parametrize("policy", ["DROP", "REJECT"])
def test_late_rows_by_policy(db: headwater.Database, incoming: Path, policy: str) -> None:
    db.sql(f"{TABLE} LATE {policy}")
    put(incoming, "a.csv", "1,,10\n")
    db.sql(f"CREATE SOURCE s INTO t FROM 'csv:{incoming}' WITH ({QUICK})")
    wait_for_rows(db, "s", 1)
    put(incoming, "b.csv", "2,,9\n3,0.5,8\n4,,11\n")
    if policy == "DROP":
        wait_for_rows(db, "s", 4)
        assert db.sql("SELECT vid, ts FROM t").rows() == [(1, 10), (4, 11)]
    else:
        found = wait_for_state(db, "s", "failed")
        assert "2 rows of the source are late" in (found.last_error or "")
        assert db.sql("SELECT vid, ts FROM t").rows() == [(1, 10)]
    assert db.sql("SELECT late_count FROM headwater.late_rows").rows() == [(2,)]
    stored = {str(p) for p in Path(db._context.streaming_table("t").folder).rglob("*.parquet")}
    assert stored == {path for (path,) in db.sql("SELECT path FROM headwater.blocks").rows()}


def test_a_batch_that_spark_repeats_is_skipped(
    folder: Path, incoming: Path, connect: Connect
) -> None:
    """The process ends after our commit and before Spark's own note of it."""
    with connect(folder) as db:
        db.sql(TABLE)
        db.sql(f"CREATE SOURCE s INTO t FROM 'json:{incoming}' WITH ({QUICK})")

        def crash(number: int) -> None:
            raise StorageError(f"ended after the commit of {number}")

        runner(db, "s").after_commit = crash
        put(incoming, "a.json", '{"ts": 1}\n{"ts": 2}\n')
        found = wait_for_state(db, "s", "failed")
        assert "ended after the commit of 0" in (found.last_error or "")
        assert (found.row_count, found.last_batch) == (2, 0)
    with connect(folder) as db:
        put(incoming, "b.json", '{"ts": 3}\n')
        wait_for_rows(db, "s", 3)
        assert db.sql("SELECT ts FROM t").rows() == [(1,), (2,), (3,)]
        assert status(db, "s").last_batch == 1
        key = runner(db, "s").feed.key
        delta = DeltaTable(db._context.streaming_table("t").folder)
        assert delta.transaction_version(f"headwater.batch.{key}") == 1


def test_rate_by_arrival_time_and_by_columns(db: headwater.Database) -> None:
    db.sql("CREATE STREAMING TABLE a (value BIGINT)")
    db.sql("CREATE STREAMING TABLE b (n SMALLINT NOT NULL, at TIMESTAMP) TIMESTAMP BY at")
    db.sql(f"CREATE SOURCE a INTO a FROM 'spark:rate' WITH (rows_per_second = 50, {QUICK})")
    db.sql(
        "CREATE SOURCE b INTO b FROM 'spark:rate' WITH (rowsPerSecond = 20, "
        f"columns = 'CAST(value AS SMALLINT) AS n, timestamp AS at', {QUICK})"
    )
    both = lambda: all(s.row_count > 20 for s in db._context.sources.statuses())  # noqa: E731
    assert db._context.sources.wait_until(both, PATIENCE_S), db._context.sources.statuses()
    told: set[str] = set()

    def rates() -> bool:  # each falls to nothing between two batches
        told.update(s.name for s in db._context.sources.statuses() if s.rows_per_second > 0)
        return told == {"a", "b"}

    assert db._context.sources.wait_until(rates, PATIENCE_S), told
    db.sql("DROP SOURCE a; DROP SOURCE b")
    values = [v for (v,) in db.sql("SELECT value FROM a").rows()]
    assert sorted(values) == list(range(len(values)))
    arrivals = db.sql("SELECT _t FROM a").rows()
    assert arrivals == sorted(arrivals)
    assert db.sql("SELECT count(*), count(DISTINCT n) FROM b").rows()[0][0] > 20


def test_columns_that_do_not_fit_stop_the_source(db: headwater.Database) -> None:
    db.sql("CREATE STREAMING TABLE t (value BINARY, n INT)")
    db.sql("CREATE STREAMING TABLE u (n INT NOT NULL)")
    db.sql(f"CREATE SOURCE s INTO t FROM 'spark:rate' WITH ({QUICK})")
    db.sql(f"CREATE SOURCE w INTO u FROM 'spark:rate' WITH ({QUICK})")
    db.sql(f"CREATE SOURCE x INTO u FROM 'spark:nothing' WITH ({QUICK})")
    assert "value is BINARY" in (wait_for_state(db, "s", "failed").last_error or "")
    assert "no column n" in (wait_for_state(db, "w", "failed").last_error or "")
    assert "nothing" in (wait_for_state(db, "x", "failed").last_error or "")
