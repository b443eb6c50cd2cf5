"""The partial columns behind the aggregates: how each is folded, merged, expired and multiplied.

Owns: identities and merges. A family is a few vectors addressed by slot that only make sense
together (a sum's two words; count, mean and squares of a variance). Merges work in place on
aligned vectors: target = target ⊕ values; callers are `quiet` around them. Must never: know a
key, a pane or a result type. Follows DataCell §3, "concatenation plus compensation" and
"expanding replication".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.fold.chunk import Chunk
from headwater.fold.columns import FLOAT, INTEGER, Slots, Vector

Vectors = Sequence[Vector]  # their arrays are written to, the sequence is not
HALF = 31  # a sum's second word counts multiples of 2^32, rounded to the nearest
INTEGERS = np.iinfo(np.int64)
# NaN and infinity are values like others; integer sums wrap and are checked at the end.
quiet = np.errstate(invalid="ignore", over="ignore")


class Family(ABC):
    """Vectors that are folded and merged together."""

    invertible = False  # a partial can be taken out again, exactly
    direct = False  # rows can be folded one by one into vectors that hold more
    idempotent = False  # a row that comes twice changes nothing
    names: tuple[str, ...]
    identities: tuple[Any, ...]
    dtypes: tuple[Any, ...]

    def empty(self, size: int) -> Vectors:
        """Vectors of identities."""
        pairs = zip(self.identities, self.dtypes, strict=True)
        return [
            np.zeros(size, dtype)  # touches no memory
            if dtype is not np.object_ and identity == 0
            else np.full(size, identity, dtype)
            for identity, dtype in pairs
        ]

    @abstractmethod
    def fold(self, chunk: Chunk) -> Vectors:
        """The chunk's partial, one place per group of the chunk."""

    @abstractmethod
    def merge(self, target: Vectors, values: Sequence[Vector]) -> None:
        """target ⊕= values."""

    def subtract(self, target: Vectors, values: Sequence[Vector]) -> None:
        """target ⊖= values, for invertible families."""
        for mine, theirs in zip(target, values, strict=True):
            np.subtract(mine, theirs, out=mine)

    def outlasts(self, target: Vectors, values: Sequence[Vector]) -> Vector:  # noqa: ARG002
        """Which groups are right once a partial of some of their rows is taken out of them.

        Invertible families subtract it; others may hold nothing of these rows, and stay as they are.
        """
        return np.full(len(target[0]), self.invertible, np.bool_)

    def scale(self, values: Sequence[Vector], times: Vector) -> Vectors:
        """The partial of every row repeated `times` times (at least once), as a join does."""
        raise NotImplementedError

    def fold_into(self, target: Vectors, chunk: Chunk) -> None:
        """Fold a chunk whose groups are slots straight into a state, for direct families."""
        raise NotImplementedError

    def normalise(self, vectors: Vectors) -> None:  # noqa: B027
        """Bring vectors into a form that can take another 2^31 rows."""

    def merge_many(self, target: Vectors, slots: Slots, values: Sequence[Vector]) -> None:
        """target[slots] ⊕= values, where slots may repeat: neighbours are merged pair by pair."""
        order = np.argsort(slots, kind="stable")
        slots, held = slots[order], [vector[order] for vector in values]
        while len(slots) and (slots[1:] == slots[:-1]).any():
            starts = np.concatenate([[True], slots[1:] != slots[:-1]])
            places = np.arange(len(slots))
            rank = places - np.maximum.accumulate(np.where(starts, places, 0))
            odd = np.flatnonzero(rank & 1)
            pairs = [vector[odd - 1] for vector in held]
            self.merge(pairs, [vector[odd] for vector in held])
            for vector, pair in zip(held, pairs, strict=True):
                vector[odd - 1] = pair
            slots, held = slots[rank & 1 == 0], [vector[rank & 1 == 0] for vector in held]
        merged = [vector[slots] for vector in target]
        self.merge(merged, held)
        for vector, new in zip(target, merged, strict=True):
            vector[slots] = new

    def merge_rows(self, rows: Sequence[Vector]) -> Vectors:
        """The merge of the rows of matrices, from the first to the last."""
        merged = self.empty(rows[0].shape[1])
        for number in range(len(rows[0])):
            self.merge(merged, [matrix[number] for matrix in rows])
        return merged


