"""What is kept of the pairs of a stream join until they expire: their groups, or the rows themselves.

Both tiers feed it: pairs that were made by operators, and those (or their partials) that Spark found.
Must never: look for pairs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headwater.engine.merges import Ticks
from headwater.fold.absorb import absorb
from headwater.fold.aggregation import Aggregation, take
from headwater.fold.chunk import Grouper
from headwater.fold.columns import Column
from headwater.fold.join import WORTH_CLEANING
from headwater.fold.join_cells import Cells
from headwater.fold.lookup import Lookup

MOST_PARTS = 64


class JoinedRows:
    """Joined rows, each until it expires."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._instant: int | None = None
        self._parts: deque[tuple[Ticks, pa.Table]] = deque()

    def add(self, expiries: Ticks, rows: pa.Table) -> None:
        """Rows with their expiries."""
        self._parts.append((expiries, rows))
        if len(self._parts) > MOST_PARTS:
            whole = pa.concat_tables([rows for _, rows in self._parts]).combine_chunks()
            self._parts = deque([(np.concatenate([e for e, _ in self._parts]), whole)])

    def expire(self, instant: int) -> None:
        """Drop the parts whose rows all expire at or before an instant."""
        self._instant = instant
        self._parts = deque((e, rows) for e, rows in self._parts if e.max() > instant)

    def result(self) -> pa.Table:
        """The rows that have not expired."""
        live = [
            rows if self._instant is None else rows.filter(pa.array(expiries > self._instant))
            for expiries, rows in self._parts
        ]
        return pa.concat_tables([self._schema.empty_table(), *live])


class JoinedGroups:
    """Aggregates over joined rows, by expiry and group."""

    def __init__(self, aggregation: Aggregation) -> None:
        self._aggregation = aggregation
        self._groups = Lookup(aggregation.key_types)
        self._cells = Cells(aggregation.families)
        self._grouper = Grouper()

    def fold(self, expiries: Ticks, keys: Sequence[Column], arguments: Sequence[Column]) -> None:
        """Joined rows with their expiries."""
        groups = self._groups.slots(keys, len(expiries))
        count = len(self._groups)
        bins, numbers = np.unique(expiries, return_inverse=True)
        slots = numbers.reshape(-1) * count + groups
        partial = self._aggregation.fold(slots, len(bins) * count, arguments, self._grouper)
        places, groups = np.divmod(partial.slots, count)
        self._cells.add(bins[places], groups, partial.vectors, count)

    def absorb(self, expiries: Ticks, table: pa.Table) -> None:
        """Partials that Spark made, the groups' keys first."""
        keys = [f"_k{place}" for place in range(len(self._aggregation.keys))]
        for expiry in np.unique(expiries).tolist():
            part = table.filter(pa.array(expiries == expiry))
            for run in _runs(part, keys):
                partial = absorb(self._aggregation, self._groups, run)
                bins = np.full(partial.size, expiry, np.int64)
                self._cells.add(bins, partial.slots, partial.vectors, len(self._groups))

    def expire(self, instant: int) -> None:
        """Drop what expires at or before an instant."""
        self._cells.expire(instant)

    def result(self) -> pa.Table:
        """The groups that have joined rows."""
        aggregation, count = self._aggregation, len(self._groups)
        vectors = self._cells.merged(count)
        present = aggregation.present(vectors)
        if aggregation.keys and count > 2 * len(present) + WORTH_CLEANING:
            self._groups.keep(present)
            self._cells.remap(present)
            vectors, present = take(vectors, present), np.arange(len(present))
        columns = aggregation.finish(take(vectors, present))
        return aggregation.table(self._groups.keys(present), columns)


def _runs(table: pa.Table, keys: Sequence[str]) -> list[pa.Table]:
    """The table in parts that have each group once; several begins may share an expiry."""
    if not keys:
        return [table.slice(row, 1) for row in range(table.num_rows)]
    lookup = Lookup([table.schema.field(key).type for key in keys])
    slots = lookup.slots([Column(table.column(key)) for key in keys], table.num_rows)
    order = np.argsort(slots, kind="stable")
    ranks = np.empty(len(slots), np.int64)
    starts = np.flatnonzero(np.r_[True, np.diff(slots[order]) != 0])
    ranks[order] = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    return [table.filter(pa.array(ranks == rank)) for rank in range(int(ranks.max()) + 1)]
