"""Results of continuous queries as rows, and readers of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa

from headwater.engine.conflation import Conflation
from headwater.engine.following import Following
from headwater.engine.hosted import LoggedQuery
from headwater.engine.newest_results import shown_rows
from headwater.engine.query import ContinuousQuery
from headwater.engine.results import ResultLog, Told
from headwater.engine.subscription import (
    EARLIEST,
    Out,
    Pusher,
    Subscription,
    start_position,
)
from headwater.engine.token import decode, encode
from headwater.engine.update_query import UpdateQuery
from headwater.errors import BindError
from headwater.execute.context import Context
from headwater.sql.extensions import Emit
from headwater.storage.streaming.definition import EPOCH_NUMBER


def last_result(context: Context, name: str, numbered: bool = False) -> pa.Table | None:
    """The whole last result of a continuous query; None if the name is none's.

    `numbered`: with the hidden column that says which epoch it is.
    """
    item = context.find(name)
    if item is None or item.kind != "continuous query":
        return None
    query = context.engine.find_named(item.name)
    if query is None:
        raise context.dormant[item.key]
    if isinstance(query, UpdateQuery):
        return query.shown()
    found = log_of(query).last()
    rows = query.output.empty_table() if found is None else found.rows
    if not numbered or not isinstance(query, ContinuousQuery) or not query.sampling.cut:
        return rows
    epoch = None if found is None else found.epoch
    return rows.append_column(EPOCH_NUMBER, pa.repeat(pa.scalar(epoch, pa.int64()), len(rows)))


def log_of(query: LoggedQuery) -> ResultLog:
    """The log of a query's results."""
    return query.sink.log


def open_subscription(
    query: LoggedQuery,
    incarnation: str,
    emit: Emit | None,
    after: str | None,
    timeout: float | None,
    on_close: Callable[[], None] | None = None,
    conflate_by: Sequence[str] = (),
) -> Subscription:
    """A reader of a query's results; `conflate_by`: of what came since it last asked the newest per key."""
    log, what = log_of(query), emit or query.emit
    whole_first = isinstance(query, Following) and after in (None, EARLIEST)
    if isinstance(query, UpdateQuery) and what != "all":
        raise BindError(
            f"{query.name} is an update query: it gives the newest result of each key",
            sqlstate="42P20",
            hint="leave EMIT out",
        )
    if conflate_by and what != "all":
        raise BindError(
            f"CONFLATE BY keeps the newest row of each key, so it does not go with EMIT {what.upper()}",
            sqlstate="42P20",
            hint="EMIT ALL CONFLATE BY …",
        )
    conflation = Conflation(output_of(query), conflate_by) if conflate_by else None
    known = partial(decode, query_id=query.number, incarnation=incarnation)

    def token_of(result: Told) -> str:
        return encode(query.number, incarnation, result.position, result.instant)

    return Subscription(
        log,
        emit=what,
        start=start_position(log, after, known, what, whole_first),
        whole_first=whole_first,
        time_of=query.time_of,
        token_of=token_of,
        timeout=timeout,
        on_close=on_close,
        shown=shown_rows if isinstance(query, UpdateQuery) else None,
        conflation=conflation,
    )


def output_of(query: LoggedQuery) -> pa.Schema:
    """The columns of a query's result."""
    return query.output


def remove_later(
    context: Context, name: str, release: Callable[[list[int]], None]
) -> Callable[[], None]:
    """What ends a query that lives as long as its reader; it does not wait."""

    def remove() -> None:
        threading.Thread(target=end, name="headwater-unsubscribe", daemon=True).start()

    def end() -> None:
        query = context.engine.remove(name)
        context.passing.pop(name.casefold(), None)
        if query is not None:
            release([table.definition.id for table in query.tables])

    return remove


__all__ = ["Out", "Pusher", "Subscription", "last_result", "open_subscription"]
