"""A table's rows on their way to the queries that read it: a basket, filled from the table.

Owns: how far the table has been read. Rows that were there before come from the store, new ones from
the tail (`storage/streaming/fresh`). The engine's lock guards it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.engine.basket import Basket
from headwater.storage.streaming.definition import LATE, SEQUENCE
from headwater.storage.streaming.fresh import closed_clock, fresh_rows
from headwater.storage.streaming.read import StreamSnapshot, Wanted, select
from headwater.storage.streaming.table import StreamingTable

END_OF_TICK = (1 << 63) - 1


@dataclass(frozen=True, order=True)
class Cursor:
    """A place in the release order of a table: everything up to it has been seen."""

    tick: int
    sequence: int = END_OF_TICK


class Feed:
    """The rows of one table after a cursor, for one or several readers."""

    def __init__(self, table: StreamingTable, after: Cursor | None) -> None:
        """All rows released after the cursor; None: all that are stored."""
        self.table = table
        definition = table.definition
        self.basket = Basket(definition.time, definition.ticks, SEQUENCE)
        with table.reading() as snapshot:
            self._sequence = snapshot.next_sequence
            self.clock, self.closed = closed_clock(snapshot), snapshot.closed
            self.generation = snapshot.generation
            self._first = stored_after(snapshot, after)

    def add_reader(self, name: str) -> None:
        """A reader of everything from here on; the first also gets what was stored after the cursor."""
        self.basket.add_reader(name)
        if self._first is not None:
            self.basket.append(self._first, self.clock)
            self._first = None

    @property
    def pulled(self) -> int:
        """The sequence number of the last row taken over."""
        return self._sequence - 1

    def pull(self) -> bool:
        """Takes over what the table got since; False if stored rows were changed meanwhile."""
        fresh = fresh_rows(self.table, self._sequence)
        if fresh.generation != self.generation:
            return False
        self._sequence = fresh.next_sequence
        self.clock, self.closed = fresh.clock, fresh.closed
        if fresh.rows.num_rows:
            self.basket.append(fresh.rows, fresh.clock)
        else:
            self.basket.release(fresh.clock)
        return True


def stored_after(snapshot: StreamSnapshot, after: Cursor | None) -> pa.Table:
    """The stored rows that came in time and are released after a cursor, waiting ones too."""
    whole = replace(snapshot, clock=None) if after is not None else snapshot
    low = None if after is None else after.tick
    names = tuple(snapshot.definition.stored_schema.names)
    rows = in_time(select(whole, Wanted(names, low=low)).rows)
    if after is None or not rows.num_rows:
        return rows
    ticks = snapshot.definition.ticks(rows.column(snapshot.definition.time))
    sequence = rows.column(SEQUENCE).to_numpy()
    later = (ticks > after.tick) | ((ticks == after.tick) & (sequence > after.sequence))
    return rows.filter(pa.array(later))


def stored_until(
    snapshot: StreamSnapshot, low: int | None, until: Cursor, columns: tuple[str, ...]
) -> pa.Table:
    """The stored rows in time from a tick up to a cursor, in order."""
    whole = replace(snapshot, clock=None)
    names = tuple(dict.fromkeys([*columns, LATE]))
    rows = in_time(select(whole, Wanted(names, low=low, high=until.tick)).rows)
    return rows.filter(pa.array(_seen(snapshot, rows, until)))


def last_until(
    snapshot: StreamSnapshot, count: int, until: Cursor, low: int | None, columns: tuple[str, ...]
) -> pa.Table:
    """The last stored rows in time up to a cursor, the oldest first."""
    whole = replace(snapshot, clock=None)
    names = tuple(dict.fromkeys([*columns, LATE]))
    limit = count
    while True:  # late rows and ties beyond the cursor may stand between
        wanted = Wanted(names, low=low, high=until.tick, descending=True, limit=limit)
        found = select(whole, wanted).rows
        rows = in_time(found)
        rows = rows.filter(pa.array(_seen(snapshot, rows, until)))
        if rows.num_rows >= count or found.num_rows < limit:
            rows = rows.slice(0, count)
            return rows.take(pa.array(np.arange(rows.num_rows - 1, -1, -1)))
        limit *= 2


def _seen(snapshot: StreamSnapshot, rows: pa.Table, until: Cursor) -> np.ndarray:
    ticks = snapshot.definition.ticks(rows.column(snapshot.definition.time))
    sequence = rows.column(SEQUENCE).to_numpy()
    return (ticks < until.tick) | ((ticks == until.tick) & (sequence <= until.sequence))


def in_time(rows: pa.Table) -> pa.Table:
    """The rows that were not late."""
    late = rows.column(LATE)
    return rows.filter(pc.invert(late)) if pc.any(late).as_py() else rows
