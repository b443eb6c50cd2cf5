"""Continuous queries that join views: as they join standard tables, at the version of the moment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headwater

Connect = Callable[..., headwater.Database]

STATEMENTS = (
    "CREATE STREAMING TABLE s (ts INT, k INT, x INT) TIMESTAMP BY ts",
    "CREATE STREAMING TABLE u (ts INT, k INT, lim INT) TIMESTAMP BY ts",
    "CREATE TABLE t (k INT, c STRING)",
    "INSERT INTO t VALUES (1, 'one'), (2, 'two')",
    "CREATE VIEW limits AS SELECT k, max(lim) AS lim FROM u GROUP BY k",
    "CREATE VIEW names AS SELECT k, upper(c) AS c FROM t",
    "CREATE CONTINUOUS QUERY above AS SELECT a.k, count(*) AS n FROM s [INTERVAL '10' SECOND] a "
    "JOIN limits l ON a.k = l.k AND a.x > l.lim GROUP BY a.k SAMPLE INTERVAL '1' SECOND",
    "CREATE CONTINUOUS QUERY known AS SELECT g.k, g.n, l.lim, m.c FROM "
    "(SELECT k, count(*) AS n FROM s [INTERVAL '10' SECOND] GROUP BY k) g "
    "LEFT JOIN limits l ON g.k = l.k LEFT JOIN names m ON m.k = g.k SAMPLE INTERVAL '1' SECOND",
)


@pytest.fixture
def db(connect: Connect, folder: Path) -> headwater.Database:
    """A query with a view below its fold, and one with views above it."""
    made = connect(folder)
    for statement in STATEMENTS:
        made.sql(statement)
    made.insert("u", [(1, 1, 5), (2, 2, 0)])
    step(made, 1, (1, 3), (2, 1), (1, 9))
    return made


def step(db: headwater.Database, second: int, *values: tuple[int, int]) -> None:
    """Rows of one second, and what they bring about."""
    db.insert("s", [(second, *pair) for pair in values])
    db.advance("s", second)
    db.flush()


def rows(db: headwater.Database, text: str) -> list[tuple[Any, ...]]:
    """The rows of a query, in one order."""
    return sorted(db.sql(text).rows(), key=repr)


def test_a_query_sees_the_view_of_the_moment(db: headwater.Database) -> None:
    assert rows(db, "SELECT k, n FROM above") == [(1, 1), (2, 1)]
    assert rows(db, "SELECT * FROM known") == [(1, 2, 5, "ONE", 1), (2, 1, 0, "TWO", 1)]
    db.insert("u", [(3, 1, 2)])  # below what is there: nothing changes
    step(db, 2)
    assert rows(db, "SELECT k, n FROM above") == [(1, 1), (2, 1)]
    db.insert("u", [(4, 2, 8)])
    db.sql("DELETE FROM t WHERE k = 1")
    step(db, 3, (3, 7))
    assert rows(db, "SELECT k, n FROM above") == [(1, 1)]
    expected = [(1, 2, 5, None, 3), (2, 1, 8, "TWO", 3), (3, 1, None, None, 3)]
    assert rows(db, "SELECT * FROM known") == expected
    db.sql("DELETE FROM u WHERE lim = 5")
    step(db, 4)
    assert rows(db, "SELECT k, n FROM above") == [(1, 2)]


def test_over_a_restart_with_other_rows_of_the_view(
    db: headwater.Database, folder: Path, connect: Connect
) -> None:
    """What was folded against an old version is not taken for one of the new."""
    db.sql("DELETE FROM u WHERE k = 1")
    db.close()
    again = connect(folder)
    step(again, 2)
    assert rows(again, "SELECT k, n FROM above") == [(2, 1)]
    again.insert("u", [(9, 1, 0)])
    step(again, 3)
    assert rows(again, "SELECT k, n FROM above") == [(1, 2), (2, 1)]


def test_a_view_that_a_query_reads_stays_as_it_is(db: headwater.Database) -> None:
    with pytest.raises(headwater.Error, match="is read by continuous query above, known") as error:
        db.sql("DROP VIEW limits")
    assert error.value.sqlstate == "2BP01"
    with pytest.raises(headwater.Error, match="is read by continuous query above, known"):
        db.sql("CREATE OR REPLACE VIEW limits AS SELECT k FROM u GROUP BY k")
    db.sql("CREATE OR REPLACE VIEW limits AS SELECT k, min(lim) - 10 AS lim FROM u GROUP BY k")
    step(db, 2)
    assert rows(db, "SELECT k, n FROM above") == [(1, 2), (2, 1)]


def test_a_view_takes_no_window(db: headwater.Database) -> None:
    with pytest.raises(headwater.Error, match="view limits has no time"):
        db.sql(
            "CREATE CONTINUOUS QUERY w AS SELECT k FROM limits [INTERVAL '1' SECOND] "
            "SAMPLE INTERVAL '1' SECOND"
        )


@pytest.mark.here
def test_a_column_with_the_name_of_a_view_reads_no_view(db: headwater.Database) -> None:
    db.sql(
        "CREATE CONTINUOUS QUERY plain AS SELECT k AS limits FROM s [INTERVAL '1' SECOND] w "
        "SAMPLE INTERVAL '1' SECOND"
    )
    found = db._context.engine.find("plain")
    assert found is not None
    with found.world.held(found.plan.identifiers) as held:
        assert held.relations == {}


def test_a_column_that_is_called_as_a_view_is_marked(db: headwater.Database) -> None:
    db.sql("CREATE STREAMING TABLE q (ts INT, `view x` INT) TIMESTAMP BY ts")
    db.sql(
        "CREATE CONTINUOUS QUERY marked AS SELECT sum(`view x`) AS n FROM q [INTERVAL '2' SECOND] w "
        "SAMPLE INTERVAL '2' SECOND"
    )
    db.insert("q", [(1, 3), (2, 4)])
    db.advance("q", 2)
    db.flush()
    assert rows(db, "SELECT n FROM marked") == [(7,)]


def test_a_view_that_goes_while_it_is_read_leaves_no_file(db: headwater.Database) -> None:
    view = db._context.engine.find_view("limits")
    staged = db._context.staged_views
    assert view is not None
    staged.forget(view.incarnation)
    with staged.holding(view) as (relation, _):
        assert all(Path(path).exists() for path in relation.files)
    assert not any(Path(path).exists() for path in relation.files)
