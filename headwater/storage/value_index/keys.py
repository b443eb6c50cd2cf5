"""A column's distinct keys in order, each with the rows that hold it.

Owns: how values of each type become comparable keys (the same for a column and for a constant),
and the sort. Numbers, dates and timestamps are NumPy numbers; -0.0 is 0.0, NaN is one key, the
largest. Strings and decimals are bytes whose order is the values' order. NULL has no key.
Must never: read or write a file.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import NotSupportedError

BTREE, HASH = "BTREE", "HASH"
RADIX_BITS = 16  # NumPy's stable sort of 16-bit integers is a radix sort

Numbers = npt.NDArray[Any]
Key = np.generic | bytes


@dataclass(frozen=True, eq=False)
class BytesKeys(Sequence[bytes]):
    """Keys as bytes, in memcmp order: key i is data[offsets[i]:offsets[i + 1]]."""

    offsets: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: Any) -> Any:
        return self.data[self.offsets[index] : self.offsets[index + 1]].tobytes()

    def array(self) -> pa.Array:
        """The keys as an Arrow array, without a copy."""
        parts: list[Any] = [self.offsets, self.data]
        buffers = [None, *(pa.py_buffer(part) for part in parts)]
        return pa.Array.from_buffers(pa.large_binary(), len(self), buffers)


@dataclass(frozen=True, eq=False)
class SortedKeys:
    """The rows of a block by key: those of key i are rows[starts[i]:starts[i + 1]], ascending."""

    column: str
    type: pa.DataType
    method: str
    row_count: int  # of the block, NULLs included
    keys: Numbers | BytesKeys
    starts: npt.NDArray[np.uint32]
    rows: npt.NDArray[np.uint32]

    def frequency(self, value: Any) -> int:
        """In how many rows the value stands."""
        position, found = place(self.keys, key_of(value, self.type))
        return int(self.starts[position + 1]) - int(self.starts[position]) if found else 0


def indexable(type_: pa.DataType) -> bool:
    """Whether a column of this type can have a value index."""
    return _is_number(_plain(type_)) or _is_bytes(_plain(type_))


def build(column: pa.ChunkedArray, name: str = "", method: str = BTREE) -> SortedKeys:
    """Sorts a block's column."""
    type_ = _plain(column.type)
    if not indexable(type_):
        raise NotSupportedError(
            f"a column of type {column.type} cannot have an index",
            hint="index numbers, strings, booleans, dates, timestamps or decimals",
        )
    array = _combined(column, type_)
    present = None
    if array.null_count:
        valid = array.is_valid().to_numpy(zero_copy_only=False)
        present, array = np.flatnonzero(valid).astype(np.uint32), array.drop_null()
    keys, starts, order = (_sorted_bytes if _is_bytes(type_) else _sorted_numbers)(array, type_)
    rows = order.astype(np.uint32) if present is None else present[order]
    return SortedKeys(name, type_, method, len(column), keys, starts, rows)


def place(keys: Numbers | BytesKeys, key: Key | None) -> tuple[int, bool]:
    """The position of the first key that is not smaller, and whether it is equal."""
    if key is None or not len(keys):
        return 0, False
    if isinstance(keys, BytesKeys):
        position = bisect_left(keys, key)
        return position, position < len(keys) and keys[position] == key
    position = int(keys.searchsorted(key))
    if position == len(keys):
        return position, False
    here = keys[position]
    return position, bool(here == key or (here != here and key != key))


def key_of(value: Any, type_: pa.DataType) -> Key | None:
    """A constant of the column's type as a key; None for NULL, which equals nothing."""
    # Equal date-times of one zone may differ in `fold` and so be different instants.
    zoned = isinstance(value, datetime) and value.tzinfo not in (None, UTC)
    return _key(value, type_) if zoned else _remembered_key(value, type_)


def _key(value: Any, type_: pa.DataType) -> Key | None:
    if value is None:
        return None
    array = pa.array([value], type_)
    return bytes_keys(array, type_)[0] if _is_bytes(type_) else _numbers(array, type_)[0]


_remembered_key = lru_cache(maxsize=4096)(_key)  # one constant is looked up in many blocks


def same_type(left: pa.DataType, right: pa.DataType) -> bool:
    """Whether keys of the two types compare as they stand."""
    return left == right or _plain(left) == _plain(right)


