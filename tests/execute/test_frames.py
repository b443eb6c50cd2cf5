"""Rows out as DataFrames of the program's Spark session: `db.table`, `result.spark()`."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import headwater

NAMES = itertools.count()


def streaming(db: headwater.Database, rows: list[tuple[Any, ...]], clauses: str = "") -> str:
    name = f"s{next(NAMES)}"
    db.sql(
        f"CREATE STREAMING TABLE {name} (t INT NOT NULL, k STRING, v DOUBLE) TIMESTAMP BY t {clauses}"
    )
    db.insert(name, rows)
    return name


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


ROWS = [(1, "a", 0.5), (2, "b", float("inf")), (3, None, None)]


def test_a_table_comes_with_its_recent_rows_and_those_in_blocks(db: headwater.Database) -> None:
    name = streaming(db, ROWS[:2])
    db.seal()
    db.insert(name, ROWS[2:])
    frame = db.table(name)
    assert frame.columns == ["t", "k", "v"]  # not the hidden ones
    assert rows_of(frame) == ROWS


def test_a_frame_is_of_one_instant(db: headwater.Database) -> None:
    name = streaming(db, ROWS)
    frame = db.table(name)
    derived = frame.where("t > 1").select("k")
    del frame
    db.insert(name, [(4, "late", 1.0)])
    db.seal()
    db.sql(f"DELETE FROM {name} WHERE t = 2")
    assert {row.k for row in derived.collect()} == {"b", None}
    assert {row[0] for row in db.table(name).select("t").collect()} == {1, 3, 4}


def test_range_hides_rows_from_a_frame(db: headwater.Database) -> None:
    name = streaming(db, [(1, "old", 1.0), (100, "new", 2.0)], "RANGE INTERVAL '50' SECOND")
    assert rows_of(db.table(name)) == [(100, "new", 2.0)]


def test_standard_tables_views_queries_and_system_tables(db: headwater.Database) -> None:
    name = streaming(db, ROWS)
    db.sql(f"CREATE TABLE std_{name} AS SELECT t, k FROM {name}")
    db.sql(f"CREATE VIEW v_{name} AS SELECT count(*) AS n, max(t) AS t FROM {name}")
    db.sql(f"CREATE VIEW plain_{name} AS SELECT upper(k) AS k FROM std_{name}")
    db.sql(
        f"CREATE CONTINUOUS QUERY q_{name} FROM BEGINNING AS"
        f" SELECT count(*) AS n FROM {name} [INTERVAL 2 SECONDS] SAMPLE INTERVAL 1 SECOND"
    )
    db.advance(name, 3)
    db.flush()
    assert rows_of(db.table(f"std_{name}").where("k IS NOT NULL")) == [(1, "a"), (2, "b")]
    assert rows_of(db.table(f"v_{name}")) == [(3, 3)]
    assert rows_of(db.table(f"plain_{name}").dropna()) == [("A",), ("B",)]
    assert rows_of(db.table(f"q_{name}")) == db.sql(f"SELECT * FROM q_{name}").rows() == [(3, 3)]
    views = db.table("headwater.views").where(f"name = 'v_{name}'")
    assert views.count() == 1


def test_a_select_is_written_by_executors(db: headwater.Database) -> None:
    name = streaming(db, ROWS)
    frame = db.table(f"SELECT k, v * 2 AS w FROM {name} WHERE v = 0.5")
    assert frame.dtypes == [("k", "string"), ("w", "double")]
    assert rows_of(frame) == [("a", 1.0)]


def test_names_with_marks_in_them(db: headwater.Database) -> None:
    name = f"it`s {streaming(db, ROWS)}.x"
    quoted = f"`{name.replace('`', '``')}`"
    db.sql(f"CREATE STREAMING TABLE {quoted} (t INT NOT NULL, `a``b` INT) TIMESTAMP BY t")
    db.insert(name, [(1, 2)])
    assert rows_of(db.table(quoted)) == [(1, 2)]
    assert rows_of(db.table(f"SELECT `a``b` FROM {quoted}")) == [(2,)]


def test_an_empty_table_has_columns(db: headwater.Database) -> None:
    name = streaming(db, [])
    frame = db.table(name)
    assert (frame.columns, frame.count()) == (["t", "k", "v"], 0)


def test_a_result_becomes_a_frame(db: headwater.Database) -> None:
    name = streaming(db, ROWS)
    scan = db.sql(f"SELECT t, k FROM {name} WHERE t < ?", [3])
    assert rows_of(scan.spark()) == [(1, "a"), (2, "b")]
    joined = scan.spark().join(db.table(name), "t").select("t", "v")
    assert rows_of(joined) == [(1, 0.5), (2, float("inf"))]


def test_frames_belong_to_the_session_of_the_program(db: headwater.Database) -> None:
    name = streaming(db, ROWS)
    frame = db.table(name)
    assert frame.sparkSession is db.spark
    frame.createOrReplaceTempView(f"mine_{name}")
    try:
        assert db.spark.sql(f"SELECT max(t) FROM mine_{name}").first()[0] == 3
    finally:
        db.spark.catalog.dropTempView(f"mine_{name}")


@pytest.mark.parametrize(
    ("target", "sqlstate"),
    [
        ("nothing_here", "42P01"),
        ("headwater.nothing", "42P01"),
        ("SELECT a FROM nothing_here", "42P01"),
    ],
)
def test_what_is_no_table(db: headwater.Database, target: str, sqlstate: str) -> None:
    with pytest.raises(headwater.Error) as caught:
        db.table(target)
    assert caught.value.sqlstate == sqlstate


def test_a_stream_has_no_rows_to_read(db: headwater.Database) -> None:
    db.sql("CREATE STREAM gone (t INT NOT NULL) TIMESTAMP BY t")
    with pytest.raises(headwater.Error, match="keeps no rows"):
        db.table("gone")


def test_a_result_without_rows_is_no_frame(db: headwater.Database) -> None:
    with pytest.raises(headwater.Error, match="has no rows"):
        db.sql("CREATE TABLE without_rows (a INT)").spark()


def test_files_of_more_frames_than_are_held_go_and_reading_them_fails(
    connect: Callable[..., headwater.Database],
) -> None:
    db = connect(":memory:", settings={"frames_held": 1})
    name = streaming(db, ROWS)
    first = db.table(name)
    second = db.table(name)
    with pytest.raises(Exception, match=r"(?i)not.exist"):
        first.collect()
    assert rows_of(second) == ROWS


def test_a_dropped_standard_table_stays_readable_and_goes_at_the_close(
    folder: Any, connect: Callable[..., headwater.Database]
) -> None:
    db = connect(folder)
    db.sql("CREATE TABLE short_lived AS SELECT 1 AS a")
    frame = db.table("short_lived")
    db.sql("DROP TABLE short_lived")
    assert rows_of(frame) == [(1,)]
    db.close()
    with pytest.raises(Exception, match=r"(?i)not.exist"):
        frame.collect()
    assert not list(folder.glob("tables/short_lived-*"))


def test_a_closed_database_makes_no_frames(folder: Any) -> None:
    with headwater.connect(folder) as db:
        name = streaming(db, ROWS)
        result = db.sql(f"SELECT t FROM {name}")
    for make in (lambda: db.table(name), result.spark, lambda: db.spark):
        with pytest.raises(headwater.Error, match="closed"):
            make()
