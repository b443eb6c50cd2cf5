"""CREATE SOURCE, INSERT INTO … FROM STREAM, PAUSE, RESUME and DROP SOURCE."""

from __future__ import annotations

import pyarrow as pa

from headwater.errors import BindError, Error
from headwater.execute.context import Context, Running
from headwater.result import Result
from headwater.sources.address import parse_address
from headwater.sources.manager import Sources
from headwater.sources.runner import Surroundings
from headwater.sql.names import nearest
from headwater.sql.statements.control import ControlSource
from headwater.sql.statements.create_source import CreateSource
from headwater.sql.statements.drop import Drop
from headwater.sql.statements.insert import InsertFromStream
from headwater.sql.text import Name
from headwater.storage.catalog import CatalogObject


def open_sources(context: Context) -> None:
    """Starts the sources that ran when the database was closed."""
    around = Surroundings(context.kernel, context.streams, context.functions)
    context.sources = Sources(context.catalog, around, context.folder.path / "sources")
    context.sources.open()


def close_sources(context: Context) -> None:
    """Stops all sources; they go on at the next open."""
    found: Sources | None = getattr(context, "sources", None)
    if found is not None:
        found.close()


def create_source(running: Running, statement: CreateSource) -> Result:
    """CREATE SOURCE src INTO t FROM '…' [WITH (…)]."""
    context = running.context
    with context.ddl:
        if context.sources.find(statement.name) is not None and statement.if_not_exists:
            return Result("CREATE SOURCE")
        parse_address(statement.url)  # what is not there yet says so first
        table = context.streaming_table(statement.table, statement.text)
        try:
            context.sources.create(str(statement.name), table, statement.url, statement.options)
        except Error as error:
            raise error.at(statement.name.span.place(statement.text)) from error.__cause__
    return Result("CREATE SOURCE")


def insert_from_stream(running: Running, statement: InsertFromStream) -> Result:
    """INSERT INTO t FROM STREAM '…' [WITH (…)]: a source with a name of its own, which is returned."""
    context = running.context
    with context.ddl:
        parse_address(statement.url)
        table = context.streaming_table(statement.table, statement.text)
        name = _free_name(context, table.definition.name)
        context.sources.create(name, table, statement.url, statement.options)
    return Result("INSERT", pa.table({"source": [name]}))


def _free_name(context: Context, table: str) -> str:
    number = 1
    while context.sources.find(f"{table}_source_{number}") is not None:
        number += 1
    return f"{table}_source_{number}"


def control_source(running: Running, statement: ControlSource) -> Result:
    """PAUSE SOURCE, RESUME SOURCE."""
    context = running.context
    with context.ddl:
        item = _found(context, statement.name, statement.text)
        if statement.action == "pause":
            context.sources.pause(item)
        else:
            context.sources.resume(item)
    return Result(f"{statement.action.upper()} SOURCE")


def drop_source(running: Running, statement: Drop) -> Result:
    """DROP SOURCE: its rows stay."""
    context = running.context
    with context.ddl:
        if context.sources.find(statement.name) is None and statement.if_exists:
            return Result("DROP SOURCE")
        context.sources.drop(_found(context, statement.name, statement.text))
    return Result("DROP SOURCE")


def _found(context: Context, name: Name, text: str) -> CatalogObject:
    found = context.sources.find(name)
    if found is not None:
        return found
    near = nearest(str(name), [o.name for o in context.catalog.all("source")])
    raise BindError(
        f"source {name} does not exist",
        sqlstate="42704",
        hint=f"did you mean {near}?" if near else "SHOW SOURCES lists what there is",
        place=name.span.place(text),
    )
