"""The tables under `headwater.`: what the database knows of itself, as ordinary rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pyarrow as pa

from headwater.engine.elsewhere import HostGone
from headwater.engine.hosted import Hosted, LoggedQuery
from headwater.engine.query import ContinuousQuery
from headwater.engine.split_query import QueryPart, SplitQuery
from headwater.engine.split_view import SplitView, ViewPart
from headwater.engine.update_query import UpdateQuery, key_texts
from headwater.engine.view import ContinuousView
from headwater.engine.view_circuit import ViewCircuit
from headwater.engine.view_pipeline import ViewPipeline
from headwater.errors import Error
from headwater.execute.context import Context
from headwater.execute.discretion import shown_rows
from headwater.execute.query_results import log_of
from headwater.settings import shown
from headwater.storage.standard_table import StandardTable
from headwater.storage.streaming.table import StreamingTable

PREFIX = "headwater."

STRING, BIGINT = pa.string(), pa.int64()


def columns(**types: pa.DataType) -> pa.Schema:
    """A schema from names and types."""
    return pa.schema([pa.field(name, type_) for name, type_ in types.items()])


TABLES = columns(
    name=STRING,
    kind=STRING,
    row_count=BIGINT,
    file_count=BIGINT,
    version=BIGINT,
    location=STRING,
    created_at=STRING,
    clock=STRING,
    closed=STRING,
    tail_rows=BIGINT,
    unsealed_bytes=BIGINT,
    update_key=STRING,
    error=STRING,
)
BLOCKS = columns(
    table_name=STRING,
    compartment=BIGINT,
    low=STRING,
    high=STRING,
    low_sequence=BIGINT,
    high_sequence=BIGINT,
    row_count=BIGINT,
    late_count=BIGINT,
    row_groups=BIGINT,
    bytes=BIGINT,
    path=STRING,
)
INDEXES = columns(
    name=STRING, table_name=STRING, column_name=STRING, method=STRING, lag_blocks=BIGINT
)
LATE_ROWS = columns(table_name=STRING, policy=STRING, late_count=BIGINT)
METRICS = columns(name=STRING, value=BIGINT)
SPARK = columns(state=STRING, since=STRING, restarts=BIGINT, last_end=STRING, next_start=STRING)
SOURCES = columns(
    name=STRING,
    table_name=STRING,
    url=STRING,
    state=STRING,
    row_count=BIGINT,
    rows_per_second=pa.float64(),
    lag_s=pa.float64(),
    last_batch=BIGINT,
    last_error=STRING,
    started_at=STRING,
    created_at=STRING,
)
SINKS = columns(
    name=STRING,
    query=STRING,
    url=STRING,
    state=STRING,
    row_count=BIGINT,
    waiting_results=BIGINT,
    last_time=STRING,
    written_at=STRING,
    attempts=BIGINT,
    last_error=STRING,
    created_at=STRING,
)
QUERIES = columns(
    name=STRING,
    state=STRING,
    host=STRING,
    mode=STRING,
    tier=STRING,
    sample=STRING,
    last_instant=STRING,
    results=BIGINT,
    waiting_rows=BIGINT,
    waits_for=STRING,
    response_ms=pa.float64(),
    worst_response_ms=pa.float64(),
    post_cut_ms=pa.float64(),
    over_budget=pa.string(),
    state_size=BIGINT,
    shared_with=pa.list_(STRING),
    readers=BIGINT,
    error=STRING,
    statement=STRING,
    time_zone=STRING,
)
VIEWS = columns(
    name=STRING,
    kind=STRING,
    maintenance=STRING,
    state=STRING,
    host=STRING,
    tier=STRING,
    progress=pa.float64(),
    waiting_rows=BIGINT,
    groups=BIGINT,
    state_bytes=BIGINT,
    spilled_bytes=BIGINT,
    version=BIGINT,
    versions=pa.list_(BIGINT),
    fold_ms=pa.float64(),
    recovery_s=pa.float64(),
    shared_with=pa.list_(STRING),
    error=STRING,
    statement=STRING,
    time_zone=STRING,
)
STALENESS = columns(
    query_name=STRING,
    key=STRING,
    queue_staleness_s=pa.float64(),
    application_staleness_s=pa.float64(),
    mean_queue_staleness_s=pa.float64(),
    mean_application_staleness_s=pa.float64(),
    policy=STRING,
    rows_in=BIGINT,
    processed=BIGINT,
    superseded=BIGINT,
    shed=BIGINT,
    waiting=BIGINT,
    in_process=BIGINT,
)
SETTINGS = columns(name=STRING, value=STRING, meaning=STRING)
FUNCTIONS = columns(name=STRING, kind=STRING, language=STRING, returns=STRING)


def is_one(name: str) -> bool:
    """Whether a name is that of a system table."""
    lower = name.lower()
    return lower.startswith(PREFIX) and lower.removeprefix(PREFIX) in NAMES


def find(context: Context, name: str) -> pa.Table | None:
    """The rows of a system table, or None if there is none of that name."""
    return shown_to_caller(context, name.lower().removeprefix(PREFIX)) if is_one(name) else None


def shown_to_caller(context: Context, name: str) -> pa.Table:
    """The rows of a system table, without what is kept from those who are no admins."""
    return shown_rows(name, NAMES[name](context), context.folder.path)


def _rows(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist(rows, schema)


def _row(name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The row of one object. One that cannot tell how it is says why, and no other is hidden by it."""
    try:
        return make()
    except Exception as error:  # whatever is wrong with it
        reason = str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}"
        return {"name": name, "state": "unknown", "error": f"its state cannot be told: {reason}"}


