"""Slots → row numbers: which live rows have a slot.

Owns: for a slot with one row its number, for others a chain of spans of row numbers, each more than twice
as long as the one in front of it, so that a slot of n rows has about log n spans and copies a row as often.
Finding costs what is found: dead rows are left out, and go for good when spans are put together or when they
were most of what was found. Must never: look at a row, or promise an order.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headwater.fold.columns import Slots, Vector
from headwater.operators.vectors import Growing, distinct

NONE = -1
LEAST_WASTE = 1 << 12  # so many entries that nobody needs are left in any case
Spans = tuple[Slots, Slots, Slots]  # whose it is, where it starts, how long it is


class Index:
    """Which rows have a slot."""

    def __init__(self) -> None:
        self._heads = Growing(
            np.int64
        )  # by slot: NONE, the number of its one row, or −2 − its span
        self._starts = Growing(np.int64)  # by span
        self._lengths = Growing(np.int64)
        self._nexts = Growing(np.int64)  # the next span of the chain, or NONE
        self._entries = Growing(np.int64)
        self._waste = 0  # entries of spans that are gone

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        spans = self._starts.nbytes + self._lengths.nbytes + self._nexts.nbytes
        return self._heads.nbytes + spans + self._entries.nbytes

    def add(self, slots: Slots, numbers: Slots, alive: Vector) -> None:
        """Rows with their slots; no row is added twice."""
        if not len(slots):
            return
        heads = self._heads.filled(int(slots.max()) + 1, NONE)
        free = heads[slots] == NONE
        heads[slots[free]] = numbers[free]
        rest = np.flatnonzero(heads[slots] != numbers)  # another row has the place
        if len(rest):
            self._chain(slots[rest], numbers[rest], alive)

    def _chain(self, slots: Slots, numbers: Slots, alive: Vector) -> None:
        """Rows of slots that have others: a new span each, in front."""
        heads = self._heads.values
        owners = distinct(slots)
        alone = owners[heads[owners] >= 0]
        first = heads[alone]
        heads[alone] = NONE
        there = alive[first]
        slots = np.concatenate([alone[there], slots])
        numbers = np.concatenate([first[there], numbers])
        order = np.argsort(slots, kind="stable")
        slots = slots[order]
        begins = np.flatnonzero(np.concatenate([[True], slots[1:] != slots[:-1]]))
        spans = len(self._starts) + np.arange(len(owners))
        self._starts.append(len(self._entries) + begins)
        self._lengths.append(np.diff(begins, append=len(slots)))
        self._nexts.append(np.maximum(-2 - heads[owners], NONE))
        self._entries.append(numbers[order])
        heads[owners] = -2 - spans
        self._put_together(owners, alive)

    def _put_together(self, owners: Slots, alive: Vector) -> None:
        """The first two spans of a slot become one while the second is not twice as long."""
        starts, lengths, nexts = self._starts.values, self._lengths.values, self._nexts.values
        while True:
            fronts = -2 - self._heads.values[owners]
            seconds = nexts[fronts]
            due = (seconds >= 0) & (lengths[seconds] <= 2 * lengths[fronts])
            owners, fronts, seconds = owners[due], fronts[due], seconds[due]
            if not len(owners):
                break
            both = np.stack([fronts, seconds], axis=1).ravel()
            which = np.repeat(np.arange(len(owners)), 2)
            which, numbers = self._spread((which, starts[both], lengths[both]))
            self._waste += len(numbers)
            there = alive[numbers]
            counts = np.bincount(which[there], minlength=len(owners))
            starts[fronts] = len(self._entries) + np.cumsum(counts) - counts
            lengths[fronts], nexts[fronts] = counts, nexts[seconds]
            self._entries.append(numbers[there])
        if self._waste > max(len(self._entries) // 2, LEAST_WASTE):
            self._tidy(alive)

    def _spread(self, spans: Spans) -> tuple[Slots, Slots]:
        """The entries of spans, each with whose it is."""
        whose, starts, lengths = spans
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if len(ends) else 0
        places = np.arange(total) + np.repeat(starts - ends + lengths, lengths)
        return np.repeat(whose, lengths), self._entries.values[places]

    def _spans(self, heads: Slots) -> Spans:
        """The spans of chains, with the places of their heads."""
        places = np.flatnonzero(heads < NONE)
        spans = -2 - heads[places]
        whose: list[Slots] = []
        found: list[Slots] = []
        while len(spans):
            whose.append(places)
            found.append(spans)
            spans = self._nexts.values[spans]
            more = spans >= 0
            places, spans = places[more], spans[more]
        if not found:
            return _NO_SLOTS, _NO_SLOTS, _NO_SLOTS
        which = np.concatenate(found)
        return np.concatenate(whose), self._starts.values[which], self._lengths.values[which]

    def _tidy(self, alive: Vector) -> None:
        """The entries that nobody needs go."""
        owners = np.flatnonzero(self._heads.values < NONE)
        slots, numbers = self._spread(self._spans(self._heads.values))
        there = alive[numbers]
        self._heads.values[owners] = NONE
        self._starts, self._lengths = Growing(np.int64), Growing(np.int64)
        self._nexts, self._entries = Growing(np.int64), Growing(np.int64)
        self._waste = 0
        self.add(slots[there], numbers[there], alive)

    def count(self, slots: Slots) -> int:
        """How many entries slots have, those of dead rows too."""
        heads = self._heads_of(slots)
        return int(np.count_nonzero(heads >= 0) + self._spans(heads)[2].sum())

    def find(
        self, slots: Slots, alive: Vector, most: int | None = None
    ) -> Iterator[tuple[Slots, Slots]]:
        """Pairs of a place among the given slots and a live row that has that slot, in pieces of `most`.

        Slots below 0 have no rows. The pieces are asked for before the next call.
        """
        heads = self._heads_of(slots)
        asked = found = 0
        for places, numbers in self._entries_of(heads, most):
            asked += len(numbers)
            there = alive[numbers]
            if not there.all():
                places, numbers = places[there], numbers[there]
            found += len(numbers)
            if len(numbers):
                yield places, numbers
        if asked > LEAST_WASTE and 2 * found < asked:
            self._forget_dead(distinct(slots[heads < NONE]), alive)

    def _entries_of(self, heads: Slots, most: int | None) -> Iterator[tuple[Slots, Slots]]:
        """The entries of heads, dead ones too, with the places of the heads."""
        places = np.flatnonzero(heads >= 0)
        alone = (places, heads[places])
        spans = self._spans(heads)
        count = len(places) + int(spans[2].sum())
        if most is None or count <= most:
            whose, numbers = self._spread(spans)
            yield np.concatenate([places, whose]), np.concatenate([alone[1], numbers])
            return
        for start in range(0, len(places), most):
            yield places[start : start + most], alone[1][start : start + most]
        for piece in _pieces(spans, most):
            yield self._spread(piece)

    def pop(self, slots: Slots, counts: Slots, alive: Vector) -> tuple[Slots, Slots]:
        """For each slot so many live rows, which leave the index; fewer if it has fewer.

        The slots differ, and all of them came once. Pairs of a place among them and a row.
        """
        places: list[Slots] = [_NO_SLOTS]
        found: list[Slots] = [_NO_SLOTS]
        missing, asking = counts.copy(), np.arange(len(slots))
        while len(asking):
            heads = self._heads.values[slots[asking]]
            alone = heads >= 0
            self._heads.values[slots[asking[alone]]] = NONE
            chained = heads < NONE
            rest, spans = asking[chained], -2 - heads[chained]
            whose, numbers = self._shorten(slots[rest], spans, rest, missing[rest])
            whose = np.concatenate([asking[alone], whose])
            numbers = np.concatenate([heads[alone], numbers])
            there = alive[numbers]
            places.append(whose[there])
            found.append(numbers[there])
            missing -= np.bincount(whose[there], minlength=len(slots))
            asking = np.concatenate([rest, asking[alone]])
            asking = asking[(missing[asking] > 0) & (self._heads.values[slots[asking]] != NONE)]
        return np.concatenate(places), np.concatenate(found)

    def _shorten(
        self, slots: Slots, spans: Slots, whose: Slots, counts: Slots
    ) -> tuple[Slots, Slots]:
        """Takes so many entries from the ends of the first spans of slots."""
        lengths = self._lengths.values[spans]
        taken = np.minimum(lengths, counts)
        ends = self._starts.values[spans] + lengths
        self._lengths.values[spans] = lengths - taken
        self._waste += int(taken.sum())
        ended = taken == lengths
        nexts = self._nexts.values[spans[ended]]
        self._heads.values[slots[ended]] = np.where(nexts < 0, NONE, -2 - nexts)
        return self._spread((whose, ends - taken, taken))

    def _heads_of(self, slots: Slots) -> Slots:
        heads = self._heads.values
        known = (slots >= 0) & (slots < len(heads))
        if known.all():
            return heads[slots]
        found = np.full(len(slots), NONE, np.int64)
        found[known] = heads[slots[known]]
        return found

    def _forget_dead(self, owners: Slots, alive: Vector) -> None:
        """The chains of slots are made anew, of their live rows."""
        which, numbers = self._spread(self._spans(self._heads.values[owners]))
        self._waste += len(numbers)
        there = alive[numbers]
        self._heads.values[owners] = NONE
        self.add(owners[which[there]], numbers[there], alive)


_NO_SLOTS: Slots = np.empty(0, np.int64)


def _pieces(spans: Spans, most: int) -> Iterator[Spans]:
    """Spans cut and gathered so that so many entries are in each piece."""
    whose, starts, lengths = spans
    ends = np.cumsum(lengths)
    for low in range(0, int(ends[-1]) if len(ends) else 0, most):
        high = min(low + most, int(ends[-1]))
        first = int(np.searchsorted(ends, low, side="right"))
        last = int(np.searchsorted(ends, high - 1, side="right"))
        some = slice(first, last + 1)
        begins = np.maximum(ends[some] - lengths[some], low)
        counts = np.minimum(ends[some], high) - begins
        inside = begins - (ends[some] - lengths[some])
        yield whose[some], starts[some] + inside, counts
