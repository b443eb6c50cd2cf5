"""The oracle of views (CV1–CV9): random views over random tables, and whatever may happen to them.

Each read equals DuckDB over all rows acknowledged since the view began, in both tiers and with every way to
keep a view; tables below its folds as of creation, above them as of the read.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

import headwater
from tests.harness.views.histories import make_history
from tests.harness.views.runner import (
    KEPT,
    OPERATORS,
    REEVALUATED,
    SPARK,
    Counts,
    Disagreement,
    run_history,
)

VIEWS = 8  # over the tables of one history
MOST_SEEDS = 20
EVERY_SHAPE = (1, 2, 8, 10, 18)  # the fewest seeds below that which have a view of every shape
FOLDED = (
    *("aggregates", "derived table", "CTE", "DISTINCT", "UNION ALL", "two grouped streams"),
    *("scalar subquery over a fold", "subquery over a table below the fold", "a subquery twice"),
    *(
        "EXISTS (SELECT … FROM a table)",
        "NOT EXISTS (SELECT … FROM a table)",
        "EXISTS above the fold",
    ),
    "window function above the fold",
    *("one table below and above the fold", "STREAM", "STREAMING TABLE", "split", "eager"),
    *("incremental", "integer time", "timestamp time", "arrival time", "RANGE", "WATERMARK"),
)
WITHOUT_A_FOLD = (
    *("rows of a table", "breaks R3", "breaks R4", "breaks R5"),
    *("grouping sets", "subquery under OR"),
)


def run(seeds: Iterable[int], folder: Path, counts: Counts | None = None) -> Counts:
    """History by history, in both tiers; fails with what is needed to see the first wrong read."""
    counts = Counts() if counts is None else counts
    for seed in seeds:
        for tier in (OPERATORS, SPARK):
            place = folder / f"{seed}-{tier.replace(' ', '')}"
            try:
                run_history(make_history(seed, VIEWS), place, counts, tier)
            except Disagreement as wrong:
                pytest.fail(str(wrong), pytrace=False)
    print("\n" + counts.table())
    return counts


@pytest.mark.here
@pytest.mark.timeout(900)
def test_every_read_equals_the_query(tmp_path: Path) -> None:
    """CV2, CV6, CV9: at least 40 views, and as many as it takes to have one of every shape."""
    counts = run(EVERY_SHAPE, tmp_path)
    for seed in sorted(set(range(MOST_SEEDS)) - set(EVERY_SHAPE)):
        if missing(counts):
            run([seed], tmp_path, counts)
    assert missing(counts) == []


@pytest.mark.timeout(900)
def test_every_read_in_a_factory_equals_the_query(tmp_path: Path) -> None:
    """The same with views that live in Spark tasks."""
    run([1], tmp_path)


def missing(counts: Counts) -> list[tuple[str, str]]:
    """Shapes that no view has had, and where it would have been kept."""
    wanted = [(construct, tier) for tier in (OPERATORS, SPARK) for construct in FOLDED]
    wanted += [(construct, KEPT) for construct in WITHOUT_A_FOLD]
    wanted += [(construct, REEVALUATED) for construct in (*WITHOUT_A_FOLD, "deferred")]
    return [each for each in wanted if not counts[each]]


@pytest.mark.large
@pytest.mark.timeout(0)
def test_every_read_equals_the_query_5_000_times(tmp_path: Path) -> None:
    """CV2, CV6, CV9: the same with 5 000 views."""
    run([*range(MOST_SEEDS), *range(100, 705)], tmp_path)


def test_a_read_sees_all_its_tables_at_one_moment(db: headwater.Database) -> None:
    """CV2: groupings of one table, and of two, are finished over the same rows while rows come."""
    db.sql("CREATE STREAMING TABLE a (ts INT, v INT) TIMESTAMP BY ts")
    db.sql("CREATE STREAM b (ts INT, v INT) TIMESTAMP BY ts")
    db.sql(
        "CREATE VIEW parts AS SELECT x.n AS n, y.n AS even, z.n AS odd, w.n AS later"
        " FROM (SELECT count(*) AS n FROM a) x CROSS JOIN (SELECT count(*) AS n FROM b) w"
        " CROSS JOIN (SELECT count(*) AS n FROM a WHERE v % 2 = 0) y"
        " CROSS JOIN (SELECT count(*) AS n FROM a WHERE v % 2 = 1) z"
    )
    done, batches = threading.Event(), []

    def feed() -> None:
        while not done.is_set():
            second = len(batches)
            db.insert("a", [(second, second), (second, second + 1), (second, 0)])
            db.insert("b", [(second, second)] * 3)
            batches.append(second)

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        for _ in range(8):
            ((whole, even, odd, later),) = db.sql("SELECT n, even, odd, later FROM parts").rows()
            assert even + odd == whole
            assert whole - 3 <= later <= whole
    finally:
        done.set()
        feeder.join()
    count = 3 * len(batches)
    assert db.sql("SELECT n, later FROM parts").rows() == [(count, count)]


def test_all_references_in_a_query_see_one_version(db: headwater.Database) -> None:
    """CV2: a view joined with itself equals itself while rows come."""
    db.sql("CREATE STREAM s (ts INT, k INT) TIMESTAMP BY ts")
    db.sql("CREATE VIEW v AS SELECT k, count(*) AS n FROM s GROUP BY k")
    db.sql("CREATE VIEW w AS SELECT k, n + 1 AS m FROM v")
    done = threading.Event()

    def feed() -> None:
        while not done.is_set():
            db.insert("s", [(0, k) for k in range(5)])

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        for _ in range(5):
            rows = db.sql("SELECT a.n, b.n, w.m FROM v a JOIN v b ON a.k = b.k JOIN w ON w.k = a.k")
            assert all(one == two == more - 1 for one, two, more in rows.rows())
    finally:
        done.set()
        feeder.join()
