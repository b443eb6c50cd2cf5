"""The oracle of Linear Road on traces made by hand, and the validator on answers made wrong.

Each test names the rule of docs/linearroad.md that it shows.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import pytest

from tests.harness.linearroad.oracle import Answers, Oracle, Report, Row, answers
from tests.harness.linearroad.runs import SMALL, run_of
from tests.harness.linearroad.validator import compare

HOME = 40  # the segment where things happen
SLOW = 30


def report(
    vid: int, time: int, seg: int = HOME, *, speed: int = SLOW, lane: int = 1, dir: int = 0,
    xway: int = 0, feet: int = 0,
) -> Report:  # fmt: skip
    """A position report, some feet into a segment."""
    return Report(0, time, vid, speed, xway, lane, dir, seg, seg * 5280 + feet)


def balance(vid: int, time: int, qid: int = 0) -> Report:
    """A balance request."""
    return Report(2, time, vid, -1, -1, -1, -1, -1, -1, qid)


def crowd(
    minute: int, count: int, seg: int = HOME, *, speed: int = SLOW, dir: int = 0
) -> list[Report]:
    """Cars 1000, 1001, … that report once in a minute, at the same second."""
    time = 60 * (minute - 1) + 7
    return [report(1000 + i, time, seg, speed=speed, dir=dir, feet=44 * i) for i in range(count)]


def stopped(
    vid: int, first: int, count: int = 4, seg: int = HOME, *, dir: int = 0, lane: int = 2
) -> list[Report]:
    """A car that stands at the beginning of a segment."""
    return [report(vid, first + 30 * i, seg, dir=dir, lane=lane) for i in range(count)]


def tolls_of(vid: int, reports: Iterable[Report]) -> list[Row]:
    """Time, LAV and toll of a car's notifications."""
    return [row[1:] for row in answers(reports).tolls if row[0] == vid]


def alerts_of(vid: int, reports: Iterable[Report]) -> list[Row]:
    return [row[1:] for row in answers(reports).alerts if row[0] == vid]


@pytest.mark.parametrize(
    ("count", "speed", "expected"),
    [(60, 30, (60, 30, 200)), (51, 39, (60, 39, 2)), (50, 30, (60, 30, 0)), (60, 40, (60, 40, 0))],
)
def test_the_toll(count: int, speed: int, expected: Row) -> None:
    """Rule 12: 2 · (60 − 50)² = 200; nothing for 50 cars, nor at 40 miles per hour."""
    assert tolls_of(1, [*crowd(1, count, speed=speed), report(1, 60)]) == [expected]


def test_minutes_are_half_open() -> None:
    """Rule 1: what is reported in second 59 counts in second 60, what in second 60 not before 120."""
    crowded = [report(100 + i, 60) for i in range(60)]
    assert tolls_of(1, [*crowded, report(1, 119)]) == [(119, None, 0)]
    assert tolls_of(1, [*crowded, report(1, 120)]) == [(120, 30, 200)]
    earlier = [report(100 + i, 59) for i in range(60)]
    assert tolls_of(1, [*earlier, report(1, 60)]) == [(60, 30, 200)]


def test_the_average_is_of_minutes_of_cars_of_reports() -> None:
    """Rules 6 and 7: cars weigh the same however often they report, minutes however many cars."""
    one = [report(1, 0, speed=10), report(1, 30, speed=20), report(2, 5, speed=45)]  # 15, 45: 30
    two = [report(3, 60, speed=51)]  # 51; of both minutes 40.5
    assert Oracle(one).averages[(0, 0, HOME), 1] == 30
    assert Oracle([*one, *two]).lav((0, 0, HOME), 3) == 40
    assert Oracle([*one, *two]).lav((0, 0, HOME), 2) == 30


def test_the_average_looks_five_minutes_back() -> None:
    """Rule 7: minutes m − 5 to m − 1, of which those without reports do not count."""
    oracle = Oracle([*crowd(1, 1, speed=10), *crowd(2, 1, speed=20), *crowd(6, 1, speed=90)])
    found = [oracle.lav((0, 0, HOME), minute) for minute in range(1, 13)]
    assert found == [None, 10, 15, 15, 15, 15, 55, 90, 90, 90, 90, None]


def test_an_average_a_hair_below_is_the_whole_number() -> None:
    """Rule 7: less than half a millionth below 40 is not below 40; more is."""
    often = [report(1, second, speed=39 if second == 0 else 40) for second in range(60)]
    others = [report(1, 60 * minute, speed=40) for minute in range(1, 5)]
    for count, lav in [(7000, 40), (6000, 39)]:
        crowded = [report(10 + i, 0, speed=40) for i in range(count - 1)]
        assert Oracle([*often, *others, *crowded]).lav((0, 0, HOME), 6) == lav


