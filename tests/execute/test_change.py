"""UPDATE, DELETE and MERGE: what they leave on disk, and several of them at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

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


STATEMENTS = [
    "UPDATE t SET a = a + 1, b = a, s = s || 'x' WHERE k % 2 = 0",
    "UPDATE t SET b = 2.5, f = 7, d = '2024-02-29' WHERE k = 3 OR b IS NULL",
    "UPDATE t SET s = CASE WHEN a > 2 THEN upper(s) ELSE NULL END",
    "UPDATE t SET f = f / 2, m = m + 1 WHERE f > 0",
    "UPDATE t SET m = 12345.678 WHERE k = 1",
    "UPDATE t SET ts = TIMESTAMP '2024-01-01 12:00:00', s = 12 WHERE d < DATE '2024-02-01'",
    "DELETE FROM t AS q WHERE q.s LIKE 'A%' OR q.f = double('NaN')",
    "DELETE FROM t WHERE a BETWEEN 3 AND 4 AND s IS NOT NULL",
    "DELETE FROM t WHERE NOT (b > 2)",
]


@pytest.mark.parametrize("kind", ["TABLE", "STREAMING TABLE"])
def test_operators_change_what_spark_changes(
    db: headwater.Database, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel, on_spark = db._context.kernel, list[bool]()
    write = kernel.write

    def watched(*arguments: Any) -> Any:
        on_spark.append(db._context.settings.flag("spark_sql_only"))
        return write(*arguments)

    monkeypatch.setattr(kernel, "write", watched)
    columns = "k INT, a INT, b BIGINT, s STRING, f DOUBLE, d DATE, ts TIMESTAMP, m DECIMAL(10, 2)"
    rows = [
        (1, 1, None, "a", 1.5, date(2024, 1, 1), None, 1),
        (2, None, 2, None, float("nan"), None, datetime(2024, 5, 5, tzinfo=UTC), None),
        (3, 3, 3, "Ab", -0.0, date(2024, 3, 1), None, 3),
        (4, 4, 1, "aB", None, date(2023, 1, 1), datetime(2020, 5, 5, tzinfo=UTC), 4),
        (5, 2, 9, "", float("inf"), date(2025, 1, 1), None, 5),
    ]
    time_ = " TIMESTAMP BY k" if kind == "STREAMING TABLE" else ""
    counts: dict[str, list[int]] = {}
    for name, only in (("by_operators", "false"), ("by_spark", "true")):
        db.sql(f"CREATE {kind} {name} ({columns}){time_}")
        for part in (rows[:2], rows[2:]):
            db.insert(name, part)
        db.sql(f"SET spark_sql_only = {only}")
        texts = [text.replace(" t ", f" {name} ") for text in STATEMENTS]
        counts[name] = [db.sql(text).row_count or 0 for text in texts]
        db.sql("SET spark_sql_only = false")
    assert counts["by_operators"] == counts["by_spark"]
    assert sum(counts["by_spark"]) > 12
    found = [sorted(db.sql(f"SELECT * FROM {name}").rows(), key=repr) for name in counts]
    assert repr(found[0]) == repr(found[1])
    assert found[0]
    assert len(on_spark) >= len(STATEMENTS)
    assert all(on_spark)  # none of those by operators
