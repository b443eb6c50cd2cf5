"""What a continuous query is made of besides its state: results, sinks, beginnings, firings, timings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from headwater.engine.feed import FeedCursor
from headwater.engine.merges import Ticks
from headwater.engine.result_changes import PlacedChanges
from headwater.engine.sampling import Instant


@dataclass(frozen=True)
class Evaluated:
    """One result with what was decided for it."""

    instant: Instant
    rows: pa.Table
    note: dict[str, Any]
    epoch: int | None = None
    changes: PlacedChanges | None = None  # since the result before, where they are known


class Sink(Protocol):
    """Where a query's results go, durably and in order."""

    def last(self) -> tuple[int, dict[str, Any]] | None:
        """The tick and the note of the newest result that is durable."""

    def recover(self) -> None:
        """Finds its place again after an append that failed."""

    def append(self, results: Sequence[Evaluated]) -> None:
        """Stores results; they are visible when this returns."""


@dataclass(frozen=True)
class Beginning:
    """Where a query began, as the catalog keeps it: one cursor per leaf, None for an empty table."""

    cursors: tuple[FeedCursor | None, ...]
    landmark: tuple[FeedCursor | None, ...]
    from_beginning: bool = False

    def as_json(self) -> dict[str, Any]:
        """For the catalog."""
        return {
            "cursors": [None if c is None else [c.tick, c.sequence] for c in self.cursors],
            "landmark": [None if c is None else [c.tick, c.sequence] for c in self.landmark],
            "from_beginning": self.from_beginning,
        }

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Beginning:
        """From the catalog."""
        cursors, landmark = (
            tuple(None if c is None else FeedCursor(*c) for c in saved[key])
            for key in ("cursors", "landmark")
        )
        return cls(cursors, landmark, saved["from_beginning"])


@dataclass(frozen=True)
class Firing:
    """What one firing answers: its instants, its rows, and where the readers stood before."""

    wanted: Sequence[tuple[Instant, bool]]  # with whether all windows are empty
    chunks: Sequence[tuple[pa.Table, Ticks, Ticks]]
    before: Sequence[FeedCursor | None]
    modes: tuple[str, ...]
    ready: bool  # whether the folds held their state already


@dataclass
class Timings:
    """Response times: from when an instant could be answered to when its result was readable."""

    count: int = 0
    total_s: float = 0.0
    worst_s: float = 0.0
    last_s: float = 0.0

    def add(self, seconds: float, count: int) -> None:
        """One firing that answered so many instants."""
        self.count += count
        self.total_s += seconds
        self.last_s = seconds
        self.worst_s = max(self.worst_s, seconds)
