"""When rows arrived, and how large the load is (US3, US6)."""

from __future__ import annotations

import numpy as np

from headwater.engine import arrivals
from headwater.engine.arrivals import Arrivals
from headwater.engine.load import Load


def test_a_row_arrived_with_its_commit() -> None:
    """The first commit that ends after it; rows that no commit is known of arrive now."""
    found = Arrivals()
    assert found.times(np.array([0, 5]), 70).tolist() == [70, 70]
    found.note(3, None, 10)
    found.note(3, None, 15)  # nothing new
    found.note(8, None, 20)
    assert found.times(np.array([0, 2, 3, 7, 8]), 70).tolist() == [10, 10, 20, 20, 70]


def test_only_so_many_commits_are_remembered() -> None:
    """Rows of older ones count from the oldest that is known."""
    found = Arrivals()
    for number in range(arrivals.MOST_COMMITS + 5):
        found.note(number + 1, None, number)
    assert found.times(np.array([0, 7]), 10**9).tolist() == [5, 7]


def test_a_time_was_closed_by_the_first_commit_that_said_so() -> None:
    """Now, if none has; where ticks are those of the wall clock, between two commits."""
    for by_wall, soon, between in ((False, 50, 50), (True, 10, 43)):
        found = Arrivals(by_wall=by_wall)
        assert found.closed_at(5, 70) == 70
        found.note(3, 100, 10)
        found.note(4, 100, 20)  # a row came, the clock did not move
        found.note(4, 200, 50)
        ticks = (99, 100, 101, 193, 200, 201)
        times = [found.closed_at(tick, 70) for tick in ticks]
        assert times == [10, 10, soon, between, 50, 70]
        assert found.closed_at(200, 40) == 40


def test_the_load_follows_what_came() -> None:
    """Rows per second times the cost of one; after a while only the present counts."""
    load, now = Load(0), 0
    for _ in range(100):
        now += 100_000
        load.came(50)
        high = load.of(now, 0.01)
    assert 4.9 < high < 5.1
    for _ in range(100):
        now += 100_000
        load.came(1)
        low = load.of(now, 0.01)
    assert 0.09 < low < 0.15
    assert load.of(now, None) == 0
