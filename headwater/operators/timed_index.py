"""Slots and times → row numbers: the rows of a slot whose time lies in a range, the latest one up to a time.

Owns: a few runs in order of slot, time, what tells rows of one time apart, and number. New rows are a run of
their own; runs of like size are put together, so that n rows are in about log n of them. Dead rows are passed
over, and go when runs are put together, or when many of them stand in the way. Must never: look at a row;
times are 64-bit integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headwater.fold.columns import Slots, Vector
from headwater.operators.vectors import distinct

LEAST_RUN = 1 << 10  # runs that are shorter are put together in any case
MOST_DEAD = (
    16  # dead rows that are passed over one by one; beyond it a run is made anew without them
)


@dataclass(frozen=True)
class _Run:
    slots: Slots
    times: Slots
    numbers: Slots
    ties: tuple[Slots, ...]  # the order of rows of one time

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def nbytes(self) -> int:
        return sum(one.nbytes for one in (self.slots, self.times, self.numbers, *self.ties))

    def taken(self, places: Slots | Vector) -> _Run:
        ties = tuple(tie[places] for tie in self.ties)
        return _Run(self.slots[places], self.times[places], self.numbers[places], ties)

    def living(self, alive: Vector) -> _Run:
        return self.taken(alive[self.numbers])

    @property
    def in_order(self) -> _Run:
        return self.taken(np.lexsort((*reversed(self.ties), self.times, self.slots)))

    def beside(self, other: _Run) -> _Run:
        ties = zip(self.ties, other.ties, strict=True)
        return _Run(
            np.concatenate([self.slots, other.slots]),
            np.concatenate([self.times, other.times]),
            np.concatenate([self.numbers, other.numbers]),
            tuple(np.concatenate(pair) for pair in ties),
        )

    @cached_property
    def owners(self) -> tuple[Slots, Slots]:
        """The slots, each once, and where each of them starts; the end of the last after them."""
        begins = np.flatnonzero(np.concatenate([[True], self.slots[1:] != self.slots[:-1]]))
        return self.slots[begins], np.append(begins, len(self.slots))

    def before(self, slots: Slots, times: Slots, or_at: Vector | bool = False) -> Slots:
        """For each slot and time: the place of the slot's first row that is not before it (or at it)."""
        at = np.broadcast_to(or_at, len(slots))
        owners, begins = self.owners
        places = np.minimum(np.searchsorted(owners, slots), len(owners) - 1)
        there = owners[places] == slots
        low, high = np.where(there, begins[places], 0), np.where(there, begins[places + 1], 0)
        open_ = np.flatnonzero(low < high)
        while len(open_):
            middle = (low[open_] + high[open_]) // 2
            found, asked = self.times[middle], times[open_]
            below = (found < asked) | (at[open_] & (found == asked))
            low[open_] = np.where(below, middle + 1, low[open_])
            high[open_] = np.where(below, high[open_], middle)
            open_ = open_[low[open_] < high[open_]]
        return low

    def nearest(self, slots: Slots, places: Slots, step: int, alive: Vector) -> Slots | None:
        """From each place on, step by step, that of a live row of the slot; −1: none, None: it is far."""
        places = places.copy()
        open_ = np.arange(len(places))
        for _ in range(MOST_DEAD):
            asked = places[open_]
            inside = (asked >= 0) & (asked < len(self))
            inside[inside] = self.slots[asked[inside]] == slots[open_[inside]]
            places[open_[~inside]] = -1
            open_ = open_[inside]
            open_ = open_[~alive[self.numbers[places[open_]]]]
            if not len(open_):
                return places
            places[open_] += step
        return None


class TimedIndex:
    """Rows by slot and time."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        return sum(run.nbytes for run in self._runs)

    def add(
        self,
        slots: Slots,
        times: Slots,
        numbers: Slots,
        alive: Vector,
        ties: Sequence[Slots] = (),
    ) -> None:
        """Rows with their slots and times; `ties`: the order of those of one time, as every row has it."""
        if not len(slots):
            return
        self._runs.append(_Run(slots, times, numbers, tuple(ties)).in_order)
        while len(self._runs) > 1 and len(self._runs[-2]) <= max(
            2 * len(self._runs[-1]), LEAST_RUN
        ):
            before, last = self._runs[-2:]
            self._runs[-2:] = [before.beside(last).living(alive).in_order]

    def between(
        self,
        slots: Slots,
        lows: Slots,
        highs: Slots,
        alive: Vector,
        after_low: bool = False,
        to_high: Vector | bool = False,
    ) -> Slots:
        """The live rows of slots from a low time on (or after it) and before a high one (or to it), once."""
        found: list[Slots] = [np.empty(0, np.int64)]
        for run in self._runs:
            if not len(run):
                continue
            first, last = run.before(slots, lows, after_low), run.before(slots, highs, to_high)
            lengths = np.maximum(last - first, 0)
            stops = np.cumsum(lengths)
            total = int(stops[-1]) if len(stops) else 0
            places = np.arange(total) + np.repeat(first - stops + lengths, lengths)
            found.append(run.numbers[places])
        numbers = np.concatenate(found)
        return distinct(numbers[alive[numbers]])

    def latest(self, slots: Slots, times: Slots, or_at: bool, alive: Vector) -> Slots:
        """By slot and time the number of the last live row before it (or at it), −1 if there is none."""
        numbers = np.full(len(slots), -1, np.int64)
        best: list[Slots] = []
        for which in range(len(self._runs)):
            run, places = self._near(which, slots, times, or_at, -1, alive)
            there = np.flatnonzero(places >= 0)
            mine = [one[places[there]] for one in (run.times, *run.ties)]
            best = best or [np.zeros(len(slots), np.int64) for _ in mine]
            better = (numbers[there] < 0) | _after(mine, [one[there] for one in best])
            chosen = there[better]
            numbers[chosen] = run.numbers[places[chosen]]
            for kept, one in zip(best, mine, strict=True):
                kept[chosen] = one[better]
        return numbers

    def following(self, slots: Slots, times: Slots, alive: Vector) -> tuple[Slots, Vector]:
        """By slot and time the time of the first live row after it, and whether there is one."""
        found, there = np.zeros(len(slots), np.int64), np.zeros(len(slots), np.bool_)
        for which in range(len(self._runs)):
            run, places = self._near(which, slots, times, True, 1, alive)
            asking = np.flatnonzero(places >= 0)
            mine = run.times[places[asking]]
            better = ~there[asking] | (mine < found[asking])
            found[asking[better]] = mine[better]
            there[asking] = True
        return found, there

    def _near(
        self, which: int, slots: Slots, times: Slots, or_at: bool, step: int, alive: Vector
    ) -> tuple[_Run, Slots]:
        """A run, and of each slot the place of its live row next to a time: after it, or before it."""
        while True:
            run = self._runs[which]
            if not len(run):
                return run, np.full(len(slots), -1, np.int64)
            places = run.before(slots, times, or_at) - (step < 0)
            near = run.nearest(slots, places, step, alive)
            if near is not None:
                return run, near
            self._runs[which] = run.living(alive)


def _after(left: Sequence[Slots], right: Sequence[Slots]) -> Vector | bool:
    """Where the first of several numbers that differ is greater."""
    after: Vector | bool = False
    for mine, theirs in zip(reversed(left), reversed(right), strict=True):
        after = (mine > theirs) | ((mine == theirs) & after)
    return after
