"""Which rows of one sequence of rows are gone in another, and which are new, bit for bit.

Rows that stay keep their order, so a row that changed places is gone and new. Looked for in turn, from
cheap to dear: rows that differ in place; a common end; a walk along both that finds its way back after
each of a few differences; last the rows' codes. What lies in the same place in memory is equal without
a look. The answer depends on the rows alone, not on how they lie in memory. It is right but not always
short: where most rows are others, all of them are said to be. Pure.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator, Sequence, Sized
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Places = npt.NDArray[np.int64]  # of rows in a sequence, ascending
Pair = tuple[pa.ChunkedArray, pa.ChunkedArray]  # one column, before and after

BLOCK_ROWS = 64 << 10  # compared at once
NEAR_ROWS = 64  # looked at first where the walk must find its way back
MOST_STEPS = 64  # differences that the walk passes
SAMPLED_ROWS = 512  # looked for in the sequence before, prior to all …
GOOD_PART = 4  # … of which a fourth must be there
MOST_RUNS = 4096  # pieces that may have changed places
NO_PLACES: Places = np.empty(0, np.int64)
MIX = np.uint64(0x9E3779B97F4A7C15)
HALF = np.uint64(32)


def differing(before: pa.Table, after: pa.Table) -> tuple[Places, Places]:
    """Places of rows that are gone from the first, and of rows that are new in the second."""
    pairs = [(_bits(a), _bits(b)) for a, b in zip(before.columns, after.columns, strict=True)]
    counts = before.num_rows, after.num_rows
    shared = min(counts)
    first, unequal = _unequal_in_place(pairs, shared)
    if unequal is not None:
        gone, new = np.arange(shared, counts[0]), np.arange(shared, counts[1])
        return np.concatenate([unequal, gone]), np.concatenate([unequal, new])
    same = _equal_at_end(pairs, counts, shared - first)
    ends = counts[0] - same, counts[1] - same
    inner = [(a[first : ends[0]], b[first : ends[1]]) for a, b in pairs]
    found = None
    if ends[0] > first < ends[1]:
        found = _Walk(inner).places() or _by_codes(inner)
    if found is None:
        return np.arange(first, ends[0]), np.arange(first, ends[1])
    return found[0] + first, found[1] + first


# Bits: floats as integers, so that NaN equals itself and -0.0 is not 0.0


def _bits(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not pa.types.is_floating(column.type):
        return column
    type_ = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[column.type.bit_width]
    return pa.chunked_array([chunk.view(type_) for chunk in column.chunks], type_)


def _exact(value: Any) -> Any:
    """A nested value as something hashable that says its floats bit for bit."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, dict):
        return tuple(_exact(part) for part in value.values())
    if isinstance(value, (list, tuple)):
        return tuple(_exact(part) for part in value)
    return value


def _is_equal(a: pa.Array, b: pa.Array) -> bool:
    """Whether all values are equal; where floats are inside, unequal may be said of equal ones."""
    if not pa.types.is_nested(a.type):
        return bool(a.equals(b))
    first, second = (pa.record_batch([part], names=["v"]).serialize() for part in (a, b))
    return bool(first.equals(second))


def _unequal(a: pa.Array, b: pa.Array) -> npt.NDArray[np.bool_]:
    """Which values differ; NULL equals NULL."""
    if pa.types.is_nested(a.type):
        pairs = zip(a.to_pylist(), b.to_pylist(), strict=True)
        return np.fromiter((_exact(x) != _exact(y) for x, y in pairs), np.bool_, len(a))
    values = pc.not_equal(a, b)
    if not a.null_count and not b.null_count:
        return np.asarray(values.to_numpy(zero_copy_only=False))
    values = values.fill_null(False).to_numpy(zero_copy_only=False)
    missing = [part.is_null().to_numpy(zero_copy_only=False) for part in (a, b)]
    unequal: npt.NDArray[np.bool_] = values | (missing[0] != missing[1])
    return unequal


# In place


