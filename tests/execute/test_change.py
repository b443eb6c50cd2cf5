"""UPDATE, DELETE and MERGE: what they leave on disk, and several of them at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

import headwater


def files_of(db: headwater.Database) -> set[str]:
    """Names of everything under the tables' folder that is not the Delta log."""
    root = db._context.folder.tables
    paths = [p for p in root.rglob("*") if "_delta_log" not in p.parts and p.is_file()]
    return {str(p.relative_to(root)) for p in paths}


def test_changes_leave_data_files_only(db: headwater.Database) -> None:
    db.sql("SET removed_files_kept_s = 0")
    db.sql("CREATE TABLE t AS SELECT id AS a FROM range(10)")
    db.sql("INSERT INTO t SELECT a + 10 FROM t")
    db.sql("UPDATE t SET a = a + 100 WHERE a < 3")
    db.sql("DELETE FROM t WHERE a = 15")
    left = files_of(db)
    used = {Path(f).name for f in db._context.standard_table("t").snapshot.files}
    assert {Path(f).name for f in left} == used
    assert not list(db._context.folder.staging.glob("actions-*"))
    folders = [p for p in db._context.folder.tables.rglob("rows-*") if not list(p.iterdir())]
    assert folders == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET a = a / (a - 5)",
        "UPDATE t SET a = NULL WHERE a = 3",
        "INSERT INTO t SELECT a / (a - 5) FROM t",
        "MERGE INTO t USING (SELECT 5 AS a) s ON t.a = s.a WHEN MATCHED THEN UPDATE SET a = 1 / (t.a - 5)",
        "MERGE INTO t USING (SELECT 1 AS x FROM range(2)) s ON t.a = s.x WHEN MATCHED THEN DELETE",
    ],
)
def test_a_failed_change_leaves_nothing(db: headwater.Database, statement: str) -> None:
    db.sql("CREATE TABLE t (a INT NOT NULL)")
    db.insert("t", [(i,) for i in range(10)])
    before = files_of(db)
    with pytest.raises(headwater.Error):
        db.sql(statement)
    assert files_of(db) == before
    assert not list(db._context.folder.staging.glob("actions-*"))
    assert db.sql("SELECT a FROM t ORDER BY a").rows() == [(i,) for i in range(10)]


def test_files_without_changed_rows_are_not_written_again(db: headwater.Database) -> None:
    db.sql("CREATE TABLE t (a INT)")
    for start in (0, 10, 20):
        db.insert("t", [(start + i,) for i in range(10)])
    before = set(db._context.standard_table("t").snapshot.files)
    assert db.sql("UPDATE t SET a = -1 WHERE a BETWEEN 12 AND 14").row_count == 3
    after = set(db._context.standard_table("t").snapshot.files)
    assert len(before & after) == 2
    assert db.sql("SELECT count(*), sum(a) FROM t").rows() == [(30, 435 - 39 - 3)]


def test_writers_take_turns_and_readers_see_whole_commits(db: headwater.Database) -> None:
    db.sql("CREATE TABLE t (k INT, v INT)")
    db.insert("t", [(k, 0) for k in range(4)])

    def add_one(_: int) -> None:
        assert db.sql("UPDATE t SET v = v + 1").row_count == 4

    def look(_: int) -> None:
        values = {v for (v,) in db.sql("SELECT v FROM t")}
        assert len(values) == 1

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(f, i) for i in range(3) for f in (add_one, look, look)]:
            done.result()
    assert db.sql("SELECT v FROM t").rows() == [(3,)] * 4


@pytest.mark.parametrize("time", ["BIGINT", "TIMESTAMP", "DATE"])
def test_rows_that_range_hides_are_changed_and_not_counted(
    db: headwater.Database, time: str
) -> None:
    """A block of hidden rows, one of both, one of visible rows."""
    day = timedelta(days=1)
    length = "INTERVAL '3' SECOND" if time == "BIGINT" else "INTERVAL '3' DAY"
    db.sql("SET removed_files_kept_s = 3600")
    db.sql(f"CREATE STREAMING TABLE s (t {time}, v INT) TIMESTAMP BY t RANGE {length}")

    def fill() -> None:
        for days in (range(1, 3), range(3, 9), range(9, 11)):
            first = {"BIGINT": 0, "TIMESTAMP": datetime(2024, 1, 1, tzinfo=UTC)}
            start = first.get(time, date(2024, 1, 1))
            steps = [number if time == "BIGINT" else number * day for number in days]
            db.insert("s", [(start + step, 0) for step in steps])  # type: ignore[operator]
            db._context.streams.seal(db._context.streaming_table("s"))

    fill()
    assert len(db.sql("SELECT * FROM s")) == 4
    assert db.sql("UPDATE s SET v = 1 WHERE v = 0").row_count == 4
    assert db.sql("DELETE FROM s WHERE v = 1").row_count == 4
    assert db.sql("DELETE FROM s WHERE v = 1").row_count == 0
    assert sum(block.row_count for block in db._context.streaming_table("s").blocks) == 0
    fill()
    seen = len(db.sql("SELECT * FROM s"))
    assert seen == 4
    assert db.sql("TRUNCATE TABLE s").row_count == seen
    assert sum(block.row_count for block in db._context.streaming_table("s").blocks) == 0
