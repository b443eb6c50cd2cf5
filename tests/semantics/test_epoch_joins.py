"""Joins by epoch against brute force (EQ1, EQ3, EQ4): random streams, cuts, keeps, pairings and joins.

Operators = Spark fold = Spark re-evaluation = plain Python over lists of rows = DuckDB over the kept chunks;
times, numbers and rows of every epoch, in subscriptions and in materialized views, also over restarts.
`python -m tests.harness.epochs SEED` shows a scenario again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.harness.epochs.queries import CUT_ON_ANY_COLUMN
from tests.harness.epochs.runner import run_seed

QUERIES = 6  # over each history
# Together they hold every construct, each in a query with results; found by trying.
SEEDS = (26, 14, 51, 41, 29, 2) if CUT_ON_ANY_COLUMN else (9, 51, 120, 171, 1, 2)
CONSTRUCTS = frozenset(
    [
        "cut by time",
        "cut by rows",
        "STREAM(…)",
        "CUT",
        "kept chunks",
        "PAIR NEWEST",
        "self-join",
        "three sources",
        "time of two tables",
        "rows of two tables",
        "standard table",
        "inner join",
        "left join",
        "right join",
        "full join",
        "semi join",
        "anti join",
        "exists",
        "not exists",
        "in",
        "not in",
        "grouped subquery",
        "groups",
        "rows",
        "distinct",
        "mode auto",
        "mode fold",
        "mode reevaluate",
        "into a view",
        "into a query",
        "stream",
        "streaming table",
        "INT time",
        "BIGINT time",
        "TIMESTAMP time",
        "watermark",
        "stored rows",
        "advance",
        "restart",
        "change",
        "pause",
    ]
)


def wanted_constructs() -> set[str]:
    """What a run must have tried; a change of the generator asks for other seeds."""
    return {*CONSTRUCTS, *(("cut by key", "cut by step") if CUT_ON_ANY_COLUMN else ())}


def run(seeds: Iterable[int], folder: Path, queries: int = QUERIES) -> Counter[str]:
    """Scenario by scenario; fails with what is needed to see the first disagreement again."""
    tried: Counter[str] = Counter()
    for seed in seeds:
        problems = run_seed(seed, queries, folder / str(seed), tried)
        if problems:
            pytest.fail("\n\n".join(problems), pytrace=False)
    print(f"\n{tried}")
    return tried


@pytest.mark.timeout(600)
def test_every_epoch_is_the_query_over_its_chunks(tmp_path: Path) -> None:
    """EQ3, EQ4: a few queries of one history."""
    assert run(SEEDS[:1], tmp_path, queries=3)["epochs with rows"] > 15


@pytest.mark.large
@pytest.mark.timeout(0)
def test_every_construct_is_tried(tmp_path: Path) -> None:
    """EQ3, EQ4: 36 queries over six histories, which hold everything that the generator knows."""
    assert not wanted_constructs() - run(SEEDS, tmp_path).keys()


@pytest.mark.large
@pytest.mark.timeout(0)
def test_every_epoch_is_the_query_over_its_chunks_many_times(tmp_path: Path) -> None:
    """EQ3, EQ4: the same with thousands of queries."""
    tried = run(range(1000, 1500), tmp_path)
    assert not wanted_constructs() - tried.keys()
