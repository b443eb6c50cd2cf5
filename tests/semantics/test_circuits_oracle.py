"""The oracle of circuits: random queries over tables whose rows come and go equal DuckDB after each step.

No Spark and no database: the planner, the compiler and the operators alone. What Spark makes of the same
views, with restarts and in factories, is in test_kept_views.py.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.harness.circuits.runner import Counts, Disagreement, run_query

# What must have been run: operators with rows that only come, and with rows that are taken back.
OPERATORS = (
    *("filter", "project", "inner join", "left join", "right join", "full join"),
    *("semi join", "anti join", "group", "distinct", "union all", "top", "over"),
    *("intersect", "intersect all", "except", "except all", "time windows", "session"),
    *("as-of join", "left as-of join"),
)
SHORT = (*range(160), 545)  # the seeds that it takes to have every operator both ways


def run(seeds: Iterable[int]) -> Counts:
    """Query by query; fails with what is needed to see the first wrong result."""
    counts = Counts()
    for seed in seeds:
        try:
            run_query(seed, counts)
        except Disagreement as wrong:
            pytest.fail(str(wrong), pytrace=False)
    print("\n" + counts.table())
    return counts


def test_every_result_equals_the_query() -> None:
    counts = run(SHORT)
    assert counts.queries >= 150
    missing = [
        (operator, back)
        for operator in OPERATORS
        for back in (False, True)
        if not counts.operators[operator, back]
    ]
    assert missing == []


@pytest.mark.large
@pytest.mark.timeout(0)
def test_every_result_equals_the_query_20_000_times() -> None:
    assert run([*range(160, 250), *range(1000, 36_000)]).queries >= 20_000
