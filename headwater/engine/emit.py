"""What is handed out of a result: all of it, or what changed since the result before (EMIT).

Owns: when two rows are the same row. NULL and NaN equal themselves, -0.0 equals 0.0, floats are
equal within 1e-9 relative, also inside lists, structs and maps; everything else is compared
exactly; how often a row occurs counts. Rows that are equal exactly are paired first, by counts of
codes; only those left over are compared by nearness. Must never: read a clock, keep anything from
call to call, or compare `_t`. DESIGN §5, "Continuous query"; ST5.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.sql.extensions import Emit

Numbers = npt.NDArray[np.int64]  # row numbers, codes or counts

TOLERANCE = 1e-9
OPERATION = "_op"
LARGEST_CODE = 1 << 62
NO_ROWS: Numbers = np.empty(0, np.int64)
DAY_US = 86_400_000_000

_NAN, _FINITE = object(), object()  # stand for floats in the shape of a nested value


def emitted(
    what: Emit, previous: pa.Table | None, current: pa.Table, instant: pa.Scalar
) -> pa.Table:
    """What a reader gets of the current result; the last column of both tables is `_t`."""
    if what == "all":
        return current
    before = current.slice(0, 0) if previous is None else previous
    gone, added = difference(before, current)
    if what == "inserts":
        return current.take(pa.array(added))
    deletes = _at(before.take(pa.array(gone)), current.schema, instant)
    if what == "deletes":
        return deletes
    rows = pa.concat_tables([deletes, current.take(pa.array(added))])
    operations = pa.array(["-"] * len(gone) + ["+"] * len(added), pa.string())
    return rows.append_column(OPERATION, operations)


def instant_scalar(type_: pa.DataType, instant: int) -> pa.Scalar:
    """An instant, in ticks, as a value of the type of `_t`."""
    if pa.types.is_date(type_):
        return pa.scalar(instant // DAY_US, pa.int32()).cast(type_)
    if pa.types.is_timestamp(type_):
        return pa.scalar(instant, pa.int64()).cast(type_)
    return pa.scalar(instant, type_)


def _at(rows: pa.Table, schema: pa.Schema, instant: pa.Scalar) -> pa.Table:
    """The rows with another instant."""
    times = pa.repeat(instant, rows.num_rows)
    return pa.Table.from_arrays([*rows.columns[:-1], times], schema=schema)


def difference(previous: pa.Table, current: pa.Table) -> tuple[Numbers, Numbers]:
    """Numbers of the rows that are gone from the previous result, and of those that are new.

    Of equal rows the first ones are paired, so the last ones are gone or new.
    """
    if _same(previous, current):
        return NO_ROWS, NO_ROWS
    row_count = previous.num_rows
    columns = [
        _coded(pa.chunked_array([*a.chunks, *b.chunks], a.type))
        for a, b in zip(previous.columns[:-1], current.columns[:-1], strict=True)
    ]
    codes, count = _combined([c.codes for c in columns], row_count + current.num_rows)
    before, after = codes[:row_count], codes[row_count:]
    left = _Left(
        np.bincount(before, minlength=count), np.bincount(after, minlength=count), before, after
    )
    if any(column.has_floats for column in columns):
        _pair_near(left, columns, row_count)
    return _beyond(before, left.gone), _beyond(after, left.added)


def _same(previous: pa.Table, current: pa.Table) -> bool:
    """Whether nothing changed, as far as can be told without looking for equal rows."""
    if previous is current or not (previous.num_rows or current.num_rows):
        return True
    if previous.num_rows != current.num_rows:
        return False
    pairs = zip(previous.columns[:-1], current.columns[:-1], strict=True)
    return all(a is b or a.equals(b) for a, b in pairs)


# Codes


@dataclass(frozen=True)
class _Coded:
    """One column of both results: equal values have equal codes."""

    codes: Numbers
    shapes: Numbers  # codes again, of the values without their finite floats
    plain: npt.NDArray[np.float64] | None = None  # a column of floats
    nested: list[tuple[float, ...]] | None = None  # the floats inside a nested value

    @property
    def has_floats(self) -> bool:
        return self.plain is not None or self.nested is not None

    def floats(self, row: int) -> tuple[float, ...]:
        """The finite floats of one row."""
        if self.nested is not None:
            return self.nested[row]
        return () if self.plain is None else (float(self.plain[row]),)


def _coded(column: pa.ChunkedArray) -> _Coded:
    whole = column.combine_chunks()
    array = pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_floating(array.type):
        return _coded_floats(array)
    if pa.types.is_nested(array.type):
        return _coded_nested(array)
    codes, _ = _dense(array)
    return _Coded(codes, codes)


def _coded_floats(array: pa.Array) -> _Coded:
    values = array.cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0  # -0.0 becomes 0.0
    missing = array.is_null().to_numpy(zero_copy_only=False)
    codes, _ = _dense(pa.array(values, mask=missing))
    finite = np.isfinite(values) & ~missing
    shapes = np.where(finite, 0, codes + 1)
    return _Coded(codes, shapes, plain=np.where(finite, values, 0.0))


def _coded_nested(array: pa.Array) -> _Coded:
    """Lists, structs and maps, by way of Python: hashable shapes and the floats within."""
    exact: dict[Any, int] = {}
    shapes: dict[Any, int] = {}
    found = []
    for value in array.to_pylist():
        floats: list[float] = []
        shape = _shape(value, floats)
        code = exact.setdefault((shape, tuple(floats)), len(exact))
        found.append((code, shapes.setdefault(shape, len(shapes)), tuple(floats)))
    codes = np.array([code for code, _, _ in found], np.int64)
    shape_codes = np.array([shape for _, shape, _ in found], np.int64)
    nested = [floats for _, _, floats in found]
    return _Coded(codes, shape_codes, nested=nested if any(nested) else None)


def _shape(value: Any, floats: list[float]) -> Any:
    """The value as something hashable, its finite floats moved to the list."""
    if isinstance(value, float):
        if math.isfinite(value):
            floats.append(value + 0.0)
            return _FINITE
        return _NAN if math.isnan(value) else value
    if isinstance(value, dict):
        return tuple(_shape(part, floats) for part in value.values())
    if isinstance(value, list):
        if value and isinstance(value[0], tuple):  # a map: its entries have no order
            value = sorted(value, key=lambda entry: repr(entry[0]))
        return tuple(_shape(part, floats) for part in value)
    if isinstance(value, tuple):
        return tuple(_shape(part, floats) for part in value)
    return value


def _dense(values: pa.Array) -> tuple[Numbers, int]:
    """Codes 0, 1, 2, … in order of first appearance, and how many."""
    coded = values.dictionary_encode(null_encoding="encode")
    codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, max(len(coded.dictionary), 1)


def _combined(codes: Sequence[Numbers], row_count: int) -> tuple[Numbers, int]:
    """Codes of rows from the codes of their columns."""
    whole, count = np.zeros(row_count, np.int64), 1
    for column in codes:
        size = int(column.max(initial=0)) + 1
        if count * size > LARGEST_CODE:
            whole, count = _dense(pa.array(whole))
        whole, count = whole * size + column, count * size
    return _dense(pa.array(whole))


# Pairs


@dataclass
class _Left:
    """By code: how often a row of the previous or current result has found no equal one."""

    gone: Numbers
    added: Numbers
    before: Numbers  # the codes of the previous result's rows
    after: Numbers

    def __post_init__(self) -> None:
        paired = np.minimum(self.gone, self.added)
        self.gone, self.added = self.gone - paired, self.added - paired

    def pair(self, gone: Any, added: Any) -> None:
        """Pairs rows of one code with rows of another, as many as there are."""
        count = np.minimum(self.gone[gone], self.added[added])
        self.gone[gone] -= count
        self.added[added] -= count


def _beyond(codes: Numbers, left: Numbers) -> Numbers:
    """The last `left[code]` rows of each code, in order."""
    rows = np.flatnonzero(left[codes] > 0)
    if not len(rows):
        return NO_ROWS
    of_rows = codes[rows]
    order = np.argsort(of_rows, kind="stable")
    grouped = of_rows[order]
    ends = np.searchsorted(grouped, grouped, side="right")
    chosen = ends - np.arange(len(grouped)) <= left[grouped]
    return np.sort(rows[order[chosen]])


def _pair_near(left: _Left, columns: Sequence[_Coded], row_count: int) -> None:
    """Pairs rows left over that differ by less than the tolerance."""
    gone, gone_rows = _first_rows(left.before, left.gone)
    added, added_rows = _first_rows(left.after, left.added)
    if not (len(gone) and len(added)):
        return
    rows = np.concatenate([gone_rows, added_rows + row_count])
    shapes, count = _combined([c.shapes[rows] for c in columns], len(rows))
    near = _Near([c for c in columns if c.has_floats], rows)
    of_gone, of_added = shapes[: len(gone)], shapes[len(gone) :]
    single = (np.bincount(of_gone, minlength=count) == 1) & (
        np.bincount(of_added, minlength=count) == 1
    )
    first = np.flatnonzero(single[of_gone])
    second = np.flatnonzero(single[of_added])
    first = first[np.argsort(of_gone[first])]
    second = second[np.argsort(of_added[second])]
    close = near.all_close(first, second + len(gone))
    left.pair(gone[first[close]], added[second[close]])
    groups: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for side, of in ((0, of_gone), (1, of_added)):
        for place in np.flatnonzero(~single[of]).tolist():
            groups[int(of[place])][side].append(place)
    for ours, theirs in groups.values():
        if ours and theirs:
            _pair_group(left, near, (gone, ours), (added, theirs))


def _first_rows(codes: Numbers, left: Numbers) -> tuple[Numbers, Numbers]:
    """The codes that have rows left, by the first row that has them, and that row."""
    firsts = np.full(len(left), -1, np.int64)
    firsts[codes[::-1]] = np.arange(len(codes))[::-1]  # the last write is the first row
    found = np.flatnonzero(left > 0)
    found = found[np.argsort(firsts[found])]
    return found, firsts[found]


@dataclass(frozen=True)
class _Near:
    """Compares the floats of rows of one shape; a place is an index into `rows`."""

    columns: Sequence[_Coded]
    rows: Numbers

    def all_close(self, first: Numbers, second: Numbers) -> npt.NDArray[np.bool_]:
        """Which pairs of places are near each other."""
        close = np.ones(len(first), np.bool_)
        ours, theirs = self.rows[first], self.rows[second]
        for column in self.columns:
            if column.plain is not None:
                a, b = column.plain[ours], column.plain[theirs]
                with np.errstate(over="ignore"):
                    close &= np.abs(a - b) <= TOLERANCE * np.maximum(np.abs(a), np.abs(b))
            else:
                pairs = zip(ours.tolist(), theirs.tolist(), strict=True)
                close &= np.array(
                    [_close(column.floats(a), column.floats(b)) for a, b in pairs], np.bool_
                )
        return close

    def floats(self, place: int) -> tuple[float, ...]:
        """All floats of a row."""
        row = int(self.rows[place])
        return tuple(value for column in self.columns for value in column.floats(row))


def _close(first: Sequence[float], second: Sequence[float]) -> bool:
    return all(
        math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=0.0)
        for a, b in zip(first, second, strict=True)
    )


def _pair_group(
    left: _Left, near: _Near, ours: tuple[Numbers, list[int]], theirs: tuple[Numbers, list[int]]
) -> None:
    """Pairs rows of one shape: each gone row, in order, with the first added ones near to it.

    The float with the most distinct values narrows down which ones can be.
    """
    gone, gone_places = ours
    added, added_places = theirs
    added_floats = [near.floats(len(gone) + place) for place in added_places]
    kinds = [len(set(values)) for values in zip(*added_floats, strict=True)]
    key = kinds.index(max(kinds)) if kinds else None
    if key is None:
        return
    by_key = sorted(range(len(added_places)), key=lambda i: added_floats[i][key])
    keys = [added_floats[i][key] for i in by_key]
    for place in gone_places:
        floats = near.floats(place)
        reach = 2 * TOLERANCE * abs(floats[key])
        low = bisect_left(keys, floats[key] - reach)
        high = bisect_right(keys, floats[key] + reach)
        for i in sorted(by_key[low:high]):
            code = added[added_places[i]]
            if left.added[code] and _close(floats, added_floats[i]):
                left.pair(gone[place], code)
            if not left.gone[gone[place]]:
                break
