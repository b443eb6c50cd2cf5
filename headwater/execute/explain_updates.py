"""EXPLAIN of update queries: how rows wait, what is run over them, and what it has cost."""

from __future__ import annotations

import pyarrow as pa

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
    for branch in spec.branches:
        definition = branch.table.definition
        key = ", ".join(branch.key) or "none: each row replaces the one before"
        lines.append(
            f"stream: {definition.name}{_window(spec.window, definition)}, update key {key}"
        )
        in_line = branch.evaluation.evaluates_in_line
        lines.append(
            f"  evaluated over the rows of the next keys, {'in line' if in_line else 'Spark'}"
        )
    if len(spec.branches) > 1:
        lines.append("union: one row per key and time; older ones that come later are passed over")
    target = context.settings.number("update_target_ms")
    lines.append(f"keys in one run: as many as take {target:g} ms, measured")
    return lines


def _window(shape: WindowShape | None, definition: Definition) -> str:
    if shape is None:
        return ", row by row"
    ticks = 1 if pa.types.is_integer(definition.time_type) else 1_000_000
    reach, slide = shape.reach / ticks, shape.slide / ticks
    return f" [{reach:g} s{' BEFORE' if shape.before else ''}] every {slide:g} s"


def measured_update(query: UpdateQuery) -> list[str]:
    """What an update query has done."""
    sizer, timings = query.sizer, query.timings
    mean = 1000 * timings.total_s / timings.count if timings.count else 0.0
    table, counts = query.staleness()
    stale = table.column("application_staleness").to_numpy()
    lines = [
        f"results: {query.results}, response mean {mean:.2f} ms, worst {1000 * timings.worst_s:.2f} ms",
        "rows: " + ", ".join(f"{name} {count}" for name, count in counts.items()),
        f"keys: {table.num_rows}, staleness mean {stale.mean() / 1e6 if len(stale) else 0:.3f} s",
    ]
    if sizer.row_s is not None:
        lines.append(
            f"a key costs {1000 * sizer.row_s:.3f} ms, a run {1000 * sizer.fixed_s:.3f} ms; "
            f"the next run takes {sizer.count} keys"
        )
    return lines
