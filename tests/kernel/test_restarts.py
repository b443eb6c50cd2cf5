"""When Spark is started again: growing pauses, a bound for an hour."""

from __future__ import annotations

from headwater.kernel.restarts import FIRST_PAUSE_S, PERIOD_S, Restarts


def test_pauses_grow_up_to_the_longest() -> None:
    restarts = Restarts()
    pauses = [restarts.pause_after_end(float(n), 10, 2.0) for n in range(6)]
    assert pauses == [FIRST_PAUSE_S, 0.5, 1.0, 2.0, 2.0, 2.0]


def test_after_the_bound_the_hour_must_pass() -> None:
    restarts = Restarts()
    for n in range(3):
        assert restarts.pause_after_end(n * 100.0, 3, 60.0) is not None
    assert restarts.pause_after_end(1000.0, 3, 60.0) == PERIOD_S - 1000.0
    # Two ends of the four have left the hour: one more start is free.
    assert restarts.pause_after_end(PERIOD_S + 150.0, 3, 60.0) == FIRST_PAUSE_S * 4


def test_an_hour_later_the_first_pause_is_short_again() -> None:
    restarts = Restarts()
    for n in range(5):
        restarts.pause_after_end(float(n), 10, 60.0)
    assert restarts.pause_after_end(2 * PERIOD_S, 10, 60.0) == FIRST_PAUSE_S


def test_none_are_allowed() -> None:
    assert Restarts().pause_after_end(0.0, 0, 60.0) is None
