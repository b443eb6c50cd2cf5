"""What the Linear Road demo has seen so far, as a state for its screen.

Owns: counts, response times, the newest speeds and accidents. Must never: ask the database, or look
at a clock. Threads may share it: each output has a reader of its own.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .screen import (
    SEGMENTS,
    Lane,
    Moment,
    Responses,
    RoadState,
    ScreenQuestion,
    Toll,
)

WARM_UP_S = (
    30  # simulated; a road that begins full has all its cars enter at once, which no road does
)
RATES = 60  # that are kept
MOMENTS = 120  # that are kept
TOLLS = 24
RATE_S = 2.0  # what the shown rate is an average of
Speeds = Iterable[tuple[int, int, int, float | None]]  # xway, dir, seg, miles per hour


@dataclass(frozen=True)
class Schedule:
    """When the reports of each simulated second are due."""

    first: int
    started_s: float
    speed: float

    def due_s(self, second: int) -> float:
        """The real time of a simulated second."""
        return self.started_s + (second - self.first) / self.speed

    def counts(self, second: int) -> bool:
        """Whether the answers of a second are counted."""
        return second >= self.first + WARM_UP_S


@dataclass(frozen=True)
class Accident:
    """Where cars stand, and the first minute that counts it."""

    xway: int
    dir: int
    seg: int
    second: int


class Figures:
    """All that the screen shows, put together from what the readers see."""

    def __init__(self, begin: RoadState, started_s: float) -> None:
        self._lock = threading.Lock()
        self._state = begin
        self._started_s = started_s
        self._schedule: Schedule | None = None
        self._lanes: dict[tuple[int, int], Sequence[float | None]] = {}
        self._present: frozenset[tuple[int, int, int]] = frozenset()
        self._accidents: dict[tuple[int, int, int], Accident] = {}
        self._counts: deque[tuple[float, int]] = deque(maxlen=RATES)
        self._tolls: deque[Toll] = deque(maxlen=TOLLS)
        self._moments: deque[Moment] = deque(maxlen=MOMENTS)
        self._slowest: dict[str, float] = {}  # since the last moment

    def drives(self, speed: float) -> None:
        """How fast the traffic is played."""
        with self._lock:
            self._state = replace(self._state, speed=speed)

    def flows(self, schedule: Schedule) -> None:
        """The first report is due."""
        with self._lock:
            self._schedule = schedule

    def answered(self, output: str, second: int, count: int, at_s: float) -> None:
        """So many answers to the reports of a second can be read."""
        with self._lock:
            newest = max(self._state.second, second)
            responses = dict(self._state.responses)
            if count and self._schedule is not None and self._schedule.counts(second):
                took = max(at_s - self._schedule.due_s(second), 0.0)
                responses[output] = with_answers(responses.get(output, Responses()), count, took)
                self._slowest[output] = max(self._slowest.get(output, 0.0), took)
            self._state = replace(self._state, second=newest, responses=responses)

    def told(self, toll: Toll) -> None:
        """A car was told of a toll."""
        with self._lock:
            self._tolls.append(toll)

    def counted(self, reports: int, tolls_charged: int, at_s: float) -> None:
        """So many reports are stored, and so much was charged."""
        with self._lock:
            self._counts.append((at_s, reports))
            self._state = replace(
                self._state,
                reports=reports,
                tolls_charged=tolls_charged,
                reports_per_second=rate(self._counts),
                recent_rates=rates(self._counts),
            )
            if self._schedule is not None:
                elapsed = at_s - self._started_s
                self._moments.append(Moment(elapsed, self._freshness(at_s), self._slowest))
                self._slowest = {}

    def seen(self, speeds: Speeds) -> None:
        """How fast traffic is now, by segment."""
        lanes: dict[tuple[int, int], list[float | None]] = {}
        for xway, direction, segment, speed in speeds:
            lanes.setdefault((xway, direction), [None] * SEGMENTS)[segment] = speed
        with self._lock:
            self._lanes = dict(sorted(lanes.items()))

    def crashed(self, accidents: Iterable[Accident]) -> None:
        """The accidents that there are now."""
        with self._lock:
            found = {(a.xway, a.dir, a.seg): a for a in accidents}
            self._present = frozenset(found)
            self._accidents = {**found, **self._accidents}  # the first minute of each stays

    def asked(self, question: ScreenQuestion) -> None:
        """A question was answered; a newer answer to the same question takes its place."""
        with self._lock:
            others = [q for q in self._state.questions if q.title != question.title]
            self._state = replace(self._state, questions=[*others, question])

    @property
    def accidents(self) -> list[Accident]:
        """All accidents so far, the newest first."""
        with self._lock:
            return sorted(self._accidents.values(), key=lambda a: a.second, reverse=True)

    def state(self, now_s: float) -> RoadState:
        """What the screen shows now."""
        with self._lock:
            return replace(
                self._state,
                elapsed_s=now_s - self._started_s,
                freshness_s=self._freshness(now_s),
                tolls=list(self._tolls),
                moments=list(self._moments),
                lanes=[self._lane(way, speeds) for way, speeds in self._lanes.items()],
            )

    def _freshness(self, now_s: float) -> float | None:
        if self._schedule is None or self._state.second < self._schedule.first:
            return None
        return max(now_s - self._schedule.due_s(self._state.second), 0.0)

    def _lane(self, way: tuple[int, int], speeds: Sequence[float | None]) -> Lane:
        return Lane(*way, speeds, frozenset(s for x, d, s in self._present if (x, d) == way))


def with_answers(known: Responses, count: int, took_s: float) -> Responses:
    """The response times with those of some further answers."""
    total = known.count + count
    average = (known.average_s * known.count + took_s * count) / total
    return Responses(total, average, max(known.worst_s, took_s))


def rate(counts: Sequence[tuple[float, int]]) -> float:
    """Rows per second over the last seconds, from times and counts."""
    if len(counts) < 2:
        return 0.0
    until, newest = counts[-1]
    since, oldest = next(c for c in counts if c[0] >= until - RATE_S)
    return (newest - oldest) / (until - since) if until > since else 0.0


def rates(counts: Sequence[tuple[float, int]]) -> list[float]:
    """Rows per second between each count and the next."""
    found = itertools.pairwise(counts)
    return [(n - m) / (t - s) if t > s else 0.0 for (s, m), (t, n) in found]