def _plain(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    if pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return pa.string()
    return type_


def _is_number(type_: pa.DataType) -> bool:
    kinds = pa.types
    temporal = kinds.is_temporal(type_) and not kinds.is_interval(type_)
    return (
        kinds.is_integer(type_) or kinds.is_floating(type_) or kinds.is_boolean(type_) or temporal
    )


def _is_bytes(type_: pa.DataType) -> bool:
    kinds = pa.types
    return kinds.is_string(type_) or kinds.is_binary(type_) or kinds.is_decimal(type_)


def _combined(column: pa.ChunkedArray, type_: pa.DataType) -> Any:
    """One array of the plain type; large offsets, so that any size fits."""
    wanted: pa.DataType = type_
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        wanted = pa.large_binary()
    elif pa.types.is_decimal(type_) and type_.bit_width < 128:
        wanted = pa.decimal128(type_.precision, type_.scale)
    for step in (type_ if pa.types.is_dictionary(column.type) else column.type, wanted):
        column = column if column.type == step else column.cast(step)
    combined: Any = column.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined


def _numbers(array: Any, type_: pa.DataType) -> Numbers:
    """Values without NULL as NumPy numbers in the values' order."""
    if pa.types.is_boolean(type_):
        array = array.cast(pa.uint8())
    elif pa.types.is_temporal(type_):
        array = array.view(pa.int32() if type_.bit_width == 32 else pa.int64())
    elif pa.types.is_float16(type_):
        array = array.cast(pa.float32())
    values = array.to_numpy(zero_copy_only=False)
    return values + values.dtype.type(0) if pa.types.is_floating(type_) else values


def bytes_keys(array: Any, type_: pa.DataType) -> BytesKeys:
    """Values without NULL as bytes in the values' order."""
    if pa.types.is_decimal(type_):
        if array.type.bit_width < 128:
            array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
        width = array.type.bit_width // 8
        raw = np.frombuffer(array.buffers()[1], np.uint8)[array.offset * width :]
        digits = raw[: len(array) * width].reshape(-1, width)[:, ::-1].copy()
        digits[:, 0] ^= 0x80  # the sign: negative numbers first
        return BytesKeys(np.arange(len(array) + 1, dtype=np.int64) * width, digits.reshape(-1))
    array = array.cast(pa.large_binary())
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    content = np.frombuffer(data if data is not None else b"", np.uint8)
    return BytesKeys(ends - ends[0], content[ends[0] : ends[-1]])


def _sorted_numbers(array: Any, type_: pa.DataType) -> tuple[Numbers, Any, Any]:
    values = _numbers(array, type_)
    order = sorted_order(values)
    values = values[order]
    first = first_of_runs(values)
    return values[first], _starts(first, len(values)), order


def _sorted_bytes(array: Any, type_: pa.DataType) -> tuple[BytesKeys, Any, Any]:
    """Only the distinct values are compared as bytes; the rows are sorted by their ranks."""
    distinct, ranks = ranked(array)
    order = sorted_order(ranks)
    first = first_of_runs(ranks[order])
    return bytes_keys(distinct, type_), _starts(first, len(ranks)), order


def ranked(array: Any) -> tuple[Any, npt.NDArray[np.uint32]]:
    """The distinct values in order, and for each value its position among them."""
    encoded = array.dictionary_encode()
    by_value = pc.sort_indices(encoded.dictionary)
    ranks = np.empty(len(by_value), np.uint32)
    ranks[by_value.to_numpy()] = np.arange(len(by_value), dtype=np.uint32)
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    return encoded.dictionary.take(by_value), ranks[codes]


def _starts(first: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.uint32]:
    return np.append(first, count).astype(np.uint32)


def first_of_runs(ordered: Numbers) -> npt.NDArray[np.int64]:
    """Where each distinct key begins; NaN equals NaN."""
    if not len(ordered):
        return np.empty(0, np.int64)
    changes = ordered[1:] != ordered[:-1]
    if ordered.dtype.kind == "f":
        changes &= ~(np.isnan(ordered[1:]) & np.isnan(ordered[:-1]))
    return np.concatenate(([0], np.flatnonzero(changes) + 1))


def sorted_order(values: Numbers) -> npt.NDArray[np.int64]:
    """A stable argsort, 16 bits at a time; NaN last, in the order of its rows."""
    if len(values) < 2 or bool((values[1:] >= values[:-1]).all()):
        return np.arange(len(values))
    if values.dtype.kind == "f":
        values = _ordered_bits(values)
    spread = int(values.max()) - int(values.min())
    wide = values.astype(np.uint64) if values.dtype.kind == "u" else values.astype(np.int64)
    digits = (wide - wide.min()).view(np.uint64)  # beyond 63 bits it wraps around, to the same
    order = np.argsort(digits.astype(np.uint16), kind="stable")
    for shift in range(RADIX_BITS, spread.bit_length(), RADIX_BITS):
        digit = (digits >> np.uint64(shift)).astype(np.uint16)
        order = order[np.argsort(digit[order], kind="stable")]
    return order


def _ordered_bits(values: Numbers) -> Numbers:
    """Integers in the order of the floats: a negative float's bits count downwards."""
    plain = np.where(np.isnan(values), values.dtype.type(np.nan), values)
    bits: Numbers = plain.view(np.int64 if values.dtype.itemsize == 8 else np.int32)
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)
