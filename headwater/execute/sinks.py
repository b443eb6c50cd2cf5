"""CREATE SINK, PAUSE, RESUME and DROP SINK."""

from __future__ import annotations

from headwater.engine.subscription import Subscription
from headwater.engine.token import encode
from headwater.errors import BindError, Error
from headwater.execute.context import Context, Running
from headwater.execute.continuous import find_query
from headwater.execute.query_results import log_of
from headwater.execute.subscriptions import subscribe
from headwater.result import Result
from headwater.sinks.manager import Sinks
from headwater.sinks.options import SinkOptions, parse_address
from headwater.sinks.runner import Surroundings
from headwater.sql.names import nearest
from headwater.sql.statements.control import ControlSink
from headwater.sql.statements.create_sink import CreateSink
from headwater.sql.statements.drop import Drop
from headwater.sql.text import Name
from headwater.storage.catalog import CatalogObject


def open_sinks(context: Context) -> None:
    """Goes on with the sinks of the catalog."""

    def reader(query: str, options: SinkOptions, after: str) -> Subscription:
        return subscribe(context, query, options.emit, after, None)

    def last_token(query: str) -> str | None:
        return _last_token(context, query)

    context.sinks = Sinks(
        context.catalog, Surroundings(reader, last_token), context.folder.path / "sinks"
    )
    context.sinks.open()


def _last_token(context: Context, name: str) -> str | None:
    item = find_query(context, name)
    query = context.engine.find_named(item.name)
    last = None if query is None else log_of(query).last()
    if last is None:
        return None
    return encode(item.id, item.definition["incarnation"], last.position, last.instant)


def close_sinks(context: Context) -> None:
    """Stops all sinks; they go on at the next open."""
    found: Sinks | None = getattr(context, "sinks", None)
    if found is not None:
        found.close()


def create_sink(running: Running, statement: CreateSink) -> Result:
    """CREATE SINK k FROM q INTO '…' [WITH (…)]."""
    context = running.context
    with context.ddl:
        if context.sinks.find(statement.name) is not None and statement.if_not_exists:
            return Result("CREATE SINK")
        parse_address(statement.url)
        query = _read_by_name(find_query(context, statement.query, statement.text))
        context.catalog.check_free("sink", str(statement.name))
        try:
            context.sinks.create(str(statement.name), query, statement.url, statement.options)
        except Error as error:
            raise error.at(statement.name.span.place(statement.text)) from error.__cause__
    return Result("CREATE SINK")


def drop_sink(running: Running, statement: Drop) -> Result:
    """DROP SINK: what it has written stays."""
    context = running.context
    with context.ddl:
        if context.sinks.find(statement.name) is None and statement.if_exists:
            return Result("DROP SINK")
        context.sinks.drop(_found(context, statement.name, statement.text))
    return Result("DROP SINK")


def control_sink(running: Running, statement: ControlSink) -> Result:
    """PAUSE SINK, RESUME SINK."""
    context = running.context
    with context.ddl:
        item = _found(context, statement.name, statement.text)
        if statement.action == "pause":
            context.sinks.pause(item)
        else:
            context.sinks.resume(item)
    return Result(f"{statement.action.upper()} SINK")


def _read_by_name(item: CatalogObject) -> str:
    """The name of a query as users know it: that of a view is the view's."""
    return item.name if item.definition["view"] is None else item.name.removeprefix("_")


def _found(context: Context, name: Name, text: str) -> CatalogObject:
    found = context.sinks.find(name)
    if found is not None:
        return found
    near = nearest(str(name), [o.name for o in context.catalog.all("sink")])
    raise BindError(
        f"sink {name} does not exist",
        sqlstate="42704",
        hint=f"did you mean {near}?" if near else "SHOW SINKS lists what there is",
        place=name.span.place(text),
    )
