"""Partials by group, for rows that come and rows that are taken back.

Owns: one entry per group of every family of `fold` that the aggregates need. What can be subtracted exactly
is; the others are merged while rows come, and a group that lost a row they depend on is named, to be folded
afresh. Must never: keep rows, or subtract floats.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.fold.aggregation import Aggregation
from headwater.fold.chunk import Chunk, Grouper
from headwater.fold.columns import Column, Slots, Vector, size_of
from headwater.fold.families import Family, Vectors, quiet
from headwater.fold.spill import read_vector, stored_type, stored_vector
from headwater.operators.moments import MomentFunction

LEAST_GROUPS = 1024


@dataclass(frozen=True)
class MomentPart:
    """A function of `moments` and the family it reads."""

    function: MomentFunction
    family: Family


@dataclass(frozen=True)
class FoldedRows:
    """Rows, folded: distinct slots, and for each family its vectors, or nothing if it was not asked for."""

    slots: Slots
    vectors: Sequence[Vectors | None]


class FoldedGroups:
    """The aggregates of an aggregation, and functions of moments, by slot."""

    def __init__(self, aggregation: Aggregation, moments: Sequence[MomentPart] = ()) -> None:
        self.aggregation, self._moments = aggregation, tuple(moments)
        self.families: list[Family] = [*aggregation.families, *(part.family for part in moments)]
        self._vectors: list[Vectors] = [family.empty(0) for family in self.families]
        self._grouper = Grouper()

    @property
    def invertible(self) -> bool:
        """Whether rows can be taken back without knowing the others."""
        return all(family.invertible for family in self.families)

    @property
    def nbytes(self) -> int:
        """How much memory is held; objects are estimated."""
        vectors = sum(size_of(vector) for family in self._vectors for vector in family)
        return vectors + self._grouper.nbytes

    def grow(self, slot_count: int) -> None:
        """Room for so many slots."""
        size = len(self._vectors[0][0])
        if slot_count <= size:
            return
        wanted = max(slot_count, size + size // 2, LEAST_GROUPS)
        wide = [family.empty(wanted) for family in self.families]
        for new, old in zip(wide, self._vectors, strict=True):
            for vector, held in zip(new, old, strict=True):
                vector[:size] = held
        self._vectors = wide

    def row_counts(self, slots: Slots) -> Vector:
        """How many rows groups have."""
        return self._vectors[0][0][slots]

    def present(self) -> Slots:
        """The slots that have rows."""
        return np.flatnonzero(self._vectors[0][0])

    @quiet
    def fold(
        self,
        slots: Slots,
        slot_count: int,
        columns: Sequence[Column],
        sequence: Vector,
        afresh: bool = False,
    ) -> FoldedRows:
        """The partial of rows; `afresh`: only of the families that cannot take back."""
        groups = self._grouper.group(slots, slot_count)
        chunk = Chunk(groups, columns, (np.zeros(len(slots), np.int64), sequence))
        there = np.flatnonzero(groups.row_counts)
        whole = len(there) == groups.size
        vectors: list[Vectors | None] = []
        for family in self.families:
            if afresh and family.invertible:
                vectors.append(None)
            else:
                folded = family.fold(chunk)
                vectors.append(folded if whole else [vector[there] for vector in folded])
        return FoldedRows(groups.slots[there], vectors)

    @quiet
    def add(self, rows: FoldedRows) -> None:
        """Rows come."""
        for number, values in enumerate(rows.vectors):
            assert values is not None
            taken = self._taken(number, rows.slots)
            self.families[number].merge(taken, values)
            self.families[number].normalise(taken)
            self._put(number, rows.slots, taken)

    @quiet
    def take_back(self, rows: FoldedRows) -> Slots:
        """Rows go, after all that come have come; gives the groups that must be folded afresh."""
        stale = np.zeros(len(rows.slots), np.bool_)
        for number, values in enumerate(rows.vectors):
            assert values is not None
            family, taken = self.families[number], self._taken(number, rows.slots)
            if family.invertible:
                family.subtract(taken, values)
                family.normalise(taken)
                self._put(number, rows.slots, taken)
            elif family.idempotent:  # an extreme: it stays if what goes is not it
                stale |= _equal(taken[0], values[0])
            else:
                stale |= True
        return rows.slots[stale]

    def set(self, slots: Slots, rows: FoldedRows) -> None:
        """What was folded afresh takes the place of what was there; groups without rows are empty."""
        for number, values in enumerate(rows.vectors):
            if values is not None:
                self._put(number, slots, self.families[number].empty(len(slots)))
                self._put(number, rows.slots, values)

    def _taken(self, number: int, slots: Slots) -> Vectors:
        return [vector[slots] for vector in self._vectors[number]]

    def _put(self, number: int, slots: Slots, values: Vectors) -> None:
        for vector, new in zip(self._vectors[number], values, strict=True):
            vector[slots] = new

    @quiet
    def finish(self, slots: Slots) -> tuple[list[pa.Array], list[pa.Array]]:
        """The aggregates of some groups, and the functions of moments."""
        vectors = [self._taken(number, slots) for number in range(len(self.families))]
        plain = len(self.aggregation.families)
        with np.errstate(divide="ignore"):
            pairs = zip(self._moments, vectors[plain:], strict=True)
            moments = [part.function.finish(own) for part, own in pairs]
        return self.aggregation.finish(vectors[:plain]), moments

    def columns(self, slots: Slots) -> list[pa.Array]:
        """The partials of some groups as columns."""
        return [
            stored_vector(vector[slots], type_)
            for vectors, types in zip(self._vectors, self._types, strict=True)
            for vector, type_ in zip(vectors, types, strict=True)
        ]

    def put(self, slots: Slots, columns: Iterator[pa.Array]) -> None:
        """Groups have the partials of the first columns of some."""
        for vectors, types in zip(self._vectors, self._types, strict=True):
            for vector, type_ in zip(vectors, types, strict=True):
                vector[slots] = read_vector(next(columns), vector.dtype, type_)

    @cached_property
    def _types(self) -> list[list[pa.DataType | None]]:
        """How the vectors of each family are stored."""
        arguments = [argument for _, argument in self.aggregation.parts]
        arguments += [None] * len(self._moments)
        return [
            [stored_type(self.aggregation, argument, np.dtype(dtype)) for dtype in family.dtypes]
            for argument, family in zip(arguments, self.families, strict=True)
        ]

    def keep(self, slots: Slots) -> None:
        """Forget all groups but these, which become 0, 1, 2, …"""
        self._vectors = [self._taken(number, slots) for number in range(len(self.families))]

    def state(self, slots: Slots) -> list[Any]:
        """What a snapshot needs of some groups."""
        return [self._taken(number, slots) for number in range(len(self.families))]

    def restore(self, slots: Slots, state: Sequence[Any]) -> None:
        """Groups are as they were in a snapshot; all others are empty."""
        self._vectors = [family.empty(0) for family in self.families]
        self.grow(int(slots.max()) + 1 if len(slots) else 0)
        for number, values in enumerate(state):
            self._put(number, slots, values)


def _equal(mine: Vector, theirs: Vector) -> Vector:
    same = np.asarray(mine == theirs, np.bool_)
    return same | (np.isnan(mine) & np.isnan(theirs)) if mine.dtype == np.float64 else same
