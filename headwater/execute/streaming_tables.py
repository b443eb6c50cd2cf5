"""CREATE STREAMING TABLE and CREATE STREAM, their ALTER and DROP, and ADVANCE."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import pyarrow as pa

from headwater.errors import BindError, SettingError
from headwater.execute.context import Context, Running, column_of
from headwater.execute.dependents import check_unread, forget_changes
from headwater.execute.tables import fresh_number
from headwater.result import Result
from headwater.sql.duration import Duration, duration_ticks
from headwater.sql.names import nearest
from headwater.sql.statements.advance import Advance
from headwater.sql.statements.alter import AlterTableSetRange
from headwater.sql.statements.create_streaming_table import CreateStreamingTable
from headwater.sql.statements.drop import Drop
from headwater.sql.types import TIMESTAMP
from headwater.storage.catalog import CatalogObject
from headwater.storage.streaming.definition import Definition
from headwater.storage.streaming.store import stored_definition
from headwater.storage.streaming.table import StreamingTable

DEFAULT_COMPARTMENTS = 8
OPTIONS = ("compartments", "max_clock_ahead", "max_clock_step")


def create_streaming_table(running: Running, statement: CreateStreamingTable) -> Result:
    """CREATE STREAMING TABLE, CREATE STREAM, CREATE FOREIGN TABLE … SERVER stream."""
    context = running.context
    tag = f"CREATE {statement.kind.upper()}"
    with context.ddl:
        if context.find(statement.name) is not None:
            if statement.if_not_exists:
                return Result(tag)
            context.catalog.check_free(statement.kind, statement.name)
        folder = context.table_folder(statement.name, fresh_number(context))
        definition = _definition(statement, folder.name)
        add_stream(context, statement.kind, statement.name, definition, definition.as_json())
    return Result(tag)


def add_stream(
    context: Context, kind: str, name: str, definition: Definition, saved: dict[str, Any]
) -> CatalogObject:
    """The folder of a new table, its row in the catalog and the open table: all, or nothing of it."""
    folder = context.folder.tables / definition.folder
    with contextlib.ExitStack() as undo:
        undo.callback(context.discard, folder)
        StreamingTable.make(folder, definition)
        item = context.catalog.add(kind, name, saved)
        undo.callback(context.catalog.remove, item)
        context.streams.add(replace(definition, id=item.id))
        undo.pop_all()
    return item


def forget_stream(context: Context, item: CatalogObject) -> None:
    """Removes the rows of a table that is not in the catalog."""
    damaged = context.damage(item.id) is not None
    table = context.streams.remove(item.id)
    if table is not None:
        with table.upkeep:
            context.discard(table.folder)
    elif damaged:
        context.discard(context.folder.tables / stored_definition(item).folder)


def _definition(statement: CreateStreamingTable, folder: str) -> Definition:
    schema = pa.schema([column.field for column in statement.columns])
    time_column, time_type = None, TIMESTAMP
    if statement.timestamp_by is not None:
        field = column_of(statement.timestamp_by, schema, statement.text)
        time_column, time_type = field.name, field.type
        _check_time_type(statement, time_type)
    options = _options(statement, time_type)
    key = statement.update_key
    return Definition(
        id=0,
        name=str(statement.name),
        kind=statement.kind,
        schema=schema,
        time_column=time_column,
        range_ticks=_ticks(statement.range, time_type),
        watermark_ticks=_watermark(statement, time_type),
        late=statement.late,
        update_key=None
        if key is None
        else tuple(column_of(name, schema, statement.text).name for name in key),
        compartments=options.get("compartments", DEFAULT_COMPARTMENTS),
        max_step_ticks=options.get("max_clock_step"),
        max_ahead_ticks=options.get("max_clock_ahead"),
        folder=folder,
        comment=statement.comment,
    )


def _check_time_type(statement: CreateStreamingTable, type_: pa.DataType) -> None:
    fits = pa.types.is_timestamp(type_) or pa.types.is_date(type_) or pa.types.is_integer(type_)
    if not fits:
        assert statement.timestamp_by is not None
        raise BindError(
            f"column {statement.timestamp_by} cannot be the time of a table",
            sqlstate="42804",
            hint="TIMESTAMP BY takes a TIMESTAMP, TIMESTAMP_NTZ, DATE or integer column",
            place=statement.timestamp_by.span.place(statement.text),
        )


def _ticks(duration: Duration | None, time_type: pa.DataType) -> int | None:
    return None if duration is None else duration_ticks(time_type, duration.microseconds)


def _watermark(statement: CreateStreamingTable, time_type: pa.DataType) -> int:
    ticks = duration_ticks(time_type, statement.watermark.microseconds)
    if ticks and statement.timestamp_by is None:
        raise BindError(
            "a table without TIMESTAMP BY takes no WATERMARK",
            sqlstate="42P16",
            hint="rows are in order of their arrival already",
        )
    return ticks


def _options(statement: CreateStreamingTable, time_type: pa.DataType) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, value in (statement.options or {}).items():
        if name not in OPTIONS:
            near = nearest(name, OPTIONS)
            hint = f"did you mean {near}?" if near else "options: " + ", ".join(OPTIONS)
            raise SettingError(f"there is no option {name} of a {statement.kind}", hint=hint)
        found[name] = _option(name, value, time_type)
    return found


def _check_wall_clock(time_type: pa.DataType) -> None:
    if pa.types.is_integer(time_type):
        raise SettingError(
            "max_clock_ahead is for times that the wall clock tells, not for integers",
            hint="max_clock_step bounds how far one insert moves the clock",
        )


def _option(name: str, value: Any, time_type: pa.DataType) -> int:
    if name == "compartments":
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 10_000:
            raise SettingError("compartments is a whole number from 1 to 10000")
        return value
    if not isinstance(value, Duration):
        raise SettingError(f"{name} is an interval", hint=f"{name} = INTERVAL '1' HOUR")
    if name == "max_clock_ahead":
        _check_wall_clock(time_type)
    return duration_ticks(time_type, value.microseconds)


def drop_streaming_table(running: Running, statement: Drop) -> Result:
    """DROP TABLE or DROP STREAM of a streaming table or stream."""
    context = running.context
    with context.ddl:
        found = context.find(statement.name)
        assert found is not None
        if found.kind in ("continuous query", "materialized view"):
            raise BindError(
                f"{found.name} is a {found.kind}, not a table",
                sqlstate="42809",
                hint=f"DROP {found.kind.upper().removeprefix('CONTINUOUS ')} {found.name}",
            )
        check_unread(context, found)
        used = [
            o.name for o in context.catalog.all("source") if o.definition["table_id"] == found.id
        ]
        if used:
            raise BindError(
                f"{found.kind} {found.name} is filled by source {', '.join(used)}",
                sqlstate="2BP01",
                hint=f"DROP SOURCE {used[0]} first",
            )
        forget_changes(context, found)
        context.catalog.remove(*_indexes_of(context, found.id), found)
        forget_stream(context, found)
    return Result(f"DROP {statement.kind.upper()}")


def _indexes_of(context: Context, number: int) -> list[CatalogObject]:
    return [o for o in context.catalog.all("index") if o.definition["table_id"] == number]


def set_range(running: Running, statement: AlterTableSetRange) -> Result:
    """ALTER TABLE t SET RANGE …: takes effect at once; a shorter one lets old rows go."""
    context = running.context
    with context.ddl:
        table = context.streaming_table(statement.name, statement.text)
        ticks = _ticks(statement.range, table.definition.time_type)
        engine = context.engine
        with engine.staying(engine.reading(table)), table.upkeep:
            changed = replace(table.definition, range_ticks=ticks)
            item = context.find(statement.name)
            assert item is not None
            context.catalog.change(item, changed.as_json())
            table.definition = changed
            table.barrier()  # micro-batches written with the old one are visible now, or refused
            context.streams.seal(table)
            table.rebuild_compartments()
        table.expire()
    return Result("ALTER TABLE")


def advance(running: Running, statement: Advance) -> Result:
    """ADVANCE t TO ts."""
    context = running.context
    context.streaming_table(statement.table, statement.text).advance(statement.time)
    return Result("ADVANCE")
