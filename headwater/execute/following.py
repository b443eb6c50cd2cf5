"""SUBSCRIBE and sinks from views and tables: what tells their changes is made when the first reader comes.

A view that a continuous query's results come from has them already; any other view or table gets an object
of the catalog, "changes", under its own name: the place of its results, so that tokens hold over restarts.
It goes with what it follows.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence

import pyarrow as pa

from headwater.engine import results
from headwater.engine.change_record import FollowedChanges
from headwater.engine.following import FollowedRows, Following, columns_changed
from headwater.engine.hosted import LoggedQuery
from headwater.engine.query_parts import Beginning
from headwater.engine.query_sinks import LogSink
from headwater.engine.results import ResultLog
from headwater.engine.table_changes import TableChanges
from headwater.engine.view import ContinuousView
from headwater.errors import BindError, Error
from headwater.execute.catalog_tables import described, stored_columns
from headwater.execute.context import Context, Running
from headwater.execute.continuous import find_query
from headwater.execute.continuous_plan import MadeView
from headwater.execute.dependents import CHANGES, changes_query, forget_changes
from headwater.execute.expansion import expanded, is_plain
from headwater.execute.query import columns_of_query, run_query
from headwater.execute.query_results import log_of
from headwater.execute.streaming_tables import add_stream
from headwater.execute.system_tables import is_one as is_system_table
from headwater.execute.tables import fresh_number
from headwater.execute.zones import WorldInZone
from headwater.kernel.cancellation import Cancellation
from headwater.kernel.functions import SqlFunction
from headwater.plan.calls import moments, varying_calls
from headwater.settings import MEBIBYTE
from headwater.sql.names import nearest
from headwater.sql.statements.query import Query, make_query
from headwater.sql.text import Name
from headwater.sql.types import TIMESTAMP, quoted
from headwater.storage.catalog import CatalogObject
from headwater.storage.streaming.table import StreamingTable

FOLLOWED = ("view", "table", "streaming table")


class ViewRows:
    """The rows of a continuous view."""

    def __init__(self, context: Context, name: str) -> None:
        self._context, self._name = context, name
        view = context.engine.find_view(name)
        self.polled = view is None or context.reads_tables(view.plan.identifiers)

    def state(self) -> object:
        """How far its tables have come."""
        return self._view.incarnation, self._view.inputs()

    def follow(self, mark: str | None) -> FollowedChanges:
        """What has changed, every acknowledged insert in it."""
        return self._view.follow(mark)

    @property
    def _view(self) -> ContinuousView:
        return self._context.view(self._name.casefold())


class StreamRows(TableChanges):
    """The rows of a streaming table that keeps every row."""

    polled = False

    def state(self) -> object:
        """How far it has come."""
        return self.table.state.next_sequence, self.table.generation


class SelectedRows:
    """The rows of a query that is run again: of a table, a plain view."""

    def __init__(self, context: Context, query: Query) -> None:
        self._context, self._query = context, query
        streams = [context.stream(name) for name in _names_read(context, self._query)]
        whole = expanded(context, self._query).query
        windows = bool(whole.windows) or any(r.window for r in whole.table_references)
        self._goes_by_wall = any(
            one is not None
            and one.definition.by_arrival
            and (windows or one.definition.range_ticks)
            for one in streams
        )
        self.polled = self._goes_by_wall or any(one is None for one in streams)

    def state(self) -> object:
        """How far what it reads has come."""
        context = self._context
        found: list[object] = [time.time_ns()] if self._goes_by_wall else []
        for name in _names_read(context, self._query):
            stream, view = context.stream(name), context.engine.find_view(name)
            query, item = context.engine.find_named(name), context.find(name)
            if stream is not None:
                state = stream.state
                found.append((name, state.next_sequence, state.time.clock, stream.generation))
            elif view is not None:
                found.append((name, view.incarnation, view.inputs()))
            elif query is not None:
                found.append((name, log_of(query).next))
            else:
                table = None if item is None else context.tables.get(item.id)
                found.append(
                    (name, None if table is None else (table.folder, table.snapshot.version))
                )
        return tuple(found)

    def follow(self, mark: str | None) -> FollowedChanges:  # noqa: ARG002
        """Its rows as they are now."""
        running = Running(self._context, self._query.text, Cancellation())
        return FollowedChanges(None, None, run_query(running, self._query).arrow())


def _names_read(context: Context, query: Query) -> list[str]:
    """What a query reads, plain views looked through."""
    return sorted(context.names_read(expanded(context, query).query))


def logged(context: Context, name: Name | str, text: str | None = None) -> LoggedQuery:
    """What gives the results that go by a name: a continuous query's, or the changes of a view or table."""
    item = context.find(name)
    if item is not None and item.kind == "stream":
        raise BindError(
            f"stream {item.name} keeps no rows, so it has no changes to tell",
            sqlstate="55000",
            hint="subscribe to a continuous query or a view on it",
            place=name.span.place(text) if isinstance(name, Name) and text is not None else None,
        )
    if item is None:
        near = nearest(str(name), context.relation_names())
        raise BindError(
            f"there is no continuous query, view or table {name}",
            sqlstate="42P01",
            hint=f"did you mean {near}?"
            if near
            else "SHOW QUERIES, VIEWS and TABLES list what there is",
            place=name.span.place(text) if isinstance(name, Name) and text is not None else None,
        )
    if item.kind not in FOLLOWED:
        item = find_query(context, name, text)
        found = context.engine.find_named(item.name)
        if found is None:
            raise context.dormant[item.key]
        return found
    following = _running(context, item) or _following(context, item)
    following.tell()
    if following.state == "failed":  # what was wrong is so no more
        context.engine.resume(following)
    return following


