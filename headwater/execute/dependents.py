"""What depends on what: a table that a query, view or function reads cannot go."""

from __future__ import annotations

from headwater.engine.hosted import LoggedQuery
from headwater.errors import BindError, Error
from headwater.execute.context import Context
from headwater.execute.function_bodies import functions_reading
from headwater.sql.statements.query import make_query
from headwater.storage.catalog import CatalogObject

CHANGES = (
    "changes"  # a kind and a namespace of the catalog: what tells the changes of a view or table
)


OWN_SELECT = "(subscription/"  # in what the engine calls a subscriber's own query or view


def changes_query(name: str) -> str:
    """What the engine calls whoever tells the changes of a view or table; no user's query is called so."""
    return f"(changes/{name})"  # no name has a slash


def forget_changes(context: Context, item: CatalogObject, error: Error | None = None) -> None:
    """Before a view or table goes: its changes are told no more; BindError if a sink takes them.

    `error`: what its readers get; None: they end.
    """
    changes = context.catalog.find(item.name, CHANGES)
    if changes is None:
        return
    check_no_sinks(context, item.name)
    context.catalog.remove(changes)
    query = context.engine.remove(changes_query(item.name))
    if isinstance(query, LoggedQuery) and error is not None:
        query.sink.log.fail(error)
    elif isinstance(query, LoggedQuery):
        query.sink.log.close()
    context.dormant.pop(changes_query(item.name), None)
    table = context.streams.remove(changes.id)
    if table is not None:
        with table.upkeep:
            context.discard(table.folder)


def check_no_sinks(context: Context, name: str) -> None:
    """BindError 2BP01 if a sink reads the results of a query."""
    sinks = context.sinks.of_query(name)
    if sinks:
        raise BindError(
            f"{name} is read by sink {', '.join(sinks)}",
            sqlstate="2BP01",
            hint=f"DROP SINK {sinks[0]} first",
        )


def way_to_drop(view: CatalogObject) -> str:
    """The statement that drops a view."""
    kind = "MATERIALIZED VIEW" if view.definition.get("materialized") else "VIEW"
    return f"DROP {kind} {view.name}"


def check_no_functions(context: Context, item: CatalogObject) -> None:
    """BindError 2BP01 if a function reads a table, a view or the results of a query."""
    functions = functions_reading(context, item.key)
    if functions:
        raise BindError(
            f"{item.kind} {item.name} is read by function{'s' * (len(functions) > 1)} "
            + ", ".join(functions),
            sqlstate="2BP01",
            hint=f"DROP FUNCTION {functions[0]} first",
        )


def check_unread(context: Context, item: CatalogObject) -> None:
    """BindError 2BP01 if a continuous query, a view or a function reads a table."""
    views = [
        view
        for view in context.catalog.all("view")
        if item.id in view.definition["reads"] or item.key in view.definition["tables"]
        if view.id != item.id  # one of its columns may have its name
    ]
    if views:
        raise BindError(
            f"{item.kind} {item.name} is read by view{'s' * (len(views) > 1)} "
            + ", ".join(view.name for view in views),
            sqlstate="2BP01",
            hint=f"{way_to_drop(views[0])} first",
        )
    check_no_functions(context, item)
    check_no_queries(context, item)
    _check_no_selects(context, item)


def _check_no_selects(context: Context, item: CatalogObject) -> None:
    """BindError 2BP01 if a subscriber's own select reads a table or view."""
    for query in context.engine.named():
        if OWN_SELECT not in query.name or not query.sink.log.readers:  # it goes with its reader
            continue
        streams = any(table.definition.id == item.id for table in query.tables)
        if streams or item.key in context.names_read(make_query(query.statement)):
            raise BindError(
                f"{item.kind} {item.name} is read by the select of a subscriber",
                sqlstate="2BP01",
                hint="it goes when the subscription is closed",
            )


def check_no_queries(context: Context, item: CatalogObject) -> None:
    """BindError 2BP01 if a continuous query reads a table or view."""
    readers: list[str] = []
    for query in context.catalog.all("continuous query"):
        streams = item.id in query.definition["reads"]
        named = item.kind in ("table", "view") and item.key in query.definition["tables"]
        if streams or named:
            readers.append(query.name.removeprefix("_"))
    if readers:
        view = context.find(readers[0])
        is_view = view is not None and view.kind == "materialized view"
        way = "DROP MATERIALIZED VIEW" if is_view else "KILL QUERY"
        raise BindError(
            f"{item.kind} {item.name} is read by continuous query {', '.join(readers)}",
            sqlstate="2BP01",
            hint=f"{way} {readers[0]} first",
        )