def _unequal_in_place(pairs: Sequence[Pair], row_count: int) -> tuple[int, Places | None]:
    """The first row that differs in place, and all that do; None where most of the rest does."""
    found = list[Places]()
    first, count = row_count, 0
    for at in range(0, row_count, BLOCK_ROWS):
        size = min(BLOCK_ROWS, row_count - at)
        unequal = _unequal_rows(pairs, (at, at), size)
        if len(unequal):
            found.append(unequal + at)
            first, count = min(first, int(unequal[0]) + at), count + len(unequal)
        if count and 2 * count > at + size - first:
            return first, None
    return first, np.concatenate(found) if found else NO_PLACES


def _unequal_rows(pairs: Sequence[Pair], start: tuple[int, int], row_count: int) -> Places:
    """Which of so many rows from a place in each differ, compared one by one."""
    mask: npt.NDArray[np.bool_] | None = None
    for before, after in pairs:
        ours, theirs = before.slice(start[0], row_count), after.slice(start[1], row_count)
        for at, a, b in _unequal_pieces(ours, theirs):
            mask = np.zeros(row_count, np.bool_) if mask is None else mask
            mask[at : at + len(a)] |= _unequal(a, b)
    return NO_PLACES if mask is None else np.flatnonzero(mask)


def _unequal_pieces(
    before: pa.ChunkedArray, after: pa.ChunkedArray
) -> Iterator[tuple[int, pa.Array, pa.Array]]:
    """Pieces of a column that are not equal, with the place where they begin."""
    start, ours, theirs = 0, before.chunks[::-1], after.chunks[::-1]
    while ours and theirs:
        a, b = ours.pop(), theirs.pop()
        length = min(len(a), len(b))
        if len(a) > length:
            ours.append(a.slice(length))
            a = a.slice(0, length)
        if len(b) > length:
            theirs.append(b.slice(length))
            b = b.slice(0, length)
        if not _is_same_memory(a, b) and not _is_equal(a, b):
            yield start, a, b
        start += length


def _is_same_memory(a: pa.Array, b: pa.Array) -> bool:
    """Whether two arrays begin in the same place."""
    return a.offset == b.offset and all(
        x is y or (x is not None and y is not None and x.address == y.address)
        for x, y in zip(a.buffers(), b.buffers(), strict=True)
    )


def _equal_at_end(pairs: Sequence[Pair], counts: tuple[int, int], most: int) -> int:
    """How many of the last rows are equal, at most so many."""
    same, step = 0, NEAR_ROWS
    while same < most:
        step = min(step, most - same)
        unequal = _unequal_rows(pairs, (counts[0] - same - step, counts[1] - same - step), step)
        if len(unequal):
            return same + step - 1 - int(unequal[-1])
        same, step = same + step, 2 * step
    return same


# Along both