def incarnation_of(context: Context, query: LoggedQuery) -> str:
    """What the tokens of a query's results must name beside its number."""
    item = context.catalog.by_number(query.number)
    if item is None:
        raise BindError(f"{query.name} has just gone", sqlstate="55000", hint="subscribe again")
    return str(item.definition["incarnation"])


def _running(context: Context, item: CatalogObject) -> Following | None:
    """What tells the changes already; without the lock of statements, which may wait for a sink to end."""
    running = context.engine.find_named(changes_query(item.name))
    if isinstance(running, Following) and running.output == _columns(context, item):
        return running
    return None


def _following(context: Context, item: CatalogObject) -> Following:
    with context.ddl:
        known, schema = context.catalog.find(item.name, CHANGES), _columns(context, item)
        if known is not None:
            running = context.engine.find_named(changes_query(item.name))
            if isinstance(running, Following) and running.output == schema:
                return running
            if running is None and known.definition["output"] == described(schema):
                return _start(context, item, known)  # it could not when the database was opened
            forget_changes(context, item)  # its columns are others
        folder = context.table_folder(f"changes of {item.name}", fresh_number(context))
        stored = results.definition(0, item.name, folder.name)
        saved = {
            "results": stored.as_json(),
            "incarnation": uuid.uuid4().hex[:12],
            "output": described(schema),
        }
        return _start(context, item, add_stream(context, CHANGES, item.name, stored, saved))


def _columns(context: Context, item: CatalogObject) -> pa.Schema:
    """The columns of results; BindError if the changes of a relation cannot be told."""
    view = context.engine.find_view(item.name)
    if item.kind == "view" and not is_plain(item):
        if view is None:
            raise context.dormant[item.key]
        refuse_time(view, f"view {item.name}")
        schema = view.evaluation.output.schema
    else:
        query = _all_of(item)
        check_told(context, f"view {item.name}", query)
        schema = columns_of_query(Running(context, query.text, Cancellation()), query)
    return columns_told(schema, item.name)


def _all_of(item: CatalogObject) -> Query:
    return make_query(f"SELECT * FROM {quoted(item.name)}")


def columns_told(schema: pa.Schema, what: str) -> pa.Schema:
    """The columns of results of what has these; BindError if one is the system's."""
    taken = [name for name in schema.names if name in ("_t", "_op")]
    if taken:
        raise BindError(
            f"{what} has a column {taken[0]}, which is the system's in results",
            sqlstate="42701",
            hint=f"SELECT {taken[0]} AS another_name, … FROM …, in a view or in place of it",
        )
    return schema.append(pa.field("_t", TIMESTAMP))


def refuse_time(view: ContinuousView, what: str) -> None:
    """BindError if a view has other rows at another time."""
    if goes_by_time(view):
        raise BindError(
            f"{what} depends on the time of each read, so it has no changes to tell",
            sqlstate="42P20",
            hint="leave functions of time out, or ask it again with SELECT",
        )


