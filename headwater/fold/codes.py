"""Values of one column → codes 0, 1, 2, …, kept from call to call.

Owns: the hash tables. Integers are addressed directly while their range is small and by open
addressing otherwise; text and long decimals by a dictionary, after Arrow has reduced the chunk to
its distinct values. Must never: forget or renumber a code, except in `keep`; sort; visit rows one
by one. Serves DataCell §3 (group by, joins) and DESIGN §7: pyarrow rebuilds its hash on each call.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.errors import OverloadError
from headwater.fold.columns import INTEGER, OBJECT_BYTES, Column, Slots, Vector

MOST_CODES = 2**31 - 2
DIRECT_RANGE = 1 << 16  # addressed directly in any case
DIRECT_SPREAD = 8  # … and while the range is at most so many times the number of codes
SMALLEST_TABLE = 1 << 10
MANY_ROWS = 1 << 17  # so many new rows at once are looked at before they are inserted
FIRST_ROWS = 1 << 16
SAMPLE_ROWS = 1 << 13
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio (Fibonacci hashing)
NO_CODE = -1
LARGEST_CHUNK_BYTES = 1 << 30  # Arrow's text has 32-bit offsets


class IntegerCodes:
    """64-bit integers → codes in order of first appearance."""

    def __init__(self) -> None:
        self._values: Vector = np.empty(0, np.int64)
        self._count = 0
        self._base = 0
        self._direct: Vector | None = np.empty(0, np.int32)
        self._table: Vector = np.empty(0, np.int32)

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        direct = 0 if self._direct is None else self._direct.nbytes
        return self._values.nbytes + self._table.nbytes + direct

    @property
    def values(self) -> Vector:
        """The values in the order of their codes; not to be written to."""
        return self._values[: self._count]

    def find(self, values: Vector) -> Slots:
        """The codes of values, -1 for those without."""
        if self._direct is not None:
            codes = self._find_direct(values)
            return codes.astype(np.int64)
        return self._probe(values)

    def codes(self, values: Vector) -> Slots:
        """The codes of values; new ones get the next codes in order of appearance."""
        if not len(values):
            return np.empty(0, np.int64)
        if self._direct is not None and self._cover(values):
            return self._codes_direct(values)
        if self._direct is not None:
            self._direct = None
            self._rebuild(self._count + len(values) // 8)
        codes = self._probe(values)
        fresh = np.flatnonzero(codes < 0)
        if len(fresh) > MANY_ROWS and _repeat(values[fresh[:: len(fresh) // SAMPLE_ROWS]]):
            # The first rows have most of the values, and the others find them: that costs a sixth.
            self._insert(values, codes, fresh[:FIRST_ROWS])
            rest = fresh[FIRST_ROWS:]
            codes[rest] = self._probe(values[rest])
            fresh = rest[codes[rest] < 0]
        if len(fresh):
            self._insert(values, codes, fresh)
        return codes

    def _cover(self, values: Vector) -> bool:
        """Make direct addressing reach all values, if they are not too far apart."""
        table, low, high = self._direct, int(values.min()), int(values.max())
        assert table is not None
        first, end = self._base, self._base + len(table)
        if len(table) and first <= low and high < end:
            return True
        if len(table):
            low, high = min(low, first), max(high, end - 1)
        span = high - low + 1
        if span > max(DIRECT_RANGE, DIRECT_SPREAD * (self._count + len(values))):
            return False
        room = min(span, DIRECT_RANGE) // 2  # grow by halves, not by ones
        low, high = max(low - (room if low < first else 0), -(2**63)), high + room
        grown = np.full(high - low + 1, NO_CODE, np.int32)
        if len(table):
            grown[first - low : end - low] = table
        self._direct, self._base = grown, low
        return True

    def _find_direct(self, values: Vector) -> Vector:
        table = self._direct
        assert table is not None
        with np.errstate(over="ignore"):
            places = values - np.int64(self._base)
        inside = (values >= self._base) & (values < self._base + len(table))
        if inside.all():
            return table[places]
        found = np.full(len(values), NO_CODE, np.int32)
        found[inside] = table[places[inside]]
        return found

    def _codes_direct(self, values: Vector) -> Slots:
        table = self._direct
        assert table is not None
        places = values - np.int64(self._base) if self._base else values
        codes: Slots = table[places].astype(np.int64)
        fresh = np.flatnonzero(codes < 0)
        if len(fresh):
            order = fresh[::-1]  # the last write is the first appearance
            table[places[order]] = -2 - np.arange(len(order), dtype=np.int32)
            firsts = order[table[places[order]] == -2 - np.arange(len(order))][::-1]
            table[places[firsts]] = self._append(values[firsts])
            codes[fresh] = table[places[fresh]]
        return codes

    def _append(self, values: Vector) -> Vector:
        """Give codes to distinct new values."""
        first, self._count = self._count, self._count + len(values)
        if self._count > MOST_CODES:
            raise OverloadError("too many distinct keys", detail=f"at most {MOST_CODES} fit")
        if self._count > len(self._values):
            grown = np.empty(max(2 * len(self._values), self._count, SMALLEST_TABLE), np.int64)
            grown[:first] = self._values[:first]
            self._values = grown
        self._values[first : self._count] = values
        return np.arange(first, self._count, dtype=np.int32)

    def _places(self, values: Vector) -> Slots:
        bits = np.uint64(64 - (len(self._table).bit_length() - 1))
        mixed = np.ascontiguousarray(values).view(np.uint64)
        mixed = (mixed ^ (mixed >> np.uint64(32))) * MULTIPLIER
        return (mixed >> bits).view(np.int64)

    def _probe(self, values: Vector) -> Slots:
        """Linear probing, all rows at once: each round only those not yet settled."""
        if not len(values) or not self._count:
            return np.full(len(values), NO_CODE, np.int64)
        places = self._places(values)
        codes: Slots = self._table[places].astype(np.int64)
        wrong = np.flatnonzero((codes >= 0) & (self._values[codes] != values))
        places, mask = places[wrong], len(self._table) - 1
        while len(wrong):
            places = (places + 1) & mask
            found = self._table[places]
            codes[wrong] = found
            again = (found >= 0) & (self._values[found] != values[wrong])
            wrong, places = wrong[again], places[again]
        return codes

    def _insert(self, values: Vector, codes: Slots, fresh: Slots) -> None:
        """Give codes to the rows `fresh`, which have none: the first of equal ones wins a place."""
        if 3 * (self._count + len(fresh)) > 2 * len(self._table):
            many = len(fresh) > len(self._table)
            self._rebuild(self._count + (_distinct_count(values[fresh]) if many else len(fresh)))
        keys = values[fresh]
        winners, places = self._claim(keys)
        first = np.flatnonzero(winners == np.arange(len(keys)))  # in order of appearance
        given = np.empty(len(keys), np.int64)
        given[first] = self._append(keys[first])
        self._table[places[first]] = given[first]
        codes[fresh] = given[winners]

    def _claim(self, keys: Vector) -> tuple[Slots, Slots]:
        """For each key the first one that equals it, and the free place that this one has marked."""
        mask, table = len(self._table) - 1, self._table
        winners = np.empty(len(keys), np.int64)
        pending, at, places = np.arange(len(keys)), self._places(keys), self._places(keys)
        while len(pending):
            empty = np.flatnonzero(table[at] == NO_CODE)[::-1]  # the last write is the first row
            table[at[empty]] = -2 - pending[empty]
            found = -2 - table[at].astype(np.int64)
            same = found >= 0
            same[same] = keys[found[same]] == keys[pending[same]]
            settled = pending[same]
            winners[settled], places[settled] = found[same], at[same]
            pending, at = pending[~same], (at[~same] + 1) & mask
        return winners, places

    def _rebuild(self, count: int) -> None:
        """A table at most a third full, holding every value."""
        size = max(SMALLEST_TABLE, 1 << (3 * count).bit_length())
        self._table = np.full(size, NO_CODE, np.int32)
        mask, values = size - 1, self.values
        pending = np.arange(self._count, dtype=np.int64)
        places = self._places(values) if len(values) else pending
        while len(pending):
            empty = np.flatnonzero(self._table[places] < 0)
            self._table[places[empty]] = pending[empty]
            lost = self._table[places] != pending
            pending, places = pending[lost], (places[lost] + 1) & mask

    def keep(self, codes: Slots) -> None:
        """Forget all but these codes, which become 0, 1, 2, …"""
        self.load(self._values[codes])

    def load(self, values: Vector) -> None:
        """Start with distinct values as codes 0, 1, 2, …"""
        self.__init__()  # type: ignore[misc]
        if not len(values):
            return
        if self._cover(values):
            codes = self._append(values)
            assert self._direct is not None
            self._direct[values - np.int64(self._base)] = codes
        else:
            self._append(values)
            self._direct = None
            self._rebuild(self._count)


def _repeat(sample: Vector) -> bool:
    """Whether some values of a sample are in it twice: then there are not many of them."""
    return 10 * _distinct_count(sample) < 9 * len(sample)


def _distinct_count(values: Vector) -> int:
    ordered = np.sort(values)
    return 1 + int(np.count_nonzero(ordered[1:] != ordered[:-1]))


class ValueCodes:
    """Text, binary and long decimals → codes in order of first appearance."""

    def __init__(self, type_: pa.DataType) -> None:
        self._type = type_
        self._codes: dict[Any, int] = {}
        self._chunks: list[pa.Array] = []

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def nbytes(self) -> int:
        """How much memory is held: the dictionary, its texts, and the same texts in Arrow."""
        texts = sum(chunk.nbytes for chunk in self._chunks)
        return sys.getsizeof(self._codes) + OBJECT_BYTES * len(self._codes) + 2 * texts

    def take(self, codes: Slots) -> pa.Array:
        """The values of codes."""
        every = pa.chunked_array(self._chunks, self._type)
        return Column(every.take(pa.array(codes))).array

    def find(self, array: pa.Array) -> Slots:
        """The codes of values, -1 for those without; NULLs get any code."""
        coded = array.dictionary_encode()
        get = self._codes.get
        return self._spread(coded, [get(v, NO_CODE) for v in coded.dictionary.to_pylist()])

    def codes(self, array: pa.Array) -> Slots:
        """The codes of values; new ones get the next codes in order of appearance."""
        coded = array.dictionary_encode()
        known, before = self._codes, len(self._codes)
        give = known.setdefault
        codes = [give(v, len(known)) for v in coded.dictionary.to_pylist()]
        if len(known) > MOST_CODES:
            raise OverloadError("too many distinct keys", detail=f"at most {MOST_CODES} fit")
        if len(known) > before:
            fresh = np.array(codes, np.int64) >= before
            self._append(coded.dictionary.filter(pa.array(fresh)))
        return self._spread(coded, codes)

    def _append(self, fresh: pa.Array) -> None:
        """Keep values in few chunks: a chunk is at least twice as long as the next."""
        chunks = self._chunks
        chunks.append(fresh)
        while len(chunks) > 1 and len(chunks[-2]) < 2 * len(chunks[-1]):
            if chunks[-2].nbytes + chunks[-1].nbytes > LARGEST_CHUNK_BYTES:
                break
            last = chunks.pop()
            chunks[-1] = pa.concat_arrays([chunks[-1], last])

    @staticmethod
    def _spread(coded: pa.DictionaryArray, codes: list[int]) -> Slots:
        if not codes:
            return np.full(len(coded), NO_CODE, np.int64)
        indices = coded.indices.fill_null(0).to_numpy(zero_copy_only=False)
        return np.array(codes, np.int64)[indices]

    def keep(self, codes: Slots) -> None:
        """Forget all but these codes, which become 0, 1, 2, …"""
        self.load(self.take(codes))

    def load(self, array: pa.Array) -> None:
        """Start with distinct values as codes 0, 1, 2, …"""
        self._codes = {value: code for code, value in enumerate(array.to_pylist())}
        self._chunks = [array] if len(array) else []


def key_bits(column: Column) -> Vector:
    """Integers that are equal where Spark groups: one NaN, no negative zero."""
    if column.kind == INTEGER:
        return column.values
    values = column.values + 0.0  # -0.0 becomes 0.0
    bits: Vector = values.view(np.int64)
    strange = np.isnan(values)
    if strange.any():
        bits[strange] = np.float64(np.nan).view(np.int64)
    return bits