class _Walk:
    """Goes along both sequences, and finds its way back after each difference."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self._pairs = pairs
        self._counts = len(pairs[0][0]), len(pairs[0][1])
        self._left = sum(self._counts)  # rows that may be searched
        self._flat = [pair for pair in pairs if not pa.types.is_nested(pair[0].type)]

    def places(self) -> tuple[Places, Places] | None:
        """Where rows are gone and new; None where they differ too often."""
        if not self._flat:
            return None
        i = j = 0
        gone, new = list[Places](), list[Places]()
        for _ in range(MOST_STEPS):
            same = self._equal_run(i, j)
            i, j = i + same, j + same
            step = self._way_back(i, j)
            if step is None:
                return None
            gone.append(np.arange(i, i + step[0]))
            new.append(np.arange(j, j + step[1]))
            i, j = i + step[0], j + step[1]
            if (i, j) == self._counts:
                return np.concatenate(gone), np.concatenate(new)
        return None

    def _equal_run(self, i: int, j: int) -> int:
        most = min(self._counts[0] - i, self._counts[1] - j)
        same, step = 0, NEAR_ROWS
        while same < most:
            step = min(step, most - same)
            unequal = _unequal_rows(self._pairs, (i + same, j + same), step)
            if len(unequal):
                return same + int(unequal[0])
            same, step = same + step, 2 * step
        return same

    def _way_back(self, i: int, j: int) -> tuple[int, int] | None:
        """How many rows of each to leave out until both go on with equal rows, or end."""
        ahead = self._counts[0] - i, self._counts[1] - j
        if not all(ahead):
            return ahead
        if self._is_equal_row(i + 1, j + 1):
            return 1, 1
        size, low = NEAR_ROWS, 1
        while low < max(ahead) and self._left > 0:
            in_before, in_after = self._find(0, i, j, low, size), self._find(1, j, i, low, size)
            if in_before is not None and (in_after is None or in_before <= in_after):
                return in_before, 0
            if in_after is not None:
                return 0, in_after
            low, size = low + size, 8 * size
        return ahead if min(ahead) == 1 and self._left > 0 else None

    def _is_equal_row(self, i: int, j: int) -> bool:
        if i >= self._counts[0] or j >= self._counts[1]:
            return False
        return not len(_unequal_rows(self._pairs, (i, j), 1))

    def _find(self, side: int, at: int, other: int, low: int, size: int) -> int | None:
        """How far ahead on a side the other side's row stands, among some rows."""
        start = at + low
        size = min(size, self._counts[side] - start)
        if size <= 0:
            return None
        self._left -= size
        equal: npt.NDArray[np.bool_] | None = None
        for pair in self._flat:
            rows, value = pair[side].slice(start, size), pair[1 - side][other]
            said = pc.equal(rows, value).fill_null(False) if value.is_valid else rows.is_null()
            mine = said.to_numpy()
            equal = mine if equal is None else equal & mine
            if not equal.any():
                return None
        assert equal is not None
        found = low + int(equal.argmax())
        where = (at + found, other) if side == 0 else (other, at + found)
        return found if self._is_equal_row(*where) else None


# By codes


def _by_codes(pairs: Sequence[Pair]) -> tuple[Places, Places] | None:
    """Equal rows have equal codes: the first of one code there is the first here, and so on."""
    kinds = [
        [p for p in pairs if pa.types.is_integer(p[0].type) == cheap] for cheap in (True, False)
    ]
    likely = [pair for kind in kinds for pair in reversed(kind)]  # keys stand before what changes
    if not all(_may_be_there(*pair) for pair in likely):
        return None
    count = len(pairs[0][0])
    columns = [_coded(*pair) for pair in pairs]
    codes = np.zeros(count + len(pairs[0][1]), np.uint64)
    for column in columns:
        codes = (codes ^ column) * MIX
        codes ^= codes >> HALF
    if not _is_promising(codes[:count], codes[count:]):
        return None
    numbers = pa.array(codes).dictionary_encode().indices.to_numpy().astype(np.int64)
    i, j = _matched(numbers[:count], numbers[count:])
    if any((column[i] != column[j + count]).any() for column in columns):
        return None  # two rows happen to have one code
    kept = _in_order(j)
    if kept is None:
        return None
    return _others(i[kept], count), _others(j[kept], len(codes) - count)


def _may_be_there(before: pa.ChunkedArray, after: pa.ChunkedArray) -> bool:
    """Whether a good part of some new values of a column was there before, somewhere."""
    if pa.types.is_nested(before.type):
        return True
    sample = after.take(pa.array(np.arange(0, len(after), _stride(after)))).combine_chunks()
    seen = before.filter(pc.is_in(before, value_set=sample))
    return bool(GOOD_PART * pc.sum(pc.is_in(sample, value_set=seen)).as_py() >= len(sample))


