"""The door of every table: what no row may hold, in its columns and inside of nested values.

Owns two rules. A column or field that is NOT NULL holds no NULL (23502). A date or timestamp lies in
the years 1 to 9999, in UTC (22008): Python, PostgreSQL's clients and Arrow's texts end there, and
what lies beyond would be shown wrong. What has passed is stored; it is not looked at again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headwater.errors import DataError
from headwater.sql.types import is_list

FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31
FIRST_TIME, LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999  # in microseconds
YEARS = "the years 1 to 9999"
_FAR = re.compile(r"(?<![\w.-])[+-]?\d{5,}-\d{1,2}-\d{1,2}(?![\d-])")

Part = tuple[str, "pa.Field[Any]"]  # what a part of a value is called, and what it may hold


def check(rows: pa.Table | pa.RecordBatch, schema: pa.Schema) -> None:
    """DataError for the first column that holds what it may not; its row, for a time."""
    for field in _guarded(schema):
        column = rows.column(field.name)
        if not field.nullable and column.null_count:
            raise null_value(field.name)
        name = _null_inside(column, field)
        if name is not None:
            raise null_value(name)
        if _far_inside(column, field):
            raise far_time(field.name, _first_far(column, field))


@lru_cache(maxsize=256)
def _guarded(schema: pa.Schema) -> tuple[pa.Field[Any], ...]:
    """The columns that can hold what they may not."""
    return tuple(f for f in schema if not f.nullable or _has_rules(f.type))


def _has_rules(type_: pa.DataType) -> bool:
    return pa.types.is_temporal(type_) or any(
        not field.nullable or _has_rules(field.type) for _, field in _parts("", type_)
    )


def _parts(name: str, type_: Any) -> Iterator[Part]:
    """The parts of a nested type; the keys of maps are NOT NULL by nature, so they say nothing."""
    if pa.types.is_struct(type_):
        yield from ((f"{name}.{field.name}", field) for field in type_)
    elif pa.types.is_map(type_):
        yield f"{name}.key", type_.key_field.with_nullable(True)
        yield f"{name}.value", type_.item_field
    elif is_list(type_):
        yield f"{name}.element", type_.value_field


def _inside(column: Any) -> list[Any]:
    """The parts of a nested column, in the order of `_parts`, without what lies in a NULL."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    type_ = column.type
    found: list[list[Any]] = []
    for chunk in chunks:
        present = chunk.drop_null() if chunk.null_count else chunk
        if pa.types.is_struct(type_):
            found.append(present.flatten())
        elif pa.types.is_map(type_):
            first, last = present.offsets[0].as_py(), present.offsets[-1].as_py()
            whole = (present.keys, present.items)  # of the array that this one may be a slice of
            found.append([part.slice(first, last - first) for part in whole])
        else:
            found.append([present.flatten()])
    types = [field.type for _, field in _parts("", type_)]
    return [pa.chunked_array([parts[n] for parts in found], part) for n, part in enumerate(types)]


def _null_inside(column: Any, field: pa.Field[Any]) -> str | None:
    """The name of a part that is NOT NULL and holds a NULL."""
    if not pa.types.is_nested(field.type) or not _has_rules(field.type):
        return None
    for (name, part), values in zip(_parts(field.name, field.type), _inside(column), strict=True):
        if not part.nullable and values.null_count:
            return name
        inside = _null_inside(values, part.with_name(name))
        if inside is not None:
            return inside
    return None


def _far_inside(column: Any, field: pa.Field[Any]) -> bool:
    """Whether a time lies outside of the years that tables hold."""
    type_ = field.type
    if pa.types.is_date(type_) or pa.types.is_timestamp(type_):
        ends = pc.min_max(column)
        low, high = ends["min"], ends["max"]
        return bool(low.is_valid) and not _in_years(type_, low.value, high.value)
    if not pa.types.is_nested(type_) or not _has_rules(type_):
        return False
    pairs = zip(_parts("", type_), _inside(column), strict=True)
    return any(_far_inside(values, part) for (_, part), values in pairs)


def _in_years(type_: pa.DataType, low: int, high: int) -> bool:
    if pa.types.is_date(type_):
        return low >= FIRST_DAY and high <= LAST_DAY
    return low >= FIRST_TIME and high <= LAST_TIME


def _first_far(column: Any, field: pa.Field[Any]) -> int:
    """The first row with such a time in a column that has one, found by halves."""
    first, count = 0, len(column)
    while count > 1:
        half = count // 2
        if _far_inside(column.slice(first, half), field):
            count = half
        else:
            first, count = first + half, count - half
    return first


def check_file(path: Path, schema: pa.Schema) -> None:
    """The same for times in a Parquet file that Spark wrote: its footer, or its rows, tell."""
    timed = [f.with_nullable(True) for f in schema if _has_rules(f.type)]
    if timed and not all(_in_years(*ends) for ends in _ends_of_times(pq.read_metadata(path))):
        plain = pa.schema(timed)
        check(pq.read_table(path, columns=plain.names).cast(plain), plain)


def _ends_of_times(footer: Any) -> Iterator[tuple[pa.DataType, int, int]]:
    """The smallest and largest value of every column of times; beyond all years where not known."""
    types = {"DATE": pa.date32(), "TIMESTAMP": pa.timestamp("us")}
    for number in range(footer.num_columns):
        type_ = types.get(footer.schema.column(number).logical_type.type)
        for group in range(footer.num_row_groups if type_ is not None else 0):
            found = footer.row_group(group).column(number).statistics
            if found is None or (not found.has_min_max and found.num_values):
                yield type_, FIRST_TIME - 1, LAST_TIME + 1
            elif found.has_min_max:
                yield type_, found.min_raw, found.max_raw


def has_required(field: pa.Field[Any]) -> bool:
    """Whether a column, or a field inside of it, is NOT NULL."""
    parts = [part for _, part in _parts("", field.type)]
    return not field.nullable or any(map(has_required, parts))


def null_value(column: str) -> DataError:
    """The error for a NULL in a NOT NULL column or field."""
    return DataError(
        f"NULL in column {column}, which is NOT NULL",
        sqlstate="23502",
        hint="nothing was written; give a value for every row",
    )


def far_time(column: str, row: int | None = None) -> DataError:
    """The error for a time that no table holds."""
    where = "" if row is None else f"row {row}: "
    return DataError(
        f"{where}a time in column {column} is outside of {YEARS}",
        sqlstate="22008",
        hint="nothing was written; check the unit of times that come as numbers",
    )


def names_far_year(text: str) -> bool:
    """Whether a text, or a message about one, has a date with a year of five digits or more."""
    return _FAR.search(text) is not None
