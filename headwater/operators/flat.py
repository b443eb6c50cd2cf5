"""Nested values as bytes, so that lists, maps and structs are compared and coded as text is.

Owns: the form. Two values have the same bytes just if they are equal: bit for bit, or as Spark groups (NaN
equals NaN, −0.0 equals 0.0). Columns of other types stay as they are. Must never: be stored or sent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import NotSupportedError
from headwater.fold.codes import key_bits
from headwater.fold.columns import FLOAT, OBJECT, Column, Slots, Vector, kind_of

BYTES = pa.large_binary()
_NOTHING = pa.scalar(b"", BYTES)


def flat_type(type_: pa.DataType) -> pa.DataType:
    """The type of a column once it is flat."""
    try:
        kind_of(type_)
    except NotSupportedError:
        return BYTES
    return type_


def flat(column: pa.Array | pa.ChunkedArray, exact: bool) -> Column:
    """A column of a type that has a vector; NULL stays NULL."""
    if flat_type(column.type) == column.type:
        return Column(column)
    array = whole(column)
    return Column(pc.if_else(array.is_valid(), _bytes(array, exact), pa.scalar(None, BYTES)))


def whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def elements(array: pa.Array) -> tuple[Slots, Slots]:
    """Of a column of lists or maps: where the elements of each row start, and how many they are."""
    offsets = array.offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    lengths = np.diff(offsets)
    if array.null_count:
        lengths = np.where(array.is_valid().to_numpy(zero_copy_only=False), lengths, 0)
    return offsets[:-1], lengths


def positions(starts: Slots, lengths: Slots) -> tuple[Slots, Slots]:
    """The places of the elements of all rows, and each one's position in its row."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    inside = np.arange(total) - np.repeat(ends - lengths, lengths)
    return np.repeat(starts, lengths) + inside, inside


def _bytes(array: pa.Array, exact: bool) -> pa.Array:
    """Bytes without a NULL; each begins with whether the value is there."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    there = _fixed(array.is_valid().to_numpy(zero_copy_only=False).astype(np.uint8))
    if pa.types.is_struct(array.type):
        return _side_by_side([there, *(_bytes(field, exact) for field in array.flatten())])
    if pa.types.is_fixed_size_list(array.type):
        array = array.cast(pa.large_list(array.type.value_type))
    if pa.types.is_nested(array.type):
        return _side_by_side([there, *_list_bytes(array, exact)])
    if flat_type(array.type) != array.type:
        return _side_by_side([there, _stored_bytes(array)])
    column = Column(array)
    if column.kind == OBJECT and not pa.types.is_decimal(array.type):
        return _side_by_side([there, _text_bytes(array)])
    return _side_by_side([there, _number_bytes(column, exact)])


def _list_bytes(array: pa.Array, exact: bool) -> list[pa.Array]:
    starts, lengths = elements(array)
    places, _ = positions(starts, lengths)
    inner = _bytes(array.values.take(pa.array(places)), exact)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), inner)
    return [_fixed(lengths), pc.binary_join(lists, _NOTHING)]


def _text_bytes(array: pa.Array) -> pa.Array:
    texts = array.cast(BYTES).fill_null(b"")
    lengths = pc.binary_length(texts).to_numpy(zero_copy_only=False).astype(np.int64)
    return _side_by_side([_fixed(lengths), texts])


def _stored_bytes(array: pa.Array) -> pa.Array:
    """Values of a fixed width as Arrow stores them."""
    type_ = pa.binary(array.type.bit_width // 8)
    stored = pa.Array.from_buffers(type_, len(array), [None, array.buffers()[1]], 0, array.offset)
    return pc.if_else(array.is_valid(), stored.cast(BYTES), _NOTHING)


def _number_bytes(column: Column, exact: bool) -> pa.Array:
    if column.kind == OBJECT:  # a long decimal
        return _text_bytes(column.array.cast(pa.string()))
    bits = key_bits(column) if column.kind == FLOAT and not exact else column.values.view(np.int64)
    return _fixed(bits if column.valid is None else np.where(column.valid, bits, 0))


def _fixed(values: Vector) -> pa.Array:
    """Numbers as their bytes."""
    data = pa.py_buffer(np.ascontiguousarray(values))
    type_ = pa.binary(values.dtype.itemsize)
    return pa.Array.from_buffers(type_, len(values), [None, data]).cast(BYTES)


def _side_by_side(parts: Sequence[pa.Array]) -> pa.Array:
    return pc.binary_join_element_wise(*parts, _NOTHING)
