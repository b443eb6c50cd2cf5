"""The arrival clock: follows the wall clock, never backwards, never advanced."""

from __future__ import annotations

import random

import pytest

from headwater.errors import NotSupportedError
from headwater.storage.arrival import ArrivalClock


def test_it_gives_out_the_wall_clock() -> None:
    clock = ArrivalClock()
    assert clock.last is None
    assert clock.stamp(100) == 100
    assert clock.stamp(100) == 100
    assert clock.clock(250) == 250
    assert clock.closed(250) == 249
    assert clock.last == 250


def test_it_never_runs_backwards() -> None:
    clock = ArrivalClock()
    clock.stamp(100)
    assert clock.stamp(40) == 100
    assert clock.clock(40) == 100
    clock.clock(500)
    assert clock.stamp(300) == 500  # a clock that was shown is not undercut


def test_it_goes_on_after_a_restart_with_a_wall_clock_set_back() -> None:
    assert ArrivalClock(last=900).stamp(100) == 900
    assert ArrivalClock(last=-5).stamp(-3) == -3


def test_no_row_is_at_or_before_a_closed_mark_that_was_shown() -> None:
    clock, rng, shown = ArrivalClock(), random.Random(4), -(10**9)
    for _ in range(2000):
        wall = rng.randint(0, 1000)
        if rng.random() < 0.5:
            shown = max(shown, clock.closed(wall))
        else:
            assert clock.stamp(wall) > shown


def test_complete() -> None:
    clock = ArrivalClock()
    assert clock.complete(99, 100, before_only=False)
    assert not clock.complete(100, 100, before_only=False)
    assert clock.complete(100, 100, before_only=True)
    assert not clock.complete(101, 100, before_only=True)


def test_advance_is_refused() -> None:
    with pytest.raises(NotSupportedError) as caught:
        ArrivalClock().advance(5)
    assert caught.value.sqlstate == "0A000"
    assert caught.value.hint is not None
    assert "TIMESTAMP BY" in caught.value.hint
