"""Values over frames: from where each frame starts and ends to a sum, an extreme, a count or one of its rows.

Owns: how all frames are evaluated at once. Sums of integers are differences of running sums in two words, so
exact; floats are never subtracted: a frame is put together from blocks of 1, 2, 4, … rows, as are extremes.
Must never: visit rows one by one, or know what a partition is.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.fold.aggregates import Aggregate, function_of
from headwater.fold.columns import FLOAT, OBJECT, Column, Slots, Vector, decode
from headwater.fold.families import Vectors
from headwater.fold.order import ordered

WORD_BITS = 32
LOW_WORD = (1 << WORD_BITS) - 1
LARGEST, SMALLEST = np.iinfo(np.int64).max, np.iinfo(np.int64).min


def blocks(
    values: Vector, starts: Slots, ends: Slots, merge: np.ufunc, identity: float | int
) -> Vector:
    """The merge of the values of each frame [start, end), from the left to the right."""
    lengths, position, level = ends - starts, starts.copy(), values
    merged = np.full(len(starts), identity, values.dtype)
    longest, size = int(lengths.max(initial=0)), 1
    while size <= longest:
        rows = np.flatnonzero(lengths & size)
        merged[rows] = merge(merged[rows], level[position[rows]])
        position[rows] += size
        wider = level.copy()
        wider[:-size] = merge(level[:-size], level[size:])
        level, size = wider, 2 * size
    return merged


def running(values: Vector) -> Vector:
    """Sums of all values before each place, and of all."""
    sums = np.zeros(len(values) + 1, values.dtype)
    np.cumsum(values, out=sums[1:])
    return sums


def counts_of(column: Column | None, starts: Slots, ends: Slots) -> Slots:
    """How many values of each frame are not NULL; without a column, how many rows it has."""
    if column is None or column.valid is None:
        return ends - starts
    seen = running(column.valid.astype(np.int64))
    return seen[ends] - seen[starts]


def aggregated(
    function: str, column: Column | None, name: str, starts: Slots, ends: Slots
) -> pa.Array:
    """count, sum, avg, min, max, bool_and or bool_or of each frame, as `fold` finishes them."""
    counts = counts_of(column, starts, ends)
    if function == "count" or column is None:
        return decode(counts, None, pa.int64())
    if function in ("sum", "avg"):
        parts = _sums(column, starts, ends)
    elif column.kind == OBJECT:
        return _object_extreme(function, column, counts, starts, ends)
    else:
        parts = [_extreme(function, column, starts, ends)]
    aggregate = Aggregate(function, 0, column.type, name)
    with np.errstate(invalid="ignore", over="ignore"):
        return function_of(function).finish(aggregate, [parts, [counts]])


def _zeroed(column: Column, values: Vector) -> Vector:
    return values if column.valid is None else np.where(column.valid, values, 0)


def _sums(column: Column, starts: Slots, ends: Slots) -> Vectors:
    values = _zeroed(column, column.values)
    with np.errstate(invalid="ignore", over="ignore"):
        if column.kind == FLOAT:
            return [blocks(values, starts, ends, np.add, 0.0)]
        if column.kind == OBJECT:
            sums = running(values)
            return [sums[ends] - sums[starts]]
        upper, lower = running(values >> WORD_BITS), running(values & LOW_WORD)
        rest = lower[ends] - lower[starts]
        high = upper[ends] - upper[starts] + (rest >> WORD_BITS)
        return [(high << WORD_BITS) | (rest & LOW_WORD), high]


def _ranks(function: str, column: Column, starts: Slots, ends: Slots) -> Vector:
    greatest = function in ("max", "bool_or")
    identity, ranks = SMALLEST if greatest else LARGEST, ordered(column)
    if column.valid is not None:
        ranks = np.where(column.valid, ranks, identity)
    return blocks(ranks, starts, ends, np.maximum if greatest else np.minimum, identity)


def _extreme(function: str, column: Column, starts: Slots, ends: Slots) -> Vector:
    best = _ranks(function, column, starts, ends)
    return (
        np.where(best < 0, best ^ LARGEST, best).view(np.float64) if column.kind == FLOAT else best
    )


def _object_extreme(
    function: str, column: Column, counts: Slots, starts: Slots, ends: Slots
) -> pa.Array:
    ranks = ordered(column)
    there = np.arange(len(ranks)) if column.valid is None else np.flatnonzero(column.valid)
    row_of = np.zeros(int(ranks.max(initial=0)) + 1, np.int64)
    row_of[ranks[there]] = there
    none = counts == 0
    best = np.where(none, 0, _ranks(function, column, starts, ends))
    return column.array.take(pa.array(row_of[best], mask=none))


class Eligible:
    """The rows that may be picked: all of them, or those where a column is not NULL."""

    def __init__(self, column: pa.Array, ignore_nulls: bool) -> None:
        picked = np.ones(len(column), np.bool_)
        if ignore_nulls:
            picked = column.is_valid().to_numpy(zero_copy_only=False)
        self._rows = np.append(np.flatnonzero(picked), -1)
        self._before = running(picked.astype(np.int64))

    def first(self, starts: Slots, ends: Slots, which: int = 1) -> Slots:
        """The first, or another, of each frame; −1 if it has none."""
        chosen = self._before[starts] + which - 1
        return self._rows[np.where(chosen < self._before[ends], chosen, -1)]

    def last(self, starts: Slots, ends: Slots, which: int = 1) -> Slots:
        """The last, or another from the end, of each frame; −1 if it has none."""
        chosen = self._before[ends] - which
        return self._rows[np.where(chosen >= self._before[starts], chosen, -1)]
