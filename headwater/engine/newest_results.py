"""The result of an update query: for each key what the query gave for its newest row or window (US1).

Owns: the rows of all keys, as results of some keys at a time come in. A key whose newest row gave
nothing stays known, by a row that says so. Must never: show an older result of a key after a newer
one; results are given in the order in which they were stored.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.fold.columns import Column, Slots
from headwater.fold.lookup import Lookup
from headwater.operators.arrangement import same_rows

ROW = "_seq"  # of the row that a result was made of, or of its window's last one
GONE = "_gone"  # the query gave nothing for the key
HIDDEN = (pa.field(ROW, pa.int64()), pa.field(GONE, pa.bool_()))
FEW_ROWS = 4096  # of new results, before older ones are taken out


def stored_schema(shown: pa.Schema) -> pa.Schema:
    """How results are kept: with what readers do not see."""
    return pa.schema([*HIDDEN, *shown])


def shown_rows(stored: pa.Table) -> pa.Table:
    """What readers see of kept results."""
    names = stored.schema.names[len(HIDDEN) :]
    gone = stored.column(GONE)
    return (stored.filter(pc.invert(gone)) if pc.any(gone).as_py() else stored).select(names)


class NewestResults:
    """Results by key."""

    def __init__(self, schema: pa.Schema, key: Sequence[str]) -> None:
        """`schema`: as stored, `_t` last. `key`: its columns that are the update key."""
        self.schema, self._key = schema, tuple(key)
        self._lock = threading.Lock()
        self._begin(schema.empty_table())
        self.next = 0  # the position of the next result to take in

    def _begin(self, rows: pa.Table) -> None:
        self._lookup = Lookup([self.schema.field(name).type for name in self._key])
        self._rows, self._new = rows, list[pa.Table]()

    def take(self, rows: pa.Table, position: int) -> None:
        """The results of some keys, at their place among all results."""
        with self._lock:
            self.next = position + 1
            self._new.append(rows)
            if sum(part.num_rows for part in self._new) > max(FEW_ROWS, self._rows.num_rows):
                self._tidy()

    def shown(self) -> pa.Table:
        """The newest result of each key, without keys that have none."""
        return shown_rows(self.stored())

    @property
    def count(self) -> int:
        """How many rows are held, older ones that have not gone yet too."""
        with self._lock:
            return self._rows.num_rows + sum(part.num_rows for part in self._new)

    def stored(self) -> pa.Table:
        """The newest result of each key, as stored."""
        with self._lock:
            self._tidy()
            return self._rows

    def _tidy(self) -> None:
        """Older results go."""
        if not self._new:
            return
        parts = [self._rows, *self._new]
        turn = np.repeat(np.arange(len(parts)), [part.num_rows for part in parts])
        rows = pa.concat_tables(parts)
        places = (turn, times_of(rows), rows.column(ROW).to_numpy())
        slots = self._slots(rows)
        order = np.lexsort(places[::-1])
        newest: Slots = np.zeros(max(len(self._lookup), 1), np.int64)
        newest[slots[order]] = order  # the last one stays
        same = np.ones(rows.num_rows, np.bool_)
        for place in places:
            same &= place == place[newest[slots]]
        self._rows, self._new = rows.filter(pa.array(same)).combine_chunks(), []

    def _slots(self, rows: pa.Table) -> Slots:
        columns = [Column(rows.column(name)) for name in self._key]
        return self._lookup.slots(columns, rows.num_rows)

    def is_newer(self, keys: Sequence[Column], ticks: Slots, rows: Slots | None) -> np.ndarray:
        """Which rows come after those that the results of their keys were made of.

        `rows`: numbers that order rows of one time; None: one row per key and time.
        """
        known = self.stored()
        with self._lock:
            own, slots = self._slots(known), self._lookup.slots(keys, len(ticks))
            reached, last = np.full((2, max(len(self._lookup), 1)), np.iinfo(np.int64).min)
        reached[own], last[own] = times_of(known), known.column(ROW).to_numpy()
        newer: np.ndarray = ticks > reached[slots]
        if rows is not None:
            newer |= (ticks == reached[slots]) & (rows > last[slots])
        return newer

    def times(self, keys: Sequence[Column], count: int) -> Slots:
        """`_t` of the results of some keys; the least there is for a key without one."""
        known = self.stored()
        with self._lock:
            own, slots = self._slots(known), self._lookup.slots(keys, count)
            reached = np.full(max(len(self._lookup), 1), np.iinfo(np.int64).min)
            reached[own] = times_of(known)
            found: Slots = reached[slots]
            return found

    def news(self, rows: pa.Table) -> pa.Table:
        """Results, one per key, without those that their keys have already, whatever row they are of."""
        known = self.stored()
        with self._lock:
            own, slots = self._slots(known), self._slots(rows)
            places = np.full(max(len(self._lookup), 1), -1)
            places[own] = np.arange(known.num_rows)
        there = np.flatnonzero(places[slots] >= 0)
        names = [name for name in self.schema.names if name != ROW]
        mine, theirs = rows.take(there).select(names), known.take(places[slots[there]])
        new = np.ones(rows.num_rows, np.bool_)
        new[there] = ~same_rows(mine, theirs.select(names))
        return rows.filter(pa.array(new))

    # Snapshots

    def state(self) -> dict[str, Any]:
        """The newest results."""
        columns = [column.combine_chunks() for column in self.stored().columns]
        whole = [
            pa.concat_arrays(c.chunks) if isinstance(c, pa.ChunkedArray) else c for c in columns
        ]
        return {"columns": whole}

    def restore(self, state: dict[str, Any]) -> None:
        """Back to a snapshot."""
        with self._lock:
            self._begin(pa.Table.from_arrays(state["columns"], schema=self.schema))


def times_of(rows: pa.Table) -> Slots:
    """`_t` of results, in ticks."""
    column = rows.column(rows.num_columns - 1)
    times: Slots = column.cast(pa.int64()).to_numpy()
    return times
