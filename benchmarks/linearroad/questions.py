"""L++: one-time questions about reports of the past, while more come in (Table V).

A question asks for the reports of some segments in a stretch of time: about 10 000, 30 000 or 60 000 of
them at the peak rate, whatever the number of expressways. It is a plain scan, by time and value.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import headwater

INDEX = "CREATE INDEX reports_by_seg ON reports (seg)"
SELECTIVITIES = {"high": (20, 30), "medium": (60, 30), "low": (120, 30)}  # seconds, segments
SEGMENTS = 100


@dataclass(frozen=True)
class Question:
    """One stretch of one expressway in a stretch of time."""

    selectivity: str
    xway: int
    first_segment: int
    last_segment: int
    since: int
    until: int

    @property
    def sql(self) -> str:
        """The question in SQL."""
        return (
            f"SELECT time, vid, speed, lane, dir, seg, pos FROM reports "
            f"WHERE type = 0 AND xway = {self.xway} "
            f"AND seg BETWEEN {self.first_segment} AND {self.last_segment} "
            f"AND time BETWEEN {self.since} AND {self.until}"
        )


@dataclass
class Asker:
    """Asks so many questions a minute, spread evenly over it, about what is stored so far."""

    db: headwater.Database
    per_minute: int
    expressways: int
    start_s: int
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))
    times: dict[str, list[float]] = field(default_factory=lambda: {n: [] for n in SELECTIVITIES})
    rows: int = 0
    _asked: int = 0

    def ask_until(self, second: int) -> None:
        """The questions that are due by the end of a second."""
        due = (second + 1 - self.start_s) * self.per_minute // 60
        while self._asked < due:
            self._ask(self.question(second))

    def question(self, second: int) -> Question:
        """A question about the time before a second."""
        name = list(SELECTIVITIES)[self._asked % len(SELECTIVITIES)]
        length, width = SELECTIVITIES[name]
        since = int(self.random.integers(self.start_s, max(second - length, self.start_s) + 1))
        first = int(self.random.integers(0, SEGMENTS - width + 1))
        xway = int(self.random.integers(self.expressways))
        return Question(name, xway, first, first + width - 1, since, since + length - 1)

    def _ask(self, question: Question) -> None:
        started = time.perf_counter()
        self.rows += self.db.sql(question.sql).arrow().num_rows
        self.times[question.selectivity].append(time.perf_counter() - started)
        self._asked += 1

    def summary(self) -> dict[str, Any]:
        """By selectivity: questions, average and worst time."""
        found: dict[str, Any] = {n: spread(times) for n, times in self.times.items() if times}
        return {**found, "rows": self.rows}


def spread(times: Sequence[float]) -> Mapping[str, float]:
    """Best, average and worst."""
    return {
        "count": len(times),
        "best_s": min(times),
        "average_s": sum(times) / len(times),
        "worst_s": max(times),
    }
