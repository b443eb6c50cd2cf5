"""What the planner makes of queries: pairs in `rules/*.sql`, read without Spark."""

from __future__ import annotations

import pytest

from tests.plan.compact import plan_lines
from tests.plan.pairs import Pair, all_pairs

PAIRS = all_pairs()


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.place)
def test_plan_of_a_query(pair: Pair) -> None:
    assert plan_lines(pair.query, pair.show) == pair.plan


def test_there_are_many_pairs() -> None:
    assert len(PAIRS) >= 200
    assert len({pair.query for pair in PAIRS}) > 200