class AddedFamily(Family):
    """Families whose vectors are simply added."""

    def merge(self, target: Vectors, values: Sequence[Vector]) -> None:
        for mine, theirs in zip(target, values, strict=True):
            np.add(mine, theirs, out=mine)

    def merge_many(self, target: Vectors, slots: Slots, values: Sequence[Vector]) -> None:
        for mine, theirs in zip(target, values, strict=True):
            np.add.at(mine, slots, theirs)

    def merge_rows(self, rows: Sequence[Vector]) -> Vectors:
        return [np.add.reduce(matrix, axis=0) for matrix in rows]


class FamilyRows(AddedFamily):
    """How many rows, NULLs included: a group with none is not there."""

    invertible = direct = True
    names, identities, dtypes = ("rows",), (0,), (np.int64,)

    def fold(self, chunk: Chunk) -> Vectors:
        return [chunk.groups.row_counts]

    def scale(self, values: Sequence[Vector], times: Vector) -> Vectors:
        return [values[0] * times]

    def fold_into(self, target: Vectors, chunk: Chunk) -> None:
        np.add.at(target[0], chunk.groups.ids, np.int64(1))


class Count(FamilyRows):
    """How many rows are not NULL."""

    names = ("count",)

    def __init__(self, argument: int) -> None:
        self.argument = argument

    def fold(self, chunk: Chunk) -> Vectors:
        if chunk.complete(self.argument):
            return [chunk.groups.row_counts]
        return [np.bincount(chunk.ids(self.argument), minlength=chunk.groups.size)]

    def fold_into(self, target: Vectors, chunk: Chunk) -> None:
        np.add.at(target[0], chunk.ids(self.argument), np.int64(1))


class IntegerSum(AddedFamily):
    """An exact sum: one word modulo 2^64, one that counts multiples of 2^32.

    The first word is right modulo 2^64 whatever wraps on the way; the second tells which multiple
    of 2^64 is missing, so an overflow is found at the end and depends on no folding order.
    """

    invertible = direct = True
    names, identities, dtypes = ("low", "high"), (0, 0), (np.int64, np.int64)

    def __init__(self, argument: int) -> None:
        self.argument = argument

    def fold(self, chunk: Chunk) -> Vectors:
        vectors = self.empty(chunk.groups.size)
        self.fold_into(vectors, chunk)
        self.normalise(vectors)
        return vectors

    def fold_into(self, target: Vectors, chunk: Chunk) -> None:
        ids, values = chunk.ids(self.argument), chunk.values(self.argument)
        np.add.at(target[0], ids, values)
        if len(values) and (values.min() < -(1 << HALF) or values.max() >= 1 << HALF):
            np.add.at(target[1], ids, rounded_words(values))

    def scale(self, values: Sequence[Vector], times: Vector) -> Vectors:
        scaled = [values[0] * times, values[1] * times]
        self.normalise(scaled)
        return scaled

    def normalise(self, vectors: Vectors) -> None:
        low, high = vectors
        high[:] = (missing_words(low, high) << 32) + rounded_words(low)


def rounded_words(values: Vector) -> Vector:
    """values / 2^32, rounded to the nearest; 0 for all that fit 32 bits."""
    return (values >> 32) + ((values >> HALF) & 1)


def missing_words(low: Vector, high: Vector) -> Vector:
    """How many times 2^64 the sum is away from its first word."""
    return (high - (low >> 32) + (1 << HALF)) >> 32


class FloatSum(AddedFamily):
    """A sum of floats, in the order of the rows."""

    direct = True
    names, identities, dtypes = ("sum",), (0.0,), (np.float64,)

    def __init__(self, argument: int) -> None:
        self.argument = argument

    def fold(self, chunk: Chunk) -> Vectors:
        ids, values = chunk.ids(self.argument), chunk.values(self.argument)
        return [added(ids, values, chunk.groups.size)]

    def scale(self, values: Sequence[Vector], times: Vector) -> Vectors:
        return [values[0] * times]

    def fold_into(self, target: Vectors, chunk: Chunk) -> None:
        np.add.at(target[0], chunk.ids(self.argument), chunk.values(self.argument))