def goes_by_time(view: ContinuousView | MadeView) -> bool:
    """Whether a continuous view has other rows at another time."""
    text = view.plan.upper if view.specs else view.plan.whole
    return text is not None and text.reads_instant


def check_told(context: Context, name: str, query: Query) -> None:
    """BindError if a relation may become another without a change of a table that it reads."""
    whole = expanded(context, query, functions="all").query
    functions = context.functions_in(whole.identifiers)
    texts = [whole.text, *(f.definition for f in functions if isinstance(f, SqlFunction))]
    names = _names_read(context, query)
    views = [view for name in names if (view := context.engine.find_view(name)) is not None]
    system = [name for name in names if is_system_table(name)]
    if any(varying_calls(t) or moments(t) for t in texts) or any(map(goes_by_time, views)):
        what = "depends on the time of each read, or on chance"
    elif system:
        what = f"reads {system[0]}, of whose changes nobody tells"
    else:
        return
    raise BindError(
        f"{name} {what}, so it has no changes to tell",
        sqlstate="42P20",
        hint="leave that out, or ask it again with SELECT",
    )


def _start(context: Context, item: CatalogObject, changes: CatalogObject) -> Following:
    settings, schema = context.settings, stored_columns(changes.definition["output"])
    if item.kind == "view" and not is_plain(item) and context.engine.find_view(item.name) is None:
        raise context.dormant[item.key]
    context.check_sound(changes)
    log = ResultLog(
        context.streams.find(changes.id),
        schema,
        keep=lambda: settings.integer("results_kept"),
        keep_bytes=lambda: settings.integer("results_mb") * MEBIBYTE,
    )
    following = Following(
        number=changes.id,
        name=changes_query(item.name),
        statement=f"SUBSCRIBE {item.name}",
        followed=item.name,
        beginning=Beginning((), ()),
        sink=LogSink(log),
        emit="changes",
        tables=streams_of(context, [item.name]),
        world=WorldInZone(context, context.time_zone),
        source=_rows_of(context, item, schema),
    )
    following.attach()
    context.engine.add(following)
    return following


def _rows_of(context: Context, item: CatalogObject, schema: pa.Schema) -> FollowedRows:
    if item.kind == "view" and not is_plain(item):
        return ViewRows(context, item.name)
    stream = context.stream(item.name)
    if stream is not None and stream.definition.range_ticks is None:
        return StreamRows(stream, pa.schema(list(schema)[:-1]))
    return SelectedRows(context, _all_of(item))


def streams_of(context: Context, names: Sequence[str]) -> list[StreamingTable]:
    """The streaming tables whose rows may change some relations."""
    found: dict[int, StreamingTable] = {}
    waiting, seen = list(names), set[str]()
    while waiting:
        name = waiting.pop()
        if name.casefold() in seen:
            continue
        seen.add(name.casefold())
        stream, view = context.stream(name), context.engine.find_view(name)
        if stream is not None:
            found[stream.definition.id] = stream
        elif view is not None:
            found |= {table.definition.id: table for table in view.tables}
        else:
            waiting += _names_read(context, make_query(f"SELECT * FROM {quoted(name)}"))
    return list(found.values())


def open_following(context: Context) -> None:
    """Goes on with all that was followed; what cannot be followed now is when somebody subscribes."""
    for changes in context.catalog.all(CHANGES):
        item = context.find(changes.name)
        if item is not None:
            try:
                _start(context, item, changes)
            except Error as error:
                context.dormant[changes_query(item.name)] = error


def restart_following(context: Context, item: CatalogObject) -> None:
    """After a view got another query: what tells its changes goes on with the difference."""
    changes = context.catalog.find(item.name, CHANGES)
    if changes is not None:
        query = context.engine.find_named(changes_query(item.name))
        try:
            same = isinstance(query, Following) and query.output == _columns(context, item)
        except Error as error:
            forget_changes(context, item, error)
            return
        if same and isinstance(query, Following):
            context.engine.remove(query.name)
            query.tables = streams_of(context, [item.name])
            query.source = _rows_of(context, item, query.output)
            query.attach()
            query.state, query.error = "running", None
            context.engine.add(query)
        else:
            forget_changes(context, item, columns_changed(item.name))