class Told:
    """What other hosts say of their queries; each is asked once."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], list[dict[str, Any]]] = {}

    def all(self, table: str, query: Hosted) -> list[dict[str, Any]] | None:
        """The rows of the host that answers a query; None if that is this one."""
        while (elsewhere := query.elsewhere) is not None:
            key = elsewhere.name, table
            try:
                if key not in self._rows:
                    self._rows[key] = elsewhere.rows_of(table)
                return self._rows[key]
            except HostGone:
                elsewhere.wait_gone()
        return None

    def row(self, table: str, query: Hosted) -> dict[str, Any] | None:
        """The row of a query that another host answers; None if this one does."""
        name = query.name.removeprefix("_")
        found = self.all(table, query)
        return None if found is None else next((row for row in found if row["name"] == name), {})


def tables(context: Context) -> pa.Table:
    """All tables."""
    rows = []
    streaming = context.catalog.all("streaming table", "stream", "materialized view")
    for item in [*context.catalog.all("table"), *streaming]:
        row = {"name": item.name, "kind": item.kind, "created_at": item.created_at}
        stream, table = context.streams.find(item.id), context.tables.get(item.id)
        if (error := context.damage(item.id)) is not None:
            rows.append({**row, "error": str(error)})
        elif stream is not None:
            rows.append({**row, **_row(item.name, partial(_stream_row, stream))})
        elif table is not None:
            rows.append({**row, **_standard_row(table)})
    return _rows(rows, TABLES)


def _standard_row(table: StandardTable) -> dict[str, Any]:
    snapshot = table.snapshot
    return {
        "row_count": snapshot.row_count,
        "file_count": len(snapshot.files),
        "version": snapshot.version,
        "location": str(table.folder),
    }


def _stream_row(stream: StreamingTable) -> dict[str, Any]:
    definition = stream.definition
    with stream.reading() as snapshot:
        tail = sum(batch.rows.num_rows for batch in snapshot.tail)
        clock, closed, key = snapshot.clock, snapshot.closed, definition.update_key
        return {
            "name": definition.name,
            "kind": definition.kind,
            "row_count": tail + sum(block.row_count for block in snapshot.blocks),
            "file_count": len(snapshot.blocks),
            "version": snapshot.version,
            "location": str(stream.folder),
            "clock": None if clock is None else str(definition.value(clock)),
            "closed": None if closed is None else str(definition.value(closed)),
            "tail_rows": tail,
            "unsealed_bytes": stream.tail_bytes,
            "update_key": None if key is None else f"({', '.join(key)})",
        }


def blocks(context: Context) -> pa.Table:
    """All blocks of all streaming tables."""
    rows = []
    for stream in context.streams.shown():
        for block in stream.blocks:
            rows.append(
                {
                    "table_name": stream.definition.name,
                    "compartment": block.compartment,
                    "low": str(stream.definition.value(block.low)),
                    "high": str(stream.definition.value(block.high)),
                    "low_sequence": block.low_sequence,
                    "high_sequence": block.high_sequence,
                    "row_count": block.row_count,
                    "late_count": block.late_count,
                    "row_groups": block.row_groups,
                    "bytes": block.size,
                    "path": str(stream.folder / block.path),
                }
            )
    return _rows(rows, BLOCKS)


def indexes(context: Context) -> pa.Table:
    """All value indexes, and how many blocks each does not cover yet."""
    rows = []
    for item in context.catalog.all("index"):
        table = context.streams.find(item.definition["table_id"])
        if table is not None:
            rows.append(
                {
                    "name": item.name,
                    "table_name": table.definition.name,
                    "column_name": item.definition["column"],
                    "method": item.definition["method"].upper(),
                    "lag_blocks": table.indexes.lag(item.name, table.blocks),
                }
            )
    return _rows(rows, INDEXES)


def late_rows(context: Context) -> pa.Table:
    """How many rows came late, per table, and what became of them."""
    rows = [
        {
            "table_name": s.definition.name,
            "policy": s.definition.late,
            "late_count": s.state.late_total,
        }
        for s in context.streams.shown()
    ]
    return _rows(rows, LATE_ROWS)


def metrics(context: Context) -> pa.Table:
    """Numbers about the running process, by name."""
    log = context.streams.log_state()
    found = {
        "wal.segments": log.segments,
        "wal.bytes": log.bytes,
        "wal.next_lsn": log.next_lsn,
        "wal.queued_bytes": log.queued_bytes,
        "wal.groups": log.groups,
    }
    for stream in context.streams.shown():
        head = f"table.{stream.definition.name}."
        found[head + "unsealed_bytes"] = stream.tail_bytes
        found[head + "sequence"] = stream.state.next_sequence
    told = Told()
    for view in context.engine.views():
        found[f"view.{view.name}.waiting_rows"] = _waiting(view, told)
    for item in context.catalog.all("index"):
        table = context.streams.find(item.definition["table_id"])
        if table is not None:
            found[f"index.{item.name}.lag_blocks"] = table.indexes.lag(item.name, table.blocks)
    for numbers in list(context.numbers):
        found |= numbers()
    return _rows([{"name": n, "value": v} for n, v in sorted(found.items())], METRICS)


def spark(context: Context) -> pa.Table:
    """How Spark is, in one row."""
    status = context.kernel.status
    row = {
        "state": status.state,
        "since": _moment(status.since),
        "restarts": status.restarts,
        "last_end": status.last_end,
        "next_start": _moment(status.next_start),
    }
    return _rows([row], SPARK)


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()


def sinks(context: Context) -> pa.Table:
    """All sinks: what they read, whether they run, and how far they are."""
    return _rows([asdict(status) for status in context.sinks.statuses()], SINKS)


def sources(context: Context) -> pa.Table:
    """All sources: what they feed, whether they run, and how far they are."""
    return _rows([asdict(status) for status in context.sources.statuses()], SOURCES)


def queries(context: Context) -> pa.Table:
    """All continuous queries: how they are kept, how far they are, and what is wrong with them."""
    engine, told = context.engine, Told()
    rows = [_row(q.name.removeprefix("_"), partial(_query_row, q, told)) for q in engine.all()]
    rows += [_row(query.name, partial(_update_row, query, told)) for query in engine.updates()]
    rows.sort(key=lambda r: str(r["name"]))
    for item in context.catalog.all("continuous query"):
        if item.key in context.dormant:
            error = context.dormant[item.key]
            text = item.definition["text"]
            rows.append(
                {"name": item.name, "state": "failed", "error": str(error), "statement": text}
            )
    return _rows(rows, QUERIES)


def query_parts(context: Context) -> pa.Table:
    """The parts of queries that are in this host, as rows of queries."""
    parts = [part for part in context.engine.parts() if isinstance(part, QueryPart)]
    return _rows([_query_row(part, Told()) for part in parts], QUERIES)


def _known_here(query: LoggedQuery) -> dict[str, Any]:
    """What this process knows of a query, whoever answers it."""
    state, error = query.standing
    return {
        "name": query.name.removeprefix("_"),
        "state": state,
        "host": query.host,
        "results": query.results,
        "readers": len(log_of(query).readers),
        "error": None if error is None else str(error),
        "statement": query.statement,
        "time_zone": query.world.time_zone,
    }


def _split_query_row(query: SplitQuery, every: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What is told of a query in parts, of what is told of each; one that has just moved says nothing."""
    definition, last = query.tables[0].definition, query.sink.last()
    known: dict[str, Any] = {
        **_known_here(query),
        "last_instant": None if last is None else str(definition.value(last[0])),
    }
    parts = [part for part in every if "tier" in part]
    if not parts:
        return known
    most = ("waiting_rows", "response_ms", "worst_response_ms")
    return {
        **parts[0],
        **{name: max(part[name] for part in parts) for name in most},
        "state_size": sum(part["state_size"] for part in parts),
        **known,
    }


