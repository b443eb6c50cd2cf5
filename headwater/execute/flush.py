"""FLUSH: everything acknowledged and complete has been processed, or an error says what has not."""

from __future__ import annotations

from headwater.engine.hosted import Hosted
from headwater.errors import BindError, Error
from headwater.execute.context import Context, Running
from headwater.result import Result
from headwater.sql.statements.flush import Flush

MATERIALIZED = "_"  # how the name of a materialized view's query begins
STOPPED = ("failed", "retrying")
SHOWN = 3  # causes in the detail; SHOW tells all
OWN = "("  # how names of queries begin that end with their reader


def flush(running: Running, _statement: Flush) -> Result:
    """FLUSH."""
    flush_all(running.context)
    return Result("FLUSH")


def flush_all(context: Context) -> None:
    """Waits for queries and views; an error names those that stopped, and sources and sinks too.

    What waits for its next attempt gets it now.
    """
    context.engine.flush()
    stopped = [*_factories(context), *_dormant(context), *_flows(context)]
    if not stopped:
        return
    names = [f"{what} is retrying" if again else f"{what} has failed" for what, again, _ in stopped]
    more = [f"and {len(stopped) - SHOWN} more"] if len(stopped) > SHOWN else []
    raise BindError(
        "not everything was processed: " + ", ".join(names),
        sqlstate="55000",
        detail="; ".join([*(f"{what}: {cause}" for what, _, cause in stopped[:SHOWN]), *more]),
        hint="what retries goes on by itself; RESUME QUERY, SOURCE or SINK tries what has failed again",
    )


def _factories(context: Context) -> list[tuple[str, bool, str]]:
    """Queries and views that stopped, whether for a while, and why."""
    found: list[tuple[str, Hosted]] = [
        *(("query", query) for query in context.engine.named()),
        *(("view", view) for view in context.engine.views()),
    ]
    stands = [(_shown(k, f.name), *f.standing) for k, f in found if not f.name.startswith(OWN)]
    return [
        (shown, state == "retrying", _cause(error))
        for shown, state, error in stands
        if state in STOPPED
    ]


def _dormant(context: Context) -> list[tuple[str, bool, str]]:
    """Queries and views that could not start."""
    return [
        (_shown("view" if item.kind == "view" else "query", item.name), False, _cause(error))
        for item in context.catalog.all("continuous query", "view")
        if (error := context.dormant.get(item.key)) is not None
    ]


def _shown(kind: str, name: str) -> str:
    """What users call it."""
    if kind == "query" and name.startswith(MATERIALIZED):
        return f"materialized view {name.removeprefix(MATERIALIZED)}"
    return f"{kind} {name}"


def _flows(context: Context) -> list[tuple[str, bool, str]]:
    """Sources and sinks that failed; those that retry wait for others, and nobody waits for them."""
    sources = [("source", s.name, s.state, s.last_error) for s in context.sources.statuses()]
    sinks = [("sink", s.name, s.state, s.last_error) for s in context.sinks.statuses()]
    return [
        (f"{kind} {name}", False, error or "unknown")
        for kind, name, state, error in [*sources, *sinks]
        if state == "failed"
    ]


def _cause(error: BaseException | None) -> str:
    if isinstance(error, Error):
        detail = f", {error.detail}" if error.detail else ""
        return f"{error.message} ({error.sqlstate}){detail}"
    return str(error)