def test_only_the_previous_minute_counts_cars() -> None:
    """Rule 8: each car once; two minutes later there is no toll."""
    twice = [*crowd(1, 60), *(r._replace(time=r.time + 30) for r in crowd(1, 60))]
    assert tolls_of(1, [*twice, report(1, 60)]) == [(60, 30, 200)]
    assert tolls_of(1, [*twice, report(1, 120)]) == [(120, 30, 0)]


def test_directions_and_expressways_are_apart() -> None:
    """A crowd on the other side of the road, or on another road, costs nothing."""
    for dir, xway in [(1, 0), (0, 1)]:
        reports = [*crowd(1, 60), report(1, 60, dir=dir, xway=xway)]
        assert tolls_of(1, reports) == [(60, None, 0)]


def test_one_notification_for_each_segment_entered() -> None:
    """Rules 4, 5 and 13: not within a segment, not on the exit lane; a new journey begins anew."""
    reports = [report(1, 0, lane=0), report(1, 30, feet=44), report(1, 60, HOME + 1)]
    assert [row[0] for row in tolls_of(1, reports)] == [0, 60]
    left = [*reports, report(1, 90, HOME + 2, lane=4), report(1, 300, HOME + 2, lane=0)]
    assert [row[0] for row in tolls_of(1, left)] == [0, 60, 300]


def test_an_accident_counts_from_the_next_minute_until_a_car_moves() -> None:
    """Rules 9, 10 and 14: stopped at 95 and 97, an accident for minutes 3 and 4; a car moves at 215."""
    crash = [*stopped(11, 5, 7), *stopped(12, 7, 8), report(11, 215, feet=440)]
    times = [119, 120, 239, 240]
    cars = [report(100 + i, time, HOME - 2) for i, time in enumerate(times)]
    found = [len(alerts_of(100 + i, [*crash, *cars])) for i in range(4)]
    assert found == [0, 1, 1, 0]


def test_what_is_no_accident() -> None:
    """Rules 9 and 10: one car, three reports, two lanes, two places, a report from elsewhere between."""
    other = [report(12, 5 + 30 * i, feet=44) for i in range(4)]
    between = [*stopped(12, 5, 3), report(12, 95, feet=44), *stopped(12, 125, 3)]
    cases = [[], stopped(12, 5, 3), stopped(12, 5, lane=3), other, between]
    for second in cases:
        reports = [*stopped(11, 5, 10), *second, report(1, 310)]
        assert alerts_of(1, reports) == [], second
    assert alerts_of(1, [*stopped(11, 5, 10), *stopped(12, 5, 4), report(1, 310)]) == [(310, HOME)]


@pytest.mark.parametrize("dir", [0, 1])
def test_the_accident_zone(dir: int) -> None:
    """Rules 11, 12 and 14: an alert and no toll in the segment and four before it, others pay."""
    crash = [*stopped(11, 0, dir=dir), *stopped(12, 1, dir=dir)]
    upstream = -1 if dir == 0 else 1
    for distance in (-1, 0, 4, 5):
        seg = HOME + upstream * distance
        reports = [*crash, *crowd(2, 60, seg, dir=dir), report(1, 120, seg, dir=dir)]
        near = distance in (0, 4)
        assert alerts_of(1, reports) == ([(120, HOME)] if near else [])
        assert [row[2] for row in tolls_of(1, reports)] == [0 if near else 200]


def test_the_nearest_accident_is_told_and_none_on_the_exit_lane() -> None:
    """Rule 14: of two accidents the first on the way."""
    crashes = [r for k, (vid, seg) in enumerate(product((11, 12), (HOME, HOME + 2)))
               for r in stopped(vid + 10 * (seg - HOME), k, seg=seg)]  # fmt: skip
    assert alerts_of(1, [*crashes, report(1, 120, HOME - 1)]) == [(120, HOME)]
    assert alerts_of(1, [*crashes, report(1, 120, HOME + 1)]) == [(120, HOME + 2)]
    assert alerts_of(1, [*crashes, report(1, 120, HOME - 1, lane=4)]) == []


def balances_of(reports: Iterable[Report]) -> list[int | None]:
    """The balances of car 1, by time."""
    found = [row for row in answers(reports).balances if row[0] == 1]
    return [row[3] for row in sorted(found, key=lambda row: row[1] or 0)]


def test_a_toll_is_charged_on_leaving() -> None:
    """Rules 15 and 16: with the report in the next segment, and in the answer of the same second."""
    drive = [report(1, 60), report(1, 90, feet=44), report(1, 150, HOME + 1)]
    asked = [balance(1, t) for t in (60, 149, 150, 500)]
    assert balances_of([*crowd(1, 60), *drive, *asked]) == [0, 0, 200, 200]