def _query_row(query: ContinuousQuery, told: Told) -> dict[str, Any]:
    if isinstance(query, SplitQuery):
        return _split_query_row(query, [_query_row(part, told) for part in query.parts])
    row = told.row("query_parts" if isinstance(query, QueryPart) else "queries", query)
    if row is not None:
        return {**row, **_known_here(query)}
    definition = query.tables[0].definition
    after, timings = query.sampling.after, query.timings
    tiers = sorted({fold.tier for fold in query.folds} | {query.evaluation.upper_tier})
    return {
        **_known_here(query),
        "mode": query.chooser.mode,
        "tier": " and ".join(tiers),
        "sample": query.sampling.kind,
        "last_instant": None if after is None else str(definition.value(after)),
        "waiting_rows": sum(reader.waiting() for reader in query.readers),
        "waits_for": _waits_for(query),
        "response_ms": round(1000 * timings.total_s / max(timings.count, 1), 3),
        "worst_response_ms": round(1000 * timings.worst_s, 3),
        "post_cut_ms": round(1000 * timings.last_s, 3) if query.sampling.cut else None,
        "over_budget": query.progress.report(),
        "state_size": query.folds.size,
        "shared_with": query.folds.shared_with,
    }


def _update_row(query: UpdateQuery, told: Told) -> dict[str, Any]:
    row = told.row("queries", query)
    if row is not None:
        return {**row, **_known_here(query)}
    definition, last, timings = query.tables[0].definition, query.sink.last(), query.timings
    return {
        **_known_here(query),
        "mode": query.spec.describe(query.mode),
        "tier": query.tier,
        "sample": "row by row" if query.spec.window is None else "interval",
        "last_instant": None if last is None else str(definition.value(last[0])),
        "waiting_rows": query.waiting_rows,
        "response_ms": round(1000 * timings.total_s / max(timings.count, 1), 3),
        "worst_response_ms": round(1000 * timings.worst_s, 3),
        "state_size": query.newest.count,
    }


