"""A group state as tables of keys and partials, by partitions of the key, and back (CV10).

Owns: which columns such a table has: the keys, one per vector of each family, one list per distinct
argument, and the hash of the key, in whose order the rows stand, so that one is found without the others.
Merging the tables of any split of the rows, the oldest first, gives the state of all rows: it is the same
merge that folds partials. Must never: read or write a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.fold.aggregation import Aggregation, Pairs, Partial
from headwater.fold.columns import Column, Slots, Vector
from headwater.fold.distinct import DistinctValues
from headwater.fold.hashing import hashes_of, partitions_by
from headwater.fold.state import GroupState

HASH = "hash"  # the column of the keys' hashes
Keys = Sequence[pa.Array]  # one array per key column
NUMBERS = {np.dtype(np.int64): pa.int64(), np.dtype(np.float64): pa.float64()}


class StateColumns:
    """The columns of one aggregation's spilled states.

    `parts` and `distinct` are names that tell the partials apart, so that a table may hold more of them.
    """

    def __init__(
        self, aggregation: Aggregation, parts: Sequence[str], distinct: Sequence[str]
    ) -> None:
        self.aggregation = aggregation
        self._keys = [f"key {place}" for place in range(len(aggregation.keys))]
        self._vectors = [
            [f"{name} {place}" for place in range(len(family.dtypes))]
            for name, family in zip(parts, aggregation.families, strict=True)
        ]
        self._types = [
            [stored_type(aggregation, argument, np.dtype(dtype)) for dtype in family.dtypes]
            for (_, argument), family in zip(aggregation.parts, aggregation.families, strict=True)
        ]
        self._distinct = [f"distinct {name}" for name in distinct]

    @property
    def names(self) -> list[str]:
        """The columns that a merge needs."""
        vectors = [name for names in self._vectors for name in names]
        return [*self._keys, *vectors, *self._distinct]

    # Out

    def tables(self, state: GroupState, count: int) -> Iterator[tuple[int, pa.Table]]:
        """The state's groups by partition, in the order of partitions; empty ones are left out."""
        slots = state.present()
        hashes = hashes_of(state.lookup.keys(slots), len(slots))
        parts = partitions_by(hashes, count).astype(np.uint16)
        order = np.argsort(parts, kind="stable")
        bounds = np.searchsorted(parts[order], np.arange(count + 1)).tolist()
        for first, last in pairwise(bounds):
            order[first:last] = order[first:last][np.argsort(hashes[order[first:last]])]
        ordered, hashes = slots[order], hashes[order]
        distinct = [_ByPlace(values, ordered) for values in state.distinct]
        for part, (first, last) in enumerate(pairwise(bounds)):
            if first < last:
                lists = [values.lists(first, last) for values in distinct]
                table = self._table(state, ordered[first:last], lists)
                yield part, table.append_column(HASH, pa.array(hashes[first:last]))

    def table(self, state: GroupState) -> pa.Table:
        """All groups of a state."""
        slots = state.present()
        lists = [_ByPlace(values, slots).lists(0, len(slots)) for values in state.distinct]
        return self._table(state, slots, lists)

    def _table(self, state: GroupState, slots: Slots, lists: Sequence[pa.Array]) -> pa.Table:
        columns = state.lookup.keys(slots)
        for types, vectors in zip(self._types, state.partials(slots), strict=True):
            for type_, vector in zip(types, vectors, strict=True):
                columns.append(stored_vector(vector, type_))
        return pa.table([*columns, *lists], names=self.names)

    # In

    def merge(self, state: GroupState, table: pa.Table) -> None:
        """Merge such a table into a state."""
        keys = [Column(table.column(name)) for name in self._keys]
        if keys and not len(state.lookup):
            state.load(keys, self._partial(table, np.arange(table.num_rows)))
        else:
            slots = state.lookup.slots(keys, table.num_rows)
            state.merge(self._partial(table, slots))

    def merged(self, tables: Sequence[pa.Table]) -> pa.Table:
        """One table of the groups that are in some, the oldest first, in the order of their hashes."""
        table = tables[0] if len(tables) == 1 else self.table(self._state(tables))
        hashes = hashes_of([Column(table.column(n)).array for n in self._keys], table.num_rows)
        order = np.argsort(hashes, kind="stable")
        return table.take(pa.array(order)).append_column(HASH, pa.array(hashes[order]))

    def result(self, tables: Sequence[pa.Table]) -> pa.Table:
        """The rows of the groups that are in some tables, the oldest first."""
        return self._finished(tables[0]) if len(tables) == 1 else self._state(tables).result()

    def found(self, tables: Sequence[pa.Table], state: GroupState, keys: Keys) -> GroupState:
        """The groups of some keys: what tables have of them, the oldest first, and then a state."""
        return self._state([*tables, self._some(state, keys)])

    def _some(self, state: GroupState, keys: Keys) -> pa.Table:
        slots = np.unique(state.slots_of(keys))
        lists = [_ByPlace(values, slots).lists(0, len(slots)) for values in state.distinct]
        return self._table(state, slots, lists)

    def _state(self, tables: Sequence[pa.Table]) -> GroupState:
        state = GroupState(self.aggregation, tracked=False)
        for table in tables:
            self.merge(state, table)
        return state

    def _finished(self, table: pa.Table) -> pa.Table:
        """The rows of one table: no group is in it twice."""
        partial = self._partial(table, np.arange(table.num_rows))
        counts = [np.bincount(p.slots, minlength=table.num_rows) for p in partial.pairs]
        keys = [Column(table.column(name)).array for name in self._keys]
        columns = self.aggregation.finish(partial.vectors, counts)
        return self.aggregation.table(keys, columns)

    def _partial(self, table: pa.Table, slots: Slots) -> Partial:
        vectors = [
            [
                read_vector(table.column(name), np.dtype(dtype), type_)
                for name, dtype, type_ in zip(names, family.dtypes, types, strict=True)
            ]
            for names, family, types in zip(
                self._vectors, self.aggregation.families, self._types, strict=True
            )
        ]
        pairs = []
        for name in self._distinct:
            lists = table.column(name).combine_chunks()
            lengths = lists.value_lengths().to_numpy()
            pairs.append(Pairs(np.repeat(slots, lengths), lists.flatten()))
        return Partial(slots, vectors, tuple(pairs))


