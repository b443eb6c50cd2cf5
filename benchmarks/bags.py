"""Whether two results are equal as bags of rows: exact values exactly, floats and decimals within 1e-9."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

CLOSE = 1e-9


def difference(mine: pa.Table, theirs: pa.Table) -> str | None:
    """How they differ; None if they are equal. Columns are compared by place, not by name."""
    if mine.num_columns != theirs.num_columns:
        return f"{mine.num_columns} columns of ours, {theirs.num_columns} of theirs"
    if mine.num_rows != theirs.num_rows:
        return f"{mine.num_rows:,} rows of ours, {theirs.num_rows:,} of theirs"
    pairs = [_alike(mine.column(n), theirs.column(n)) for n in range(mine.num_columns)]
    ours, others = _sorted([one for one, _ in pairs]), _sorted([other for _, other in pairs])
    for name, one, other in zip(mine.column_names, ours, others, strict=True):
        wrong = _differing(one, other)
        if wrong is not None:
            return f"{name}: {one[wrong].as_py()!r} of ours, {other[wrong].as_py()!r} of theirs"
    return None


def _alike(one: pa.ChunkedArray, other: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """Two columns in a type that both can be compared in; a peer may give text, or times as numbers."""
    text = pa.types.is_string(other.type)
    if pa.types.is_integer(one.type) and (pa.types.is_integer(other.type) or text):
        type_ = pa.int64()
    elif _is_number(one.type):
        type_ = pa.float64()
    elif pa.types.is_timestamp(one.type):
        type_ = pa.timestamp("us", "UTC")
    else:
        type_ = pa.string()
    return _cast(one, type_), _cast(other, type_)


def _is_number(type_: pa.DataType) -> bool:
    return pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)


def _cast(column: pa.ChunkedArray, type_: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(type_) and not pa.types.is_integer(column.type):
        zone = column.type.tz if pa.types.is_timestamp(column.type) else None
        column = pc.cast(column, pa.timestamp("us", zone))
        column = column if zone else pc.assume_timezone(column, "UTC")
    cast = pc.cast(column, type_)
    return cast.combine_chunks() if isinstance(cast, pa.ChunkedArray) else cast


def _sorted(columns: list[pa.Array]) -> list[pa.Array]:
    """The rows in an order that numbers which are almost equal do not change, unless all else is equal."""
    places = range(len(columns))
    order = sorted(places, key=lambda n: pa.types.is_floating(columns[n].type))
    if not columns:
        return columns
    table = pa.table({str(n): columns[n] for n in places})
    found = pc.sort_indices(table, sort_keys=[(str(n), "ascending") for n in order])
    return [column.take(found) for column in columns]


def _differing(one: pa.Array, other: pa.Array) -> int | None:
    """The first row in which two columns differ."""
    if pa.types.is_floating(one.type):
        a, b = one.to_numpy(zero_copy_only=False), other.to_numpy(zero_copy_only=False)
        same = np.isclose(a, b, rtol=CLOSE, atol=CLOSE, equal_nan=True)
        same &= np.asarray(one.is_null()) == np.asarray(other.is_null())
    else:
        equal = pc.fill_null(pc.equal(one, other), False)
        same = np.asarray(pc.or_(equal, pc.and_(one.is_null(), other.is_null())))
    wrong = np.flatnonzero(~same)
    return int(wrong[0]) if len(wrong) else None
