"""SUBSCRIBE to a select without a window: first its rows, then what each commit changes, as for a view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headwater
from tests.harness.patience import PATIENCE_S, until

Connect = Callable[..., headwater.Database]


@pytest.fixture(params=[pytest.param(0, marks=pytest.mark.here), 2], ids=["here", "in a factory"])
def db(connect: Connect, folder: Path) -> headwater.Database:
    made = connect(folder)
    made.sql("CREATE STREAMING TABLE s (ts INT, k INT, x INT) TIMESTAMP BY ts")
    made.sql("CREATE TABLE t (k INT, c STRING)")
    made.sql("CREATE VIEW sums AS SELECT k, sum(x) AS n FROM s GROUP BY k")
    made.sql("INSERT INTO t VALUES (1, 'one'), (2, 'two')")
    made.insert("s", [(1, 1, 10), (2, 2, 20)])
    return made


def told(out: Any) -> Counter[tuple[Any, ...]]:
    return Counter((row[-1], *row[:-2]) for row in out.rows())


SELECTS = [
    "SELECT k, x FROM s WHERE x > 10",
    "SELECT k, count(*) AS n FROM s GROUP BY k",
    "SELECT c, sum(x) AS n FROM s JOIN t ON s.k = t.k GROUP BY c",
    "SELECT s.x, t.c FROM s LEFT JOIN t ON s.k = t.k",
    "SELECT * FROM sums WHERE n > 5",
    "WITH a AS (SELECT k FROM s) SELECT DISTINCT k FROM a",
    "SELECT percentile_approx(x, 0.5) AS p FROM s GROUP BY k",  # by Spark
]


@pytest.mark.parametrize("select", SELECTS)
def test_rows_first_then_changes(db: headwater.Database, select: str) -> None:
    state: Counter[tuple[Any, ...]] = Counter()
    with db.subscribe(select, timeout=PATIENCE_S) as reader:
        for step in range(4):
            wanted = Counter(db.sql(select).rows())
            while +state != wanted:
                for sign, *row in told(next(reader)).elements():
                    state[tuple(row)] += 1 if sign == "+" else -1
            if step == 1:
                db.sql("DELETE FROM s WHERE k = 1")
            db.insert("s", [(10 + step, step, 30 + step), (10 + step, 1, 7)])


@pytest.mark.parametrize("target", ["SELECT k, x FROM s WHERE x >= 0", "positive"])
def test_all_rows_become_others(db: headwater.Database, target: str) -> None:
    """After changes alone: a log in memory holds no rows to compare with but those of the newest result."""
    db.sql("CREATE VIEW positive AS SELECT k, x FROM s WHERE x >= 0")
    with db.subscribe(target, timeout=PATIENCE_S) as reader:
        next(reader)
        for step in range(3):
            db.insert("s", [(9, step, step)])
            assert told(next(reader)) == Counter([("+", step, step)])
        db.sql("UPDATE s SET x = x + 100")
        changed = told(next(reader))
        assert Counter(sign for sign, *_ in changed.elements()) == Counter("+++++-----")
        assert ("-", 1, 10) in changed
        assert ("+", 1, 110) in changed


def test_nothing_is_left_of_it(db: headwater.Database) -> None:
    with db.subscribe("SELECT k, max(x) AS m FROM s GROUP BY k", timeout=PATIENCE_S) as reader:
        assert told(next(reader)) == Counter([("+", 1, 10), ("+", 2, 20)])
        names = [query.name for query in db._context.engine.all_hosted()]
        assert len(names) == 3
        assert db.sql("SELECT name FROM headwater.views").rows() == [("sums",)]
    until(lambda: len(db._context.engine.all_hosted()) == 1)
    until(lambda: not db._context.passing)
    db.sql("DROP VIEW sums")
    db.sql("DROP TABLE s")


def test_its_name_is_nobodys(db: headwater.Database) -> None:
    """Names of users may have blanks and brackets."""
    first = db.subscribe("SELECT k FROM s", timeout=PATIENCE_S)
    number = int(next(iter(db._context.passing)).strip("()").removeprefix("subscription/"))
    for name in (f"(subscription {number + 1})", f"(subscription {number})"):
        db.sql(f"CREATE VIEW `{name}` AS SELECT x FROM s")
    with db.subscribe("SELECT ts FROM s", timeout=PATIENCE_S) as second:
        assert told(next(first)) == told(next(second)) == Counter([("+", 1), ("+", 2)])
        assert sorted(db.sql(f"SELECT * FROM `(subscription {number + 1})`").rows()) == [
            (10,),
            (20,),
        ]
    first.close()


def test_all_rows_each_time(db: headwater.Database) -> None:
    with db.subscribe("SELECT k, x FROM s", emit="all", timeout=PATIENCE_S) as reader:
        for count in range(2, 6):
            assert len(next(reader).rows()) == count
            db.insert("s", [(9, count, count)])
    with db.subscribe(
        "SELECT k, x FROM s", emit="all", conflate_by=["k"], timeout=PATIENCE_S
    ) as reader:
        assert sorted(row[0] for row in next(reader).rows()) == [1, 2, 3, 4, 5]


def test_as_a_statement(db: headwater.Database) -> None:
    for text in (
        "SUBSCRIBE TO SELECT k FROM s WHERE x > 10",
        "SUBSCRIBE (SELECT k FROM s WHERE x > 10)",
    ):
        assert told(db.sql(text)) == Counter([("+", 2)])


def test_a_select_over_standard_tables_alone(db: headwater.Database) -> None:
    with db.subscribe("SELECT upper(c) AS c FROM t WHERE k > 1", timeout=PATIENCE_S) as reader:
        assert told(next(reader)) == Counter([("+", "TWO")])
        db.sql("INSERT INTO t VALUES (3, 'three')")
        assert told(next(reader)) == Counter([("+", "THREE")])


@pytest.mark.parametrize(
    ("select", "why"),
    [
        ("SELECT k, now() AS d FROM s GROUP BY k", "depends on the time"),
        ("SELECT k, rand() AS r FROM s", "."),
        ("SELECT k AS _t FROM s", "has a column _t"),
        ("SELECT k FROM nowhere", "nowhere"),
        ("SELECT k FROM headwater.tables", "."),
    ],
)
def test_what_cannot_be_told_is_refused(db: headwater.Database, select: str, why: str) -> None:
    with pytest.raises(headwater.Error, match=why):
        db.subscribe(select)
    until(lambda: len(db._context.engine.all_hosted()) == 1)
    assert not db._context.passing


def test_a_database_is_closed_before_its_reader(
    db: headwater.Database, folder: Path, connect: Connect
) -> None:
    reader = db.subscribe("SELECT c, sum(x) AS n FROM s JOIN t ON s.k = t.k GROUP BY c")
    assert len(next(reader).rows()) == 2
    db.close()
    assert list(reader) == []
    again = connect(folder)
    assert again.sql("SELECT * FROM headwater.views").arrow().num_rows == 1
    with again.subscribe("SELECT k FROM s", timeout=PATIENCE_S) as reader:
        assert len(next(reader).rows()) == 2


@pytest.mark.parametrize(
    ("select", "dropped"),
    [
        ("SELECT k, count(*) AS n FROM s2 GROUP BY k", "TABLE s2"),
        ("SELECT s.x, t.c FROM s JOIN t ON s.k = t.k", "TABLE t"),
        ("SELECT c FROM t", "TABLE t"),
        ("SELECT * FROM sums", "VIEW sums"),
        ("SELECT k FROM s2 [ROWS 1] SAMPLE 1 ROWS", "TABLE s2"),
    ],
)
def test_what_a_select_reads_cannot_be_dropped(
    db: headwater.Database, select: str, dropped: str
) -> None:
    """As long as it has a reader."""
    db.sql("CREATE STREAMING TABLE s2 (ts INT, k INT) TIMESTAMP BY ts")
    with db.subscribe(select, timeout=PATIENCE_S):
        with pytest.raises(headwater.Error, match="is read by the select of a subscriber") as error:
            db.sql(f"DROP {dropped}")
        assert error.value.sqlstate == "2BP01"
    db.sql(f"DROP {dropped}")