class _ByPlace:
    """The distinct values of an argument in the order of the groups' places."""

    def __init__(self, values: DistinctValues, slots: Slots) -> None:
        self._values = values
        owners = values.owners()
        places = np.full(int(max(owners.max(initial=-1), slots.max(initial=-1))) + 1, -1)
        places[slots] = np.arange(len(slots))
        self._order = np.argsort(places[owners], kind="stable")
        self._places = places[owners][self._order]

    def lists(self, first: int, last: int) -> pa.Array:
        """For each place from `first` to before `last` its values."""
        start, stop = np.searchsorted(self._places, [first, last])
        counts = np.bincount(self._places[start:stop] - first, minlength=last - first)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        values = self._values.values(self._order[start:stop])
        return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values)


def stored_type(
    aggregation: Aggregation, argument: int | None, dtype: np.dtype[Any]
) -> pa.DataType | None:
    """How a vector of a partial is stored; None for long integers, which are digits."""
    if dtype != np.object_:
        return NUMBERS.get(dtype, pa.bool_())
    assert argument is not None
    type_ = aggregation.types[argument]
    type_ = type_.value_type if pa.types.is_dictionary(type_) else type_
    return None if pa.types.is_decimal(type_) else type_


def stored_vector(vector: Vector, type_: pa.DataType | None) -> pa.Array:
    """A vector of a partial as a column."""
    if type_ is None:
        return pa.array([None if v is None else str(v) for v in vector.tolist()], pa.string())
    return pa.array(vector, type_, from_pandas=False)


def read_vector(
    column: pa.Array | pa.ChunkedArray, dtype: np.dtype[Any], type_: pa.DataType | None
) -> Vector:
    """A vector that was stored."""
    array = Column(column).array
    if type_ is None:
        digits = [None if text is None else int(text) for text in array.to_pylist()]
        out = np.empty(len(digits), np.object_)
        out[:] = digits
        return out
    return array.to_numpy(zero_copy_only=False).astype(dtype, copy=False)