def added(ids: Slots, values: Vector, size: int) -> Vector:
    """Sums by group, in the order of the rows; a float also where there are no rows."""
    return np.bincount(ids, values, size).astype(np.float64, copy=False)


class LongSum(AddedFamily):
    """A sum of decimals of more than 18 digits, as Python's integers."""

    invertible, names, identities, dtypes = True, ("sum",), (0,), (np.object_,)

    def __init__(self, argument: int) -> None:
        self.argument = argument

    def fold(self, chunk: Chunk) -> Vectors:
        sums = self.empty(chunk.groups.size)
        np.add.at(sums[0], chunk.ids(self.argument), chunk.values(self.argument))
        return sums

    def scale(self, values: Sequence[Vector], times: Vector) -> Vectors:
        return [values[0] * times.astype(object)]


class Extreme(Family):
    """The least or greatest number. NaN is greater than all, -0.0 is given as 0.0."""

    direct = idempotent = True

    def __init__(self, argument: int, kind: str, greatest: bool) -> None:
        self.argument = argument
        self.names = ("max" if greatest else "min",)
        self._float = kind == FLOAT
        if self._float:
            self._ufunc: np.ufunc = np.maximum if greatest else np.fmin
            self.identities, self.dtypes = (-np.inf if greatest else np.nan,), (np.float64,)
        else:
            self._ufunc = np.maximum if greatest else np.minimum
            bound = INTEGERS.min if greatest else INTEGERS.max
            self.identities, self.dtypes = (bound,), (np.int64,)

    def fold(self, chunk: Chunk) -> Vectors:
        ids, values = chunk.ids(self.argument), chunk.values(self.argument)
        if not self._float:
            out = self.empty(chunk.groups.size)
            self._ufunc.at(out[0], ids, values)
            return out
        values = values + 0.0
        if self._ufunc is np.fmin and chunk.complete(self.argument) and not np.isnan(values).any():
            least = np.full(chunk.groups.size, np.inf)  # minimum.at takes half the time of fmin.at
            np.minimum.at(least, ids, values)
            return [least]
        out = self.empty(chunk.groups.size)
        self._ufunc.at(out[0], ids, values)
        return out

    def merge(self, target: Vectors, values: Sequence[Vector]) -> None:
        self._ufunc(target[0], values[0], out=target[0])

    def outlasts(self, target: Vectors, values: Sequence[Vector]) -> Vector:
        """Those whose extreme is none of the values."""
        mine, theirs = target[0], values[0]
        other: Vector = mine != theirs
        return other & ~(np.isnan(mine) & np.isnan(theirs)) if self._float else other

    def merge_many(self, target: Vectors, slots: Slots, values: Sequence[Vector]) -> None:
        self._ufunc.at(target[0], slots, values[0])

    def merge_rows(self, rows: Sequence[Vector]) -> Vectors:
        return [self._ufunc.reduce(rows[0], axis=0, initial=self.identities[0])]

    def fold_into(self, target: Vectors, chunk: Chunk) -> None:
        values = chunk.values(self.argument)
        self._ufunc.at(target[0], chunk.ids(self.argument), values + 0.0 if self._float else values)


def _smaller(mine: Any, theirs: Any) -> Any:
    return theirs if mine is None or (theirs is not None and theirs < mine) else mine


def _larger(mine: Any, theirs: Any) -> Any:
    return theirs if mine is None or (theirs is not None and theirs > mine) else mine


