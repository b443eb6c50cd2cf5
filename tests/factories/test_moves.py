"""Queries, views and tables change while rows come: what moves between hosts stays exact, nothing grows."""

from __future__ import annotations

import pytest

from tests.factories.test_kills import LARGE, run

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("count", [25, pytest.param(1000, marks=LARGE)])
def test_statements_that_move_queries_change_no_result(count: int) -> None:
    """PAUSE, DELETE, SET RANGE, OR REPLACE, DROP of one of two views with the same groups: all results of
    the other queries are there once, and views are what a query over their tables gives."""
    moves = run("moves", count, 1)["moves"]
    assert sum(moves.values()) == count
    assert len(moves) >= 6


@pytest.mark.parametrize("count", [40, pytest.param(10_000, marks=LARGE)])
def test_nothing_is_left_of_queries_that_came_and_went(count: int) -> None:
    """Threads, open files and memory of the driver and of each factory stay as they were."""
    assert run("moves", "cycles", count)["cycles"] == count
