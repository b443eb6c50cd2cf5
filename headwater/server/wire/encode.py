"""Record batches → rows on the wire, a column at a time.

Every column becomes an Arrow array of bytes and an array of length prefixes; Arrow then joins them
row by row, so that no Python code runs per cell for the common types. Owns nothing; must never change
a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import BindError
from headwater.server.wire import types, values
from headwater.server.wire.replies import Field
from headwater.sql.types import is_list
from headwater.values import has_far_times, python_values

TEXT, BINARY = 0, 1
Cells: TypeAlias = pa.Array  # of binary, NULL where the value is NULL
_EMPTY = pa.scalar(b"", pa.binary())


def fields_of(schema: pa.Schema, formats: Sequence[int] = ()) -> list[Field]:
    """The columns of a schema as clients see them."""
    chosen = column_formats(len(schema), formats)
    found = []
    for column, format_ in zip(schema, chosen, strict=True):
        named = (column.metadata or {}).get(b"pg")  # the catalog's own types, sent as others are
        type_ = types.BY_NAME[named.decode()] if named else types.pg_type(column.type)
        modifier = types.modifier(column.type)
        found.append(Field(column.name, type_.oid, type_.size, modifier, format_))
    return found


def column_formats(count: int, formats: Sequence[int]) -> list[int]:
    """One format per column: none means text, one is for all; BindError for any other number."""
    if len(formats) <= 1:
        return [formats[0] if formats else TEXT] * count
    if len(formats) != count:
        raise BindError(
            f"{len(formats)} formats were given for {count} values or columns", sqlstate="08P01"
        )
    return list(formats)


def data_rows(rows: pa.Table | pa.RecordBatch, formats: Sequence[int] = ()) -> bytes:
    """The DataRow messages of some rows."""
    count = rows.num_rows
    if not count:
        return b""
    if not rows.num_columns:
        return b"D\0\0\0\x06\0\0" * count
    chosen = column_formats(rows.num_columns, formats)
    parts: list[Cells] = []
    lengths = np.full(count, 6, np.int64)
    for column, format_ in zip(rows.columns, chosen, strict=True):
        cells = as_cells(whole(column), format_)
        prefixes, used = _prefixed(cells)
        lengths += used
        parts += (prefixes, cells.fill_null(_EMPTY) if cells.null_count else cells)
    head = np.empty((count, 7), np.uint8)
    head[:, 0] = ord("D")
    head[:, 1:5] = lengths.astype(">u4").view(np.uint8).reshape(count, 4)
    head[:, 5:7] = np.frombuffer(rows.num_columns.to_bytes(2), np.uint8)
    return joined([fixed(head), *parts])


def whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column in one piece."""
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return column


def joined(parts: list[Cells]) -> bytes:
    """Columns of bytes, joined row by row, one row behind the other."""
    return contents(pc.binary_join_element_wise(*parts, pa.scalar(b"", parts[0].type)))


def contents(cells: Cells) -> bytes:
    """The bytes of all cells, one behind the other."""
    offsets = np.frombuffer(cells.buffers()[1], np.int32)[
        cells.offset : cells.offset + len(cells) + 1
    ]
    data = cells.buffers()[2]
    return b"" if data is None else data[int(offsets[0]) : int(offsets[-1])].to_pybytes()


def fixed(bytes_: np.ndarray[Any, Any]) -> Cells:
    """A two-dimensional array of bytes as cells of one width."""
    count, width = bytes_.shape
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(width)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(bytes_))]
    return pa.Array.from_buffers(pa.binary(), count, buffers)


def _prefixed(cells: Cells) -> tuple[Cells, np.ndarray[Any, Any]]:
    """The length prefixes of cells (-1 for NULL), and how many bytes each takes with it."""
    lengths = pc.binary_length(cells)
    if lengths.null_count:
        lengths = lengths.fill_null(-1)
    found = lengths.to_numpy(zero_copy_only=False).astype(np.int32)
    prefix = found.astype(">i4").view(np.uint8).reshape(len(found), 4)
    return fixed(prefix), np.maximum(found, 0).astype(np.int64) + 4


