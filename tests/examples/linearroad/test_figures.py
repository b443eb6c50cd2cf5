"""The figures of the Linear Road demo, filled by hand: no database, no clock."""

from __future__ import annotations

import pytest
from headwater.examples.linearroad.demo.figures import (
    TOLLS,
    Accident,
    Figures,
    Schedule,
    rate,
    rates,
    with_answers,
)
from headwater.examples.linearroad.demo.screen import Responses, RoadState, ScreenQuestion, Toll


def figures(flowing: bool = True) -> Figures:
    """Figures of a demo that began at 1000 s and flows since 1002 s, ten times as fast as the road."""
    found = Figures(RoadState(), 1000.0)
    if flowing:
        found.flows(Schedule(first=9570, started_s=1002.0, speed=10.0))
    return found


def test_when_a_second_is_due() -> None:
    """Ten simulated seconds are one real second."""
    assert Schedule(9600, 1005.0, 10.0).due_s(9620) == 1007.0


def test_response_times_count_from_when_a_report_is_due() -> None:
    """Each answer weighs the same; seconds without answers say nothing."""
    found = figures()
    found.answered("tolls", 9599, 1000, 1050.0)  # the cars of a road that begins full
    found.answered("tolls", 9600, 1, 1005.5)
    found.answered("tolls", 9610, 3, 1006.1)
    found.answered("tolls", 9620, 0, 1099.0)
    found.answered("alerts", 9610, 2, 1006.25)
    state = found.state(1010.0)
    tolls = state.responses["tolls"]
    assert (tolls.count, tolls.worst_s) == (4, pytest.approx(0.5))
    assert tolls.average_s == pytest.approx((0.5 + 3 * 0.1) / 4)
    assert state.responses["alerts"] == Responses(2, 0.25, 0.25)
    assert state.second == 9620


def test_freshness_is_the_age_of_the_newest_answered_second() -> None:
    """A second that is answered late does not make it older; none before the first answer."""
    found = figures()
    assert found.state(1006.0).freshness_s is None
    found.answered("tolls", 9650, 1, 1010.2)
    found.answered("balances", 9640, 1, 1010.3)
    assert found.state(1010.5).freshness_s == pytest.approx(0.5)
    assert figures(flowing=False).state(1010.5).freshness_s is None


def test_rates() -> None:
    """The rate shown is that of the last two seconds; the bars are the rates in between."""
    counts = [(0.0, 0), (1.0, 100), (2.0, 300), (3.0, 300), (4.0, 1300)]
    assert rate(counts) == 500.0
    assert rates(counts) == [100.0, 200.0, 0.0, 1000.0]
    assert rate(counts[:1]) == 0.0
    found = figures()
    found.counted(100, 7, 1006.0)
    found.counted(300, 9, 1007.0)
    state = found.state(1007.5)
    assert (state.reports, state.tolls_charged, state.reports_per_second) == (300, 9, 200.0)


def test_lanes() -> None:
    """Speeds by direction, accidents where they are; a segment without cars has no speed."""
    found = figures()
    found.seen([(0, 1, 5, 30.0), (0, 0, 99, 61.0)])
    found.crashed([Accident(0, 1, 5, 9660)])
    east, west = found.state(1006.0).lanes
    assert (east.dir, east.speeds[99], east.speeds[0], east.accidents) == (
        0,
        61.0,
        None,
        frozenset(),
    )
    assert (west.dir, west.speeds[5], west.accidents) == (1, 30.0, frozenset({5}))


def test_accidents_keep_their_first_minute() -> None:
    """One that is still there is not new; one that is over can be asked about."""
    found = figures()
    found.crashed([Accident(0, 1, 5, 9660)])
    found.crashed([Accident(0, 1, 5, 9720), Accident(0, 0, 7, 9720)])
    found.crashed([])
    assert found.accidents == [Accident(0, 0, 7, 9720), Accident(0, 1, 5, 9660)]
    found.seen([(0, 1, 5, 30.0)])
    assert not found.state(1006.0).lanes[0].accidents


def test_a_newer_answer_takes_the_place_of_the_older() -> None:
    """So that all kinds of question stay on the screen."""
    found = figures()
    for title, answer in [("a", "1"), ("b", "2"), ("a", "3")]:
        found.asked(ScreenQuestion(title, answer, 1.0))
    assert [q.answer for q in found.state(1006.0).questions] == ["2", "3"]


def test_an_average_over_all_answers() -> None:
    """Two averages become one, each answer with the same weight."""
    assert with_answers(Responses(1, 1.0, 1.0), 3, 2.0) == Responses(4, 1.75, 2.0)


def test_moments_and_tolls_for_the_charts() -> None:
    """Each count of reports ends a moment: the slowest answer since the one before, and the age."""
    found = figures()
    found.answered("tolls", 9600, 1, 1005.5)
    found.answered("tolls", 9600, 1, 1005.2)
    found.counted(100, 0, 1005.5)
    found.counted(200, 0, 1006.0)
    first, second = found.state(1010.0).moments
    assert (first.elapsed_s, first.slowest_s) == (5.5, {"tolls": pytest.approx(0.5)})
    assert first.freshness_s == pytest.approx(0.5)
    assert second.slowest_s == {}
    for number in range(TOLLS + 5):
        found.told(Toll(9600, number, 30, 10))
    assert [toll.vid for toll in found.state(1010.0).tolls][-1] == TOLLS + 4
    assert len(found.state(1010.0).tolls) == TOLLS
