"""The questions about the past that the Linear Road demo asks while traffic flows.

The SQL is in `examples/linearroad/questions`; here is what is asked when, and the answer in words.
OTQ-1, OTQ-2 and CQ-3 of the streaming-tables paper.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headwater.database import Database

from .figures import Accident
from .screen import ScreenQuestion

FEET = 5280
BEFORE_S = 300  # what came before an accident
CRITICAL = 4  # segments
POINTS = 3  # of a trajectory that are shown
CARS = 3
Rows = Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class AskedQuestion:
    """A question as a statement; `{place}` is where and when an accident was."""

    title: str
    what: str
    sql: str


DYNAMICS = AskedQuestion(
    "accident dynamics",
    "How did the accident come about? The trajectories of the cars that stand there.",
    "CALL accident_dynamics({place})",
)
WITNESSES = AskedQuestion(
    "possible witnesses",
    "Which cars were within a mile in the five minutes before, and may have seen it?",
    "CALL near({place})",
)
WATCHED = AskedQuestion(
    "critical segments",
    "How are the slowest segments now? They are chosen once, and then watched.",
    "SELECT * FROM critical_segments",
)
QUESTIONS = (DYNAMICS, WITNESSES, WATCHED)  # OTQ-1, OTQ-2, CQ-3


class Trajectory:
    """The aggregate trj(time, pos, speed): where a car was and how fast, in order of time."""

    def init(self) -> None:
        """Begins without points."""
        self.points: list[tuple[int, int, int]] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Takes in points in any order."""
        self.points += zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def merge(self, other: Trajectory) -> None:
        """Takes in the points of another part."""
        self.points += other.points

    def finish(self) -> str:
        """Mile and miles per hour of each point; standing still is one point."""
        shown: list[str] = []
        for _, feet, speed in sorted(self.points):
            point = f"{feet / FEET:.1f}@{speed}"
            if shown[-1:] != [point]:
                shown.append(point)
        return " → ".join(shown)


def register(db: Database) -> None:
    """Makes the aggregate known; the scripts need it."""
    db.create_function("trj", Trajectory, returns="STRING", kind="aggregate")


@dataclass
class Questions:
    """Asks one question after the other."""

    db: Database
    accidents: Callable[[], Sequence[Accident]]  # the newest first
    _turn: int = 0
    _chosen: bool = False

    def next(self) -> ScreenQuestion | None:
        """The next question with its answer; None if there is nothing to ask about yet."""
        asks = (self._critical, self._dynamics, self._witnesses)
        self._turn += 1
        return asks[(self._turn - 1) % len(asks)]()

    def _dynamics(self) -> ScreenQuestion | None:
        return self._about_newest(DYNAMICS, dynamics_in_words)

    def _witnesses(self) -> ScreenQuestion | None:
        return self._about_newest(WITNESSES, witnesses_in_words)

    def _about_newest(
        self, asked: AskedQuestion, in_words: Callable[[Rows], str]
    ) -> ScreenQuestion | None:
        found = self.accidents()
        if not found:
            return None
        call = asked.sql.format(place=places(found[0]))
        rows, took = self._timed(call)
        return ScreenQuestion(asked.title, in_words(rows), took, call)

    def _critical(self) -> ScreenQuestion | None:
        """The list is chosen once; from then on it is watched."""
        if not self._chosen:
            self._chosen = bool(self.db.sql(f"CALL choose_critical({CRITICAL})").rows())
            return None
        rows, took = self._timed(WATCHED.sql)
        if not rows:
            return None
        return ScreenQuestion(WATCHED.title, critical_in_words(rows), took, WATCHED.sql)

    def _timed(self, sql: str) -> tuple[Rows, float]:
        started = time.monotonic()
        rows = self.db.sql(sql).rows()
        return rows, (time.monotonic() - started) * 1000


def places(accident: Accident) -> str:
    """Where and when, as the procedures take them."""
    since, until = accident.second - BEFORE_S, accident.second
    return f"{accident.xway}, {accident.dir}, {accident.seg}, {since}, {until}"


def dynamics_in_words(rows: Rows) -> str:
    """Cars and the ends of their trajectories: mile@mph."""
    cars = []
    for vid, trajectory in rows[:CARS]:
        cars.append(f"car {vid} " + " → ".join(trajectory.split(" → ")[-POINTS:]))
    return f"{len(rows)} cars, mile@mph: " + "; ".join(cars)


def witnesses_in_words(rows: Rows) -> str:
    """How many cars, and who of them was slowest."""
    if not rows:
        return "nobody"
    slowest = sorted(rows, key=lambda row: row[3])[:CARS]
    named = ", ".join(f"{vid} ({speed} mph)" for vid, _, _, speed in slowest)
    return f"{len(rows):,} cars passed within a mile; slowest {named}"


def critical_in_words(rows: Rows) -> str:
    """Mile, cars and speed of each segment."""
    parts = [
        f"mile {seg}{'←' if direction else '→'} {cars} cars, {speed or 0:.0f} mph"
        for _, direction, seg, cars, speed, *_ in rows
    ]
    return "; ".join(parts)
