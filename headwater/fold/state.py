"""Group state: aggregates over all rows so far, for landmark windows and continuous views.

Owns: one vector entry per slot, folded into in place, and which groups changed since the last
read, found by claims and not by looking at all groups. Must never: keep rows or panes. Follows
DataCell §3, "landmark window queries": one cumulative result, no basic windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.fold.aggregation import Aggregation, Pairs, Partial, copied, pairs_of, take
from headwater.fold.chunk import Chunk, Grouper, Groups
from headwater.fold.columns import Column, Slots, Vector, size_of
from headwater.fold.distinct import DistinctValues
from headwater.fold.families import Family, Vectors, quiet
from headwater.fold.lookup import Lookup

NORMAL_ROWS = 1 << 31  # the exact sums take so many rows before they must be brought to form
SMALLEST = 1024


class ChangedSlots:
    """Which slots were touched since the last read, each once."""

    def __init__(self) -> None:
        self._marks: Vector = np.zeros(0, np.bool_)
        self._slots: list[Slots] = []

    def add(self, slots: Slots, slot_count: int) -> None:
        """Distinct slots that were touched."""
        if slot_count > len(self._marks):
            marks = np.zeros(max(slot_count, 2 * len(self._marks), SMALLEST), np.bool_)
            marks[: len(self._marks)] = self._marks
            self._marks = marks
        fresh = slots[~self._marks[slots]]
        self._marks[fresh] = True
        if len(fresh):
            self._slots.append(fresh)

    def peek(self) -> Slots:
        """The slots, in the order of their first change."""
        if len(self._slots) > 1:
            self._slots = [np.concatenate(self._slots)]
        return self._slots[0] if self._slots else np.empty(0, np.int64)

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        return self._marks.nbytes + sum(slots.nbytes for slots in self._slots)

    def take(self) -> Slots:
        """The slots; from now on none has changed."""
        slots = self.peek()
        self._marks[slots] = False
        self._slots = []
        return slots


class GroupState:
    """Aggregates per group, without end."""

    def __init__(
        self, aggregation: Aggregation, lookup: Lookup | None = None, tracked: bool = True
    ) -> None:
        """`tracked`: whether `changed` will be asked; else nothing is kept for it."""
        self.aggregation, self._tracked = aggregation, tracked
        self.lookup = Lookup(aggregation.key_types) if lookup is None else lookup
        self._owns_lookup = lookup is None
        self._grouper = Grouper()
        self.clear()

    def clear(self) -> None:
        """Begin anew: the landmark was reset. Keys keep their slots."""
        self._vectors = self.aggregation.empty(0)
        self._distinct = [DistinctValues(t, False) for t in self.aggregation.distinct_types]
        self._changed = ChangedSlots()
        self._rows = 0  # since sums were brought to form

    def __len__(self) -> int:
        return len(self.aggregation.present(self._vectors)) if self.aggregation.keys else 1

    @quiet
    def fold(
        self,
        keys: Sequence[Column | pa.Array],
        columns: Sequence[Column],
        order: tuple[Vector, Vector] | None = None,
        row_count: int | None = None,
    ) -> None:
        """Fold a chunk in."""
        if row_count is None:
            row_count = len(keys[0]) if keys else len(columns[0])
        slots = self.lookup.slots(keys, row_count)
        self._grow(len(self.lookup), row_count)
        straight = Groups(slots, np.empty(0, np.int64), np.empty(0, np.int64), True)
        chunk = Chunk(straight, columns, order)
        rest = []
        for number, family in enumerate(self.aggregation.families):
            if family.direct:
                family.fold_into(self._vectors[number], chunk)
            else:
                rest.append(number)
        changed = self._fold_groups(rest, slots, columns, order)
        if self._tracked:
            self._changed.add(changed, len(self.lookup))
        self._fold_pairs(slots, columns)

    def _fold_groups(
        self,
        numbers: Sequence[int],
        slots: Slots,
        columns: Sequence[Column],
        order: tuple[Vector, Vector] | None,
    ) -> Slots:
        """Families that cannot be folded row by row go by a partial; gives the slots touched."""
        if not numbers:
            return self._grouper.distinct(slots, len(self.lookup)) if self._tracked else slots
        groups = self._grouper.group(slots, len(self.lookup))
        chunk = Chunk(groups, columns, order)
        there = np.flatnonzero(groups.row_counts)
        for number in numbers:
            family = self.aggregation.families[number]
            values = [vector[there] for vector in family.fold(chunk)]
            _merge_at(family, self._vectors[number], groups.slots[there], values)
        return groups.slots[there]

    def _fold_pairs(self, slots: Slots, columns: Sequence[Column]) -> None:
        for values, argument in zip(self._distinct, self.aggregation.distinct, strict=True):
            values.push(0, pairs_of(slots, columns[argument]))

    def merge(self, partial: Partial) -> None:
        """Fold in a partial that was made elsewhere."""
        self._grow(len(self.lookup), int(partial.vectors[0][0].sum()))
        self.aggregation.merge_at(self._vectors, partial.slots, partial.vectors)
        if self._tracked:
            self._changed.add(partial.slots, len(self.lookup))
        for values, pairs in zip(self._distinct, partial.pairs, strict=True):
            values.push(0, pairs)

    def load(self, keys: Sequence[Column], partial: Partial) -> None:
        """Begin with groups that were made elsewhere: their distinct keys are the slots."""
        self.clear()
        self.lookup.load(keys)
        self._vectors = copied(partial.vectors)
        self._rows = int(partial.vectors[0][0].sum())
        if self._tracked:
            self._changed.add(partial.slots, len(self.lookup))
        for values, pairs in zip(self._distinct, partial.pairs, strict=True):
            values.push(0, pairs)

    # Rows that are taken back

    @quiet
    def take_back(self, gone: GroupState) -> Slots:
        """Rows that another state is made of are taken out; the slots of groups that are not right then.

        They hold what cannot be taken out, and must be made again.
        """
        self._grow(len(self.lookup), 0)
        theirs = gone.present()
        mine = self.lookup.find(gone.lookup.keys(theirs), len(theirs))
        if (mine < 0).any():
            raise ValueError("rows of groups that are not there")
        partials = gone.partials(theirs)
        right = self.aggregation.outlasts(take(self._vectors, mine), partials)
        self.aggregation.subtract_at(self._vectors, mine[right], take(partials, right))
        self._touch(mine[right])
        return mine[~right]

    def exchange(self, slots: Slots, fresh: GroupState) -> None:
        """Groups become those that another state has of the same keys; those that it has not go."""
        keys = self.lookup.keys(slots)
        theirs = fresh.lookup.find(keys, len(slots))
        fresh._grow(len(fresh.lookup), 0)
        known = theirs >= 0
        found = take(fresh._vectors, theirs[known])
        empty = self.aggregation.empty(len(slots))
        for mine, new, none in zip(self._vectors, found, empty, strict=True):
            for vector, entries, identity in zip(mine, new, none, strict=True):
                vector[slots] = identity
                vector[slots[known]] = entries
        for values, others in zip(self._distinct, fresh._distinct, strict=True):
            values.forget(slots)
            owners = others.owners()
            pairs = np.flatnonzero(np.isin(owners, theirs[known]))
            place = np.full(len(fresh.lookup), -1, np.int64)
            place[theirs[known]] = slots[known]
            values.push(0, Pairs(place[owners[pairs]], others.values(pairs)))
        self._touch(slots)

    def _touch(self, slots: Slots) -> None:
        if self._tracked:
            self._changed.add(slots, len(self.lookup))

    def _grow(self, slot_count: int, row_count: int) -> None:
        size = len(self._vectors[0][0])
        if slot_count > size:
            wanted = max(slot_count, size + size // 2, SMALLEST)
            self._vectors = self.aggregation.grow(self._vectors, wanted)
        self._rows += row_count
        if self._rows >= NORMAL_ROWS:
            self._rows = row_count
            for family, vectors in zip(self.aggregation.families, self._vectors, strict=True):
                family.normalise(vectors)

    @property
    def nbytes(self) -> int:
        """How much memory is held; objects are estimated."""
        vectors = sum(size_of(vector) for family in self._vectors for vector in family)
        distinct = sum(values.nbytes for values in self._distinct)
        own = self.lookup.nbytes if self._owns_lookup else 0
        return vectors + distinct + own + self._changed.nbytes + self._grouper.nbytes

    @property
    def distinct(self) -> Sequence[DistinctValues]:
        """The distinct values, argument by argument."""
        return self._distinct

    def present(self) -> Slots:
        """The slots of the groups that are there."""
        self._grow(len(self.lookup), 0)
        return self.aggregation.present(self._vectors)

    @quiet
    def partials(self, slots: Slots) -> Sequence[Vectors]:
        """The partials of some slots, copied, in a form that can be merged elsewhere."""
        vectors = take(self._vectors, slots)
        for family, own in zip(self.aggregation.families, vectors, strict=True):
            family.normalise(own)
        return vectors

    def result(self) -> pa.Table:
        """All groups; what has changed stays marked."""
        return self._rows_of(self.present())

    def some(self, wanted: Sequence[int]) -> pa.Table:
        """All groups with some of the aggregates, in that order: an overflow in another one is no error."""
        self._grow(len(self.lookup), 0)
        return self._rows_of(self.aggregation.present(self._vectors), wanted)

    def changed(self) -> pa.Table:
        """The groups touched since the last call, as they are now."""
        self._grow(len(self.lookup), 0)
        return self._rows_of(self._changed.take())

    def rows(self, slots: Slots) -> pa.Table:
        """The groups of some slots, whether they have rows or not."""
        self._grow(len(self.lookup), 0)
        return self._rows_of(slots)

    def keep(self, slots: Slots) -> None:
        """Forget all groups but those of these slots, which become 0, 1, 2, …; of an untracked state."""
        before = len(self.lookup)
        self._grow(before, 0)
        self.lookup.keep(slots)
        self._vectors = take(self._vectors, slots)
        for values in self._distinct:
            values.remap(slots, before)

    def track(self) -> None:
        """From now on what is touched is known."""
        if not self._tracked:
            self._tracked, self._changed = True, ChangedSlots()

    def touched(self) -> Slots:
        """The slots touched since the last call."""
        self._grow(len(self.lookup), 0)
        return self._changed.take()

    def of(self, slots: Slots, wanted: Sequence[int] | None = None) -> pa.Table:
        """The groups of some slots that are there, with all or some of the aggregates."""
        return self._rows_of(slots[self._vectors[0][0][slots] > 0], wanted)

    def get(
        self, keys: Sequence[Column | pa.Array], wanted: Sequence[int] | None = None
    ) -> pa.Table:
        """The groups of the given keys that are there, with all or some of the aggregates."""
        return self._rows_of(self.slots_of(keys), wanted)

    def slots_of(self, keys: Sequence[Column | pa.Array]) -> Slots:
        """Where the groups of the given keys are, of those that are there."""
        self._grow(len(self.lookup), 0)
        slots = self.lookup.find(keys)
        slots = slots[slots >= 0]
        return slots[self._vectors[0][0][slots] > 0]

    def _rows_of(self, slots: Slots, wanted: Sequence[int] | None = None) -> pa.Table:
        distinct = [values.counts(slots) for values in self._distinct]
        columns = self.aggregation.finish(take(self._vectors, slots), distinct, wanted)
        keys = self.lookup.keys(slots)
        if wanted is None:
            return self.aggregation.table(keys, columns)
        names = [key.name for key in self.aggregation.keys]
        names += [self.aggregation.aggregates[number].name for number in wanted]
        return pa.Table.from_arrays([*keys, *columns], names=names)

    def state(self) -> dict[str, Any]:
        """What a snapshot needs; the lookup only if it is this state's own."""
        size = len(self.lookup)
        vectors = self.aggregation.grow(self._vectors, size)
        return {
            "lookup": self.lookup.state() if self._owns_lookup else None,
            "vectors": [[vector[:size] for vector in family] for family in vectors],
            "distinct": [values.state() for values in self._distinct],
            "changed": self._changed.peek(),
            "rows": self._rows,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self.clear()
        if state["lookup"] is not None:
            self.lookup.restore(state["lookup"])
        self._vectors, self._rows = state["vectors"], state["rows"]
        if self._tracked:
            self._changed.add(state["changed"], len(self.lookup))
        for values, inner in zip(self._distinct, state["distinct"], strict=True):
            values.restore(inner)


def _merge_at(family: Family, target: Vectors, slots: Slots, values: Vectors) -> None:
    taken = [vector[slots] for vector in target]
    family.merge(taken, values)
    for vector, new in zip(target, taken, strict=True):
        vector[slots] = new
