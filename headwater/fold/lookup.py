"""Keys of one or several columns → dense slots, kept from call to call.

Owns: which rows have equal keys, as Spark groups: NULL is a key and equals itself, NaN equals
NaN, -0.0 equals 0.0. One lookup serves groups, joins and last-k rings. Must never: change a
slot, except in `keep`. Several columns are coded one by one, then pairwise: the codes of two
columns side by side in one 64-bit integer are again a column of integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.fold.codes import NO_CODE, IntegerCodes, ValueCodes, key_bits
from headwater.fold.columns import OBJECT, Column, Slots, Vector, decode, kind_of

PAIR_BITS = 32


class ColumnCodes:
    """One column's values → codes; NULL has one too, if it came."""

    def __init__(self, type_: pa.DataType) -> None:
        self.type = type_.value_type if pa.types.is_dictionary(type_) else type_
        self._kind = kind_of(type_)
        text = self._kind == OBJECT
        self._inner: IntegerCodes | ValueCodes = ValueCodes(self.type) if text else IntegerCodes()
        self._null = NO_CODE  # where NULL stands; later codes are one more than the inner ones

    def __len__(self) -> int:
        return len(self._inner) + (self._null != NO_CODE)

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        return self._inner.nbytes

    def codes(self, column: Column, add: bool) -> Slots:
        """The codes of a column's rows; -1 for unknown ones unless they may be added."""
        valid = column.valid
        if valid is None:
            return self._shifted(self._ask(column, None, add))
        if self._null == NO_CODE and add:
            # codes of rows before the first NULL must come before it
            first = int(np.argmin(valid))
            if first:
                self._ask(column, np.arange(first), add)
            self._null = len(self._inner)
        codes = np.full(len(column), self._null, np.int64)
        there = np.flatnonzero(valid)
        codes[there] = self._shifted(self._ask(column, there, add))
        return codes

    def _ask(self, column: Column, rows: Slots | None, add: bool) -> Slots:
        inner = self._inner
        if isinstance(inner, ValueCodes):
            array = column.array if rows is None else column.array.take(pa.array(rows))
            return inner.codes(array) if add else inner.find(array)
        bits = key_bits(column) if rows is None else key_bits(column)[rows]
        return inner.codes(bits) if add else inner.find(bits)

    def _shifted(self, codes: Slots) -> Slots:
        return codes if self._null == NO_CODE else codes + (codes >= self._null)

    def take(self, codes: Slots) -> pa.Array:
        """The values of codes."""
        valid = None if self._null == NO_CODE else codes != self._null
        if valid is not None and valid.all():
            valid = None
        inner = codes if self._null == NO_CODE else codes - (codes > self._null)
        if isinstance(self._inner, ValueCodes):
            if valid is None:
                return self._inner.take(inner)
            return self._inner.take(pa.array(inner, mask=~valid))
        values = self._inner.values
        if valid is not None:
            inner = np.where(valid, inner, 0)
        taken = values[inner] if len(values) else np.zeros(len(inner), np.int64)
        if pa.types.is_floating(self.type):
            taken = taken.view(np.float64)
        return decode(taken, valid, self.type)

    def keep(self, codes: Slots) -> None:
        """Forget all but these codes, which become 0, 1, 2, …"""
        if self._null == NO_CODE:
            self._inner.keep(codes)
            return
        places = np.flatnonzero(codes == self._null)
        rest = codes[codes != self._null]
        self._inner.keep(rest - (rest > self._null))
        self._null = int(places[0]) if len(places) else NO_CODE

    def load(self, column: Column) -> None:
        """Start with distinct values as codes 0, 1, 2, …"""
        valid, inner = column.valid, self._inner
        rest = None if valid is None else np.flatnonzero(valid)
        self._null = NO_CODE if valid is None else int(np.argmin(valid))
        if isinstance(inner, ValueCodes):
            inner.load(column.array if rest is None else column.array.take(pa.array(rest)))
        else:
            bits = key_bits(column)
            inner.load(bits if rest is None else bits[rest])


class Lookup:
    """Composite keys → slots 0, 1, 2, … in order of first appearance."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self.types = tuple(types)
        self._columns = [ColumnCodes(t) for t in types]
        self._pairs = [IntegerCodes() for _ in types[1:]]

    def __len__(self) -> int:
        if not self._columns:
            return 1  # the one group of a query without GROUP BY
        return len(self._pairs[-1]) if self._pairs else len(self._columns[0])

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        pairs = sum(codes.nbytes for codes in self._pairs)
        return pairs + sum(codes.nbytes for codes in self._columns)

    def slots(self, columns: Sequence[Column | pa.Array], row_count: int | None = None) -> Slots:
        """The slot of each row; unknown keys get the next slots."""
        return self._resolve(columns, row_count, add=True)

    def find(self, columns: Sequence[Column | pa.Array], row_count: int | None = None) -> Slots:
        """The slot of each row, -1 where the key is unknown."""
        return self._resolve(columns, row_count, add=False)

    def _resolve(
        self, columns: Sequence[Column | pa.Array], row_count: int | None, add: bool
    ) -> Slots:
        if len(columns) != len(self._columns):
            raise ValueError(f"{len(self._columns)} key columns expected, {len(columns)} given")
        if not columns:
            return np.zeros(row_count or 0, np.int64)
        given = [c if isinstance(c, Column) else Column(c) for c in columns]
        codes = self._columns[0].codes(given[0], add)
        for own, pairs, column in zip(self._columns[1:], self._pairs, given[1:], strict=True):
            other = own.codes(column, add)
            both = (codes << PAIR_BITS) | (other & 0xFFFFFFFF)
            codes = pairs.codes(both) if add else self._find_pair(pairs, both, codes, other)
        return codes

    @staticmethod
    def _find_pair(pairs: IntegerCodes, both: Vector, codes: Slots, other: Slots) -> Slots:
        return np.where((codes < 0) | (other < 0), NO_CODE, pairs.find(both))

    def keys(self, slots: Slots | None = None) -> list[pa.Array]:
        """The key columns of all slots in their order, or of the given ones."""
        if not self._columns:
            return []
        codes = np.arange(len(self)) if slots is None else slots
        columns = []
        for own, pairs in zip(self._columns[:0:-1], self._pairs[::-1], strict=True):
            both = pairs.values[codes]
            columns.append(own.take(both & 0xFFFFFFFF))
            codes = both >> PAIR_BITS
        columns.append(self._columns[0].take(codes))
        return columns[::-1]

    def keep(self, slots: Slots) -> None:
        """Forget all keys but those of these slots, which become 0, 1, 2, …"""
        if len(self._columns) == 1:
            self._columns[0].keep(slots)
        elif self._columns:
            self.load(self.keys(slots))

    def load(self, keys: Sequence[Column | pa.Array]) -> None:
        """Start with distinct keys as slots 0, 1, 2, …"""
        self.__init__(self.types)  # type: ignore[misc]
        given = [key if isinstance(key, Column) else Column(key) for key in keys]
        if len(given) == 1:
            self._columns[0].load(given[0])
        elif given:
            head = [
                own.codes(column, True) for own, column in zip(self._columns, given, strict=True)
            ]
            codes = head[0]
            for pairs, other in zip(self._pairs[:-1], head[1:-1], strict=True):
                codes = pairs.codes((codes << PAIR_BITS) | other)
            self._pairs[-1].load((codes << PAIR_BITS) | head[-1])

    def state(self) -> dict[str, Any]:
        """What a snapshot needs."""
        return {"keys": self.keys()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot: every key has the slot it had."""
        self.load(state["keys"])
