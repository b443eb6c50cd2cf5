"""The oracle of circuits: random queries over tables whose rows come and go equal DuckDB after each step.

No Spark and no database: the planner, the compiler and the operators alone, but where queries have parts that
Spark must evaluate; a few are drawn, since each costs Spark jobs. Where a circuit can be split, the rows of
its parts are compared, too. What Spark makes of the same views, with restarts and in factories, is in
test_kept_views.py.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest

import headwater
from tests.harness.circuits.opaque import OpaqueMaker, SparkAnswers
from tests.harness.circuits.runner import Counts, Disagreement, run_query

# What must have been run: operators with rows that only come, and with rows that are taken back.
OPERATORS = (
    *("filter", "project", "inner join", "left join", "right join", "full join"),
    *("semi join", "anti join", "group", "distinct", "union all", "top", "over"),
    *("intersect", "intersect all", "except", "except all", "time windows", "session"),
    *("as-of join", "left as-of join"),
)
IN_PARTS = (
    *("filter", "project", "inner join", "left join", "right join", "full join", "semi join"),
    *("anti join", "group", "distinct", "union all", "top", "over", "time windows", "as-of join"),
)
OF_GROUPS = (
    *("count", "sum", "min", "max", "avg", "median", "count distinct", "sum distinct"),
    *("approx_count_distinct", "bit_and", "bit_or", "bit_xor"),
)
SHAPES = (
    *("an opaque item", "an opaque condition", "an opaque key", "an opaque argument"),
    *("an opaque partition", "an opaque block", "an opaque branch", "a recursive block"),
)
OPAQUE = ("opaque columns", "opaque query")
SHORT = (*range(160), 451, 545)  # the seeds that it takes to have every operator both ways
# Every opaque shape at least twice, in the fewest Spark jobs.
SHORT_OPAQUE = (20, 96, 113, 126, 131, 163, 191, 196, 219, 220)


def run(seeds: Iterable[int], counts: Counts, *how: Any) -> Counts:
    """Query by query; fails with what is needed to see the first wrong result."""
    for seed in seeds:
        try:
            run_query(seed, counts, *how)
        except Disagreement as wrong:
            pytest.fail(str(wrong), pytrace=False)
    print("\n" + counts.table())
    return counts


def missing(counts: Counts, operators: Iterable[str]) -> list[tuple[str, bool]]:
    """What was never run, with rows that are taken back or without."""
    both = itertools.product(operators, (False, True))
    return [(operator, back) for operator, back in both if not counts.operators[operator, back]]


def test_every_result_equals_the_query() -> None:
    counts = run(SHORT, Counts())
    assert counts.queries >= 150
    assert missing(counts, (*OPERATORS, *(f"group: {name}" for name in OF_GROUPS))) == []
    assert counts.split["queries"] >= 40
    assert [operator for operator in IN_PARTS if not counts.split[operator]] == []


@pytest.mark.here
def test_every_result_with_opaque_nodes_equals_the_query(db: headwater.Database) -> None:
    counts = run(SHORT_OPAQUE, Counts(), OpaqueMaker, SparkAnswers(db))
    assert missing(counts, OPAQUE) == []
    assert [shape for shape in SHAPES if not counts.shapes[shape]] == []


@pytest.mark.large
@pytest.mark.timeout(0)
def test_every_result_equals_the_query_20_000_times() -> None:
    assert run([*range(160, 250), *range(1000, 36_000)], Counts()).queries >= 20_000


@pytest.mark.large
@pytest.mark.timeout(0)
@pytest.mark.here
def test_every_result_with_opaque_nodes_equals_the_query_1_000_times(
    db: headwater.Database,
) -> None:
    counts = run(range(4000), Counts(), OpaqueMaker, SparkAnswers(db))
    assert counts.queries >= 1_000
