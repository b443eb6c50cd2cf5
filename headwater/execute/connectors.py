"""CREATE, PAUSE, RESUME and DROP of sources and sinks; INSERT INTO … FROM STREAM."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pyarrow as pa

from headwater.connectors.manager import Connectors
from headwater.engine.following import Following
from headwater.engine.hosted import LoggedQuery
from headwater.engine.subscription import Subscription
from headwater.engine.token import encode
from headwater.errors import BindError, Error
from headwater.execute.context import Context, Running
from headwater.execute.following import incarnation_of, logged
from headwater.execute.query_results import log_of
from headwater.execute.subscriptions import subscribe
from headwater.result import Result
from headwater.sinks import options as sink_options
from headwater.sinks.manager import Sinks
from headwater.sinks.runner import SinkSurroundings
from headwater.sources import options as source_options
from headwater.sources.manager import Sources
from headwater.sources.runner import SourceSurroundings
from headwater.sql.names import nearest
from headwater.sql.statements.control import ControlSink, ControlSource
from headwater.sql.statements.create_sink import CreateSink
from headwater.sql.statements.create_source import CreateSource
from headwater.sql.statements.drop import Drop
from headwater.sql.statements.insert import InsertFromStream
from headwater.storage.catalog import CatalogObject

# Life


def open_connectors(context: Context) -> None:
    """Goes on with the sinks and sources that ran when the database was closed."""

    def reader(query: str, options: sink_options.SinkOptions, after: str) -> Subscription:
        return subscribe(context, query, options.emit, after, None)

    folder, catalog = context.folder.path, context.catalog
    sinks = SinkSurroundings(reader, partial(_last_token, context))
    sources = SourceSurroundings(context.kernel, context.streams, context.functions)
    context.sinks = Sinks(catalog, sinks, folder / "sinks")
    context.sinks.open()
    context.sources = Sources(catalog, sources, folder / "sources")
    context.sources.open()


def _last_token(context: Context, name: str) -> str | None:
    query = logged(context, name)
    last = log_of(query).newest()
    if last is None:
        return None
    return encode(query.number, incarnation_of(context, query), last.position, last.instant)


def close_connectors(context: Context) -> None:
    """Stops all sources, then all sinks; they go on at the next open."""
    for name in ("sources", "sinks"):
        found: Connectors | None = getattr(context, name, None)
        if found is not None:  # else the database was not opened as far as that
            found.close()


# Statements


def create_source(running: Running, statement: CreateSource) -> Result:
    """CREATE SOURCE src INTO t FROM '…' [WITH (…)]."""
    context = running.context
    with context.ddl:
        if not _is_there(context.sources, statement):
            source_options.KINDS.parse(statement.url)  # what is not there yet says so first
            table = context.streaming_table(statement.table, statement.text)
            with _told_at_its_name(statement):
                context.sources.create(str(statement.name), table, statement.url, statement.options)
    return Result("CREATE SOURCE")


def create_sink(running: Running, statement: CreateSink) -> Result:
    """CREATE SINK k FROM q INTO '…' [WITH (…)]."""
    context = running.context
    with context.ddl:
        if not _is_there(context.sinks, statement):
            sink_options.KINDS.parse(statement.url)
            query = logged(context, statement.query, statement.text)
            context.catalog.check_free("sink", str(statement.name))
            with _told_at_its_name(statement):
                context.sinks.create(
                    str(statement.name), _read_by_name(query), statement.url, statement.options
                )
    return Result("CREATE SINK")


def _is_there(connectors: Connectors, statement: CreateSource | CreateSink) -> bool:
    """Whether IF NOT EXISTS has nothing to do."""
    return statement.if_not_exists and connectors.find(statement.name) is not None


@contextmanager
def _told_at_its_name(statement: CreateSource | CreateSink) -> Iterator[None]:
    try:
        yield
    except Error as error:
        raise error.at(statement.name.span.place(statement.text)) from error.__cause__


def _read_by_name(query: LoggedQuery) -> str:
    """The name of a query's results as users know it: those of a view are the view's."""
    if isinstance(query, Following):
        return query.followed
    return query.name.removeprefix("_")


def insert_from_stream(running: Running, statement: InsertFromStream) -> Result:
    """INSERT INTO t FROM STREAM '…' [WITH (…)]: a source with a name of its own, which is returned."""
    context = running.context
    with context.ddl:
        source_options.KINDS.parse(statement.url)
        table = context.streaming_table(statement.table, statement.text)
        name = _free_name(context, table.definition.name)
        context.sources.create(name, table, statement.url, statement.options)
    return Result("INSERT", pa.table({"source": [name]}))


def _free_name(context: Context, table: str) -> str:
    number = 1
    while context.sources.find(f"{table}_source_{number}") is not None:
        number += 1
    return f"{table}_source_{number}"


def control_connector(running: Running, statement: ControlSource | ControlSink) -> Result:
    """PAUSE or RESUME, SOURCE or SINK."""
    context = running.context
    is_source = isinstance(statement, ControlSource)
    connectors: Connectors = context.sources if is_source else context.sinks
    with context.ddl:
        item = _found(connectors, statement)
        if statement.action == "pause":
            connectors.pause(item)
        else:
            connectors.resume(item)
    return Result(f"{statement.action.upper()} {connectors.kind.upper()}")


def drop_connector(running: Running, statement: Drop) -> Result:
    """DROP SOURCE, DROP SINK: rows that have come or gone stay."""
    context = running.context
    connectors: Connectors = context.sources if statement.kind == "source" else context.sinks
    with context.ddl:
        if not statement.if_exists or connectors.find(statement.name) is not None:
            connectors.drop(_found(connectors, statement))
    return Result(f"DROP {statement.kind.upper()}")


def _found(connectors: Connectors, statement: ControlSource | ControlSink | Drop) -> CatalogObject:
    name, kind = statement.name, connectors.kind
    found = connectors.find(name)
    if found is not None:
        return found
    near = nearest(str(name), connectors.names())
    raise BindError(
        f"{kind} {name} does not exist",
        sqlstate="42704",
        hint=f"did you mean {near}?" if near else f"SHOW {kind.upper()}S lists what there is",
        place=name.span.place(statement.text),
    )