def staleness(context: Context) -> pa.Table:
    """How stale the keys of update queries are; per query the means over keys, and where its rows are."""
    rows: list[dict[str, Any]] = []
    kinds = [name.removesuffix("_s") for name in STALENESS.names if name.endswith("_s")]
    told = Told()
    for query in context.engine.updates():
        name, elsewhere = query.name.removeprefix("_"), told.all("staleness", query)
        if elsewhere is not None:
            rows += [row for row in elsewhere if row["query_name"] == name]
            continue
        table, counts = query.staleness()
        seconds = {f"{kind}_s": (table.column(kind).to_numpy() / 1e6).round(6) for kind in kinds}
        every = {n: round(float(v.mean()), 6) if len(v) else 0.0 for n, v in seconds.items()}
        rows.append({"query_name": name, "policy": query.queue.policy, **every, **counts})
        for number, key in enumerate(key_texts(table, query.spec.key)):
            own = {name: float(values[number]) for name, values in seconds.items()}
            rows.append({"query_name": name, "key": key, **own})
    return _rows(rows, STALENESS)


def _waits_for(query: ContinuousQuery) -> str | None:
    """The table whose clock holds the query back; None if it is not held by one of several."""
    reached = [(r.reached, r.table.definition.name) for r in query.readers]
    if len({name for _, name in reached}) < 2:
        return None
    if query.sampling.counted:
        ready = [(r.finished, r.waiting(), r.table.definition.name) for r in query.readers]
        return min(ready)[2]
    nothing = [name for mark, name in reached if mark is None]
    return nothing[0] if nothing else min((m, n) for m, n in reached if m is not None)[1]


