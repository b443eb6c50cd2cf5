"""Micro-batches of sources: rows that executors write as blocks, and their place in the order.

A micro-batch has two moments in commit order. At the *hand-out* it gets a range of sequence
numbers, the closed mark L and, where T is the time of arrival, that time. Then executors write
blocks, and no insert waits for them. At the *commit* one record of the log names the blocks: that
record is what makes them part of the table, whole or not at all, and the next seal takes them into
the Delta log. In between the clock may have moved: the commit looks again, and if a row that was
in time would now be late, it raises `ClockMoved` and the batch is written again.

Readers of a table remember one number: they have seen every row before it. So numbers must grow in
commit order, and the range lies ahead of all that inserts may take until the commit; micro-batches
of several sources are committed in the order of their hand-outs.

Owns: the records BLOCKS and SOURCE. Must never: see a row. DESIGN §6, Sources.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from headwater.errors import DataError, Error
from headwater.storage.clock import NO_TICKS, TableClock, Ticks
from headwater.storage.clock import Stamp as ClockStamp
from headwater.storage.delta import DataFile, sync_files
from headwater.storage.streaming.definition import Definition
from headwater.storage.streaming.records import (
    BARRIER,
    BLOCKS,
    NOTHING,
    SOURCE,
    STAMP_BYTES,
    Delivery,
    RecordStamp,
    names_payload,
)
from headwater.storage.streaming.table import StreamingTable, too_far_ahead
from headwater.storage.wal import Record

PARTITION_SEQUENCES = 1 << 28  # of each partition of a micro-batch; what is not used comes back
INSERTED_MEANWHILE = 1 << 30  # numbers that inserts may take while a micro-batch is written
LOOK_AGAIN_S = 0.05  # so often one that waits for its turn looks whether it is to stop

Event = Literal["add", "awake", "idle", "remove"]
EVENTS: dict[Event, Callable[[TableClock, str], ClockStamp]] = {
    "add": TableClock.add_source,
    "awake": TableClock.awake,
    "idle": TableClock.idle,
    "remove": TableClock.remove_source,
}


class ClockMoved(Error):
    """Raised at the commit: the micro-batch must be written again with a new hand-out."""


class Stopped(Error):
    """Raised at the commit: the source was stopped while it waited for its turn."""


@dataclass(frozen=True)
class Handout:
    """What executors are told before they write."""

    definition: Definition
    clock: TableClock
    source: str
    base_sequence: int
    end_sequence: int
    arrival_us: int
    closed: int | None  # L: rows up to here are late
    sole: bool  # no other source holds the clock, so its own watermark alone decides
    limit: int | None = None  # rows beyond it move no clock
    kept: bool = True  # False: a stream that nobody reads


@dataclass(frozen=True)
class WrittenBatch:
    """What executors answer, of all partitions together."""

    files: tuple[DataFile, ...] = ()
    row_count: int = 0
    late_count: int = 0
    last_sequence: int = -1
    ticks: Ticks = field(default_factory=lambda: NO_TICKS)  # sorted: all that the clock must know

    low: int | None = None  # the smallest tick of a row that is in time


@contextlib.contextmanager
def handed_out(table: StreamingTable, source: str, partitions: int) -> Iterator[Handout]:
    """A hand-out; inside, the arrival clock of a table without TIMESTAMP BY stands still."""
    by_arrival = table.definition.by_arrival
    # Arrival times are given out in commit order: one micro-batch at a time, and rows that are
    # inserted meanwhile get the same time.
    with table.turn if by_arrival else contextlib.nullcontext():
        found: list[Handout] = []

        def decide(_lsn: int) -> None:
            found.append(_handout(table, source, partitions))

        barrier = Record(BARRIER, table.definition.id, (NOTHING,))
        try:
            table._open_log.append([barrier], on_assigned=decide).wait()
            yield found[0]
        finally:
            table._held_us = None
            _end(table, found)


def _handout(table: StreamingTable, source: str, partitions: int) -> Handout:
    """Called by the log's writer, in commit order."""
    _settle_refusals(table)
    definition, clock = table.definition, table._clock
    arrival = table._arrival.stamp(table._wall_us())
    if definition.by_arrival:
        table._held_us = arrival
    with table.in_order:
        base = max([table._next_sequence, *table.handed_out]) + INSERTED_MEANWHILE
        end = base + partitions * PARTITION_SEQUENCES
        table.handed_out.append(end)
    sole = _sole(table, source)
    limit = table.furthest_tick
    kept = table.kept
    return Handout(definition, clock, source, base, end, arrival, clock.closed, sole, limit, kept)


