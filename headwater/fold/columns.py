"""Arrow columns as NumPy vectors and back.

Owns: which vector stands for which Arrow type (64-bit integers for integers, booleans, dates,
times and decimals of up to 18 digits; 64-bit floats; Python objects for text, binary and longer
decimals), and validity beside the values, because Arrow's own conversion turns integers with
NULLs into floats. Must never: change a value, or hand out memory that a structure writes to later.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import NotSupportedError

Vector = npt.NDArray[Any]
Slots = npt.NDArray[np.int64]

INTEGER, FLOAT, OBJECT = "integer", "float", "object"
SHORT_DIGITS = 18  # decimals of so many digits fit a 64-bit integer
WORD = 1 << 64
OBJECT_BYTES = 56  # a short text or a long integer, about


@lru_cache(maxsize=256)
def kind_of(type_: pa.DataType) -> str:
    """Which kind of vector stands for a type; a type without one is refused."""
    if pa.types.is_dictionary(type_):
        return kind_of(type_.value_type)
    if pa.types.is_decimal128(type_):
        return INTEGER if type_.precision <= SHORT_DIGITS else OBJECT
    if pa.types.is_float32(type_) or pa.types.is_float64(type_):
        return FLOAT
    if pa.types.is_uint64(type_) or pa.types.is_floating(type_):
        raise NotSupportedError(f"type {type_} cannot be folded by operators")
    if pa.types.is_integer(type_) or pa.types.is_boolean(type_) or pa.types.is_null(type_):
        return INTEGER
    if pa.types.is_temporal(type_) and not pa.types.is_interval(type_):
        return INTEGER
    if _is_text(type_):
        return OBJECT
    raise NotSupportedError(f"type {type_} cannot be folded by operators")


def _is_text(type_: pa.DataType) -> bool:
    checks = (
        pa.types.is_string,
        pa.types.is_large_string,
        pa.types.is_binary,
        pa.types.is_large_binary,
    )
    return any(check(type_) for check in checks)


class Column:
    """One column of a chunk: its Arrow array, its vector and which of its rows are not NULL."""

    def __init__(self, data: pa.Array | pa.ChunkedArray) -> None:
        if isinstance(data, pa.ChunkedArray):
            data = data.combine_chunks()
        if isinstance(data, pa.ChunkedArray):  # no chunks at all
            data = pa.array([], data.type)
        if pa.types.is_dictionary(data.type):
            data = data.dictionary_decode()
        self.array: pa.Array = data
        self.type: pa.DataType = data.type
        self.kind = kind_of(data.type)

    def __len__(self) -> int:
        return len(self.array)

    @cached_property
    def valid(self) -> npt.NDArray[np.bool_] | None:
        """Which rows are not NULL; None if all of them."""
        if self.array.null_count == 0:
            return None
        return self.array.is_valid().to_numpy(zero_copy_only=False)

    @cached_property
    def values(self) -> Vector:
        """The vector; what stands at a NULL is arbitrary."""
        if self.kind == OBJECT:
            if pa.types.is_decimal128(self.type):
                return _long_integers(self.array)
            return self.array.to_numpy(zero_copy_only=False)
        return _numbers(self.array)

    @cached_property
    def ranked(self) -> tuple[Vector, Vector]:
        """For text: each row's rank among the chunk's distinct values, and these in order."""
        coded = self.array.dictionary_encode()
        order = pc.sort_indices(coded.dictionary)
        ranks = np.empty(len(order), np.int64)
        ranks[order.to_numpy()] = np.arange(len(order))
        codes = coded.indices.fill_null(0).to_numpy(zero_copy_only=False)
        distinct = coded.dictionary.take(order).to_numpy(zero_copy_only=False)
        return (ranks[codes] if len(ranks) else np.zeros(len(codes), np.int64)), distinct


def _numbers(array: pa.Array) -> Vector:
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int64)
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    data = array.buffers()[1]
    if data is None or not len(array):
        return np.zeros(len(array), _vector_dtype(array.type))
    if pa.types.is_decimal(array.type):
        words = np.frombuffer(data, np.int64, 2 * len(array), 16 * array.offset)
        return words[::2].copy()
    stored = storage_dtype(array.type)
    values = np.frombuffer(data, stored, len(array), stored.itemsize * array.offset)
    return values.astype(_vector_dtype(array.type), copy=False)


def _long_integers(array: pa.Array) -> Vector:
    data = array.buffers()[1]
    if data is None:
        return np.zeros(len(array), object)
    words = np.frombuffer(data, np.int64, 2 * len(array), 16 * array.offset)
    high, low = words[1::2].astype(object), words[::2].view(np.uint64).astype(object)
    return high * WORD + low


@lru_cache(maxsize=256)
def storage_dtype(type_: pa.DataType) -> np.dtype[Any]:
    """How Arrow stores a fixed-width type of ours."""
    if pa.types.is_floating(type_):
        return np.dtype(f"f{type_.bit_width // 8}")
    sign = "u" if pa.types.is_unsigned_integer(type_) else "i"
    return np.dtype(f"{sign}{type_.bit_width // 8}")


def _vector_dtype(type_: pa.DataType) -> np.dtype[Any]:
    return np.dtype(np.float64) if pa.types.is_floating(type_) else np.dtype(np.int64)


def vector_dtype(type_: pa.DataType) -> np.dtype[Any]:
    """The dtype of the vector that stands for a type."""
    kind = kind_of(type_)
    return np.dtype({INTEGER: np.int64, FLOAT: np.float64, OBJECT: np.object_}[kind])


def decode(values: Vector, valid: npt.NDArray[np.bool_] | None, type_: pa.DataType) -> pa.Array:
    """A vector as an Arrow array of its type; always a copy, because states are written to."""
    form = _form(type_)
    if form == "numbers":
        data = pa.py_buffer(values.astype(storage_dtype(type_), copy=True))
        return pa.Array.from_buffers(type_, len(values), [_bitmap(valid), data])
    if form == "decimals":
        return _decimals(values, valid, type_)
    if form == "nulls":
        return pa.nulls(len(values))
    if form == "dictionary":
        return decode(values, valid, type_.value_type)
    given = values != 0 if form == "booleans" else values
    return pa.array(given, type_, mask=None if valid is None else ~valid, from_pandas=False)


@lru_cache(maxsize=256)
def _form(type_: pa.DataType) -> str:
    if pa.types.is_dictionary(type_):
        return "dictionary"
    if pa.types.is_decimal128(type_):
        return "decimals"
    if pa.types.is_null(type_):
        return "nulls"
    if pa.types.is_boolean(type_):
        return "booleans"
    return "objects" if kind_of(type_) == OBJECT else "numbers"


def _bitmap(valid: npt.NDArray[np.bool_] | None) -> pa.Buffer | None:
    return None if valid is None else pa.array(valid, pa.bool_()).buffers()[1]


def _decimals(values: Vector, valid: npt.NDArray[np.bool_] | None, type_: pa.DataType) -> pa.Array:
    if values.dtype == object:
        data = b"".join((v or 0).to_bytes(16, "little", signed=True) for v in values.tolist())
    else:
        words = np.empty((len(values), 2), np.int64)
        words[:, 0], words[:, 1] = values, values >> 63
        data = words.tobytes()
    return pa.Array.from_buffers(type_, len(values), [_bitmap(valid), pa.py_buffer(data)])


def size_of(vector: Vector) -> int:
    """How much memory a vector holds; what its objects take is estimated."""
    objects = OBJECT_BYTES * len(vector) if vector.dtype == np.object_ else 0
    return vector.nbytes + objects


def columns_of(table: pa.Table | pa.RecordBatch, names: Sequence[str]) -> list[Column]:
    """The named columns of a table."""
    return [Column(table.column(name)) for name in names]
