"""Rows that came since a reader last looked, in commit order: what feeds a basket.

The usual answer is in the tail, made from the batches of the log without a search. A reader that fell
behind a seal gets the rest from blocks, by their sequence numbers. Late rows are left out: windows and
epochs of continuous queries never see them.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from headwater.storage.streaming.definition import LATE, SEQUENCE
from headwater.storage.streaming.read import StreamSnapshot
from headwater.storage.streaming.stored import read_block
from headwater.storage.streaming.table import StreamingTable
from headwater.storage.streaming.tail import stored_rows


@dataclass(frozen=True)
class Fresh:
    """New rows of a table and where the table stands after them."""

    rows: pa.Table
    next_sequence: int
    clock: int | None
    closed: int | None
    generation: int


def fresh_rows(table: StreamingTable, sequence: int) -> Fresh:
    """The rows with `_seq` at or after a number that came in time."""
    with table._lock:
        state = table._visible
        batches = table._tail.batches
        place = bisect_left(batches, sequence, key=lambda b: b.stamp.base_sequence)
        first = batches[0].stamp.base_sequence if batches else state.next_sequence
        wanted = batches[place:]
        generation = table.generation
    marks = (state.next_sequence, state.time.clock, state.time.closed, generation)
    if first <= sequence and not any(batch.files for batch in wanted):
        rows = stored_rows(table.definition, wanted)
        if any(batch.stamp.time.late_count for batch in wanted):
            rows = _in_time(rows)
        return Fresh(rows, *marks)
    with table.reading() as snapshot:
        return _from_blocks(snapshot, sequence)


def _in_time(rows: pa.Table) -> pa.Table:
    return rows.filter(pc.invert(rows.column(LATE)))


def _from_blocks(snapshot: StreamSnapshot, sequence: int) -> Fresh:
    parts = [piece.rows for piece in snapshot.tail]
    for block in snapshot.blocks:
        if block.high_sequence >= sequence:
            parts.append(read_block(snapshot, block))
    schema = snapshot.definition.stored_schema
    rows = pa.concat_tables([schema.empty_table(), *(part.select(schema.names) for part in parts)])
    rows = _in_time(rows.filter(pc.field(SEQUENCE) >= sequence))
    rows = rows.sort_by(SEQUENCE)
    closed = snapshot.closed
    clock = closed_clock(snapshot)
    return Fresh(rows, snapshot.next_sequence, clock, closed, snapshot.generation)


def closed_clock(snapshot: StreamSnapshot) -> int | None:
    """The clock as of the last commit; that of a snapshot may follow the wall clock."""
    if not snapshot.definition.by_arrival:
        return snapshot.clock
    return None if snapshot.closed is None else snapshot.closed + 1
