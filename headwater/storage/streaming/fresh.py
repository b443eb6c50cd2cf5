"""Rows that came since a reader last looked, in commit order: what feeds a basket.

The usual answer is in the tail, made from the batches of the log without a search. A reader that fell
behind a seal gets the rest from blocks, by their sequence numbers, one block at a time. Late rows are
left out: windows and epochs of continuous queries never see them.

Many readers ask for the same rows after a commit: the last answer of each table is kept for them.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from headwater.storage.streaming.definition import LATE, SEQUENCE
from headwater.storage.streaming.read import StreamSnapshot
from headwater.storage.streaming.stored import read_block
from headwater.storage.streaming.table import StreamingTable
from headwater.storage.streaming.tail import TailBatch, stored_rows

MOST_KEPT_ROWS = 1_000_000  # of a table's last answer


@dataclass(frozen=True)
class Marks:
    """Where a table stands."""

    next_sequence: int
    clock: int | None
    closed: int | None
    generation: int


@dataclass(frozen=True)
class Fresh:
    """New rows of a table and where the table stands after them."""

    rows: pa.Table
    marks: Marks


@dataclass
class _Last:
    """A table's last answer, and what was asked: the first and the next sequence, the generation."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    asked: tuple[int, int, int] | None = None
    rows: pa.Table | None = None
    empty: pa.Table | None = None  # the answer when nothing has come


_lasts: weakref.WeakKeyDictionary[StreamingTable, _Last] = weakref.WeakKeyDictionary()
_lasts_lock = threading.Lock()


def fresh_rows(table: StreamingTable, sequence: int) -> Fresh | None:
    """The rows with `_seq` at or after a number that came in time; None if some are in blocks."""
    with table._lock:
        state = table._visible
        batches = table._tail.batches
        place = bisect_left(batches, sequence, key=lambda b: b.stamp.base_sequence)
        first = batches[0].stamp.base_sequence if batches else state.next_sequence
        wanted = batches[place:]
        generation = table.generation
    if first > sequence or any(batch.files for batch in wanted):
        return None
    asked = (sequence, state.next_sequence, generation)
    marks = Marks(state.next_sequence, state.time.clock, state.time.closed, generation)
    return Fresh(_made_once(table, asked, wanted), marks)


def _made_once(
    table: StreamingTable, asked: tuple[int, int, int], batches: Sequence[TailBatch]
) -> pa.Table:
    """The rows of batches; those who ask for the same at the same time wait for the first."""
    with _lasts_lock:
        last = _lasts.setdefault(table, _Last())
    with last.lock:
        if not batches:
            if last.empty is None:
                last.empty = table.definition.stored_schema.empty_table()
            return last.empty
        if last.asked == asked and last.rows is not None:
            return last.rows
        rows = stored_rows(table.definition, batches)
        if any(batch.stamp.time.late_count for batch in batches):
            rows = _in_time(rows)
        if rows.num_rows <= MOST_KEPT_ROWS:
            last.asked, last.rows = asked, rows
        return rows


def each_since(
    table: StreamingTable,
    sequence: int,
    generation: int | None,
    take: Callable[[pa.Table], None],
    end: int | None = None,
) -> tuple[int, int]:
    """Gives every row from a sequence number on (up to another), late ones too, in pieces of no order.

    Returns the next sequence number and the table's generation; no piece is given if stored rows
    have changed since the generation that the caller knows.
    """
    with table._lock:
        state, found = table._visible, table.generation
        batches = table._tail.batches
        end = state.next_sequence if end is None else end
        place = bisect_left(batches, sequence, key=lambda b: b.stamp.base_sequence)
        last = bisect_left(batches, end, key=lambda b: b.stamp.base_sequence)
        first = batches[0].stamp.base_sequence if batches else state.next_sequence
        wanted = batches[place:last]
        # The stamp of a source's blocks stands behind their numbers, so it may be the end itself.
        near = batches[place : bisect_right(batches, end, key=lambda b: b.stamp.base_sequence)]
        in_files = any(batch.files for batch in near)
    if generation is not None and found != generation:
        return sequence, found
    if end <= sequence:
        return sequence, found
    if first <= sequence and not in_files:
        if wanted:
            take(stored_rows(table.definition, wanted))
        return end, found
    with table.reading() as snapshot:
        if generation is not None and snapshot.generation != generation:
            return sequence, snapshot.generation
        for block in snapshot.blocks:
            if block.high_sequence >= sequence:
                take(_between(read_block(snapshot, block), sequence, end))
        for piece in snapshot.tail:
            take(_between(piece.rows, sequence, end))
        return end, snapshot.generation


def ends_of(tables: Iterable[StreamingTable]) -> dict[int, int]:
    """By table: the sequence number after its last row, all at one moment."""
    found = {table.definition.id: table for table in tables}
    locks = {id(table._visibility): table._visibility for table in found.values()}
    with contextlib.ExitStack() as stack:
        for lock in locks.values():  # one, within a database
            stack.enter_context(lock)
        return {number: table.state.next_sequence for number, table in found.items()}


def _between(rows: pa.Table, sequence: int, end: int) -> pa.Table:
    column = pc.field(SEQUENCE)
    return rows.filter((column >= sequence) & (column < end))


def _in_time(rows: pa.Table) -> pa.Table:
    return rows.filter(pc.invert(rows.column(LATE)))


def missed_rows(
    snapshot: StreamSnapshot, sequence: int, columns: Sequence[str]
) -> Iterator[pa.Table]:
    """The rows with `_seq` at or after a number that came in time, block by block, in no order."""
    names = tuple(dict.fromkeys([*columns, SEQUENCE, LATE]))
    blocks = [block for block in snapshot.blocks if block.high_sequence >= sequence]
    for block in blocks:
        yield _since(read_block(snapshot, block, names), sequence, columns)
    for piece in snapshot.tail:
        yield _since(piece.rows, sequence, columns)


def _since(rows: pa.Table, sequence: int, columns: Sequence[str]) -> pa.Table:
    wanted = (pc.field(SEQUENCE) >= sequence) & ~pc.field(LATE)
    return rows.filter(wanted).select(list(columns))


def marks_of(snapshot: StreamSnapshot) -> Marks:
    """Where a table stood when a snapshot was made."""
    clock = closed_clock(snapshot)
    return Marks(snapshot.next_sequence, clock, snapshot.closed, snapshot.generation)


def closed_clock(snapshot: StreamSnapshot) -> int | None:
    """The clock as of the last commit; that of a snapshot may follow the wall clock."""
    if not snapshot.definition.by_arrival:
        return snapshot.clock
    return None if snapshot.closed is None else snapshot.closed + 1
