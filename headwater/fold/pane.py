"""Panes: the stretches of time that all windows of a query are made of (paired windows).

Owns: the arithmetic. Instants are the multiples of the slide; there is a boundary wherever a
window starts or ends at any instant, and a pane between neighbouring boundaries. They repeat with
the slide, so a pane's number is (period × boundaries per period + place): a number costs nothing
until a row falls into it. Ticks are integers, negative ones too. Must never: hold rows or state.
Follows DataCell §3 ("splitting streams") and DESIGN §5 (windows, instants).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headwater.fold.columns import Slots, Vector


@dataclass(frozen=True)
class Window:
    """`[INTERVAL size]` is τ - size ≤ T ≤ τ; with BEFORE it is τ - size ≤ T < τ."""

    size: int
    before: bool = False

    def __post_init__(self) -> None:
        if self.size < self.before:
            raise ValueError(f"a window of {self.size} ticks holds nothing")

    def first_tick(self, instant: int) -> int:
        """The first tick of the window at an instant."""
        return instant - self.size

    def last_tick(self, instant: int) -> int:
        """The last tick of the window at an instant."""
        return instant - self.before


@dataclass(frozen=True)
class Panes:
    """The panes of one slide and the windows that share it."""

    slide: int
    windows: tuple[Window, ...]

    def __post_init__(self) -> None:
        if self.slide < 1 or not self.windows:
            raise ValueError("a slide of at least one tick and a window are needed")
        starts = {-window.size % self.slide for window in self.windows}
        ends = {(0 if window.before else 1) % self.slide for window in self.windows}
        object.__setattr__(self, "_offsets", sorted(starts | ends))

    @property
    def offsets(self) -> list[int]:
        """Where the boundaries lie in each period [k · slide, (k + 1) · slide)."""
        return self.__dict__["_offsets"]

    def pane_of(self, tick: int) -> int:
        """The pane that a tick falls into."""
        period, place = divmod(tick, self.slide)
        return period * len(self.offsets) + bisect_right(self.offsets, place) - 1

    def panes_of(self, ticks: Vector) -> Slots:
        """The panes that ticks fall into."""
        period, place = np.divmod(ticks, np.int64(self.slide))
        if len(self.offsets) == 1:
            return period - (place < self.offsets[0])
        found = np.searchsorted(np.array(self.offsets, np.int64), place, side="right")
        return period * len(self.offsets) + found - 1

    def split(self, ticks: Vector) -> list[tuple[int, Slots | slice]]:
        """A chunk's rows by pane, in pane order; slices where the ticks do not fall."""
        panes = self.panes_of(ticks)
        if not len(panes):
            return []
        order: Slots | None = None
        if (panes[1:] < panes[:-1]).any():
            order = np.argsort(panes, kind="stable")
            panes = panes[order]
        starts = np.flatnonzero(np.concatenate([[True], panes[1:] != panes[:-1]]))
        ends = [*starts[1:].tolist(), len(panes)]
        spans = [slice(a, b) for a, b in zip(starts.tolist(), ends, strict=True)]
        numbers = panes[starts].tolist()
        return [(n, s if order is None else order[s]) for n, s in zip(numbers, spans, strict=True)]

    def bounds(self, pane: int) -> tuple[int, int]:
        """A pane's ticks, half-open."""
        return self._boundary(pane), self._boundary(pane + 1)

    def _boundary(self, number: int) -> int:
        period, place = divmod(number, len(self.offsets))
        return period * self.slide + self.offsets[place]

    def of_window(self, window: Window, instant: int) -> range:
        """The panes of a window at an instant; they hold exactly its ticks."""
        self._check(instant)
        first = self.pane_of(window.first_tick(instant))
        return range(first, self.pane_of(window.last_tick(instant)) + 1)

    def count(self, window: Window) -> int:
        """How many panes a window has at most: the same number at every instant."""
        return len(self.of_window(window, 0))

    def first_instant(self, tick: int) -> int:
        """The first instant at or after a tick."""
        return -(-tick // self.slide) * self.slide

    def next_instant(self, instant: int) -> int:
        """The instant after one."""
        return instant + self.slide

    def instants(self, pane: int, window: Window) -> range:
        """The instants at which a window holds a pane; none if it lies between windows."""
        start = self.bounds(pane)[0]
        first = self.first_instant(start + window.before)
        last = (start + window.size) // self.slide * self.slide
        return range(first, last + 1, self.slide)

    def needed(self, pane: int) -> bool:
        """Whether any window ever holds a pane; rows of others need not be folded."""
        return any(len(self.instants(pane, window)) for window in self.windows)

    def first_needed(self, instant: int, windows: Sequence[Window] = ()) -> int:
        """The oldest pane that these windows (or all) still hold at an instant: older ones go."""
        self._check(instant)
        return min(self.pane_of(w.first_tick(instant)) for w in windows or self.windows)

    def _check(self, instant: int) -> None:
        if instant % self.slide:
            raise ValueError(f"{instant} is no multiple of the slide {self.slide}")
