"""Rows as users give them → one Arrow table of a table's schema, checked before any is written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from numbers import Number
from types import NoneType
from typing import Any

import pyarrow as pa

from headwater.errors import BindError, DataError
from headwater.sql.names import nearest
from headwater.sql.types import canonical, is_list, name_of
from headwater.storage.door import check

LARGEST_FLOAT = 3.4028235677973366e38  # what rounds to more is infinite in a FLOAT


FEW_ROWS = 64  # so few are not worth columns of their own
EDGES = (1, 9999)  # the first and the last year of Python's times


def as_table(rows: Any, schema: pa.Schema) -> pa.Table:
    """Rows (Arrow, pandas, polars, dicts or tuples) as a table of exactly this schema."""
    given = _as_arrow(rows, schema)
    columns = _matched(given, schema)
    arrays = []
    for field in schema:
        column = columns.get(field.name)
        if column is None:
            column = pa.chunked_array([pa.nulls(given.num_rows, field.type)])
        arrays.append(_converted(column, field))
    table = pa.Table.from_arrays(arrays, schema=pa.schema([f.with_nullable(True) for f in schema]))
    check(table, schema)
    return table


def as_batch(rows: Any, schema: pa.Schema) -> pa.RecordBatch:
    """Rows as one record batch of exactly this schema; the short way for Python rows."""
    short = _few_plain_rows(rows, schema)
    if short is not None:
        return short
    if isinstance(rows, (list, tuple)) and rows and isinstance(rows[0], (dict, tuple, list)):
        found = _from_python(list(rows), schema)
        check(found, schema)
        columns = found.columns
    else:
        columns = as_table(rows, schema).columns
    plain = pa.schema([field.with_nullable(True) for field in schema])
    return pa.RecordBatch.from_arrays([_flat(column) for column in columns], schema=plain)


@lru_cache(maxsize=256)
def _shape(
    schema: pa.Schema,
) -> tuple[pa.DataType, dict[str, set[type]], tuple[str, ...], tuple[str, ...]]:
    """The struct of a row, the Python types that columns take as they are, NOT NULL ones, times."""
    exact = {field.name: _exact_types(field.type) for field in schema}
    required = tuple(field.name for field in schema if not field.nullable)
    times = tuple(name for name, types in exact.items() if datetime in types)
    return pa.struct([field.with_nullable(True) for field in schema]), exact, required, times


def _few_plain_rows(rows: Any, schema: pa.Schema) -> pa.RecordBatch | None:
    """A few dicts, or tuples, of plain values by the shortest way; None: look more closely."""
    if not isinstance(rows, list) or not 0 < len(rows) <= FEW_ROWS:
        return None
    struct, exact, required, times = _shape(schema)
    plain = []
    for row in rows:
        if isinstance(row, tuple) and len(row) == len(exact):
            row = dict(zip(exact, row, strict=True))
        if not isinstance(row, dict) or row.keys() != exact.keys():
            return None
        if any(type(value) not in exact[name] for name, value in row.items()):
            return None
        if any(row[name] is None for name in required):
            return None
        plain.append(row)
    try:
        batch = pa.RecordBatch.from_struct_array(pa.array(plain, struct))
    except (pa.ArrowException, OverflowError, ValueError):
        return None  # the long way names the row and the column
    if any(row[name] is not None and row[name].year in EDGES for row in plain for name in times):
        check(batch, schema)  # a zone moved a time over the edge, maybe; no other year can be wrong
    return batch


def _flat(column: Any) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def _as_arrow(rows: Any, schema: pa.Schema) -> pa.Table:
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    if isinstance(rows, pa.RecordBatchReader):
        return rows.read_all()
    module = type(rows).__module__.partition(".")[0]
    if module == "pandas":
        return pa.Table.from_pandas(rows, preserve_index=False)
    if module == "polars":
        return _without_large_types(rows.to_arrow())
    if hasattr(rows, "__arrow_c_stream__"):
        return pa.table(rows)
    if isinstance(rows, (str, bytes, Mapping)) or not isinstance(rows, Iterable):
        raise DataError(
            f"rows cannot be a {type(rows).__name__}",
            hint="give a pyarrow Table, a pandas or polars frame, or a list of dicts or tuples",
        )
    return _from_python(list(rows), schema)


def _without_large_types(table: pa.Table) -> pa.Table:
    return table.cast(pa.schema([pa.field(f.name, canonical(f.type)) for f in table.schema]))


def _from_python(rows: list[Any], schema: pa.Schema) -> pa.Table:
    if not rows:
        return schema.empty_table()
    if isinstance(rows[0], Mapping):
        return _from_dicts(rows, schema)
    width = len(schema)
    for number, row in enumerate(rows):
        if not isinstance(row, Sequence) or isinstance(row, (str, bytes)):
            raise DataError(f"row {number} is a {type(row).__name__}, not a tuple or dict")
        if len(row) != width:
            raise DataError(
                f"row {number} has {len(row)} values, the table has {width} columns",
                sqlstate="42601",
                hint="columns: " + ", ".join(schema.names),
            )
    return _built({f.name: [row[i] for row in rows] for i, f in enumerate(schema)}, schema)


def _from_dicts(rows: list[Any], schema: pa.Schema) -> pa.Table:
    names = {f.name.casefold(): f.name for f in schema}
    columns: dict[str, list[Any]] = {f.name: [] for f in schema}
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise DataError(f"row {number} is a {type(row).__name__}, the rows before are dicts")
        found = {}
        for key, value in row.items():
            name = names.get(str(key).casefold())
            if name is None:
                raise _unknown_column(str(key), schema)
            found[name] = value
        for name, values in columns.items():
            values.append(found.get(name))
    return _built(columns, schema)


def _built(columns: Mapping[str, list[Any]], schema: pa.Schema) -> pa.Table:
    arrays = []
    for field in schema:
        values = columns[field.name]
        try:
            if not set(map(type, values)) <= _exact_types(field.type):
                _check_each(values, field)
            arrays.append(pa.array(values, field.type))
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise _bad_value(values, field, error) from error
    return pa.Table.from_arrays(arrays, names=schema.names)


def _exact_types(type_: pa.DataType) -> set[type]:
    """Python types whose values Arrow takes as they are; those of others are looked at one by one."""
    if pa.types.is_integer(type_):
        return {int, NoneType}
    if pa.types.is_float64(type_):
        return {int, float, NoneType}
    if pa.types.is_string(type_):
        return {str, NoneType}
    return {datetime, NoneType} if pa.types.is_timestamp(type_) else {NoneType}


def _check_each(values: list[Any], field: pa.Field[Any]) -> None:
    for value in values:
        if _changed_by_arrow(value, field.type):
            raise TypeError("Arrow would change the value")


def _changed_by_arrow(value: Any, type_: pa.DataType) -> bool:
    """Whether Arrow takes a Python value but not as it is: it cuts off digits, reads numbers as times."""
    if value is None:
        return False
    if pa.types.is_integer(type_):
        return isinstance(value, Number) and value % 1 != 0  # type: ignore[operator]
    if pa.types.is_floating(type_):
        too_large = pa.types.is_float32(type_) and LARGEST_FLOAT < abs(value) < math.inf
        return isinstance(value, bool) or too_large
    if pa.types.is_date(type_):
        return isinstance(value, (Number, datetime))
    if pa.types.is_timestamp(type_):
        return isinstance(value, Number)
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return isinstance(value, bytes if pa.types.is_string(type_) else str)
    return pa.types.is_nested(type_) and _nested_changed(value, type_)


def _nested_changed(value: Any, type_: pa.DataType) -> bool:
    if pa.types.is_map(type_):
        pairs = value.items() if isinstance(value, Mapping) else value
        return any(
            _changed_by_arrow(k, type_.key_type) or _changed_by_arrow(v, type_.item_type)
            for k, v in pairs
        )
    if is_list(type_):
        return isinstance(value, bytes) or any(
            _changed_by_arrow(v, type_.value_type) for v in value
        )
    if not isinstance(value, Mapping):
        return False
    types = {type_.field(i).name: type_.field(i).type for i in range(type_.num_fields)}
    return any(name not in types or _changed_by_arrow(v, types[name]) for name, v in value.items())


def _bad_value(values: list[Any], field: pa.Field[Any], error: Exception) -> DataError:
    """The error for a column of Python values, naming the first row that does not fit."""
    for number, value in enumerate(values):
        try:
            _check_each([value], field)
            pa.array([value], field.type)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            text = repr(value)
            return DataError(
                f"row {number}: {text[:60]} does not fit column {field.name} {name_of(field.type)}",
                sqlstate="22003" if isinstance(value, (int, float)) else "22018",
            )
    return DataError(f"column {field.name}: {error}")


def _matched(given: pa.Table, schema: pa.Schema) -> dict[str, pa.ChunkedArray[Any]]:
    names = {f.name.casefold(): f.name for f in schema}
    columns: dict[str, pa.ChunkedArray[Any]] = {}
    for name in given.column_names:
        known = names.get(name.casefold())
        if known is None:
            raise _unknown_column(name, schema)
        if known in columns:
            raise BindError(f"column {known} is given twice", sqlstate="42701")
        columns[known] = given.column(name)
    return columns


def _unknown_column(name: str, schema: pa.Schema) -> BindError:
    near = nearest(name, schema.names)
    return BindError(
        f"there is no column {name}",
        sqlstate="42703",
        hint=f"did you mean {near}?" if near else "columns: " + ", ".join(schema.names),
    )


def _converted(column: pa.ChunkedArray[Any], field: pa.Field[Any]) -> pa.ChunkedArray[Any]:
    if column.type == field.type:
        return column
    if not convertible(column.type, field.type):
        raise DataError(
            f"column {field.name} is {name_of(field.type)}, the rows have {name_of(column.type)}",
            sqlstate="42804",
            hint="convert the values first",
        )
    try:
        return column.cast(field.type, safe=not pa.types.is_floating(field.type))
    except (pa.ArrowException, NotImplementedError) as error:
        far = "out of bounds timestamp" in str(error)
        raise DataError(
            f"column {field.name}: a value does not fit {name_of(field.type)}",
            sqlstate="22008" if far else "22003",
            detail=str(error).splitlines()[0],
        ) from error


def convertible(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of one type may be stored in a column of another, if each value fits."""
    if given == wanted or pa.types.is_null(given):
        return True
    if pa.types.is_dictionary(given):
        return convertible(given.value_type, wanted)
    groups = (
        (_is_text, _is_text),
        (_is_bytes, _is_bytes),
        (pa.types.is_integer, _is_number),
        (pa.types.is_decimal, _is_number),
        (pa.types.is_floating, pa.types.is_floating),
        (pa.types.is_floating, pa.types.is_integer),
        (pa.types.is_timestamp, pa.types.is_timestamp),
        (pa.types.is_date, pa.types.is_date),
        (pa.types.is_date, pa.types.is_timestamp),
    )
    if any(is_given(given) and is_wanted(wanted) for is_given, is_wanted in groups):
        return True
    return _nested_convertible(given, wanted)


def _nested_convertible(given: Any, wanted: Any) -> bool:
    if pa.types.is_map(wanted):
        return bool(pa.types.is_map(given)) and (
            convertible(given.key_type, wanted.key_type)
            and convertible(given.item_type, wanted.item_type)
        )
    if is_list(wanted):
        listed = is_list(given) or pa.types.is_fixed_size_list(given)
        return bool(listed) and convertible(given.value_type, wanted.value_type)
    if pa.types.is_struct(wanted) and pa.types.is_struct(given):
        if given.num_fields != wanted.num_fields:
            return False
        pairs = [(given.field(i), wanted.field(i)) for i in range(wanted.num_fields)]
        return all(g.name == w.name and convertible(g.type, w.type) for g, w in pairs)
    return False


def _is_text(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_string_view(type_)
    )


def _is_bytes(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(type_)
        or pa.types.is_large_binary(type_)
        or pa.types.is_binary_view(type_)
    )


def _is_number(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_)
    )
