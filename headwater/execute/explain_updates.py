"""EXPLAIN of update queries: how rows wait, what is run over them, and what it has cost."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.engine.evaluation import Evaluation
from headwater.engine.update_query import UpdateQuery
from headwater.engine.update_spec import UpdateSpec, WindowShape
from headwater.execute.context import Context
from headwater.storage.streaming.definition import Definition

ORDERS = {
    "fifo": "the key whose newest row came first",
    "inplace": "the key that is stale for longest",
    "linecutting": "keys that change seldom, then the key that is stale for longest",
}


def update_lines(context: Context, spec: UpdateSpec, query: UpdateQuery | None = None) -> list[str]:
    """The plan of an update query; with the query, which of two modes it is in."""
    lines = [f"rows wait: {spec.describe(None if query is None else query.mode)}"]
    if spec.mode == "updates":
        lines.append(f"next is: {ORDERS[spec.schedule]}")
    for branch in () if spec.join else spec.branches:
        lines.append(_stream_line(branch.table.definition, branch.key, spec.window))
        lines.append(f"  {_work(branch.evaluation, spec.window)}")
        if spec.window is not None and spec.window.gathered is not None:
            lines.append(f"  windows wait until they are whole, as LAZY: {spec.window.gathered}")
    for side in spec.join:
        shape = WindowShape(side.reach, 0, side.before, "lazy")
        lines.append(_stream_line(side.table.definition, side.key, shape))
    if spec.join:
        lines.append(f"join: the latest match of each key, {_tier(spec.branches[0].evaluation)}")
    if spec.is_union:
        lines.append("union: one row per key and time; older ones that come later are passed over")
    target = context.settings.number("update_target_ms")
    lines.append(f"keys in one run: as many as take {target:g} ms, measured")
    return lines


def _work(evaluation: Evaluation, shape: WindowShape | None) -> str:
    """What is done with the rows of a key, and where."""
    if shape is None or shape.commits == "lazy":
        return f"evaluated over the rows of the next keys, {_tier(evaluation)}"
    folded = evaluation.specs[0].plan.kind == "aggregate"
    return f"{'folded' if folded else 'evaluated'} as rows of a window come, {_tier(evaluation)}"


def _tier(evaluation: Evaluation) -> str:
    return "operators" if evaluation.evaluates_by_operators else "Spark"


def _stream_line(definition: Definition, key: Sequence[str], shape: WindowShape | None) -> str:
    names = ", ".join(key) or "none: each row replaces the one before"
    return f"stream: {definition.name}{_window(shape, definition)}, update key {names}"


def _window(shape: WindowShape | None, definition: Definition) -> str:
    if shape is None:
        return ", row by row"
    ticks = 1 if pa.types.is_integer(definition.time_type) else 1_000_000
    every = f" every {shape.slide / ticks:g} s" if shape.slide else ""
    return f" [{shape.reach / ticks:g} s{' BEFORE' if shape.before else ''}]{every}"


def measured_update(query: UpdateQuery) -> list[str]:
    """What an update query has done."""
    sizer, timings = query.sizer, query.timings
    mean = 1000 * timings.total_s / timings.count if timings.count else 0.0
    table, counts = query.staleness()
    stale = table.column("application_staleness").to_numpy()
    lines = [
        f"results: {query.results}, response mean {mean:.2f} ms, worst {1000 * timings.worst_s:.2f} ms",
        "rows: " + ", ".join(f"{name} {count}" for name, count in counts.items()),
        f"rows that went through the query: {query.computed_rows}",
        f"keys: {table.num_rows}, staleness mean {stale.mean() / 1e6 if len(stale) else 0:.3f} s",
    ]
    if sizer.row_s is not None:
        lines.append(
            f"a key costs {1000 * sizer.row_s:.3f} ms, a run {1000 * sizer.fixed_s:.3f} ms; "
            f"the next run takes {sizer.count} keys"
        )
    return lines
