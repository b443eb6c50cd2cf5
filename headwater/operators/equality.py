"""Which values are the same, bit for bit, whatever their type.

Owns: the comparison behind a row that is taken back and a result that stays as it was. NULL is the same as
NULL, a NaN as the same NaN; −0.0 and 0.0 differ. Must never: say of different values that they are the same.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import NotSupportedError
from headwater.fold.columns import Column, Vector, kind_of


def same_rows(left: pa.Table, right: pa.Table) -> Vector:
    """Place by place, whether two tables have the same row."""
    same = np.ones(left.num_rows, np.bool_)
    for mine, theirs in zip(left.columns, right.columns, strict=True):
        same &= same_values(one_array(mine), one_array(theirs))
    return same


def one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column as one array."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(_chunks(column))


def _chunks(column: pa.ChunkedArray) -> list[pa.Array]:
    return column.chunks or [pa.array([], column.type)]


def same_values(left: pa.Array, right: pa.Array) -> Vector:
    """Place by place, whether two arrays of one type have the same value."""
    type_ = left.type
    if pa.types.is_nested(type_):
        return _same_nested(left, right)
    try:
        kind_of(type_)
    except NotSupportedError:
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return np.fromiter((a == b for a, b in pairs), np.bool_, len(left))
    one, other = Column(left), Column(right)
    values = np.asarray(_bits(one) == _bits(other), np.bool_)
    if one.valid is None and other.valid is None:
        return values
    return _unless_null(left, right, values)


def _unless_null(left: pa.Array, right: pa.Array, values: Vector) -> Vector:
    nulls = left.is_null().to_numpy(zero_copy_only=False)
    others = right.is_null().to_numpy(zero_copy_only=False)
    return np.where(nulls | others, nulls == others, values)


def _bits(column: Column) -> Vector:
    values = column.values
    return values.view(np.int64) if values.dtype == np.float64 else values


def _same_nested(left: pa.Array, right: pa.Array) -> Vector:
    if pa.types.is_struct(left.type):
        same = np.ones(len(left), np.bool_)
        for mine, theirs in zip(left.flatten(), right.flatten(), strict=True):
            same &= same_values(mine, theirs)
        return _unless_null(left, right, same)
    lengths, others = (_lengths(array) for array in (left, right))
    same = lengths == others
    rows = np.flatnonzero(same & (lengths > 0))
    if len(rows):
        starts = np.cumsum(lengths[rows]) - lengths[rows]
        inner = _same_elements(left.take(pa.array(rows)), right.take(pa.array(rows)))
        same[rows] = np.logical_and.reduceat(inner, starts)
    return _unless_null(left, right, same)


def _lengths(array: pa.Array) -> Vector:
    if pa.types.is_map(array.type):
        lengths = np.diff(array.offsets.to_numpy())
        return np.where(array.is_valid().to_numpy(zero_copy_only=False), lengths, 0)
    return pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)


def _same_elements(left: pa.Array, right: pa.Array) -> Vector:
    """Element by element, of lists or maps that are as long as each other."""
    if pa.types.is_map(left.type):
        return same_values(left.keys, right.keys) & same_values(left.items, right.items)
    return same_values(left.flatten(), right.flatten())
