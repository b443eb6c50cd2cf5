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
from headwater.fold.aggregates import FUNCTIONS
from headwater.operators.group_aggregates import ROW_FUNCTIONS
from headwater.operators.moments import MOMENTS
from headwater.operators.over import FRAMED, NUMBERS, PICKS, SHARES
from tests.harness.circuits.opaque import OpaqueMaker, SparkAnswers
from tests.harness.circuits.runner import Counts, Disagreement, run_query

# What must have been run: operators with rows that come, and with rows that are taken back.
OPERATORS = (
    *("filter", "project", "explode", "inner join", "left join", "right join", "full join"),
    *("semi join", "anti join", "group", "distinct", "union all", "top", "over"),
    *("intersect", "intersect all", "except", "except all", "time windows", "session"),
    *("as-of join", "left as-of join"),
)
IN_PARTS = (
    *("filter", "project", "inner join", "left join", "right join", "full join", "semi join"),
    *("anti join", "group", "distinct", "union all", "top", "over", "time windows", "as-of join"),
)
# A table has what no query can say: an edge of rows without an order is of no rows in particular.
OF_ROWS = ("first", "last", "first_ignore_nulls", "last_ignore_nulls")
OF_GROUPS = (
    *sorted({*FUNCTIONS, *MOMENTS, *ROW_FUNCTIONS} - {*OF_ROWS}),
    *(f"{name} distinct" for name in ("count", "sum", "avg", "min", "listagg")),
    "approx_count_distinct",
)
OF_WINDOWS = (*NUMBERS, *SHARES, *PICKS, *FRAMED, "frame by rows", "frame by range")
NAMES = (
    *OPERATORS,
    *(f"group: {name}" for name in OF_GROUPS),
    *(f"over: {name}" for name in OF_WINDOWS),
)
SHAPES = (
    *("an opaque item", "an opaque condition", "an opaque key", "an opaque argument"),
    *("an opaque partition", "an opaque block", "an opaque branch", "a recursive block"),
)
OPAQUE = ("opaque columns", "opaque query")
# Many seeds, and the few that it takes beside them to have every name both ways.
SHORT = (
    *range(145),
    *(146, 194, 223, 308, 375, 413, 477, 486, 518, 542, 612, 687, 711, 722, 864, 918),
    *(1061, 1076, 1095),
)
# Every opaque shape, in the fewest Spark jobs.
SHORT_OPAQUE = (1, 37, 38, 45, 56, 61, 69, 76)


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
    assert missing(counts, NAMES) == []
    assert [operator for operator in OPERATORS if not counts.restarts[operator]] == []
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
    counts = run(range(22_000), Counts())
    assert counts.queries >= 20_000
    assert missing(counts, NAMES) == []


@pytest.mark.large
@pytest.mark.timeout(0)
@pytest.mark.here
def test_every_result_with_opaque_nodes_equals_the_query_1_000_times(
    db: headwater.Database,
) -> None:
    counts = run(range(4000), Counts(), OpaqueMaker, SparkAnswers(db))
    assert counts.queries >= 1_000
