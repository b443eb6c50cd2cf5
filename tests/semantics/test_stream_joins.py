"""Joins of two streams that read both sides of a pair: by operators, on Spark, re-evaluated (EQ4, EQ7)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

import headwater
from headwater.engine.joins import PairJoinMerge, PairsMerge, PartialJoinMerge
from headwater.engine.query import ContinuousQuery
from tests.harness.rows import check_same
from tests.semantics.test_epoch_paper_queries import QUERIES as PAPER

NO_SPARK = {"eager_spark": False}
CUT = "CUT ON ts BY INTERVAL '4' SECOND KEEP {} CHUNKS"
TWO = f"FROM a {CUT.format(2)} x JOIN b {CUT.format(3)} y"
QUERIES = {
    "both sides in an argument": f"SELECT x.k, avg(y.v - x.v) AS d, count(*) AS n {TWO}"
    " ON x.k = y.k GROUP BY x.k",
    "both sides in a condition": f"SELECT x.k, x.v, y.v AS w {TWO} USING (k)"
    " WHERE y.v > x.v AND y.v - x.v < 30",
    "pairs seen once": f"SELECT x.k, x.v, y.v AS w {TWO} ON x.k = y.k PAIR NEWEST",
    "pairs seen once, counted": f"SELECT x.v + y.v AS s, count(*) AS n {TWO} ON x.k = y.k"
    " GROUP BY x.v + y.v PAIR NEWEST",
    "pairs seen once, each side alone": f"SELECT y.s, max(x.v) AS m, count(*) AS n {TWO}"
    " ON x.k = y.k GROUP BY y.s PAIR NEWEST",
    "by rows": "SELECT DISTINCT x.k, x.s = y.s AS e FROM a CUT BY 7 ROWS KEEP 2 CHUNKS x,"
    " b CUT BY 7 ROWS y WHERE x.k = y.k AND x.s <> '' ",
    "sliding": "SELECT x.s, y.s AS t, min(x.v * y.v) AS m FROM a [INTERVAL 5 SECONDS] x, b"
    " [INTERVAL 3 SECONDS BEFORE] y WHERE x.k = y.k AND x.s <=> y.s GROUP BY x.s, y.s"
    " SAMPLE INTERVAL 2 SECONDS",
}


def _create(db: headwater.Database, mode: str) -> None:
    for name in "ab":
        db.sql(f"CREATE STREAMING TABLE {name} (ts INT, k INT, v INT, s STRING) TIMESTAMP BY ts")
    for number, text in enumerate(QUERIES.values()):
        db.sql(f"CREATE CONTINUOUS QUERY q{number} WITH (mode = '{mode}') AS {text}")


def _feed(db: headwater.Database) -> None:
    """The tables in turn; few keys, some NULL; then all instants at once."""
    choose = Random(3)
    for second in range(0, 16, 4):
        for name in "ab":
            rows = [
                (
                    second + choose.randint(0, 3),
                    choose.choice([None, 1, 2, 3, 4]),
                    choose.randint(0, 50),
                    choose.choice([None, "", "u", "w"]),
                )
                for _ in range(choose.choice([5, 9]))
            ]
            db.insert(name, sorted(rows, key=lambda row: row[0]))
    for name in "ab":
        db.advance(name, 20)
    db.flush()


def _outs(db: headwater.Database, name: str) -> list[Any]:
    return list(db.subscribe(name, after="earliest", timeout=0.001))


def _query(db: headwater.Database, name: str) -> ContinuousQuery:
    query = db._context.engine.find(name)
    assert isinstance(query, ContinuousQuery)
    return query


@pytest.mark.timeout(600)
def test_every_way_gives_the_same_pairs(connect: Callable[..., headwater.Database]) -> None:
    """EQ4: rows and aggregates, conditions over both sides, PAIR NEWEST, NULL keys."""
    ways = [
        connect(":memory:", settings=settings)
        for settings in ({}, {"spark_sql_only": True}, {"spark_sql_only": True})
    ]
    for db, mode in zip(ways, ("fold", "fold", "reevaluate"), strict=True):
        _create(db, mode)
        _feed(db)
    for number, name in enumerate(QUERIES):
        assert _query(ways[0], f"q{number}").counters.rows_on_spark == 0, name
        wanted = _outs(ways[2], f"q{number}")
        assert sum(len(out.rows()) for out in wanted) > 10, name
        for db in ways[:2]:
            found = _outs(db, f"q{number}")
            assert [out.time for out in found] == [out.time for out in wanted], name
            for one, other in zip(found, wanted, strict=True):
                check_same(one.rows(), other.rows())


def test_the_papers_joins_need_no_spark(connect: Callable[..., headwater.Database]) -> None:
    """EQ7: Q_c and the self-join are explained and run by operators; dead rows go once a result is out."""
    db = connect(":memory:", settings=NO_SPARK)
    for name in ("rt1", "rt2"):
        db.sql(f"CREATE STREAM {name} (ts INT, pid INT, rt INT) TIMESTAMP BY ts")
    db.sql("CREATE STREAM calls (ts TIMESTAMP, caller INT, callee INT) TIMESTAMP BY ts")
    for name in ("q_c", "doubled"):
        text = PAPER[name].of_streams(as_call=True)
        db.sql(f"CREATE CONTINUOUS QUERY {name} WITH (mode = 'fold') AS {text}")
        for shown in (f"EXPLAIN {text}", f"EXPLAIN ANALYZE QUERY {name}"):
            lines = [row[0] for row in db.sql(shown).rows()]
            assert any("stream pipeline" in line and line.endswith("operators") for line in lines)
    db.insert("rt1", [(1, 7, 10), (2, 8, 20), (3, None, 1)])
    db.insert("rt2", [(4, 8, 26), (5, 7, 12), (6, None, 2)])
    db.advance("rt1", 60)
    db.advance("rt2", 60)
    db.flush()
    assert [out.rows() for out in _outs(db, "q_c")] == [[(0, 4.0, 60)]]
    fold = _query(db, "q_c").folds[0]
    assert isinstance(fold.merge, PairJoinMerge)
    assert fold.merge.size == 0  # the next chunk does not see them
    assert fold.counters.spark_runs == 0


def test_chunks_are_folded_early_while_another_mode_is_tried(
    connect: Callable[..., headwater.Database],
) -> None:
    """EQ7: a trial of re-evaluation stops no early chunk, and is not run if it cannot be cheaper."""
    db = connect(":memory:", settings=NO_SPARK)
    for name in "ab":
        db.sql(f"CREATE STREAM {name} (ts INT, k INT, v INT) TIMESTAMP BY ts")
    cut = "CUT ON ts BY INTERVAL '10' SECOND"
    text = f"SELECT avg(x.v - y.v) AS d FROM a {cut} x, b {cut} y WHERE x.k = y.k"
    db.sql(f"CREATE CONTINUOUS QUERY q AS {text}")
    query, tried = _query(db, "q"), []
    for chunk in range(12):
        for second in range(1, 10):
            for name in "ab":
                db.insert(name, [(10 * chunk + second, key, key) for key in range(20)])
                db.advance(name, 10 * chunk + second)
            db.flush()
        tried.append("trying" in query.chooser.explain())
        assert query.early.m >= 16
        assert chunk < 2 or query._pane_rows == 360
        for name in "ab":
            db.advance(name, 10 * chunk + 10)
        db.flush()
    assert query.error is None
    assert any(tried)


SPARED = "(x.v % (x.v - y.v) >= 0 OR TRUE)"  # Spark drops the condition, and the division by zero
FAILING = f"SELECT x.v, y.v AS w {TWO} ON x.k = y.k AND {{}}"
EACH_ALONE = f"SELECT max(y.v) AS m, count(*) AS n {TWO} ON x.k = y.k WHERE (10 / y.v > 0 OR TRUE)"


@pytest.mark.here
@pytest.mark.parametrize("text", [FAILING.format(SPARED), EACH_ALONE])
def test_a_row_that_spark_spares_takes_the_join_to_spark(
    text: str, connect: Callable[..., headwater.Database]
) -> None:
    """An error by operators that Spark may not raise: all pairs that still count are found again there."""
    db = connect(":memory:")
    for name in "ab":
        db.sql(f"CREATE STREAM {name} (ts INT, k INT, v INT) TIMESTAMP BY ts")
    db.sql(f"CREATE CONTINUOUS QUERY folded WITH (mode = 'fold') AS {text}")
    db.sql(f"CREATE CONTINUOUS QUERY again WITH (mode = 'reevaluate') AS {text}")
    for chunk in range(5):
        db.insert("a", [(4 * chunk, 1, 5 + chunk), (4 * chunk + 1, 2, 7)])
        db.insert("b", [(4 * chunk, 1, 20), (4 * chunk + 2, 2, 7 if chunk == 2 else 30)])
        if chunk == 2:
            assert isinstance(
                _query(db, "folded").folds[0].merge, (PairJoinMerge, PartialJoinMerge)
            )
            db.insert("b", [(4 * chunk + 2, 1, 0)])
        for name in "ab":
            db.advance(name, 4 * chunk + 3)
        db.flush()
    for name in "ab":
        db.advance(name, 20)
    db.flush()
    assert isinstance(_query(db, "folded").folds[0].merge, PairsMerge)
    found, wanted = _outs(db, "folded"), _outs(db, "again")
    assert [out.time for out in found] == [out.time for out in wanted] == [4, 8, 12, 16, 20]
    for one, other in zip(found, wanted, strict=True):
        check_same(one.rows(), other.rows())


def test_an_error_that_spark_raises_too_fails_the_query(
    connect: Callable[..., headwater.Database],
) -> None:
    """A division by zero in a joined row is the query's error."""
    db = connect(":memory:")
    for name in "ab":
        db.sql(f"CREATE STREAM {name} (ts INT, k INT, v INT) TIMESTAMP BY ts")
    text = FAILING.format("x.v % (x.v - y.v) >= 0")
    db.sql(f"CREATE CONTINUOUS QUERY q WITH (mode = 'fold') AS {text}")
    for name in "ab":
        db.insert(name, [(1, 1, 5)])
        db.advance(name, 4)
    with contextlib.suppress(headwater.Error):
        db.flush()
    error = _query(db, "q").error
    assert isinstance(error, headwater.Error)
    assert error.sqlstate == "22012"
