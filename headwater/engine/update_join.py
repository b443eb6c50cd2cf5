"""A join of two update streams: for each key the latest match in the windows of its newest row (US1).

Owns: which rows can match when a key is processed, and which match is the latest. Only keys wait; rows
are read from the tables, which have all of them. Must never: pair rows of two keys.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.engine.feed import END_OF_TICK, FeedCursor, stored_until
from headwater.engine.newest_results import NewestResults
from headwater.engine.update_evaluation import stored_results
from headwater.engine.update_queue import Dequeued
from headwater.engine.update_spec import (
    OTHER_ROW_NUMBER,
    ROW_NUMBER,
    SEQ,
    TICK,
    UpdateJoinSide,
    UpdateSpec,
)
from headwater.engine.windows import WindowRows
from headwater.fold.columns import Column, Slots
from headwater.fold.lookup import Lookup
from headwater.kernel.relation import HeldTables
from headwater.storage.streaming.definition import SEQUENCE
from headwater.storage.streaming.fresh import closed_clock


def results_of_join(
    spec: UpdateSpec, batch: Dequeued, newest: NewestResults, held: HeldTables
) -> pa.Table | None:
    """The latest match of each key, as results are kept; their time never goes back. None: no news.

    Several rows of a key, also when they are read again after a restart, may have one latest match.
    """
    rows = _newest_per_key(batch)
    keys = [Column(rows.column(name)) for name in spec.key_columns]
    instants = np.maximum(rows.column(TICK).to_numpy(), newest.times(keys, rows.num_rows))
    lookup = Lookup([rows.schema.field(name).type for name in spec.key_columns])
    lookup.slots(keys, rows.num_rows)
    reach = max(side.reach for side in spec.join)
    read = [_read(side, lookup, int(instants.min()) - reach) for side in spec.join]
    for one in read:  # the row that waited may be older than one that it took the place of
        np.maximum.at(instants, one.slots, one.ticks)
    sides = [_in_window(side, one, instants) for side, one in zip(spec.join, read, strict=True)]
    tables = {
        n: part.select(list(side.columns))
        for n, (side, (part, _)) in enumerate(zip(spec.join, sides, strict=True))
    }
    count = sum(table.num_rows for table in tables.values())
    given = spec.branches[0].evaluation.over_rows(WindowRows(tables, {}, count), 0, held)
    places = lookup.slots([Column(given.column(name)) for name in spec.key], given.num_rows)
    times = [_times(sides[0], given, ROW_NUMBER), _times(sides[1], given, OTHER_ROW_NUMBER)]
    latest = _latest(places, times, given)
    numbers = rows.column(SEQ).to_numpy()
    chosen = given.take(pa.array(latest))
    news = newest.news(stored_results(spec, rows, chosen, places[latest], numbers, instants))
    return news if news.num_rows else None


def _newest_per_key(batch: Dequeued) -> pa.Table:
    """One row per key: an append queue may give several, in order."""
    _, last = np.unique(batch.slots[::-1], return_index=True)
    return batch.rows.take(pa.array(np.sort(len(batch) - 1 - last)))


@dataclass(frozen=True)
class _Read:
    """Rows of some keys, in order, with their ticks and keys."""

    rows: pa.Table
    ticks: Slots
    slots: Slots


def _read(side: UpdateJoinSide, lookup: Lookup, low: int) -> _Read:
    """The released rows of the keys from a tick on."""
    table, definition = side.table, side.table.definition
    columns = tuple(dict.fromkeys([*side.columns, *side.key, definition.time, SEQUENCE]))
    with table.reading() as snapshot:
        clock = END_OF_TICK if definition.by_key else closed_clock(snapshot)
        high = FeedCursor(low if clock is None else clock)
        rows = stored_until(snapshot, low, high, columns)
    slots = lookup.find([Column(rows.column(name)) for name in side.key], rows.num_rows)
    known = np.flatnonzero(slots >= 0)
    ticks = definition.ticks(rows.column(definition.time))
    return _Read(rows.take(pa.array(known)), ticks[known], slots[known])


def _in_window(side: UpdateJoinSide, read: _Read, instants: Slots) -> tuple[pa.Table, Slots]:
    """The rows in the windows of their keys, the newest first, with their ticks."""
    of, ticks = instants[read.slots], read.ticks
    places = np.flatnonzero((ticks >= of - side.reach) & (ticks <= of - side.before))[::-1]
    return read.rows.take(pa.array(places)), ticks[places]


def _times(side: tuple[pa.Table, Slots], given: pa.Table, name: str) -> Slots:
    """T of the row that each result has from one side."""
    rows, ticks = side
    numbers = rows.column(SEQUENCE).to_numpy()
    order = np.argsort(numbers)
    found: Slots = ticks[
        order[np.searchsorted(numbers, given.column(name).to_numpy(), sorter=order)]
    ]
    return found


def _latest(places: Slots, times: list[Slots], given: pa.Table) -> Slots:
    """The result of each key with the newest rows."""
    numbers = [given.column(name).to_numpy() for name in (ROW_NUMBER, OTHER_ROW_NUMBER)]
    order = np.lexsort((numbers[1], numbers[0], np.minimum(*times), np.maximum(*times), places))
    own = places[order]
    return order[np.flatnonzero(np.r_[own[1:] != own[:-1], len(own) > 0])]