def test_charges_add_up_over_journeys() -> None:
    """Rule 15: 200 for HOME; 2 · 5² for the next, left by its exit's neighbour; then nothing more."""
    roads = [*crowd(1, 60), *crowd(2, 55, HOME + 1)]
    drive = [report(1, 60), report(1, 120, HOME + 1), report(1, 150, HOME + 2, lane=4)]
    again = [*crowd(9, 60), report(1, 540, lane=0), report(1, 570, lane=4, feet=440)]
    later = report(1, 700, HOME + 7, lane=0)
    asked = [balance(1, t) for t in (119, 120, 150, 600, 700)]
    assert balances_of([*roads, *drive, *again, later, *asked]) == [0, 200, 250, 250, 250]


def test_expenditures() -> None:
    """Rule 17: the toll of that car, day and expressway; 0 if there is none."""
    history = [(1, 3, 0, 17), (1, 3, 1, 5), (2, 3, 0, 8)]
    asked = [(1, 3, 0), (1, 3, 1), (1, 4, 0), (3, 3, 0)]
    reports = [Report(3, 9, vid, -1, xway, -1, -1, -1, -1, qid, day)
               for qid, (vid, day, xway) in enumerate(asked)]  # fmt: skip
    found = answers(reports, history).expenditures
    assert [row[5] for row in found] == [17, 5, 0, 0]
    assert found[1] == (1, 9, 1, 3, 1, 5)


def test_simulated_traffic_asks_for_answers_of_every_kind() -> None:
    """What compares an application with the oracle on these runs compares something."""
    found = answers(*run_of(SMALL))
    assert sum(1 for row in found.tolls if row[3]) > 1000
    assert sum(1 for row in found.tolls if not row[3]) > 1000
    assert len(found.alerts) > 100
    assert sum(1 for row in found.balances if row[3]) > 20
    assert sum(1 for row in found.expenditures if row[5]) > 10


# The validator


def test_the_validator_tells_what_differs() -> None:
    """A wrong value, a missing answer, one too many: each in a line that a reader understands."""
    due = Answers([(1, 5, 30, 200), (2, 5, None, 0), (3, 5, 30, 0)], [(1, 5, 40)])
    came = Answers([(1, 5, 30, 0), (2, 5, None, 0), (4, 5, 30, 0)], [(1, 5, 40), (1, 5, 40)])
    verdict = compare(due, came, {"tolls": [0.5, 1.5, 7.0], "alerts": [0.5, 0.5]})
    assert verdict.difference_count == 4
    assert not verdict.in_time
    assert str(verdict).splitlines()[:5] == [
        "tolls: 3 expected, 3 differences",
        "  3 answers, 3.000 s on average, 7.000 s at worst, 33.333% over 5 s",
        "  tolls: vid 1, time 5: toll is 0, not 200",
        "  tolls: missing: vid 3, time 5, lav 30, toll 0",
        "  tolls: not expected: vid 4, time 5, lav 30, toll 0",
    ]
    assert "not expected: vid 1, time 5, seg 40" in str(verdict)


def test_the_validator_passes_equal_answers_in_any_order() -> None:
    """Answers are a multiset."""
    due = Answers([(1, 5, 30, 200), (2, 5, None, 0)], [], [(1, 2, 3, 4)], [])
    times = {"tolls": [0.25, 5.0], "balances": [1.0]}
    verdict = compare(due, Answers(due.tolls[::-1], [], due.balances, []), times)
    assert verdict.difference_count == 0
    assert verdict.in_time
    assert verdict.times["tolls"].average_s == 2.625


@pytest.mark.parametrize(
    ("tolls", "told"),
    [
        ([0.25, 5.001], "50.000% over 5 s"),
        ([0.25], "0.000% over 5 s, 1 without a time"),
        ([0.25] * 3, "0.000% over 5 s, 1 without a time"),
    ],
)
def test_the_validator_wants_the_time_of_every_answer(tolls: list[float], told: str) -> None:
    """Right answers pass only if each has a time of its own, within the deadline."""
    due = Answers([(1, 5, 30, 200), (2, 5, None, 0)], [(1, 5, 40)])
    verdict = compare(due, due, {"tolls": tolls, "alerts": [0.5]})
    assert verdict.difference_count == 0
    assert not verdict.in_time
    assert told in str(verdict)
    assert compare(due, due, {"tolls": [0.25, 5.001], "alerts": [0.5]}, deadline_s=6.0).in_time
    assert not compare(due, due, {"tolls": [0.25, 5.0]}).in_time
    assert not compare(due, due).in_time
