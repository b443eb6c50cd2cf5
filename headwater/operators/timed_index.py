"""Slots and times → row numbers: the nearest row of a slot before a time, and the rows of a slot in a range.

Owns: a few runs in order of slot, time and number. New rows are a run of their own; runs of like size are put
together, so that n rows are in about log n of them. Dead rows are passed over, and go when runs are put
together or when too many of them stood side by side. Must never: look at a row; times are 64-bit integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headwater.fold.columns import Slots, Vector
from headwater.operators.vectors import distinct

NO_ROW = -1
END = np.iinfo(np.int64).max
LEAST_RUN = 1 << 10  # runs that are shorter are put together in any case
MOST_DEAD = 32  # where more dead rows stand side by side, they go


@dataclass(frozen=True)
class _Run:
    slots: Slots
    times: Slots
    numbers: Slots

    def __len__(self) -> int:
        return len(self.slots)

    def taken(self, places: Slots | Vector) -> _Run:
        return _Run(self.slots[places], self.times[places], self.numbers[places])

    @cached_property
    def owners(self) -> tuple[Slots, Slots]:
        """The slots, each once, and where each of them starts; the end of the last after them."""
        begins = np.flatnonzero(np.concatenate([[True], self.slots[1:] != self.slots[:-1]]))
        return self.slots[begins], np.append(begins, len(self.slots))

    def bounds(self, slots: Slots, times: Slots, side: str) -> tuple[Slots, Slots, Slots]:
        """For each slot and time: where the slot starts, how many rows are before, where it ends."""
        if not len(self):
            return (np.zeros_like(slots),) * 3
        owners, begins = self.owners
        places = np.minimum(np.searchsorted(owners, slots), len(owners) - 1)
        there = owners[places] == slots
        starts, ends = np.where(there, begins[places], 0), np.where(there, begins[places + 1], 0)
        low, high = starts.copy(), ends.copy()
        open_ = np.flatnonzero(low < high)
        while len(open_):
            middle = (low[open_] + high[open_]) // 2
            found, wanted = self.times[middle], times[open_]
            below = found < wanted if side == "left" else found <= wanted
            low[open_] = np.where(below, middle + 1, low[open_])
            high[open_] = np.where(below, high[open_], middle)
            open_ = open_[low[open_] < high[open_]]
        return starts, low, ends


class TimedIndex:
    """Rows by slot and time; of equal times the row that came last is the later one."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self._crowded = False  # too many dead rows had to be passed over

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        return sum(r.slots.nbytes + r.times.nbytes + r.numbers.nbytes for r in self._runs)

    def frozen(self) -> TimedIndex:
        """The same, without what is added later."""
        same = TimedIndex()
        same._runs = list(self._runs)
        return same

    def tidy(self, alive: Vector, dead_count: int) -> None:
        """Dead rows go if too many of them had to be passed over, or so many may have to be."""
        if self._crowded or dead_count > MOST_DEAD:
            self._runs = [run.taken(alive[run.numbers]) for run in self._runs]
            self._crowded = False

    def add(self, slots: Slots, times: Slots, numbers: Slots, alive: Vector) -> None:
        """Rows with their slots and times; numbers rise from call to call."""
        if not len(slots):
            return
        self._runs.append(_Run(slots, times, numbers).taken(np.lexsort((times, slots))))
        while len(self._runs) > 1 and len(self._runs[-2]) <= max(
            2 * len(self._runs[-1]), LEAST_RUN
        ):
            before, last = self._runs[-2:]
            both = _Run(
                np.concatenate([before.slots, last.slots]),
                np.concatenate([before.times, last.times]),
                np.concatenate([before.numbers, last.numbers]),
            )
            both = both.taken(alive[both.numbers])
            self._runs[-2:] = [both.taken(np.lexsort((both.times, both.slots)))]

    def nearest(self, slots: Slots, times: Slots, strict: bool, alive: Vector) -> Slots:
        """The last live row of each slot that is not after a time, or before it; NO_ROW if there is none."""
        best, best_times = np.full(len(slots), NO_ROW), np.full(len(slots), np.iinfo(np.int64).min)
        side = "left" if strict else "right"
        for run in self._runs:
            found = self._walk(run, slots, times, side, alive, backwards=True)
            there = np.flatnonzero(found >= 0)
            numbers, reached = run.numbers[found[there]], run.times[found[there]]
            # of equal times the later run has the later row
            better = reached >= best_times[there]
            best[there[better]], best_times[there[better]] = numbers[better], reached[better]
        return best

    def next_times(self, slots: Slots, times: Slots, alive: Vector) -> Slots:
        """The first time of a live row of each slot that is after a time; END if there is none."""
        nexts = np.full(len(slots), END)
        for run in self._runs:
            found = self._walk(run, slots, times, "right", alive, backwards=False)
            there = np.flatnonzero(found >= 0)
            reached = run.times[found[there]]
            nexts[there] = np.minimum(nexts[there], reached)
        return nexts

    def _walk(
        self, run: _Run, slots: Slots, times: Slots, side: str, alive: Vector, backwards: bool
    ) -> Slots:
        """Where in a run the nearest live row of each slot stands before a bound, or after it; else −1."""
        starts, bounds, ends = run.bounds(slots, times, side)
        step = -1 if backwards else 1
        found = bounds - 1 if backwards else bounds
        inside = (found >= starts) & (found < ends)
        found = np.where(inside, found, NO_ROW)
        dead = np.flatnonzero(inside)
        dead = dead[~alive[run.numbers[found[dead]]]]
        steps = 0
        while len(dead):
            moved = found[dead] + step
            inside = (moved >= starts[dead]) & (moved < ends[dead])
            found[dead] = np.where(inside, moved, NO_ROW)
            dead = dead[inside]
            dead = dead[~alive[run.numbers[found[dead]]]]
            steps += 1
        self._crowded |= steps > MOST_DEAD
        return found

    def between(
        self, slots: Slots, lows: Slots, highs: Slots, strict: bool, alive: Vector
    ) -> Slots:
        """The live rows of slots from a low time on and before a high one; a high of END is none.

        If `strict`, rows of the low time do not belong to them, and those of the high one do.
        """
        side = "right" if strict else "left"
        found: list[Slots] = []
        for run in self._runs:
            _, first, ends = run.bounds(slots, lows, side)
            _, last, _ = run.bounds(slots, highs, side)
            last = np.where(highs == END, ends, last)
            lengths = np.maximum(last - first, 0)
            stops = np.cumsum(lengths)
            total = int(stops[-1]) if len(stops) else 0
            places = np.arange(total) + np.repeat(first - stops + lengths, lengths)
            found.append(run.numbers[places])
        numbers = np.concatenate([np.empty(0, np.int64), *found])
        return distinct(numbers[alive[numbers]])
