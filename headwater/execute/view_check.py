"""A view's query over the stored rows, by Spark: for views kept by re-evaluation, and for VERIFY VIEW.

The two go different ways. A view that is re-evaluated runs the text that the planner made. VERIFY VIEW
runs the user's own text as a one-time query would, over tables of which only declared columns can be
seen: a mistake of the planner is a difference then. Of a view with an as-of join, which Spark does not know,
the operators are asked for all rows at once; so are they where a sketch differs from Spark's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from headwater.engine.emit import difference
from headwater.engine.evaluation import instant_text
from headwater.engine.view import ContinuousView
from headwater.engine.view_pipeline import Start
from headwater.engine.view_versions import Version
from headwater.errors import BindError
from headwater.execute.by_operators import answered, scan_name
from headwater.execute.context import Context
from headwater.execute.continuous_plan import MadeView
from headwater.execute.query import work_for
from headwater.execute.reading import Reading, reading, stream_view_name
from headwater.kernel.kernel import Work
from headwater.kernel.relation import HeldTables, Relation
from headwater.plan.calls import calls_of
from headwater.plan.folds import static_view, window_view
from headwater.plan.pieces import Stand
from headwater.plan.planner import pinned
from headwater.plan.rules.first_last import WAYS
from headwater.plan.text import INSTANT, spark_text
from headwater.plan.times import time_edits
from headwater.sql.statements.query import Query
from headwater.sql.types import TIMESTAMP
from headwater.storage.streaming.definition import SEQUENCE

FEW = 5  # differences that are shown
APPROXIMATE = "APPROX_COUNT_DISTINCT"
Evaluate = Callable[[ContinuousView, MadeView, int], pa.Table]


def over_stored(
    context: Context, made: MadeView, static: HeldTables, starts: Sequence[Start], now: int
) -> pa.Table:
    """The planner's text, once, over the rows that are stored; tables below the folds as they were."""
    plan = made.plan
    with reading(context, made.query, made.query.text) as found:
        found.zone = made.world.time_zone
        if made.query.has_as_of:
            whole = answered(found, _since_of_scans(context, made.query, starts))
            return made.output.result(whole.rows(), 0)
        with work_for(found) as work:
            relations = {**work.relations, **_pinned(static)}
            streams = [relations[name] for name in _stream_names(context, made.query)]
            for leaf, relation, start in zip(plan.leaves, streams, starts, strict=True):
                shown = replace(relation, columns=tuple(leaf.exposed))
                relations[window_view(leaf.number)] = _since(shown, start)
            text = plan.pinned.fill(instant_text(TIMESTAMP, now))
            rows = context.kernel.run(Work(text, relations, time_zone=found.time_zone))
    return made.output.result(rows, 0)


def _pinned(static: HeldTables) -> dict[str, Relation]:
    return {static_view(name): relation for name, relation in static.relations.items()}


def _stream_names(context: Context, query: Query) -> list[str]:
    """What Spark calls the streaming tables of a query, in the order of the text."""
    return [
        stream_view_name(number, reference)
        for number, reference in enumerate(query.table_references)
        if context.stream(str(reference.name)) is not None
    ]


def _since_of_scans(context: Context, query: Query, starts: Sequence[Start]) -> dict[str, int]:
    """Where a view began in its streaming tables."""
    references = enumerate(query.table_references)
    names = [scan_name(n, r) for n, r in references if context.stream(str(r.name)) is not None]
    return {name: start.sequence for name, start in zip(names, starts, strict=True)}


def _since(relation: Relation, start: Start) -> Relation:
    """The rows of a table that came since a view began."""
    if not start.sequence:
        return relation
    condition = f"{SEQUENCE} >= {start.sequence}"
    where = condition if relation.where is None else f"({relation.where}) AND {condition}"
    return replace(relation, where=where)


