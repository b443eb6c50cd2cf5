"""Frames by RANGE with offsets: the rows of a partition whose order value is so near to that of a row.

Owns: where such frames start and end. The order is one column of whole numbers or times; a row without a
value has the rows without one as its frame, as far as it has bounds. A bound that the type cannot hold
raises, as in Spark. Must never: visit rows one by one.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.errors import DataError
from headwater.fold.columns import Column, Slots, Vector
from headwater.fold.order import ordered
from headwater.operators.grouped_rows import Partitions, runs_of


def has_range(type_: pa.DataType) -> bool:
    """Whether offsets can be added to values of a type."""
    return bool(pa.types.is_integer(type_) or pa.types.is_timestamp(type_))


class RangeFrames:
    """Rows sorted by partition and order, with their order values as numbers that rise."""

    def __init__(self, partitions: Partitions, column: Column, descending: bool) -> None:
        """`column`: of the rows as they came."""
        self._partitions = partitions
        numbers = ordered(column)[partitions.order]
        self._numbers = ~numbers if descending else numbers
        bits = 64 if pa.types.is_timestamp(column.type) else column.type.bit_width
        self._most = (1 << (bits - 1)) - 1
        valid = np.ones(len(numbers), np.bool_) if column.valid is None else column.valid
        self._known = valid[partitions.order]
        first = partitions.places == partitions.starts
        first[1:] |= self._known[1:] != self._known[:-1]
        self._starts, self._ends = runs_of(first, len(first))

    def bounds(self, start: int | None, end: int | None) -> tuple[Slots, Slots]:
        """Where the frame of each row starts and ends; None: where the partition does."""
        first, last = self._partitions.starts, self._partitions.ends
        if start is not None:
            first = np.where(self._known, self._found(start, False), self._starts)
        if end is not None:
            last = np.where(self._known, self._found(end, True), self._ends)
        return first, last

    def _found(self, offset: int, after: bool) -> Slots:
        """The place of the first row that is not before a bound, or of the first that is after it."""
        wanted = self._bound(offset)
        low, high = self._starts.copy(), self._ends.copy()
        open_ = np.flatnonzero(self._known)
        while len(open_):
            middle = (low[open_] + high[open_]) // 2
            numbers = self._numbers[middle]
            below = numbers <= wanted[open_] if after else numbers < wanted[open_]
            low[open_] = np.where(below, middle + 1, low[open_])
            high[open_] = np.where(below, high[open_], middle)
            open_ = open_[low[open_] < high[open_]]
        return low

    def _bound(self, offset: int) -> Vector:
        numbers = np.where(self._known, self._numbers, 0)
        far = int(numbers.max(initial=0)) + offset > self._most
        if far or int(numbers.min(initial=0)) + offset < -self._most - 1:
            raise DataError(
                "number out of range",
                sqlstate="22003",
                detail="a bound of a frame does not fit the type of its order",
                hint="cast the column of ORDER BY to a wider type",
            )
        return numbers + offset