def views(context: Context) -> pa.Table:
    """All views: how they are kept, how far they are, and which versions can be read."""
    rows, told = [], Told()
    for item in context.catalog.all("view"):
        view = context.engine.find_view(item.name)
        row: dict[str, Any] = {"name": item.name, "statement": item.definition["text"]}
        if view is not None:
            row |= {
                "kind": "materialized" if item.definition.get("materialized") else "continuous",
                **_row(item.name, partial(_view_row, context, view, told)),
            }
        elif item.definition["continuous"]:
            error = str(context.dormant.get(item.key))
            row |= {"kind": "continuous", "state": "failed", "error": error}
        else:
            row |= {"kind": "plain", "state": "running"}
        rows.append(row)
    return _rows(rows, VIEWS)


def view_parts(context: Context) -> pa.Table:
    """The parts of views that are in this host, as rows of views."""
    told = Told()
    parts = [part for part in context.engine.parts() if isinstance(part, ViewPart)]
    return _rows([{"name": p.name, **_view_row(context, p, told)} for p in parts], VIEWS)


def _waiting(view: ContinuousView, told: Told) -> int:
    """Rows that came and are not folded, wherever the view is."""
    if isinstance(view, SplitView):
        return max(_waiting(part, told) for part in view.parts)
    row = told.row("view_parts" if isinstance(view, ViewPart) else "views", view)
    return view.waiting if row is None else row["waiting_rows"]


