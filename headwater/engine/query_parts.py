"""What a continuous query is made of besides its state: results, beginnings, firings, timings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headwater.engine.feed import FeedCursor
from headwater.engine.reader import PlacedRows
from headwater.engine.result_changes import KnownChanges
from headwater.engine.sampling import Instant


@dataclass(frozen=True)
class Evaluated:
    """One result with what was decided for it."""

    instant: Instant
    rows: pa.Table
    note: dict[str, Any]
    epoch: int | None = None
    changes: KnownChanges | None = None  # since the result before, where they are known


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
    chunks: Sequence[PlacedRows]
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