def _end(table: StreamingTable, found: list[Handout]) -> None:
    """A micro-batch was committed or given up: the next one may go."""
    with table.in_order:
        for handout in found:
            table.handed_out.remove(handout.end_sequence)
        table.in_order.notify_all()


def _settle_refusals(table: StreamingTable) -> None:
    """Called by the log's writer before it decides anything, as for an insert."""
    if table._taken_back:
        table._restore()


def _sole(table: StreamingTable, source: str) -> bool:
    others = [mark for name, mark in table._clock.marks.items() if name != source]
    return table.definition.max_step_ticks is None and not any(mark.live for mark in others)


def commit(
    table: StreamingTable,
    handout: Handout,
    number: int,
    written: WrittenBatch,
    stopping: threading.Event | None = None,
    batch_id: str | None = None,
) -> None:
    """Makes the blocks of a micro-batch part of the table; durable when this returns.

    Waits for those that were handed out before, unless the source is stopped. RepeatedBatch for an id that
    is known: an insert has one where a source has its number.
    """
    sync_files(table.folder, [file.path for file in written.files])
    with table.in_order:
        while table.handed_out[0] != handout.end_sequence:
            if stopping is not None and stopping.is_set():
                raise Stopped("the source is being stopped")
            table.in_order.wait(LOOK_AGAIN_S)
    delivery = Delivery(number, written.row_count, written.files)
    _append(_Entry(table, handout, written, delivery, batch_id))


def _append(entry: _Entry | _EventEntry) -> None:
    table = entry.table
    table._open_log.append(
        [entry.record()],
        on_assigned=entry.decide,
        on_durable=entry.show,
        on_refused=lambda _lsn: table._take_back(entry.batch_id),
    ).wait()


@dataclass
class _Entry:
    """The record of one micro-batch on its way through the log."""

    table: StreamingTable
    handout: Handout
    written: WrittenBatch
    delivery: Delivery
    batch_id: str | None = None
    buffer: bytearray = field(default_factory=lambda: bytearray(STAMP_BYTES))
    stamp: RecordStamp | None = None

    def record(self) -> Record:
        names = names_payload(self.batch_id, self.handout.source)
        payload = (self.buffer, names, self.delivery.pack())
        return Record(BLOCKS, self.table.definition.id, payload)

    def decide(self, lsn: int) -> None:
        """In commit order, before the write."""
        table, late = self.table, self.written.late_count
        _settle_refusals(table)
        table.check_new(self.batch_id)
        self._check()
        arrival = table._arrival.stamp(table._wall_us())
        found = replace(self._tell_clock(arrival), late_count=late)
        table.note_id(self.batch_id)
        table._late_total += late
        # What is left of the range comes back.
        table._next_sequence = max(table._next_sequence, self.written.last_sequence + 1)
        dropped = bool(late) and table.definition.late == "drop"
        # The blocks' names hold their sequence numbers, so the stamp counts no rows.
        self.stamp = RecordStamp(
            table._next_sequence, arrival, found, table._late_total, 0, dropped
        )
        self.buffer[:] = self.stamp.pack()
        table._decided_lsn = lsn

    def _check(self) -> None:
        """Whether all that executors decided still holds."""
        table, handout, low = self.table, self.handout, self.written.low
        closed = table._clock.closed
        # A clock made anew, after a full disk, knows nothing of the numbers handed out.
        same = handout.definition is table.definition and handout.clock is table._clock
        in_time = low is None or closed is None or low > closed
        wanted = table.kept and not handout.kept  # a reader came, and no row was written
        overtaken = table._next_sequence > handout.base_sequence
        told = not handout.sole or _sole(table, handout.source)
        if not same or not in_time or wanted or overtaken or not told:
            raise ClockMoved("the clock has moved while a micro-batch was written")

    def _tell_clock(self, arrival: int) -> ClockStamp:
        clock = self.table._clock
        if self.table.definition.by_arrival:
            return ClockStamp(0, arrival, arrival - 1, arrival, None, False)
        inserted = not self.handout.source
        if inserted or len(self.written.ticks) or not self.written.row_count:
            return clock.rows(self.written.ticks, self.handout.source, self.handout.limit)
        return clock.awake(self.handout.source)  # late rows only: they move no mark

    def show(self, lsn: int) -> None:
        """In commit order, after the sync."""
        assert self.stamp is not None
        source, delivery = self.handout.source, self.delivery
        self.table._show(lsn, self.stamp, None, self.batch_id, source, delivery)