def _split_row(view: SplitView, every: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What is told of a view in parts, of what is told of each; one that has just moved says nothing."""
    parts = [part for part in every if "tier" in part]
    if not parts:
        return {}
    recovery = [part["recovery_s"] for part in parts if part.get("recovery_s") is not None]
    sums = ("groups", "state_bytes", "spilled_bytes")
    return {
        "maintenance": view.maintenance,
        "tier": " and ".join(sorted({part["tier"] for part in parts})),
        "progress": min(part["progress"] for part in parts),
        "waiting_rows": max(part["waiting_rows"] for part in parts),
        **{name: sum(part[name] for part in parts) for name in sums},
        "fold_ms": max(part["fold_ms"] for part in parts),
        "recovery_s": max(recovery, default=None),
    }


def _view_row(context: Context, view: ContinuousView, told: Told) -> dict[str, Any]:
    kept = [version.number for version in view.versions.all()]
    state, error = view.standing
    known = {
        "state": state,
        "host": view.host,
        "version": kept[-1] if kept else None,
        "versions": kept,
        "error": None if error is None else str(error),
        "shared_with": _shared_with(context, view),
        "time_zone": view.world.time_zone,
    }
    if isinstance(view, SplitView):
        return {**known, **_split_row(view, [_view_row(context, p, told) for p in view.parts])}
    row = told.row("view_parts" if isinstance(view, ViewPart) else "views", view)
    if row is not None:
        return {**row, **known}
    pipelines = _folded(view)
    folded = bool(pipelines)
    tiers = sorted({p.fold.tier for p in pipelines} | {view.evaluation.upper_tier})
    circuit = view.kept
    if circuit is not None and circuit.stopped is None:
        return {**known, **_kept_row(view, circuit)}
    seconds = sum(p.timings.total_s for p in pipelines)
    recovery = [p.recovery_s for p in pipelines if p.recovery_s is not None]
    return {
        **known,
        "maintenance": view.maintenance if view.specs else "re-evaluated",
        "tier": " and ".join(tiers) if folded else "Spark",
        "progress": view.progress if folded else 1.0,
        "waiting_rows": view.waiting if folded else 0,
        "groups": sum(p.groups for p in pipelines),
        "state_bytes": sum(p.state_bytes for p in pipelines),
        "spilled_bytes": sum(p.runs.byte_count for p in pipelines),
        "fold_ms": round(1000 * seconds / max(sum(p.timings.count for p in pipelines), 1), 3),
        "recovery_s": round(sum(recovery), 6) if recovery else None,
    }


def _kept_row(view: ContinuousView, kept: ViewCircuit) -> dict[str, Any]:
    """What is told of a view that operators keep."""
    return {
        "maintenance": view.maintenance,
        "tier": "operators and Spark" if kept.spec.opaque else "operators",
        "progress": view.progress,
        "waiting_rows": view.waiting,
        "groups": kept.row_count,
        "state_bytes": kept.state_bytes,
        "spilled_bytes": kept.runs.byte_count,
        "fold_ms": round(1000 * kept.timings.total_s / max(kept.timings.count, 1), 3),
        "recovery_s": None,
    }


def _shared_with(context: Context, view: ContinuousView) -> list[str]:
    """The other views that have a pipeline in common with one."""
    mine = {pipeline.number for pipeline in _folded(view)}
    return [
        other.name
        for other in context.engine.views()
        if other is not view and mine & {pipeline.number for pipeline in _folded(other)}
    ]


def _folded(view: ContinuousView) -> Sequence[ViewPipeline]:
    """The pipelines that a view uses: a deferred one has no use for its own."""
    return () if view.maintenance == "deferred" else view.pipelines


def settings(context: Context) -> pa.Table:
    """All settings with their values."""
    rows = [
        {
            "name": s.name,
            "value": str(v).lower() if isinstance(v, bool) else str(v),
            "meaning": s.meaning,
        }
        for s, v in context.settings
    ]
    rows += [
        {"name": name, "value": shown(name, value), "meaning": "a setting of Spark"}
        for name, value in sorted(context.settings.spark.items())
    ]
    return _rows(rows, SETTINGS)


def functions(context: Context) -> pa.Table:
    """All user functions."""
    rows = []
    for name, function in sorted(context.functions.items()):
        rows.append(
            {
                "name": name,
                "kind": getattr(function, "kind", "scalar"),
                "language": "python" if hasattr(function, "function") else "sql",
                "returns": function.returns,
            }
        )
    return _rows(rows, FUNCTIONS)


NAMES: dict[str, Callable[[Context], pa.Table]] = {
    "blocks": blocks,
    "functions": functions,
    "indexes": indexes,
    "late_rows": late_rows,
    "metrics": metrics,
    "queries": queries,
    "settings": settings,
    "sinks": sinks,
    "sources": sources,
    "spark": spark,
    "staleness": staleness,
    "tables": tables,
    "views": views,
}
