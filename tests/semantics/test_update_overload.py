"""A table fed at five times what a query can process: WITH UPDATES stays fresh, WITH APPEND does not (US2)."""

from __future__ import annotations

import pytest

import headwater
from benchmarks.upstream.overload import overloaded


@pytest.mark.parametrize(
    ("seconds", "ratio", "trend"),
    [(6.0, 2.0, 4.0), pytest.param(60.0, 10.0, 1.5, marks=pytest.mark.large)],
)
def test_updates_stay_fresh_under_overload(seconds: float, ratio: float, trend: float) -> None:
    """Staleness is many times lower and does not rise; the counts add up and the table has every row."""
    with headwater.connect() as db:
        found = overloaded(db, seconds)
    assert found.stored == found.inserted > 100 * seconds
    assert found.counts_add_up
    assert found.ratio(seconds) >= ratio
    assert found.trend(seconds) <= trend
    assert found.mean("every", 0.5 * seconds, seconds) > found.mean("every", 0, 0.5 * seconds)
