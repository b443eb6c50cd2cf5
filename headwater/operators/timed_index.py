"""Slots and times → row numbers: the rows of a slot whose time lies in a range.

Owns: a few runs in order of slot, time and number. New rows are a run of their own; runs of like size are put
together, so that n rows are in about log n of them. Dead rows are passed over, and go when runs are put
together. Must never: look at a row; times are 64-bit integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headwater.fold.columns import Slots, Vector
from headwater.operators.vectors import distinct

LEAST_RUN = 1 << 10  # runs that are shorter are put together in any case


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

    def before(self, slots: Slots, times: Slots) -> Slots:
        """For each slot and time: the place of the slot's first row that is not before it."""
        owners, begins = self.owners
        places = np.minimum(np.searchsorted(owners, slots), len(owners) - 1)
        there = owners[places] == slots
        low, high = np.where(there, begins[places], 0), np.where(there, begins[places + 1], 0)
        open_ = np.flatnonzero(low < high)
        while len(open_):
            middle = (low[open_] + high[open_]) // 2
            below = self.times[middle] < times[open_]
            low[open_] = np.where(below, middle + 1, low[open_])
            high[open_] = np.where(below, high[open_], middle)
            open_ = open_[low[open_] < high[open_]]
        return low


class TimedIndex:
    """Rows by slot and time."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        return sum(r.slots.nbytes + r.times.nbytes + r.numbers.nbytes for r in self._runs)

    def add(self, slots: Slots, times: Slots, numbers: Slots, alive: Vector) -> None:
        """Rows with their slots and times."""
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

    def between(self, slots: Slots, lows: Slots, highs: Slots, alive: Vector) -> Slots:
        """The live rows of slots from a low time on and before a high one, each once."""
        found: list[Slots] = [np.empty(0, np.int64)]
        for run in self._runs:
            if not len(run):
                continue
            first, last = run.before(slots, lows), run.before(slots, highs)
            lengths = np.maximum(last - first, 0)
            stops = np.cumsum(lengths)
            total = int(stops[-1]) if len(stops) else 0
            places = np.arange(total) + np.repeat(first - stops + lengths, lengths)
            found.append(run.numbers[places])
        numbers = np.concatenate(found)
        return distinct(numbers[alive[numbers]])
