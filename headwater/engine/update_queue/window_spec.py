"""Where windows start and end.

Owns: the grid: windows [start, start + size) with starts at origin + k·slide, in ticks of T. How
a query's window becomes one: `[INTERVAL i]` at τ is closed, so size = i + 1 and start = τ − i;
`[INTERVAL i BEFORE]` has size i. Must never: hold rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from headwater.engine.update_queue.vectors import NONE
from headwater.fold.columns import Slots

Ticks = TypeVar("Ticks", int, Slots)


@dataclass(frozen=True)
class WindowSpec:
    """Size ω and slide δ (UpStream §6.1)."""

    size: int
    slide: int
    origin: int = 0
    first: int | None = None  # no window starts before it
    # A row at a window's last tick closes it, as in the paper, where a key has one row per time.
    # If a key may have several, only a later row or the clock does.
    closes_at_last_tick: bool = True

    def __post_init__(self) -> None:
        if self.size < 1 or self.slide < 1:
            raise ValueError("a window and its slide are at least one tick")

    def started(self, t: int) -> int | None:
        """The newest window that has started at t."""
        start = t - (t - self.origin) % self.slide
        return None if self.first is not None and start < self.first else start

    def closed(self, mark: int) -> int | None:
        """The newest window that has closed when no row up to `mark` can come any more."""
        return self.started(mark - self.size + 1)

    def open_from(self, mark: int) -> int | None:
        """The start of the oldest window that is still open then; None: there is no oldest one."""
        start = self.closed(mark)
        return self.first if start is None else start + self.slide

    def last_tick(self, start: int) -> int:
        """The last tick of a window."""
        return start + self.size - 1

    def holds(self, start: int | None, t: int) -> bool:
        """Whether a window contains t."""
        return start is not None and start <= t < start + self.size

    def mark_of(self, t: Ticks) -> Ticks:
        """Up to where rows of a key are complete once one at t has come."""
        return t if self.closes_at_last_tick else t - 1

    def closing(self, before: int | None, mark: int, rows: tuple[int | None, ...]) -> int | None:
        """The newest window with a row in it that closes as the mark moves on.

        `rows`: the times of the key's two newest rows, the newer one first; older rows share all
        windows that are still open with them.
        """
        limit = self.closed(mark)
        for t in rows:
            newest = None if t is None else self.started(t)
            if t is None or limit is None or newest is None:
                continue
            start = min(limit, newest)
            if self.holds(start, t) and (before is None or self.last_tick(start) > before):
                return start
        return None

    def first_closing(
        self, before: int | None, after: int | None, rows: tuple[int | None, ...]
    ) -> int:
        """The oldest window with one of `rows` in it that the mark `before` had not closed.

        `after`: and that starts after another. Some window does: `closing` has said so.
        """
        for t in reversed(rows):  # the older one first
            if t is None:
                continue
            low = t - self.size + 1
            low = low if before is None else max(low, before - self.size + 2)
            low = low if after is None else max(low, after + 1)
            low = low if self.first is None else max(low, self.first)
            start = low + (self.origin - low) % self.slide
            if start <= t:
                return start
        raise ValueError("no window closes")

    def closing_keys(self, marks: Slots, mark: int, newest: Slots) -> Slots:
        """The keys of which a window with a row in it closes as all marks move on to one.

        `marks`, `newest`: by key; NONE as the newest row's time of a key that has none.
        """
        limit = self.closed(mark)
        if limit is None:
            return np.empty(0, np.int64)
        slots = np.flatnonzero((newest != NONE) & (marks < mark))
        times = newest[slots]
        starts = np.minimum(times - (times - self.origin) % self.slide, limit)
        last = starts + self.size - 1
        closes = (last > marks[slots]) & (times <= last)
        if self.first is not None:
            closes &= starts >= self.first
        return slots[closes]
