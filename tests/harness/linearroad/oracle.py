"""Linear Road in plain Python, written from the rules of docs/linearroad.md, whose numbers stand below.

Owns: what the right answers are. Must never: import Headwater, or be clever. It looks at the whole
input at once, so that nothing depends on the order in which reports come.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import floor
from typing import NamedTuple

POSITION, BALANCE, EXPENDITURE = 0, 2, 3
EXIT = 4
LAST_SEGMENT = 99
ROUNDING = Fraction(1, 2_000_000)  # half of the sixth decimal

Segment = tuple[int, int, int]  # xway, dir, seg
Row = tuple[int | None, ...]


class Report(NamedTuple):
    """A row of the stream."""

    type: int
    time: int
    vid: int
    speed: int
    xway: int
    lane: int
    dir: int
    seg: int
    pos: int
    qid: int = -1
    day: int = -1

    @property
    def minute(self) -> int:
        """Rule 1."""
        return self.time // 60 + 1

    @property
    def segment(self) -> Segment:
        """The segment of one direction of one expressway."""
        return self.xway, self.dir, self.seg

    @property
    def place(self) -> tuple[int, int, int, int]:
        """Rule 9."""
        return self.xway, self.lane, self.dir, self.pos


@dataclass
class Answers:
    """The four outputs, in no order."""

    tolls: list[Row] = field(default_factory=list)  # vid, time, lav, toll
    alerts: list[Row] = field(default_factory=list)  # vid, time, seg
    balances: list[Row] = field(default_factory=list)  # vid, time, qid, balance
    expenditures: list[Row] = field(default_factory=list)  # vid, time, qid, day, xway, toll


class Oracle:
    """All that can be said about some reports and a history."""

    def __init__(
        self,
        reports: Iterable[tuple[int, ...]],
        history: Iterable[tuple[int, int, int, int]] = (),
    ) -> None:
        self.reports = [Report(*row) for row in reports]
        self.positions = [r for r in self.reports if r.type == POSITION]
        self.history: dict[tuple[int, int, int], int] = defaultdict(int)
        for vid, day, xway, toll in history:
            self.history[vid, day, xway] += toll
        self._tolls: dict[tuple[Segment, int], tuple[int | None, int]] = {}

    # Cars

    @cached_property
    def cars(self) -> Mapping[int, list[Report]]:
        """The position reports of each car, by time."""
        found: dict[int, list[Report]] = defaultdict(list)
        for report in self.positions:
            found[report.vid].append(report)
        for reports in found.values():
            reports.sort(key=lambda report: report.time)
            times = [report.time for report in reports]
            assert len(set(times)) == len(times), "rule 2: one position report a second"
        return found

    @cached_property
    def last_minute(self) -> int:
        """The minute of the last report."""
        return max((report.minute for report in self.reports), default=0)

    # Segments

    @cached_property
    def speeds(self) -> Mapping[tuple[Segment, int], dict[int, list[int]]]:
        """For each segment and minute the speeds that each car reported there."""
        found: dict[tuple[Segment, int], dict[int, list[int]]] = defaultdict(dict)
        for report in self.positions:
            cars = found[report.segment, report.minute]
            cars.setdefault(report.vid, []).append(report.speed)
        return found

    @cached_property
    def averages(self) -> Mapping[tuple[Segment, int], Fraction]:
        """Rule 6, for each segment and minute with reports."""
        return {
            key: average([Fraction(sum(speeds), len(speeds)) for speeds in cars.values()])
            for key, cars in self.speeds.items()
        }

    def lav(self, segment: Segment, minute: int) -> int | None:
        """Rule 7."""
        found = [self.averages.get((segment, k)) for k in range(minute - 5, minute)]
        known = [value for value in found if value is not None]
        return floor(average(known) + ROUNDING) if known else None

    def vehicles(self, segment: Segment, minute: int) -> int:
        """Rule 8."""
        return len(self.speeds.get((segment, minute - 1), ()))

    @cached_property
    def accidents(self) -> set[tuple[Segment, int]]:
        """Rules 9 and 10: the segments with an accident, each with the minutes for which it counts."""
        stopped: dict[tuple[Segment, tuple[int, ...], int], set[int]] = defaultdict(set)
        for vid, reports in self.cars.items():
            for index in range(3, len(reports)):
                newest = reports[index]
                if len({report.place for report in reports[index - 3 : index + 1]}) > 1:
                    continue
                following = reports[index + 1] if index + 1 < len(reports) else None
                for minute in self._minutes_of(newest, following):
                    stopped[newest.segment, newest.place, minute].add(vid)
        return {
            (segment, minute) for (segment, _, minute), cars in stopped.items() if len(cars) > 1
        }

    def _minutes_of(self, newest: Report, following: Report | None) -> range:
        """The minutes at whose beginning a report is the newest one of its car."""
        end = self.last_minute if following is None else following.minute
        return range(newest.minute + 1, end + 1)

    def nearest_accident(self, segment: Segment, minute: int) -> int | None:
        """Rule 11: the first segment of the zone with an accident."""
        xway, direction, seg = segment
        step = 1 if direction == 0 else -1
        for distance in range(5):
            there = seg + step * distance
            if 0 <= there <= LAST_SEGMENT and ((xway, direction, there), minute) in self.accidents:
                return there
        return None

    def toll(self, segment: Segment, minute: int) -> tuple[int | None, int]:
        """Rule 12: the LAV, and the toll."""
        if (segment, minute) not in self._tolls:
            self._tolls[segment, minute] = self._computed_toll(segment, minute)
        return self._tolls[segment, minute]

    def _computed_toll(self, segment: Segment, minute: int) -> tuple[int | None, int]:
        lav, count = self.lav(segment, minute), self.vehicles(segment, minute)
        if lav is None or lav >= 40 or count <= 50:
            return lav, 0
        if self.nearest_accident(segment, minute) is not None:
            return lav, 0
        return lav, 2 * (count - 50) ** 2

    # Answers

    def answers(self) -> Answers:
        """All four outputs."""
        found = Answers()
        charges: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for vid, reports in self.cars.items():
            charges[vid] = self._drive(reports, found)
        for report in self.reports:
            if report.type == BALANCE:  # rule 16
                paid = sum(toll for time, toll in charges[report.vid] if time <= report.time)
                found.balances.append((report.vid, report.time, report.qid, paid))
            elif report.type == EXPENDITURE:  # rule 17
                toll = self.history.get((report.vid, report.day, report.xway), 0)
                row = (report.vid, report.time, report.qid, report.day, report.xway, toll)
                found.expenditures.append(row)
        return found

    def _drive(self, reports: list[Report], found: Answers) -> list[tuple[int, int]]:
        """The notifications and alerts of one car; its charges, each with its time."""
        charges: list[tuple[int, int]] = []
        notified = 0
        previous: Report | None = None
        for report in reports:
            begins = previous is None or previous.lane == EXIT  # rule 4
            enters = previous is None or begins or previous.segment != report.segment  # rule 5
            previous = report
            if not enters:
                continue
            if not begins:  # rule 15
                charges.append((report.time, notified))
            if report.lane != EXIT:
                notified = self._notify(report, found)
        return charges

    def _notify(self, report: Report, found: Answers) -> int:
        """Rules 13 and 14; the toll."""
        lav, toll = self.toll(report.segment, report.minute)
        found.tolls.append((report.vid, report.time, lav, toll))
        accident = self.nearest_accident(report.segment, report.minute)
        if accident is not None:
            found.alerts.append((report.vid, report.time, accident))
        return toll


def average(values: list[Fraction]) -> Fraction:
    """The exact mean."""
    return sum(values, Fraction(0)) / len(values)


def answers(
    reports: Iterable[tuple[int, ...]], history: Iterable[tuple[int, int, int, int]] = ()
) -> Answers:
    """What must be answered to these reports."""
    return Oracle(reports, history).answers()