def _stride(rows: Sized) -> int:
    return max(len(rows) // SAMPLED_ROWS, 1)


def _coded(before: pa.ChunkedArray, after: pa.ChunkedArray) -> npt.NDArray[np.uint64]:
    """Equal values of a column have equal codes, different ones different ones."""
    whole = pa.chunked_array([*before.chunks, *after.chunks], before.type)
    if pa.types.is_nested(whole.type):
        known: dict[Any, int] = {}
        found = [known.setdefault(_exact(value), len(known)) for value in whole.to_pylist()]
        return np.array(found, np.uint64)
    if pa.types.is_integer(whole.type) and not whole.null_count:
        return whole.to_numpy().astype(np.uint64)
    coded = whole.combine_chunks().dictionary_encode(null_encoding="encode")
    parts = coded.chunks if isinstance(coded, pa.ChunkedArray) else [coded]
    if len(parts) > 1:
        coded = pa.chunked_array(parts).unify_dictionaries()
        parts = coded.chunks
    return np.concatenate([part.indices.to_numpy().astype(np.uint64) for part in parts])


def _is_promising(before: npt.NDArray[np.uint64], after: npt.NDArray[np.uint64]) -> bool:
    """Whether a good part of some new rows was there before, and in much the same order."""
    sample = after[:: _stride(after)]
    seen = pc.is_in(pa.array(before), value_set=pa.array(sample)).to_numpy(zero_copy_only=False)
    known, firsts = np.unique(before[seen], return_index=True)
    sample = sample[np.isin(sample, known)]
    if GOOD_PART * len(sample) < len(after[:: _stride(after)]):
        return False
    back = np.diff(firsts[np.searchsorted(known, sample)]) < 0
    return bool(GOOD_PART * back.sum() <= len(sample))


def _matched(before: Places, after: Places) -> tuple[Places, Places]:
    """Places of equal rows, ascending in the first."""
    count = max(int(before.max(initial=0)), int(after.max(initial=0))) + 1
    ours, theirs = np.bincount(before, minlength=count), np.bincount(after, minlength=count)
    i, j = (
        _first_of_each(codes, np.minimum(ours, theirs)) for codes in (before, after)
    )  # both by code, then by place
    order = np.argsort(i)
    return i[order], j[order]


def _first_of_each(codes: Places, most: Places) -> Places:
    """Places of the first `most[code]` of each code, by code."""
    order = np.argsort(codes, kind="stable")
    grouped = codes[order]
    turns = np.arange(len(grouped)) - np.searchsorted(grouped, grouped)
    chosen: Places = order[turns < most[grouped]]
    return chosen


def _in_order(places: Places) -> Places | None:
    """Which of some distinct numbers to keep, so that they ascend and most of them stay."""
    ranks: Places = np.empty(len(places), np.int64)
    ranks[np.argsort(places)] = np.arange(len(places))
    starts = np.flatnonzero(np.diff(ranks, prepend=-2) != 1)  # runs that stay together
    if len(starts) > MOST_RUNS:
        return None
    sizes = np.diff(starts, append=len(places))
    runs = _heaviest(ranks[starts].tolist(), sizes.tolist())
    chosen = [np.arange(starts[run], starts[run] + sizes[run]) for run in runs]
    return np.concatenate(chosen) if chosen else NO_PLACES


def _heaviest(values: Sequence[int], weights: Sequence[int]) -> list[int]:
    """The ascending subsequence of the greatest weight."""
    ends, sums, lasts = list[int](), list[int](), list[int]()  # by last value; sums ascend too
    previous = [-1] * len(values)
    for number, (value, weight) in enumerate(zip(values, weights, strict=True)):
        place = bisect_left(ends, value)
        if place:
            previous[number] = lasts[place - 1]
            weight += sums[place - 1]
        stop = place
        while stop < len(ends) and sums[stop] <= weight:
            stop += 1
        ends[place:stop], sums[place:stop], lasts[place:stop] = [value], [weight], [number]
    chosen, number = list[int](), lasts[-1] if lasts else -1
    while number >= 0:
        chosen.append(number)
        number = previous[number]
    return chosen[::-1]


def _others(places: Places, count: int) -> Places:
    """All places but some."""
    others = np.ones(count, np.bool_)
    others[places] = False
    return np.flatnonzero(others)