def refuse_late(table: StreamingTable, handout: Handout, written: WrittenBatch) -> None:
    """DataError if the table rejects late rows and there are some; they are counted all the same."""
    definition = table.definition
    if definition.late == "reject" and written.late_count:
        assert handout.closed is not None
        table._count_late(written.late_count, handout.source)
        raise DataError(
            f"{written.late_count} rows of the source are late, and table {definition.name}"
            " rejects late rows",
            sqlstate="22023",
            detail=f"times up to {definition.value(handout.closed)} are closed",
            hint="nothing of the micro-batch was written; LATE KEEP stores late rows for history",
        )


def refuse_ahead(handout: Handout, written: WrittenBatch) -> None:
    """DataError for inserted rows too far ahead of the clocks; those of a source wait."""
    limit, ticks = handout.limit, written.ticks
    if limit is not None and len(ticks) and ticks[-1] > limit:
        raise too_far_ahead(handout.definition, int(ticks[-1]), limit)


def tell(table: StreamingTable, event: Event, source: str) -> None:
    """Tells the table's clock about a source; durable when this returns."""
    _append(_EventEntry(table, source, event))


@dataclass
class _EventEntry:
    """The record of what happened to a source."""

    table: StreamingTable
    source: str
    event: Event
    batch_id: None = None  # a source's events repeat without harm
    buffer: bytearray = field(default_factory=lambda: bytearray(STAMP_BYTES))
    stamp: RecordStamp | None = None

    def record(self) -> Record:
        payload = (self.buffer, names_payload(None, self.source))
        return Record(SOURCE, self.table.definition.id, payload)

    def decide(self, lsn: int) -> None:
        """In commit order, before the write."""
        table = self.table
        _settle_refusals(table)
        arrival = table._arrival.stamp(table._wall_us())
        found = EVENTS[self.event](table._clock, self.source)
        removed = self.event == "remove"
        self.stamp = RecordStamp(
            table._next_sequence, arrival, found, table._late_total, 0, False, removed
        )
        self.buffer[:] = self.stamp.pack()
        table._decided_lsn = lsn

    def show(self, lsn: int) -> None:
        """In commit order, after the sync."""
        assert self.stamp is not None
        self.table._show(lsn, self.stamp, None, None, self.source)


def discard(folder: Path, files: tuple[DataFile, ...]) -> None:
    """Removes blocks that will not be committed."""
    for file in files:
        (folder / file.path).unlink(missing_ok=True)


def merged(parts: list[WrittenBatch]) -> WrittenBatch:
    """What several partitions wrote, as one."""
    lows = [part.low for part in parts if part.low is not None]
    ticks = [part.ticks for part in parts if len(part.ticks)]
    return WrittenBatch(
        files=tuple(file for part in parts for file in part.files),
        row_count=sum(part.row_count for part in parts),
        late_count=sum(part.late_count for part in parts),
        last_sequence=max((part.last_sequence for part in parts), default=-1),
        ticks=np.unique(np.concatenate(ticks)) if ticks else NO_TICKS,
        low=min(lows, default=None),
    )
