"""All aggregates of one query together: from a chunk's columns to a partial, from vectors to rows.

Owns: the list of families that the aggregates share, and the schema of the result. A partial
holds one entry per group of a chunk; vectors hold one per slot. Must never: hold state; the
structures do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from headwater.fold.aggregates import (
    DISTINCT,
    Aggregate,
    Part,
    family_of,
    function_of,
    parts_of,
    result_type,
)
from headwater.fold.chunk import Chunk, Grouper
from headwater.fold.columns import Column, Slots, Vector
from headwater.fold.families import Family, Vectors, quiet

ROWS: Part = ("rows", None)


@dataclass(frozen=True)
class Pairs:
    """The distinct (group, value) pairs of a chunk, for one argument; NULLs left out."""

    slots: Slots
    values: pa.Array


@dataclass(frozen=True)
class Partial:
    """A chunk, folded: distinct slots and for each family its vectors, one entry per slot."""

    slots: Slots
    vectors: Sequence[Vectors]
    pairs: tuple[Pairs, ...] = field(default=())

    def __post_init__(self) -> None:
        self.slots.flags.writeable = False

    @property
    def size(self) -> int:
        """How many groups there are."""
        return len(self.slots)


class Aggregation:
    """GROUP BY keys with aggregates; no keys: one group, which is always there."""

    def __init__(self, keys: Sequence[pa.Field], aggregates: Sequence[Aggregate]) -> None:
        self.keys, self.aggregates = tuple(keys), tuple(aggregates)
        types = {a.argument: a.type for a in aggregates if a.argument is not None}
        self.types = types
        wanted = [ROWS, *(part for a in aggregates for part in parts_of(a))]
        self.parts = list(dict.fromkeys(p for p in wanted if p[0] != DISTINCT))
        self.families: list[Family] = [
            family_of(kind, arg, pa.null() if arg is None else types[arg])
            for kind, arg in self.parts
        ]
        counted = [arg for kind, arg in wanted if kind == DISTINCT and arg is not None]
        self.distinct = list(dict.fromkeys(counted))
        self.distinct_types = [types[argument] for argument in self.distinct]
        fields = [pa.field(a.name, result_type(a)) for a in aggregates]
        self.schema = pa.schema([*keys, *fields])
        self._places = [self._place(parts_of(a)) for a in aggregates]

    def _place(self, parts: list[Part]) -> list[int]:
        """Where an aggregate's parts stand; distinct ones are counted from -1 backwards."""
        every = [*self.parts, *((DISTINCT, argument) for argument in self.distinct[::-1])]
        places = [every.index(part) for part in parts]
        return [place if place < len(self.parts) else place - len(every) for place in places]

    @property
    def key_types(self) -> list[pa.DataType]:
        """The types of the keys."""
        return [key.type for key in self.keys]

    @property
    def invertible(self) -> bool:
        """Whether a pane can be taken out again by subtraction, exactly."""
        return all(family.invertible for family in self.families)

    @property
    def vector_count(self) -> int:
        """How many vectors there are in all."""
        return sum(len(family.dtypes) for family in self.families)

    @quiet
    def fold(
        self,
        slots: Slots,
        slot_count: int,
        columns: Sequence[Column],
        grouper: Grouper,
        order: tuple[Vector, Vector] | None = None,
    ) -> Partial:
        """The partial of a chunk whose rows have these slots."""
        groups = grouper.group(slots, slot_count)
        chunk = Chunk(groups, columns, order)
        vectors: Sequence[Vectors] = frozen([family.fold(chunk) for family in self.families])
        there = groups.slots
        if groups.dense and not groups.row_counts.all():
            there = np.flatnonzero(groups.row_counts)
            vectors = frozen(take(vectors, there))
        return Partial(there, vectors, tuple(pairs_of(slots, columns[a]) for a in self.distinct))

    def empty(self, size: int) -> Sequence[Vectors]:
        """Vectors for so many slots, nothing folded in."""
        return [family.empty(size) for family in self.families]

    def grow(self, vectors: Sequence[Vectors], size: int) -> Sequence[Vectors]:
        """The vectors with room for so many slots (the same ones, if they have it)."""
        if len(vectors[0][0]) >= size:
            return vectors
        grown = self.empty(size)
        for new, old in zip(grown, vectors, strict=True):
            for wide, narrow in zip(new, old, strict=True):
                wide[: len(narrow)] = narrow
        return grown

    @quiet
    def merge(self, target: Sequence[Vectors], values: Sequence[Vectors]) -> None:
        """target ⊕= values, slot by slot."""
        for family, mine, theirs in zip(self.families, target, values, strict=True):
            family.merge(mine, theirs)

    @quiet
    def merge_at(self, target: Sequence[Vectors], slots: Slots, values: Sequence[Vectors]) -> None:
        """target[slots] ⊕= values, for distinct slots."""
        for family, mine, theirs in zip(self.families, target, values, strict=True):
            taken = [vector[slots] for vector in mine]
            family.merge(taken, theirs)
            for vector, new in zip(mine, taken, strict=True):
                vector[slots] = new

    @quiet
    def subtract_at(
        self, target: Sequence[Vectors], slots: Slots, values: Sequence[Vectors]
    ) -> None:
        """target[slots] ⊖= values, for distinct slots; families that are not invertible outlast it."""
        for family, mine, theirs in zip(self.families, target, values, strict=True):
            if not family.invertible:
                continue
            taken = [vector[slots] for vector in mine]
            family.subtract(taken, theirs)
            for vector, new in zip(mine, taken, strict=True):
                vector[slots] = new

    @quiet
    def outlasts(self, target: Sequence[Vectors], values: Sequence[Vectors]) -> Vector:
        """Which groups are right once partials of some of their rows are taken out of them."""
        right = np.full(len(target[0][0]), not self.distinct, np.bool_)
        for family, mine, theirs in zip(self.families, target, values, strict=True):
            right &= family.outlasts(mine, theirs)
        return right

    def present(self, vectors: Sequence[Vectors]) -> Slots:
        """The slots that have rows; without keys always the one group."""
        return np.flatnonzero(vectors[0][0]) if self.keys else np.zeros(1, np.int64)

    @quiet
    def finish(
        self,
        vectors: Sequence[Vectors],
        distinct: Sequence[Vector] = (),
        wanted: Sequence[int] | None = None,
    ) -> list[pa.Array]:
        """The columns of all or some aggregates from vectors that hold just the groups wanted."""
        columns = []
        for number in range(len(self.aggregates)) if wanted is None else wanted:
            aggregate, places = self.aggregates[number], self._places[number]
            parts = [vectors[p] if p >= 0 else [distinct[-1 - p]] for p in places]
            columns.append(function_of(aggregate.function).finish(aggregate, parts))
        return columns

    def table(self, keys: Sequence[pa.Array], columns: Sequence[pa.Array]) -> pa.Table:
        """The result's rows."""
        return pa.Table.from_arrays([*keys, *columns], schema=self.schema)


def frozen(vectors: Sequence[Vectors]) -> tuple[tuple[Vector, ...], ...]:
    """The same arrays in tuples, never to be written to: several windows and a snapshot may hold them.

    Python's collector visits lists and passes these by: with lists, one collection over the panes of
    a window of 8192 took 50 ms.
    """
    for family in vectors:
        for vector in family:
            vector.flags.writeable = False
    return tuple(tuple(family) for family in vectors)


def take(vectors: Sequence[Vectors], slots: Slots) -> Sequence[Vectors]:
    """The entries of some slots, copied."""
    return tuple(tuple(vector[slots] for vector in family) for family in vectors)


def copied(vectors: Sequence[Vectors]) -> Sequence[Vectors]:
    """Vectors of their own."""
    return tuple(tuple(vector.copy() for vector in family) for family in vectors)


def pairs_of(slots: Slots, column: Column) -> Pairs:
    """The distinct pairs of a chunk; repeated values of one group are dropped later, by lookup."""
    if column.valid is None:
        return Pairs(slots, column.array)
    rows = np.flatnonzero(column.valid)
    return Pairs(slots[rows], column.array.take(pa.array(rows)))
