"""Queries, views and tables change while rows come: what moves between hosts stays exact, nothing grows."""

from __future__ import annotations

import pytest

from tests.factories.test_kills import LARGE, run

LONGEST = [pytest.mark.large, pytest.mark.timeout(6 * 3600)]
pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize(
    ("count", "cycles"),
    [
        pytest.param(25, 40),
        pytest.param(1000, 0, marks=LARGE, id="1000-moves"),
        pytest.param(0, 10_000, marks=LONGEST, id="10000-cycles"),
    ],
)
def test_what_moves_stays_exact_and_leaves_nothing(count: int, cycles: int) -> None:
    """PAUSE, DELETE, SET RANGE, OR REPLACE, DROP of one of two views with the same groups: all results of
    the other queries are there once, and views are what a query over their tables gives. Queries come and go:
    threads, open files and memory of the driver and of each factory stay as they were."""
    found = run("moves", 1, count, cycles)
    if count:
        assert sum(found["moves"].values()) == count
        assert len(found["moves"]) >= 6
    assert found.get("cycles", 0) == cycles
