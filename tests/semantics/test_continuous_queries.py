"""Continuous queries, one by one: the paper's example, and what the oracle once found wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import headwater

PATIENCE_S = 0.05  # results are read after a flush

Rows = list[tuple[Any, ...]]


def results(db: headwater.Database, name: str) -> dict[Any, Rows]:
    """All results of a query by instant, `_t` left out."""
    db.flush()
    found = {}
    for out in db.subscribe(name, after="earliest", timeout=PATIENCE_S):
        columns = [column.to_pylist() for column in out.arrow().columns[:-1]]
        found[out.time] = list(zip(*columns, strict=True))
    return found


@pytest.fixture(params=["operators", "Spark"])
def tier(request: pytest.FixtureRequest, db: headwater.Database) -> headwater.Database:
    """A database whose queries run in one tier."""
    if request.param == "Spark":
        db.sql("SET spark_sql_only = true")
    return db


def both_modes(db: headwater.Database, select: str) -> None:
    """The query q_fold, folded, and q_reevaluate, re-evaluated."""
    for mode in ("fold", "reevaluate"):
        db.sql(f"CREATE CONTINUOUS QUERY q_{mode} WITH (mode = '{mode}') AS {select}")


def check(db: headwater.Database, wanted: dict[Any, Rows]) -> None:
    """Both modes gave these results."""
    for mode in ("reevaluate", "fold"):
        found = results(db, f"q_{mode}")
        assert {time: sorted(rows, key=repr) for time, rows in found.items()} == {
            time: sorted(rows, key=repr) for time, rows in wanted.items()
        }, mode


def test_figure_1(tier: headwater.Database) -> None:
    """ST5: the continuous query of figure 1 of the streaming tables paper, at τ = 0, 2, 4, 6."""
    tier.sql(
        "CREATE STREAMING TABLE posreports (vid INT, spd INT, xway INT, lane INT, dir INT, seg INT,"
        " pos INT, t INT NOT NULL) TIMESTAMP BY t"
    )
    both_modes(
        tier,
        "SELECT * FROM posreports [INTERVAL 4 SECONDS] WHERE spd = 0 SAMPLE INTERVAL 2 SECONDS",
    )
    tier.sql(
        "INSERT INTO posreports VALUES (1,0,0,0,0,10,53320,0), (1,32,0,0,0,10,53320,1),"
        " (2,0,0,0,0,11,53320,3), (4,0,0,0,0,11,53320,4), (4,32,0,0,0,11,53320,6)"
    )
    tier.advance("posreports", 7)
    for mode in ("fold", "reevaluate"):
        found = results(tier, f"q_{mode}")
        assert {time: [row[0] for row in rows] for time, rows in found.items()} == {
            0: [1],
            2: [1],
            4: [4, 2, 1],
            6: [4, 2],
        }


def test_first_and_last_by_time(tier: headwater.Database) -> None:
    """DC4: first and last go by (T, _seq) in every mode and tier, also behind a filter."""
    tier.sql("CREATE STREAMING TABLE s (x INT, y INT, t INT NOT NULL) TIMESTAMP BY t")
    both_modes(
        tier,
        "SELECT first(x) AS a, last(x) AS b, first(y) IGNORE NULLS AS c, last(y) FILTER (WHERE x > 1)"
        " FROM s [INTERVAL 9 SECONDS] WHERE x > 0 SAMPLE INTERVAL 10 SECONDS",
    )
    tier.insert("s", [(0, 7, 1), (3, None, 2), (1, 4, 2), (2, 5, 9), (1, 6, 9)])
    tier.advance("s", 10)
    check(tier, {10: [(3, 1, 4, 5)]})


def test_ring_in_order_on_spark(tier: headwater.Database) -> None:
    """ST3: a plain select over the last rows per key comes newest first, and LIMIT respects it."""
    tier.sql("CREATE STREAMING TABLE s (k INT, x INT, t INT NOT NULL) TIMESTAMP BY t")
    both_modes(tier, "SELECT *, x + 1 AS z FROM s [k ROWS 1] LIMIT 2 SAMPLE INTERVAL 10 SECONDS")
    tier.insert("s", [(1, 1, 1), (2, 2, 2), (3, 3, 3), (1, 4, 4)])
    tier.advance("s", 10)
    for mode in ("fold", "reevaluate"):
        assert results(tier, f"q_{mode}") == {10: [(1, 4, 4, 5), (3, 3, 3, 4)]}


def test_hidden_column_by_name(tier: headwater.Database) -> None:
    """ST1: `*` does not show `_seq` where the query also names it."""
    tier.sql("CREATE STREAMING TABLE s (x INT, t INT NOT NULL) TIMESTAMP BY t")
    both_modes(tier, "SELECT *, _seq IS NULL AS n FROM s [ROWS 2] SAMPLE INTERVAL 10 SECONDS")
    tier.insert("s", [(1, 1), (2, 2)])
    tier.advance("s", 10)
    check(tier, {10: [(1, 1, False), (2, 2, False)]})


def test_distinct_with_the_instant(tier: headwater.Database) -> None:
    """DC4: DISTINCT over CURRENT_INSTANT() is finished above the fold."""
    tier.sql("CREATE STREAMING TABLE s (x INT, t INT NOT NULL) TIMESTAMP BY t")
    both_modes(
        tier,
        "SELECT DISTINCT x, CURRENT_INSTANT() AS i FROM s [INTERVAL 9 SECONDS]"
        " SAMPLE INTERVAL 5 SECONDS",
    )
    tier.insert("s", [(1, 1), (1, 2), (2, 6)])
    tier.advance("s", 10)
    check(tier, {5: [(1, 5)], 10: [(1, 10), (2, 10)]})


def test_stored_rows_are_no_empty_window(tier: headwater.Database) -> None:
    """ST6: a re-evaluated query begun on stored rows does not take their result for the empty one."""
    tier.sql("CREATE STREAMING TABLE s (x INT, t INT NOT NULL) TIMESTAMP BY t")
    tier.insert("s", [(1, 1), (2, 4)])
    both_modes(tier, "SELECT x FROM s [INTERVAL 4 SECONDS] SAMPLE INTERVAL 5 SECONDS")
    tier.advance("s", 16)
    check(tier, {5: [(1,), (2,)], 10: [], 15: []})


def test_rows_of_an_open_tick_are_folded_once(tier: headwater.Database) -> None:
    """DC5: when a table below the fold changes, rows of the newest tick that come later count once."""
    tier.sql("CREATE STREAMING TABLE s (k INT, t INT NOT NULL) TIMESTAMP BY t")
    tier.sql("CREATE TABLE d (k INT)")
    tier.sql("INSERT INTO d VALUES (1)")
    both_modes(
        tier,
        "SELECT count(*) AS n FROM s [INTERVAL 5 SECONDS BEFORE] JOIN d ON s.k = d.k"
        " SAMPLE INTERVAL 5 SECONDS",
    )
    tier.insert("s", [(1, 4), (1, 5)])  # 5 is complete, and 5 itself still open
    tier.flush()
    tier.insert("s", [(1, 5)])
    tier.sql("INSERT INTO d VALUES (2)")
    tier.advance("s", 10)
    check(tier, {5: [(1,)], 10: [(2,)]})


def test_join_of_streams_with_different_clocks(tier: headwater.Database) -> None:
    """DC5: rows of the stream that was ahead when the query began are joined with all that come."""
    for name in ("a", "b"):
        tier.sql(f"CREATE STREAMING TABLE {name} (k INT, t INT NOT NULL) TIMESTAMP BY t")
    tier.insert("a", [(1, 1), (1, 8)])
    tier.insert("b", [(2, 1)])
    both_modes(
        tier,
        "SELECT a.t AS x, b.t AS y FROM a [INTERVAL 9 SECONDS], b [INTERVAL 9 SECONDS]"
        " WHERE a.k = b.k SAMPLE INTERVAL 5 SECONDS",
    )
    tier.insert("b", [(2, 6)])
    tier.flush()
    tier.insert("b", [(1, 9)])
    tier.advance("a", 10)
    tier.advance("b", 10)
    check(tier, {5: [], 10: [(1, 9), (8, 9)]})


def test_range_waits_for_a_query_that_is_behind(tier: headwater.Database) -> None:
    """ST10: what RANGE hides stays stored while a query has not evaluated it."""
    tier.sql(
        "CREATE STREAMING TABLE s (x INT, t INT NOT NULL) TIMESTAMP BY t RANGE INTERVAL 10 SECONDS"
    )
    for mode in ("fold", "reevaluate"):
        tier.sql(
            f"CREATE CONTINUOUS QUERY q_{mode} WITH (mode = '{mode}', max_wait = INTERVAL 1 HOUR)"
            " AS SELECT count(*) AS n FROM s [ROWS 3] SAMPLE INTERVAL 5 SECONDS"
        )
    tier.insert("s", [(1, 1), (2, 2), (3, 30)])
    tier._context.streams.seal_all()
    tier.advance("s", 31)
    check(tier, {5: [(2,)], 10: [(2,)], 15: [(0,)], 20: [(0,)], 25: [(0,)], 30: [(1,)]})


def test_an_error_without_spark_is_sparks_to_decide(db: headwater.Database) -> None:
    """DC4: a row that Spark would spare does not stop a query by operators; one that it would not does."""
    db.sql("CREATE STREAMING TABLE s (x INT, y INT, t INT NOT NULL) TIMESTAMP BY t")
    both_modes(
        db,
        "SELECT sum(x) AS n FROM s [INTERVAL 5 SECONDS] WHERE 1 / y > 0 OR TRUE"
        " SAMPLE INTERVAL 5 SECONDS",
    )
    db.insert("s", [(1, 0, 4), (2, 1, 5)])
    db.advance("s", 5)
    check(db, {5: [(3,)]})


def test_unary_plus_on_text(tier: headwater.Database) -> None:
    """DC4: +s is a cast of the text to a number, in every tier."""
    tier.sql("CREATE STREAMING TABLE s (s STRING, t INT NOT NULL) TIMESTAMP BY t")
    both_modes(tier, "SELECT +s AS n FROM s [INTERVAL 5 SECONDS] SAMPLE INTERVAL 5 SECONDS")
    tier.insert("s", [("07", 5)])
    tier.advance("s", 5)
    check(tier, {5: [(7.0,)]})


def test_timestamp_literals_in_another_zone(
    connect: Callable[..., headwater.Database],
) -> None:
    """DC4: where the session's zone is not UTC, a TIMESTAMP literal is read by Spark."""
    db = connect(":memory:", settings={"time_zone": "+02:00"})
    db.sql("CREATE STREAMING TABLE s (x INT, t TIMESTAMP NOT NULL) TIMESTAMP BY t")
    both_modes(
        db,
        "SELECT x FROM s [INTERVAL 1 HOUR] WHERE t > TIMESTAMP '2026-01-01 12:30:00'"
        " SAMPLE INTERVAL 1 HOUR",
    )
    db.sql("INSERT INTO s VALUES (1, TIMESTAMP '2026-01-01 12:20:00+00:00')")
    db.sql("ADVANCE s TO TIMESTAMP '2026-01-01 13:00:00+00:00'")
    assert list(results(db, "q_fold").values()) == [[(1,)]]
    assert list(results(db, "q_reevaluate").values()) == [[(1,)]]
