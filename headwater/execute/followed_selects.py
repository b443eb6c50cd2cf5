"""SUBSCRIBE to a select without a window: a view that is in no catalog, followed as long as it has a reader.

The view is kept as one of the catalog would be, here or in a factory; what tells its changes has its log in
memory. Both go when the reader does. A select that no stream or streaming table stands in is run again when
a table that it reads has changed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pyarrow as pa

from headwater.engine.following import FollowedRows, Following
from headwater.engine.query_parts import Beginning
from headwater.engine.query_sinks import LogSink
from headwater.engine.results import ResultLog
from headwater.engine.view import ContinuousView
from headwater.execute.context import Context, Running
from headwater.execute.continuous import passing_name, release_streams
from headwater.execute.dependents import changes_query
from headwater.execute.following import (
    SelectedRows,
    ViewRows,
    check_told,
    columns_told,
    refuse_time,
    streams_of,
)
from headwater.execute.query import columns_of_query
from headwater.execute.view_static import forget_static
from headwater.execute.views import passing_view
from headwater.execute.zones import WorldInZone
from headwater.kernel.cancellation import Cancellation
from headwater.plan.update_checks import is_update_query
from headwater.settings import MEBIBYTE
from headwater.sql.statements.query import Query
from headwater.storage.catalog import CatalogObject
from headwater.storage.streaming.table import StreamingTable

SELECT = "the select"


def is_followed(query: Query) -> bool:
    """Whether a select has nothing of a continuous query in it."""
    windows = bool(query.windows) or any(r.window is not None for r in query.table_references)
    sampled = query.sample is not None or query.emit is not None or bool(query.cuts)
    return not windows and not sampled and not is_update_query(query)


def followed_select(
    context: Context, query: Query, whole: bool
) -> tuple[Following, Callable[[], None]]:
    """What tells the changes of a select, at work, and what ends it; `whole`: its reader takes all rows."""
    number, name = passing_name()
    with context.ddl, contextlib.ExitStack() as holding, contextlib.ExitStack() as undo:
        found = passing_view(context, query, name, holding, undo)
        if found is None:
            view, parts = None, _plain(context, query)
        else:
            definition, view = found
            refuse_time(view, SELECT)
            schema = columns_told(view.evaluation.output.schema, SELECT)
            view.number = -number
            context.passing[name] = CatalogObject(-number, "view", name, definition, "")
            undo.callback(context.passing.pop, name)
            context.engine.add(view)
            undo.callback(context.engine.remove, name)
            parts = ViewRows(context, name), schema, list(view.tables)
        following = _following(context, name, query, parts, whole)
        context.engine.add(following)
        undo.pop_all()
    return following, lambda: _end(context, following, view, name)


def _plain(context: Context, query: Query) -> tuple[FollowedRows, pa.Schema, list[StreamingTable]]:
    """What follows a select that no view keeps."""
    check_told(context, SELECT, query)
    columns = columns_of_query(Running(context, query.text, Cancellation()), query)
    return (
        SelectedRows(context, query),
        columns_told(columns, SELECT),
        streams_of(context, sorted(context.names_read(query))),
    )


def _following(
    context: Context,
    name: str,
    query: Query,
    followed: tuple[FollowedRows, pa.Schema, list[StreamingTable]],
    whole: bool,
) -> Following:
    settings, (source, schema, tables) = context.settings, followed
    log = ResultLog(
        None,
        schema,
        keep=lambda: settings.integer("results_kept"),
        keep_bytes=lambda: settings.integer("results_mb") * MEBIBYTE,
    )
    return Following(
        number=0,
        name=changes_query(name),
        statement=query.text,
        followed=SELECT,
        beginning=Beginning((), ()),
        sink=LogSink(log),
        emit="changes",
        tables=tables,
        world=WorldInZone(context, context.time_zone),
        source=source,
        whole=whole,
    )


def _end(context: Context, following: Following, view: ContinuousView | None, name: str) -> None:
    if following.sink.log.closed:
        return  # with the database: what is left on disk goes at the next start
    context.engine.remove(following.name)
    following.sink.log.close()
    if view is not None:
        context.engine.remove(view.name)
        view.end()
        context.passing.pop(name, None)
        forget_static(context)
    release_streams(context, [table.definition.id for table in following.tables])
