"""Rows for several streaming tables by one append: all of them or none, before and after a restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import headwater
from headwater.errors import DataError

NO_SPARK = {"eager_spark": False}
Connect = Callable[..., headwater.Database]


def made(connect: Connect, folder: Path) -> headwater.Database:
    db = connect(folder, settings=NO_SPARK)
    db.sql("CREATE STREAMING TABLE a (t INT, x INT) TIMESTAMP BY t LATE REJECT")
    db.sql("CREATE STREAMING TABLE b (x INT)")
    return db


def rows(*times: int) -> pa.Table:
    return pa.table({"t": pa.array(times, pa.int32()), "x": pa.array(times, pa.int32())})


def counts(db: headwater.Database) -> list[int]:
    return [len(db.sql(f"SELECT x FROM {name}")) for name in ("a", "b")]


def test_all_are_there_after_a_restart(connect: Connect, folder: Path) -> None:
    """The rows are visible together, durable, and stamped with one arrival time."""
    db = made(connect, folder)
    added = db.insert_together({"a": rows(2, 1), "b": rows(3).select(["x"])})
    assert added == 3
    assert counts(db) == [2, 1]
    db.close()
    assert counts(connect(folder, settings=NO_SPARK)) == [2, 1]


def test_one_refusal_refuses_all(connect: Connect, folder: Path) -> None:
    """A late row in the last table leaves nothing in the first, whose next rows go on as before."""
    db = made(connect, folder)
    db.insert("a", rows(10))
    db.sql("ADVANCE a TO 20")
    with pytest.raises(DataError, match="late"):
        db.insert_together({"b": rows(1).select(["x"]), "a": rows(5)})
    assert counts(db) == [1, 0]
    db.insert_together({"b": rows(7, 8).select(["x"]), "a": rows(30)})
    assert counts(db) == [2, 2]
    assert db.sql("SELECT _seq FROM b").rows() == [(0,), (1,)]


def test_a_standard_table_stands_alone(connect: Connect, folder: Path) -> None:
    """One standard table is fine; beside another table it is refused before anything is written."""
    db = made(connect, folder)
    db.sql("CREATE TABLE c (x INT)")
    with pytest.raises(headwater.Error, match="one standard table"):
        db.insert_together({"b": rows(1).select(["x"]), "c": rows(1).select(["x"])})
    assert counts(db) == [0, 0]
    assert db.insert_together({"c": rows(1).select(["x"])}) == 1
    assert db.insert_together({}) == 0
