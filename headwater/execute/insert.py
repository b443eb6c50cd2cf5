"""INSERT: literal rows without Spark, everything else evaluated and written by Spark."""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headwater.errors import BindError, DataError
from headwater.execute.context import Running, column_of
from headwater.execute.query import work_of
from headwater.kernel.kernel import Work
from headwater.plan.assign import insert_projection
from headwater.result import Result
from headwater.sql.literals import Literal, timestamp
from headwater.sql.statements.insert import Insert
from headwater.sql.types import name_of
from headwater.storage.rows import as_table
from headwater.storage.standard_table import StandardTable
from headwater.storage.streaming.table import StreamingTable


def insert(running: Running, statement: Insert) -> Result:
    """INSERT INTO t [(columns)] VALUES … | query."""
    table = running.context.writable(statement.table, statement.text)
    targets = _targets(statement, table.schema)
    if statement.rows is not None:
        rows = _literal_rows(running, statement, targets, table.schema)
        if rows is not None:
            return Result("INSERT", row_count=add_rows(table, rows))
    return Result("INSERT", row_count=_insert_query(running, statement, targets, table))


def rows_of_insert(running: Running, statement: Insert) -> pa.Table:
    """The rows that an INSERT would add, in the table's own types; nothing is written."""
    table = running.context.writable(statement.table, statement.text)
    targets = _targets(statement, table.schema)
    rows = None
    if statement.rows is not None:
        rows = _literal_rows(running, statement, targets, table.schema)
    if rows is None:
        with _insert_work(running, statement, targets, table) as work:
            rows = running.context.kernel.run(work, running.cancellation)
    return as_table(rows, table.schema)


def add_rows(
    table: StandardTable | StreamingTable, rows: pa.Table, batch_id: str | None = None
) -> int:
    """Adds rows to either kind of table, checked; how many were added."""
    if isinstance(table, StreamingTable):
        return table.insert(rows, batch_id)
    return table.append(as_table(rows, table.schema), batch_id)


def _targets(statement: Insert, schema: pa.Schema) -> list[pa.Field[pa.DataType]]:
    if statement.columns is None:
        return list(schema)
    return [column_of(name, schema, statement.text) for name in statement.columns]


def _check_width(statement: Insert, given: int, wanted: int) -> None:
    if given != wanted:
        raise BindError(
            f"{given} values are given, {wanted} columns are to be filled",
            sqlstate="42601",
            hint="name the columns: INSERT INTO t (a, b) …",
            place=statement.table.span.place(statement.text),
        )


def _literal_rows(
    running: Running, statement: Insert, targets: list[pa.Field[pa.DataType]], schema: pa.Schema
) -> pa.Table | None:
    """The rows, or None if a value needs a conversion that is Spark's to make."""
    rows = statement.rows
    assert rows is not None
    _check_width(statement, len(rows[0]), len(targets))
    zone = running.context.settings.text("time_zone")
    columns: dict[str, pa.Array[Any]] = {}
    for index, field in enumerate(targets):
        values = []
        for row in rows:
            plain, value = stored(row[index], field, zone)
            if not plain:
                return None
            values.append(value)
        columns[field.name] = pa.array(values, field.type)
    arrays = [columns.get(f.name, pa.nulls(len(rows), f.type)) for f in schema]
    return pa.Table.from_arrays(arrays, names=schema.names)


def stored(literal: Literal, field: pa.Field[pa.DataType], zone: str) -> tuple[bool, Any]:
    """Whether the literal goes into the column without Spark, and the value that is stored."""
    value, type_ = literal.value, field.type
    if value is None:
        return True, None
    if isinstance(value, bool):
        return bool(pa.types.is_boolean(type_)), value
    if pa.types.is_integer(type_) and pa.types.is_integer(literal.type):
        limit = 1 << (type_.bit_width - 1)
        if not isinstance(value, int) or not -limit <= value < limit:
            raise DataError(
                f"{value!r} is out of range for column {field.name} {name_of(type_)}",
                sqlstate="22003",
            )
        return True, value
    if pa.types.is_float64(type_) and isinstance(value, (int, float, Decimal)):
        return True, float(value)
    if isinstance(value, str):
        return _stored_text(value, type_, zone)
    same = literal.type == type_ or (pa.types.is_decimal(type_) and _decimal_fits(value, type_))
    return same, value


def _stored_text(value: str, type_: pa.DataType, zone: str) -> tuple[bool, Any]:
    if pa.types.is_string(type_):
        return True, value
    if pa.types.is_timestamp(type_):
        found = timestamp(value, zone if type_.tz else None)
        return found is not None, found
    return False, None


def _decimal_fits(value: object, type_: Any) -> bool:
    if isinstance(value, int):
        value = Decimal(value)
    if not isinstance(value, Decimal):
        return False
    digits = value.as_tuple()
    if not isinstance(digits.exponent, int):
        return False
    whole = len(digits.digits) + digits.exponent
    return -digits.exponent <= type_.scale and whole <= type_.precision - type_.scale


def _insert_query(
    running: Running,
    statement: Insert,
    targets: list[pa.Field[pa.DataType]],
    table: StandardTable | StreamingTable,
) -> int:
    with _insert_work(running, statement, targets, table) as whole:
        if isinstance(table, StreamingTable):
            return table.insert(running.context.kernel.run(whole, running.cancellation))
        return append_from_spark(running, table, whole)


@contextlib.contextmanager
def _insert_work(
    running: Running,
    statement: Insert,
    targets: list[pa.Field[pa.DataType]],
    table: StandardTable | StreamingTable,
) -> Iterator[Work]:
    """The query of an INSERT as work for Spark, its columns in the table's order and types."""
    with work_of(running.context, statement.query, statement.text) as work:
        types = running.context.kernel.analyse(work)
        if statement.by_name:
            targets = [column_of_text(name, table.schema) for name, _ in types]
        _check_width(statement, len(types), len(targets))
        names = ", ".join(f"c{i}" for i in range(len(types)))
        head = f"SELECT {insert_projection(types, targets, table.schema)} FROM ("
        mapped = work.original_position
        yield replace(
            work,
            sql=f"{head}{work.sql}\n) AS rows_to_insert({names})",
            original_position=lambda p: mapped(p - len(head)) if mapped else p,
        )


def column_of_text(name: str, schema: pa.Schema) -> pa.Field[pa.DataType]:
    """The column of a name that comes from a query, not from a place in the text."""
    for column in schema:
        if column.name.casefold() == name.casefold():
            return column
    raise BindError(f"column {name} does not exist", sqlstate="42703")


def append_from_spark(
    running: Running, table: StandardTable, work: Work, batch_id: str | None = None
) -> int:
    """Has Spark write rows of the table's schema under its folder, and commits them."""
    folder = table.folder / f"rows-{uuid.uuid4().hex}"
    try:
        files = table.written(running.context.kernel.write(work, folder, running.cancellation))
        if files or batch_id is not None:
            with table.writing:
                if batch_id is not None and table.batch_was_applied(batch_id):
                    files = []
                    shutil.rmtree(folder, ignore_errors=True)
                else:
                    table.commit(files, (), batch_id)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return sum(file.row_count for file in files)