def as_cells(column: pa.Array, format_: int) -> Cells:
    """A column in PostgreSQL's text or binary form."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return as_binary(column) if format_ == BINARY else as_text(column).cast(pa.binary())


# Text


def as_text(column: pa.Array) -> pa.Array:
    """A column as PostgreSQL writes it, as Arrow strings."""
    type_ = column.type
    if pa.types.is_string(type_):
        return column
    if pa.types.is_boolean(type_):
        return pc.if_else(column, "t", "f")
    if pa.types.is_floating(type_):
        return _float_text(column)
    if pa.types.is_timestamp(type_) or pa.types.is_date(type_):
        return _time_text(column)
    if types.pg_type(type_).name == "bytea":
        return _hex_text(column.cast(pa.binary()))
    if pa.types.is_decimal(type_):
        return _decimal_text(column)
    slow = values.slow_text(type_)
    if slow is not None:
        return _mapped(column, slow)
    if is_list(type_):
        return _array_text(column)
    if pa.types.is_time(type_):
        return _trimmed(column.cast(pa.time64("us")).cast(pa.string()))
    return column.cast(pa.string())


def _mapped(column: pa.Array, function: Any) -> pa.Array:
    cells = [None if v is None else function(v) for v in python_values(column)]
    return pa.array(cells, pa.string())


def _decimal_text(column: pa.Array) -> pa.Array:
    texts = column.cast(pa.string())
    powers = pc.any(pc.match_substring(texts, "E"), min_count=0).as_py()
    return _mapped(column, lambda value: format(value, "f")) if powers else texts


def _float_text(column: pa.Array) -> pa.Array:
    texts = column.cast(pa.string())
    if pc.all(pc.is_finite(column), min_count=0).as_py() is not False:
        return texts
    for ours, theirs in (
        ("nan", "NaN"),
        ("-nan", "NaN"),
        ("inf", "Infinity"),
        ("-inf", "-Infinity"),
    ):
        texts = pc.if_else(pc.equal(texts, ours), theirs, texts)
    return texts


def _time_text(column: pa.Array) -> pa.Array:
    """Dates and timestamps; in years that Arrow would cut off, one by one."""
    if has_far_times(column):
        return pa.array([values.far_time_text(v) for v in column], pa.string())
    is_date = pa.types.is_date(column.type)
    return column.cast(pa.string()) if is_date else _timestamp_text(column)


def _timestamp_text(column: pa.Array) -> pa.Array:
    """`2026-11-16 08:00:00.5+00`: zeros at the end of the fraction are left out."""
    zoned = column.type.tz is not None
    moments = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    seconds = not np.any(moments.fill_null(0).to_numpy() % 1_000_000)
    plain = moments.cast(pa.timestamp("us"))
    texts = (plain.cast(pa.timestamp("s")) if seconds else plain).cast(pa.string())
    texts = texts if seconds else _trimmed(texts)
    return pc.binary_join_element_wise(texts, "+00", "") if zoned else texts


def _trimmed(texts: pa.Array) -> pa.Array:
    """Texts that end with six digits of a fraction, without the zeros at the end."""
    return pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")


def _hex_text(column: pa.Array) -> pa.Array:
    offsets = np.frombuffer(column.buffers()[1], np.int32)[
        column.offset : column.offset + len(column) + 1
    ]
    digits = contents(column).hex().encode()
    moved = (offsets.astype(np.int32) - offsets[0]) * 2
    valid = None if not column.null_count else pc.is_valid(column)
    texts = pa.Array.from_buffers(
        pa.string(), len(column), [None, pa.py_buffer(moved.astype(np.int32)), pa.py_buffer(digits)]
    )
    texts = pc.binary_join_element_wise("\\x", texts, "")
    return texts if valid is None else pc.if_else(valid, texts, None)


def _array_text(column: pa.Array) -> pa.Array:
    def one(cells: pa.Array) -> str:
        return values.array_text(as_text(cells).to_pylist())

    return pa.array([one(v.values) if v.is_valid else None for v in column], pa.string())


# Binary


def as_binary(column: pa.Array) -> Cells:
    """A column in PostgreSQL's binary form."""
    type_ = column.type
    slow = values.slow_binary(type_)
    if slow is not None:
        cells = [None if v is None else slow(v) for v in python_values(column)]
        return pa.array(cells, pa.binary())
    if is_list(type_):
        return _array_binary(column)
    numbers = _numbers(column)
    if numbers is None:
        return column.cast(pa.binary())
    width = numbers.dtype.itemsize
    cells = fixed(numbers.view(np.uint8).reshape(len(numbers), width))
    return pc.if_else(pc.is_valid(column), cells, None) if column.null_count else cells


def _numbers(column: pa.Array) -> np.ndarray[Any, Any] | None:
    """The values as big-endian numbers; None for a type of varying width."""
    type_ = column.type
    size = types.pg_type(type_).size
    if pa.types.is_boolean(type_):
        return column.cast(pa.uint8()).fill_null(0).to_numpy().astype(np.uint8)
    if pa.types.is_integer(type_):
        return column.fill_null(0).to_numpy().astype(f">i{size}")
    if pa.types.is_floating(type_):
        return column.fill_null(0.0).to_numpy(zero_copy_only=False).astype(f">f{size}")
    if pa.types.is_date(type_):
        days = column.cast(pa.date32()).cast(pa.int32()).fill_null(0).to_numpy()
        return (days - values.POSTGRES_DAYS).astype(">i4")
    if pa.types.is_timestamp(type_):
        moments = column.cast(pa.timestamp("us", type_.tz)).cast(pa.int64()).fill_null(0).to_numpy()
        return (moments - values.POSTGRES_MICROSECONDS).astype(">i8")
    if pa.types.is_time(type_):
        return column.cast(pa.time64("us")).cast(pa.int64()).fill_null(0).to_numpy().astype(">i8")
    return None


def _array_binary(column: pa.Array) -> Cells:
    element = types.ELEMENTS[types.pg_type(column.type).oid].oid

    def one(cells: pa.Array) -> bytes:
        return values.array_binary(element, as_binary(cells).to_pylist())

    return pa.array([one(v.values) if v.is_valid else None for v in column], pa.binary())
