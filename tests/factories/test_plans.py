"""Random views live in factories that are killed: each read is what the rows say, whatever is killed when."""

from __future__ import annotations

import os

import pytest

from tests.factories.test_kills import run

pytestmark = pytest.mark.timeout(900)
TOGETHER = 100  # plans of one process


def test_random_views_survive_kills() -> None:
    """Each of a few views is right after each change; one is read by others, two are in parts."""
    found = run("plans", 1000, 10, 3, 2)
    assert found["views"] == 10
    assert found["kills"] == 3
    assert min(found[how] for how in ("views on views", "views in parts", "restarts")) > 0
    assert found["verified by Spark"] > 0


@pytest.mark.large
@pytest.mark.timeout(0)
def test_2_000_random_views_survive_kills() -> None:
    """HEADWATER_PLANS=first:count has a part of them run."""
    first, count = map(int, os.environ.get("HEADWATER_PLANS", "10:2000").split(":"))
    views = 0
    for place in range(first, first + count, TOGETHER):
        number = min(TOGETHER, first + count - place)
        found = run("plans", place, number, number // 3)
        views += found["views"]
        assert found["kills"] == number // 3
    assert views >= 0.8 * count
