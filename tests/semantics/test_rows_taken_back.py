"""DELETE and UPDATE of a streaming table go through folded views, which do not begin anew: against DuckDB."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

import headwater
from headwater.engine.view_pipeline import ViewPipeline
from tests.harness.patience import PATIENCE_S

Connect = Callable[..., headwater.Database]

VIEWS = {
    "counts": "SELECT k, count(*) AS n, count(x) AS c, sum(x) AS s, avg(x) AS a FROM s GROUP BY k",
    "extremes": "SELECT k, min(x) AS low, max(x) AS high, min(c) AS first, max(c) AS last FROM s GROUP BY k",
    "floats": "SELECT k, sum(f) AS s, avg(f) AS a, min(f) AS low, stddev_pop(f) AS d FROM s GROUP BY k",
    "kinds": "SELECT k, count(DISTINCT c) AS n, count(DISTINCT x) AS m, sum(x) AS s FROM s GROUP BY k",
    "large": "SELECT k, sum(x) AS s, max(x) AS m FROM s WHERE x > 2 GROUP BY k HAVING count(*) > 1",
    "pairs": "SELECT k, c, sum(d) AS d, count(*) AS n FROM s GROUP BY k, c",
    "named": "SELECT t.name, count(*) AS n, max(x) AS m FROM s JOIN t ON s.k = t.k GROUP BY t.name",
    "whole": "SELECT count(*) AS n, sum(x) AS s FROM s",
    "greatest": "SELECT max(x) AS m FROM s",
    "present": "SELECT DISTINCT k, c FROM s",
}
COLUMNS = "ts INT, k INT, x INT, f DOUBLE, d DECIMAL(20, 2), c STRING"


def rows_of(random: Random, first: int, count: int) -> list[tuple[Any, ...]]:
    """Rows with NULLs, some late, of a few groups that come and go."""
    return [
        (
            first + place - (20 if random.random() < 0.1 else 0),
            random.choice([*range(12), None]),
            random.choice([*range(8), None]),
            random.choice([0.25, 1.5, -3.0, 1e-3, None]),
            random.choice([None, 10, 25, 7]),
            random.choice(["a", "bb", "c", None]),
        )
        for place in range(count)
    ]


def rounded(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        "NaN"
        if isinstance(v, float) and math.isnan(v)
        else round(float(v), 6)
        if v is not None and not isinstance(v, (str, int))
        else v
        for v in row
    )


def statement(random: Random) -> str:
    key, value = random.randrange(12), random.randrange(8)
    where = random.choice(
        [
            f"k = {key}",
            f"k = {key} AND x = {value}",
            f"x = {value} AND f > 0",
            f"c = 'a' AND k < {key}",
            "k IS NULL",
            f"ts < {random.randrange(60)}",
        ]
    )
    what = random.choice(
        [
            f"x = {value}",
            "x = x + 1",
            "c = 'zz'",
            f"k = {key}",
            "x = NULL",
            "f = f * 2",
            "d = d + 1",
        ]
    )
    return random.choice([f"DELETE FROM s WHERE {where}", f"UPDATE s SET {what} WHERE {where}"])


def prepared(db: headwater.Database) -> duckdb.DuckDBPyConnection:
    oracle = duckdb.connect()
    oracle.execute(f"CREATE TABLE s ({COLUMNS})")
    oracle.execute("CREATE TABLE t (k INT, name STRING)")
    db.sql(f"CREATE STREAMING TABLE s ({COLUMNS}) TIMESTAMP BY ts")
    db.sql("CREATE TABLE t (k INT, name STRING)")
    for both in (db.sql, oracle.execute):
        both("INSERT INTO t VALUES (1, 'one'), (2, 'two'), (3, 'two')")
    for name, query in VIEWS.items():
        db.sql(f"CREATE VIEW {name} AS {query}")
    return oracle


def insert(db: headwater.Database, oracle: duckdb.DuckDBPyConnection, rows: list[Any]) -> None:
    db.insert("s", rows)
    oracle.executemany("INSERT INTO s VALUES (?, ?, ?, ?, ?, ?)", rows)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("where", [pytest.param("here", marks=pytest.mark.here), "in a factory"])
def test_random_deletes_and_updates(connect: Connect, folder: Path, seed: int, where: str) -> None:
    """After each statement every view is what DuckDB gives; a restart between."""
    random, db = Random(seed), connect(folder)
    oracle = prepared(db)
    insert(db, oracle, rows_of(random, 0, 150))
    for step in range(14):
        if step == 7:
            db.close()
            db = connect(folder)
        for _ in range(random.randrange(1, 3)):
            text = statement(random)
            db.sql(text)
            oracle.execute(text)
            if random.random() < 0.5:
                insert(db, oracle, rows_of(random, 150 + 10 * step, random.randrange(1, 6)))
        for name, query in VIEWS.items():
            found = Counter(map(rounded, db.sql(f"SELECT * FROM {name}").rows()))
            wanted = Counter(map(rounded, oracle.execute(query).fetchall()))
            assert found == wanted, (name, step, where)


@pytest.mark.here
def test_what_stays_is_not_folded_again(connect: Connect, folder: Path) -> None:
    """A deleted row is taken out of counts and sums; a least value that goes has its group made again."""
    db, count = connect(folder), 5_000
    db.sql("CREATE STREAMING TABLE s (ts INT, k INT, x INT) TIMESTAMP BY ts")
    db.sql("CREATE VIEW counts AS SELECT k, count(*) AS n, sum(x) AS s FROM s GROUP BY k")
    db.sql(
        "CREATE VIEW edges AS SELECT k + 0 AS k, min(x) AS low, last(x) AS x FROM s GROUP BY k + 0"
    )
    db.insert("s", [(n, n % 100, n) for n in range(count)])
    counts, edges = (pipeline_of(db, name) for name in ("counts", "edges"))
    db.sql("DELETE FROM s WHERE x = 4000")
    db.sql("UPDATE s SET x = 4100 WHERE x = 4001")
    assert db.sql("SELECT n, s FROM counts WHERE k = 1").rows() == [
        (50, sum(range(1, 5000, 100)) + 99)
    ]
    assert db.sql("SELECT low, x FROM edges WHERE k = 1").rows() == [(1, 4901)]
    for pipeline in (counts, edges):
        assert pipeline.counters.rows_by_operators == count + 3
    groups = edges.groups_held
    db.sql(
        "DELETE FROM s WHERE x = 7 OR x = 4908"
    )  # the least value of a group, the last row of another
    assert db.sql("SELECT low, x FROM edges WHERE k = 7").rows() == [(107, 4907)]
    assert db.sql("SELECT low, x FROM edges WHERE k = 8").rows() == [(8, 4808)]
    assert counts.counters.rows_by_operators == count + 5
    assert edges.groups_held is groups  # all others stayed


def pipeline_of(db: headwater.Database, name: str) -> ViewPipeline:
    view = db._context.engine.find_view(name)
    assert view is not None
    view.read()
    return view.pipelines[0]


@pytest.mark.here
def test_a_follower_of_a_grouping_is_told_what_a_delete_takes_away(
    connect: Connect, folder: Path
) -> None:
    db = connect(folder)
    prepared(db)
    db.insert("s", [(n, n % 10, n, 0.5, None, "a") for n in range(100)])
    with db.subscribe("extremes", timeout=PATIENCE_S) as reader:
        next(reader)
        db.sql("DELETE FROM s WHERE x = 3 OR k = 5")
        told = Counter((row[-1], *row[:3]) for row in next(reader).rows())
        assert told == Counter([("-", 3, 3, 93), ("+", 3, 13, 93), ("-", 5, 5, 95)])
