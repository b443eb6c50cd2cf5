"""UPDATE, DELETE and MERGE: what they leave on disk, and several of them at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
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