def _independently(context: Context, view: ContinuousView, made: MadeView, now: int) -> pa.Table:
    """The user's text over the stored rows; only its tables and the time are put into it."""
    query = made.query
    if _goes_by_order(query) or query.has_as_of:
        return over_stored(context, made, view.static, view.starts, now)
    with reading(context, query, query.text) as found:
        found.zone = made.world.time_zone
        _put_in(found, made, now)
        with work_for(found) as work:
            relations = {**work.relations, **_pinned(view.static)}
            for name, start in zip(_stream_names(context, query), view.starts, strict=True):
                relations[name] = _since(relations[name], start)
            return context.kernel.run(Work(work.sql, relations, time_zone=found.time_zone))


def _goes_by_order(query: Query) -> bool:
    """Whether first or last is called, which in Spark's hands are of any row."""
    return any(call.name in WAYS and not call.windowed for call in calls_of(query))


def _put_in(found: Reading, made: MadeView, now: int) -> None:
    """The time of the view's result, and its tables as of creation."""
    moment = spark_text(instant_text(TIMESTAMP, now))
    for stand in time_edits(found.query.text):
        found.edits.append(Stand(stand.span, stand.text.replaced({INSTANT: moment})))
    for name in made.plan.below:
        reference = next(r for r in found.query.table_references if r.name.span == name.span)
        found.edits.append(pinned(reference))


def verify(context: Context, view: ContinuousView, made: MadeView) -> list[tuple[str, str]]:
    """How the view differs from its query over the stored rows: `+` for rows that only it has."""
    for table in view.tables:
        if table.definition.kind == "stream":
            raise BindError(
                f"view {view.name} cannot be verified: a stream keeps no rows", sqlstate="55000"
            )
    found = _differences(view, made, partial(_independently, context))
    for taking_back in (False, True) if found and _is_approximate(made) else ():
        if found:
            found = _differences(view, made, partial(_by_operators, context, taking_back))
    return found


def _differences(view: ContinuousView, made: MadeView, evaluate: Evaluate) -> list[tuple[str, str]]:
    version, stored = _both(view, made, evaluate)
    mine = version.rows
    if stored.num_columns != mine.num_columns:
        return [("+", str(mine.column_names)), ("-", str(stored.column_names))]
    stored = made.output.result(stored, 0)
    extra, missing = difference(_marked(mine), _marked(stored))
    found = [("+", str(row)) for row in mine.take(extra[:FEW]).to_pylist()]
    return found + [("-", str(row)) for row in stored.take(missing[:FEW]).to_pylist()]


def _is_approximate(made: MadeView) -> bool:
    """Whether the view keeps a sketch: it differs from Spark's, as both may from the truth."""
    names = {call.name for call in calls_of(made.query)}
    return made.circuit is not None and APPROXIMATE in names


def _by_operators(
    context: Context, taking_back: bool, view: ContinuousView, made: MadeView, now: int
) -> pa.Table:
    """The view's operators over all stored rows at once."""
    del now
    with reading(context, made.query, made.query.text) as found:
        found.zone = made.world.time_zone
        since = _since_of_scans(context, made.query, view.starts)
        return answered(found, since).rows(taking_back)


def _both(view: ContinuousView, made: MadeView, evaluate: Evaluate) -> tuple[Version, pa.Table]:
    """The view and its query over the same rows."""
    while True:
        before = view.inputs()
        version = view.read()
        _check_all_there(view)
        stored = evaluate(view, made, version.instant)
        if view.inputs() == before:
            return version, stored


def _check_all_there(view: ContinuousView) -> None:
    """BindError if rows were folded that RANGE has dropped since."""
    for pipeline in view.pipelines:
        if pipeline.outlives_rows:
            table = pipeline.place.table
            with table.reading() as snapshot:
                oldest = snapshot.oldest_visible
            when = None if oldest is None else table.definition.value(oldest)
            raise BindError(
                f"view {view.name} cannot be verified before {when}",
                sqlstate="55000",
                detail="RANGE has dropped rows that the view has counted",
            )


def _marked(rows: pa.Table) -> pa.Table:
    """With a last column that is not compared."""
    return rows.append_column("last", pa.nulls(rows.num_rows))
