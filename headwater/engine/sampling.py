"""When a query is evaluated: which instants are complete, and where they stand.

Pure: the readers' marks come in, instants go out. An instant has a *place*, which windows and panes
are counted in (its tick; for SAMPLE n ROWS a position), and a *tick*, which is `_t` (DESIGN §5, Instants).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal as OneOf
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

MOST_INSTANTS = 512  # evaluated in one firing


class Instant(NamedTuple):
    """One evaluation of a query."""

    place: int
    tick: int


class Reader(Protocol):
    """What is known of one windowed table."""

    @property
    def reached(self) -> int | None:
        """Up to which tick instants are complete in this table."""

    def next_tick(self, count: int = 1) -> int | None:
        """T of the count-th row not yet taken."""

    def ends(self, step: int, most: int) -> Sequence[int]:
        """How many rows after the last evaluation each of the next ones ends."""

    def distinct_ticks(self, tick: int) -> npt.NDArray[np.int64]:
        """Distinct T of the rows up to a tick that are not yet taken."""


@dataclass
class Sampling:
    """The instants of one query."""

    kind: OneOf["interval", "rows", "chunks", "realtime"]
    step: int  # slide in ticks, or rows; 1 for chunks that end by their values
    after: int | None = None  # the last tick (or the clock at the start): instants are later ones
    count: int = 0  # evaluations so far
    begun: int | None = None  # the first instant, if rows before it were taken already
    cut: bool = False  # epochs: the first chunk is the one that holds the first row

    def due(self, readers: Sequence[Reader], most: int = MOST_INSTANTS) -> list[Instant]:
        """The instants that are complete and not yet evaluated, in order, at most so many.

        For intervals only the first and the last are given: `between` fills in the others.
        """
        if self.counted:
            return self._by_position(readers, most)
        reached = [reader.reached for reader in readers]
        if any(mark is None for mark in reached):
            return []
        limit = min(mark for mark in reached if mark is not None)
        if self.kind == "realtime":
            return self._realtime(readers, limit, most)
        return self._interval(readers, limit)

    def _interval(self, readers: Sequence[Reader], limit: int) -> list[Instant]:
        first = self.first(readers)
        last = limit // self.step * self.step
        if first is None or first > last:
            return []
        return [Instant(first, first), Instant(last, last)]

    def first(self, readers: Sequence[Reader]) -> int | None:
        """The next instant; that of an empty table waits for its first row."""
        if self.after is not None:
            return (self.after // self.step + 1) * self.step
        if self.begun is not None:
            return self.begun
        ticks = [tick for tick in (reader.next_tick() for reader in readers) if tick is not None]
        if not ticks:
            return None
        if self.cut:
            return (min(ticks) // self.step + 1) * self.step
        return -(-min(ticks) // self.step) * self.step

    def _realtime(self, readers: Sequence[Reader], limit: int, most: int) -> list[Instant]:
        ticks = np.unique(np.concatenate([reader.distinct_ticks(limit) for reader in readers]))
        if self.after is not None:
            ticks = ticks[ticks > self.after]
        return [Instant(tick, tick) for tick in ticks[:most].tolist()]

    def _by_position(self, readers: Sequence[Reader], most: int) -> list[Instant]:
        ends = [reader.ends(self.step, most) for reader in readers]
        found = []
        for turn in range(min((len(own) for own in ends), default=0)):
            ticks = [r.next_tick(own[turn]) for r, own in zip(readers, ends, strict=True)]
            tick = max(t for t in ticks if t is not None)
            found.append(Instant((self.count + turn + 1) * self.step, tick))
        return found

    @property
    def counted(self) -> bool:
        """Whether an evaluation ends at a row, whatever the clock says."""
        return self.kind in ("rows", "chunks")

    def next_place(self, readers: Sequence[Reader]) -> int | None:
        """The place of the next evaluation, which may not be complete; it stays, whatever is taken."""
        if self.counted:
            return (self.count + 1) * self.step
        if self.after is None:
            self.begun = self.first(readers)
        return self.first(readers)

    def next_of(self, instant: Instant) -> Instant:
        """The interval's instant after one."""
        return Instant(instant.place + self.step, instant.tick + self.step)

    def evaluated(self, instant: Instant) -> None:
        """An instant was answered."""
        self.after = instant.tick
        self.count += 1
