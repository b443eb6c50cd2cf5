"""SUBSCRIBE and `db.subscribe`: readers of named queries, and selects that live as long as their reader."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial

import pyarrow as pa

from headwater.engine.following import Following
from headwater.engine.hosted import LoggedQuery
from headwater.engine.query_sinks import LogSink
from headwater.engine.results import ResultLog
from headwater.errors import DataError, NotSupportedError
from headwater.execute.catalog_tables import CatalogTables
from headwater.execute.context import Context, Running
from headwater.execute.continuous import (
    passing_object,
    query_of,
    release_streams,
)
from headwater.execute.continuous_plan import Made
from headwater.execute.expansion import expanding_continuous
from headwater.execute.followed_selects import followed_select, is_followed
from headwater.execute.following import incarnation_of, logged
from headwater.execute.query_results import (
    Subscription,
    open_subscription,
    remove_later,
)
from headwater.execute.update_queries import MadeUpdate, result_log
from headwater.plan.checks import Checker
from headwater.plan.update_checks import is_update_query
from headwater.result import Result
from headwater.settings import MEBIBYTE
from headwater.sql.extensions import Emit
from headwater.sql.statements.query import Query
from headwater.sql.statements.subscribe import Subscribe
from headwater.sql.text import Name

EMITTED = ("all", "inserts", "deletes", "changes")


def subscribe(
    context: Context,
    target: str | Query,
    emit: Emit | None,
    after: str | None,
    timeout: float | None,
    conflate_by: Sequence[str] = (),
) -> Subscription:
    """Results of a query, changes of a view or table, or a select that lives as long as its reader."""
    if emit is not None and emit not in EMITTED:
        raise DataError(
            f"there is no emit {emit!r}", sqlstate="22023", hint="one of " + ", ".join(EMITTED)
        )
    if after is not None and not isinstance(after, str):
        raise DataError(f"{after!r} is no token", sqlstate="22023", hint="out.token gives one")
    if isinstance(target, str):
        named = logged(context, target)
        incarnation = incarnation_of(context, named)
        found = open_subscription(named, incarnation, emit, after, timeout, None, conflate_by)
        _tell_again(named, found)
        return found
    if is_followed(target):
        return _subscribe_select(context, target, emit, after, timeout, conflate_by)
    query = _passing(context, target)
    context.engine.add(query)
    gone = remove_later(context, query.name, partial(release_streams, context))
    try:
        return open_subscription(query, "", emit, after, timeout, gone, conflate_by)
    except BaseException:
        gone()
        raise


def _subscribe_select(
    context: Context,
    target: Query,
    emit: Emit | None,
    after: str | None,
    timeout: float | None,
    conflate_by: Sequence[str],
) -> Subscription:
    following, end = followed_select(context, target, whole=emit == "all")

    def gone() -> None:
        threading.Thread(target=end, name="headwater-unsubscribe", daemon=True).start()

    try:
        following.tell()
        found = open_subscription(following, "", emit, after, timeout, gone, conflate_by)
    except BaseException:
        gone()
        raise
    _tell_again(following, found)
    return found


def _tell_again(query: LoggedQuery, reader: Subscription) -> None:
    """What came before the reader was one is told too: a view that nobody reads is not looked at."""
    if isinstance(query, Following):
        try:
            query.tell()
        except BaseException:
            reader.close()
            raise


def _passing(context: Context, target: Query) -> LoggedQuery:
    """A query that is in no catalog."""
    with expanding_continuous(context, target, target.text) as (query, text):
        return _passing_expanded(context, query, text)


def _passing_expanded(context: Context, target: Query, text: str) -> LoggedQuery:
    made: Made | MadeUpdate
    if is_update_query(target):
        made = MadeUpdate(context, target, text)
        log = result_log(context, made, None)
    else:
        Checker(CatalogTables(context), target, text).check()
        made = Made(context, target, text)
        log = _log_in_memory(context, made)
    for table in made.tables:
        table.kept = True
    item = passing_object(made)
    context.passing[item.key] = item
    return query_of(context, item, made, LogSink(log))


def _log_in_memory(context: Context, made: Made) -> ResultLog:
    return ResultLog(
        None,
        made.output.schema,
        keep=lambda: context.settings.integer("results_kept"),
        keep_bytes=lambda: context.settings.integer("results_mb") * MEBIBYTE,
    )


def follow(context: Context, statement: Subscribe) -> Subscription:
    """The reader of a SUBSCRIBE statement; it waits for results without end."""
    after = "earliest" if statement.earliest else statement.after
    target = str(statement.target) if isinstance(statement.target, Name) else statement.target
    keys = statement.conflate_by
    return subscribe(context, target, statement.emit, after, None, keys)


def subscribe_statement(running: Running, statement: Subscribe) -> Result:
    """SUBSCRIBE as a statement: what is there now; `db.subscribe` and the shell go on."""
    after = "earliest" if statement.earliest else statement.after
    target = str(statement.target) if isinstance(statement.target, Name) else statement.target
    if isinstance(target, Query) and not is_followed(target):
        raise NotSupportedError(
            "a select is subscribed to with db.subscribe(…)",
            hint="or CREATE CONTINUOUS QUERY first",
        )
    running.context.engine.flush()
    keys = statement.conflate_by
    with subscribe(running.context, target, statement.emit, after, 0.0, keys) as found:
        parts = [out.arrow() for out in found]
    if not parts:
        parts = [found.schema.empty_table()]
    return Result("SUBSCRIBE", pa.concat_tables(parts))
