"""From rows or windows that were dequeued to the results of their keys (US1, US4).

Owns: which result belongs to which key, and `_t` of each. A row's results are found by its number,
a window's by its key. Must never: keep rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headwater.engine.update_queue import Dequeued, WindowBatch
from headwater.engine.update_spec import BRANCH, ROW_NUMBER, ROW_NUMBERS, SEQ, TICK, UpdateSpec
from headwater.engine.windows import WindowRows
from headwater.fold.columns import Column, Slots
from headwater.fold.lookup import Lookup
from headwater.kernel.relation import HeldTables


def results_of_rows(spec: UpdateSpec, batch: Dequeued, held: HeldTables) -> pa.Table:
    """What the query gives for each of some rows, in their order, as results are kept."""
    branches = batch.rows.column(BRANCH).to_numpy()
    found: list[pa.Table] = []
    places: list[Slots] = []
    for number, branch in enumerate(spec.branches):
        own = np.flatnonzero(branches == number)
        if len(own):
            rows = batch.rows.take(pa.array(own))
            windows = WindowRows({0: spec.taken(number, rows)}, {}, rows.num_rows)
            given = branch.evaluation.over_rows(windows, 0, held)
            stored, of = _by_row(spec, rows, given)
            found.append(stored)
            places.append(own[of])
    order = np.argsort(np.concatenate(places), kind="stable")
    return pa.concat_tables(found).take(pa.array(order))


def _by_row(spec: UpdateSpec, rows: pa.Table, given: pa.Table) -> tuple[pa.Table, Slots]:
    """Results as they are kept, and which of the rows each is of."""
    numbers, ticks = rows.column(SEQ).to_numpy(), rows.column(TICK).to_numpy()
    order = np.argsort(numbers)
    of = given.column(ROW_NUMBER).to_numpy()
    places = order[np.searchsorted(numbers, of, sorter=order)]
    gone = np.setdiff1d(np.arange(rows.num_rows), places)
    stored = stored_results(spec, rows, given, places, numbers, ticks)
    return stored, np.concatenate([places, gone])


def stored_results(
    spec: UpdateSpec, rows: pa.Table, given: pa.Table, places: Slots, numbers: Slots, ticks: Slots
) -> pa.Table:
    """Results as they are kept; `places`: which of `rows`, one per key or row, each is of."""
    without = np.ones(rows.num_rows, np.bool_)
    without[places] = False
    gone = np.flatnonzero(without)
    own = [number for number, name in enumerate(given.column_names) if name not in ROW_NUMBERS]
    columns = given.select(own[: len(spec.shown) - 1]).columns  # by place: names are the first's
    result = _with_places(spec, columns, numbers[places], ticks[places], False)
    if not len(gone):
        return result
    keys = dict(zip(spec.key, spec.key_columns, strict=True))
    left = rows.take(pa.array(gone))
    columns = [
        left.column(keys[f.name]) if f.name in keys else pa.nulls(len(gone), f.type)
        for f in list(spec.shown)[:-1]
    ]
    return pa.concat_tables([result, _with_places(spec, columns, numbers[gone], ticks[gone], True)])


def _with_places(
    spec: UpdateSpec, columns: Sequence[pa.ChunkedArray], numbers: Slots, ticks: Slots, gone: bool
) -> pa.Table:
    times = pa.array(ticks).cast(spec.shown.field(len(spec.shown) - 1).type)
    flags = pa.array(np.full(len(numbers), gone))
    return pa.Table.from_arrays([pa.array(numbers), flags, *columns, times], schema=spec.stored)


def results_of_windows(spec: UpdateSpec, batch: WindowBatch, held: HeldTables) -> pa.Table:
    """What the query gives for each of some windows, all of whose rows are in the batch."""
    shape, rows = spec.window, batch.rows
    assert shape is not None
    windows = WindowRows(
        {0: spec.taken(0, rows.take(pa.array(newest_first(rows))))}, {}, rows.num_rows
    )
    given = spec.branches[0].evaluation.over_rows(windows, 0, held)
    last = rows.take(pa.array(np.cumsum(batch.row_counts) - 1))
    return results_by_key(spec, last, given, batch.starts + shape.reach)


def newest_first(rows: pa.Table) -> Slots:
    """The order in which a query sees rows that waited."""
    order: Slots = np.lexsort((rows.column(SEQ).to_numpy(), rows.column(TICK).to_numpy()))[::-1]
    return order


def results_by_key(spec: UpdateSpec, last: pa.Table, given: pa.Table, instants: Slots) -> pa.Table:
    """Results of windows as they are kept; `last`: key and `_seq` of the last row of each."""
    lookup = Lookup([last.schema.field(name).type for name in spec.key_columns])
    lookup.slots([Column(last.column(name)) for name in spec.key_columns], last.num_rows)
    places = lookup.slots([Column(given.column(name)) for name in spec.key], given.num_rows)
    return stored_results(spec, last, given, places, last.column(SEQ).to_numpy(), instants)
