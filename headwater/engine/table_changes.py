"""A streaming table that somebody follows: its new rows, and those that are deleted or replaced.

Owns: how far it was told. New rows come by their sequence numbers, late ones too; DELETE and UPDATE hand over
the rows that go and those that come in their place. Must never: read what was told before, unless a change of
stored rows was not handed over.
"""

from __future__ import annotations

import threading

import pyarrow as pa

from headwater.engine.change_record import ChangeRecord, FollowedChanges
from headwater.operators.changes import come, go, together
from headwater.storage.streaming.definition import SEQUENCE
from headwater.storage.streaming.fresh import each_since
from headwater.storage.streaming.seen import SeenTable
from headwater.storage.streaming.table import StreamingTable


class TableChanges:
    """One streaming table that keeps every row."""

    def __init__(self, table: StreamingTable, schema: pa.Schema) -> None:
        """`schema`: the columns that are told."""
        self.number = f"table {table.definition.id}"
        self.lock = threading.RLock()
        self.table, self._schema = table, schema
        self._record = ChangeRecord()
        self._sequence, self._generation = 0, 0

    def follow(self, mark: str | None) -> FollowedChanges:
        """What has changed since a mark."""
        with self.lock:
            fresh: list[pa.Table] = []
            if self._record.has(mark):
                end, now = each_since(self.table, self._sequence, self._generation, fresh.append)
                if now == self._generation:
                    self._sequence = end
                    taken, parts = self._record.take()
                    parts += [come(self._shown(rows)) for rows in fresh]
                    return FollowedChanges(taken, together(parts, self._schema))
            self._sequence, self._generation = each_since(self.table, 0, None, fresh.append)
            taken, _ = self._record.take()
            return FollowedChanges(taken, None, self._shown(self._in_order(fresh)))

    def rows_replaced(self, table: SeenTable, gone: pa.Table, added: pa.Table, was: int) -> None:
        """Stored rows have gone and others come in their place; the caller holds the lock.

        `was`: the table's generation before.
        """
        if self._generation != was:
            self._record.lose()
            return
        parts = [go(self._told(gone)), come(self._told(added))]
        self._record.add(together(parts, self._schema), self._sequence)
        self._generation = table.generation

    def _told(self, stored: pa.Table) -> pa.Table:
        """Of stored rows those that were told."""
        return self._shown(
            stored.filter(pa.array(stored.column(SEQUENCE).to_numpy() < self._sequence))
        )

    def _shown(self, stored: pa.Table) -> pa.Table:
        return stored.select(self._schema.names).cast(self._schema)

    def _in_order(self, pieces: list[pa.Table]) -> pa.Table:
        """All rows as a query of the table gives them."""
        definition = self.table.definition
        rows = pa.concat_tables([definition.stored_schema.empty_table(), *pieces])
        return rows.sort_by([(definition.time, "ascending"), (SEQUENCE, "ascending")])
