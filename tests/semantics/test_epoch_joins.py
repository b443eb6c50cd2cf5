"""Joins by epoch against brute force (EQ1, EQ3, EQ4): random streams, cuts, keeps, pairings and joins.

In line = Spark fold = Spark re-evaluation = plain Python over lists of rows = DuckDB over the kept chunks;
times, numbers and rows of every epoch, in subscriptions and in materialized views, also over restarts.
`python -m tests.harness.epochs SEED` shows a scenario again.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.harness.epochs.queries import CUT_ON_ANY_COLUMN
from tests.harness.epochs.runner import run_seed

QUERIES = 6  # over each history
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


def run(seeds: range, folder: Path) -> Counter[str]:
    """Scenario by scenario; fails with what is needed to see the first disagreement again."""
    tried: Counter[str] = Counter()
    for seed in seeds:
        problems = run_seed(seed, QUERIES, folder / str(seed), tried)
        if problems:
            pytest.fail("\n\n".join(problems), pytrace=False)
    print(f"\n{tried}")
    return tried


@pytest.mark.timeout(600)
def test_every_epoch_is_the_query_over_its_chunks(tmp_path: Path) -> None:
    """EQ3, EQ4: some scenarios in each run of the tests."""
    assert run(range(8), tmp_path)["epochs with rows"] > 100


@pytest.mark.large
@pytest.mark.timeout(0)
def test_every_epoch_is_the_query_over_its_chunks_many_times(tmp_path: Path) -> None:
    """EQ3, EQ4: thousands of queries; everything that the generator knows was tried."""
    tried = run(range(1000, 1500), tmp_path)
    wanted = CONSTRUCTS | ({"cut by key", "cut by step"} if CUT_ON_ANY_COLUMN else set())
    assert not wanted - tried.keys()