class ObjectExtreme(Family):
    """The least or greatest text (by its UTF-8 bytes), binary or long decimal."""

    idempotent = True
    identities, dtypes = (None,), (np.object_,)

    def __init__(self, argument: int, greatest: bool, ranked: bool) -> None:
        self.argument = argument
        self.names = ("max" if greatest else "min",)
        self._ranked = ranked
        self._pick = np.frompyfunc(_larger if greatest else _smaller, 2, 1)
        self._rank = np.maximum if greatest else np.minimum
        self._worst = -1 if greatest else INTEGERS.max

    def fold(self, chunk: Chunk) -> Vectors:
        ids = chunk.ids(self.argument)
        if not self._ranked:
            out = self.empty(chunk.groups.size)
            self._pick.at(out[0], ids, chunk.values(self.argument))
            return out
        ranks, distinct = chunk.columns[self.argument].ranked
        rows = chunk.there(self.argument)
        best = np.full(chunk.groups.size, self._worst, np.int64)
        self._rank.at(best, ids, ranks if rows is None else ranks[rows])
        out = self.empty(chunk.groups.size)
        there = np.flatnonzero(best != self._worst)
        out[0][there] = distinct[best[there]]
        return out

    def merge(self, target: Vectors, values: Sequence[Vector]) -> None:
        target[0][:] = self._pick(target[0], values[0])

    def outlasts(self, target: Vectors, values: Sequence[Vector]) -> Vector:
        """Those whose extreme is none of the values."""
        return np.not_equal(target[0], values[0]).astype(np.bool_)


class Moments(Family):
    """Count, mean and sum of squared distances from it: variances that merge without loss."""

    names = ("count", "mean", "squares")
    identities, dtypes = (0.0, 0.0, 0.0), (np.float64,) * 3

    def __init__(self, argument: int, scale: int = 0) -> None:
        self.argument, self._unit = argument, 10.0**scale

    def fold(self, chunk: Chunk) -> Vectors:
        ids, size = chunk.ids(self.argument), chunk.groups.size
        values = chunk.values(self.argument).astype(np.float64) / self._unit
        counts = np.bincount(ids, minlength=size).astype(np.float64)
        means = added(ids, values, size) / np.maximum(counts, 1.0)
        distances = values - means[ids]
        return [counts, means, added(ids, distances * distances, size)]

    def merge(self, target: Vectors, values: Sequence[Vector]) -> None:
        count, mean, squares = target
        other_count, other_mean, other_squares = values
        both = np.maximum(count + other_count, 1.0)
        share = other_count / both
        # an empty side has mean 0 and must not draw the other side's mean
        distance = np.where((count > 0) & (other_count > 0), other_mean - mean, 0.0)
        squares += other_squares + distance * distance * count * share
        mean += np.where(count > 0, distance * share, other_mean)
        count += other_count

    def scale(self, values: Sequence[Vector], times: Vector) -> Vectors:
        return [values[0] * times, values[1].copy(), values[2] * times]


class Edge(Family):
    """The value of the first or last row by (T, _seq), or of the first or last not NULL."""

    names = ("time", "sequence", "valid", "value")

    def __init__(self, argument: int, kind: str, last: bool, skip_nulls: bool) -> None:
        self.argument, self._last, self._skip = argument, last, skip_nulls
        bound = INTEGERS.min if last else INTEGERS.max
        zero: Any = 0 if kind == INTEGER else 0.0 if kind == FLOAT else None
        dtype: Any = {INTEGER: np.int64, FLOAT: np.float64}.get(kind, np.object_)
        self.identities = (bound, bound, False, zero)
        self.dtypes = (np.int64, np.int64, np.bool_, dtype)

    def fold(self, chunk: Chunk) -> Vectors:
        rows = chunk.ordered_rows()
        column = chunk.columns[self.argument]
        if self._skip and column.valid is not None:
            rows = rows[column.valid[rows]]
        rows = rows if self._last else rows[::-1]
        winners = np.full(chunk.groups.size, -1, np.int64)
        winners[chunk.groups.ids[rows]] = rows  # the last write stays
        there = np.flatnonzero(winners >= 0)
        picked, out = winners[there], self.empty(chunk.groups.size)
        assert chunk.order is not None
        out[0][there], out[1][there] = chunk.order[0][picked], chunk.order[1][picked]
        out[2][there] = True if column.valid is None else column.valid[picked]
        out[3][there] = column.values[picked]
        return out

    def merge(self, target: Vectors, values: Sequence[Vector]) -> None:
        theirs, mine = (values, target) if self._last else (target, values)
        better = (theirs[0] > mine[0]) | ((theirs[0] == mine[0]) & (theirs[1] > mine[1]))
        for vector, other in zip(target, values, strict=True):
            np.copyto(vector, other, where=better)

    def outlasts(self, target: Vectors, values: Sequence[Vector]) -> Vector:
        """Those whose first or last row is none of them."""
        return (target[0] != values[0]) | (target[1] != values[1])
