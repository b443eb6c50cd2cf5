"""What one system did in one experiment: its times and its answers; and whether two agree."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

Answer = tuple[float | int | None, ...]
Answers = dict[int, Answer]
CLOSE = 1e-9  # floats that differ by less, relatively, are equal


@dataclass
class Series:
    """Slides one after the other; answers are kept by instant, times only after the warm-up."""

    response_ms: list[float] = field(default_factory=list)  # last row acknowledged to result there
    slide_ms: list[float] = field(default_factory=list)  # with the insert and the clean-up
    answers: Answers = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)

    def add(self, response_s: float, slide_s: float) -> None:
        """One slide that counts."""
        self.response_ms.append(response_s * 1000)
        self.slide_ms.append(slide_s * 1000)

    def figures(self) -> dict[str, Any]:
        """For the report."""
        times = np.array(self.response_ms)
        low, middle, high = np.quantile(times, (0.25, 0.5, 0.75))
        return {
            "slides": len(times),
            "median_ms": float(middle),
            "quartiles_ms": [float(low), float(high)],
            "p99_ms": float(np.quantile(times, 0.99)),
            "worst_ms": float(times.max()),
            "slide_median_ms": float(np.median(self.slide_ms)),
            "total_s": float(np.sum(self.slide_ms)) / 1000,
            **self.notes,
        }


def checksum(rows: pa.Table) -> Answer:
    """Of a result of Q1, whatever its order: rows, Σ total, Σ x1 · total."""
    x1 = rows.column("x1").to_numpy().astype(np.int64)
    total = rows.column("total").to_numpy().astype(np.int64)
    return rows.num_rows, int(total.sum()), int((x1 * total).sum())


def values(rows: pa.Table) -> Answer:
    """Of a result of one row: its first two columns."""
    return tuple(rows.column(place)[0].as_py() for place in range(2))


def difference(mine: Answers, theirs: Answers) -> str | None:
    """The first instant at which two systems disagree; None if they agree wherever both answered."""
    common = sorted(mine.keys() & theirs.keys())
    if not common:
        return "no common instant"
    for instant in common:
        if not _equal(mine[instant], theirs[instant]):
            return f"at {instant}: {theirs[instant]} instead of {mine[instant]}"
    return None


def _equal(mine: Answer, theirs: Answer) -> bool:
    return len(mine) == len(theirs) and all(map(_close, mine, theirs))


def _close(mine: float | int | None, theirs: float | int | None) -> bool:
    if mine is None or theirs is None:
        return mine is theirs
    return mine == theirs or math.isclose(mine, theirs, rel_tol=CLOSE)


def compared(
    systems: dict[str, Series], ours: str, references: Iterable[str] = ()
) -> dict[str, dict[str, Any]]:
    """The figures of all systems, with ratios to ours; a system that disagrees is void."""
    mine = systems[ours].figures()
    found: dict[str, dict[str, Any]] = {}
    for name, series in systems.items():
        figures = series.figures()
        figures["ratio"] = figures["median_ms"] / mine["median_ms"]
        if name not in references:
            figures["void"] = difference(systems[ours].answers, series.answers)
        found[name] = figures
    return found


Reader = Callable[[pa.Table], Answer]
