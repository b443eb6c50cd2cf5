"""A view's query over the stored rows, by Spark: for views kept by re-evaluation, and for VERIFY VIEW."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from headwater.engine.emit import difference
from headwater.engine.evaluation import instant_text
from headwater.engine.view import ContinuousView
from headwater.engine.view_pipeline import Start
from headwater.engine.world import HeldTables
from headwater.errors import BindError
from headwater.execute.context import Context
from headwater.execute.continuous_plan import MadeView
from headwater.execute.query import work_for
from headwater.execute.reading import reading, stream_view_name
from headwater.kernel.kernel import Work
from headwater.kernel.relation import Relation
from headwater.plan.continuous.folds import INSTANT, Leaf, static_view, window_view
from headwater.sql.types import TIMESTAMP
from headwater.storage.streaming.definition import SEQUENCE

FEW = 5  # differences that are shown


def over_stored(
    context: Context, made: MadeView, static: HeldTables, starts: Sequence[Start]
) -> pa.Table:
    """The view's query, once, over the rows that are stored; tables below its folds as they were."""
    query, plan = made.query, made.plan
    relations = {static_view(name): relation for name, relation in static.relations.items()}
    with reading(context, query, query.text) as found, work_for(found) as work:
        relations |= work.relations
        streams = [
            relations[stream_view_name(number, reference)]
            for number, reference in enumerate(query.table_references)
            if context.stream(str(reference.name)) is not None
        ]
        for leaf, relation, start in zip(plan.leaves, streams, starts, strict=True):
            relations[window_view(leaf.number)] = _rows_of(leaf, relation, start)
        now = instant_text(TIMESTAMP, time.time_ns() // 1000)
        rows = context.kernel.run(Work(plan.pinned.replace(INSTANT, now), relations))
    return made.output.result(rows, 0)


def _rows_of(leaf: Leaf, relation: Relation, start: Start) -> Relation:
    """The rows of a table that came since a view began, with the columns that its query needs."""
    columns = tuple(dict.fromkeys([*(relation.columns or ()), *leaf.needed]))
    relation = replace(relation, columns=columns)
    if not start.sequence:
        return relation
    condition = f"{SEQUENCE} >= {start.sequence}"
    where = condition if relation.where is None else f"({relation.where}) AND {condition}"
    return replace(relation, where=where)


def verify(context: Context, view: ContinuousView, made: MadeView) -> list[tuple[str, str]]:
    """How the view differs from its query over the stored rows: `+` for rows that only it has."""
    for table in view.tables:
        if table.definition.kind == "stream":
            raise BindError(
                f"view {view.name} cannot be verified: a stream keeps no rows", sqlstate="55000"
            )
    before = view.read()
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
    stored = over_stored(context, made, view.static, view.starts)
    while (now := view.read()).number != before.number:  # rows came meanwhile
        before = now
        stored = over_stored(context, made, view.static, view.starts)
    extra, missing = difference(_marked(before.rows), _marked(stored))
    found = [("+", str(row)) for row in before.rows.take(extra[:FEW]).to_pylist()]
    return found + [("-", str(row)) for row in stored.take(missing[:FEW]).to_pylist()]


def _marked(rows: pa.Table) -> pa.Table:
    """With a last column that is not compared."""
    return rows.append_column("last", pa.nulls(rows.num_rows))
