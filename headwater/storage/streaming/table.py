"""A streaming table at work: insert, advance, recovery.

An insert touches the write-ahead log and the tail only: no read and no upkeep can stop it. What is
decided in commit order (sequence, lateness, the clock) is decided by the log's writer just before
the write and becomes visible just after the sync; `_Commit` is that pair of steps.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headwater.errors import BindError, DataError, Error, OverloadError, StorageError
from headwater.storage.arrival import ArrivalClock
from headwater.storage.clock import NO_TICKS, TICK_MIN, TableClock, Ticks
from headwater.storage.clock import Stamp as ClockStamp
from headwater.storage.delta import DataFile, DeltaLog
from headwater.storage.door import FIRST_TIME, LAST_TIME
from headwater.storage.rows import as_batch
from headwater.storage.streaming import blocks as block_files
from headwater.storage.streaming.blocks import Block, TableState
from headwater.storage.streaming.definition import LATE, SEQUENCE, Definition
from headwater.storage.streaming.limits import Limits
from headwater.storage.streaming.read import Wanted, select
from headwater.storage.streaming.records import (
    ADVANCE,
    BARRIER,
    LONGEST_NAME,
    NOTHING,
    ROWS,
    STAMP_BYTES,
    Delivery,
    RecordStamp,
    names_payload,
    read_record,
)
from headwater.storage.streaming.stored import StoredTable
from headwater.storage.wal import Record, WriteAheadLog

LARGEST_TICK = 1 << 62
LOOK_AGAIN_S = 0.25  # a writer that waits for room looks at the bounds so often: SET may raise them


class RepeatedBatch(Error):
    """Raised inside the log's writer for a batch id that was stored before."""


@dataclass
class _Commit:
    """One record on its way through the log; `batch` is None where it holds no rows."""

    table: StreamingTable
    batch: pa.RecordBatch | None
    ticks: Ticks
    batch_id: str | None
    source: str
    event: Callable[[], ClockStamp] | None = None  # what the clock is told instead of rows
    buffer: bytearray = field(default_factory=lambda: bytearray(STAMP_BYTES))
    stamp: RecordStamp | None = None
    rejected: int = 0  # late rows for which the whole insert was refused
    lenient: bool = False  # rows far ahead are taken, and wait

    def decide(self, lsn: int) -> None:
        """In commit order, before the write: sequence numbers, lateness, the clock."""
        self.stamp = self.table._decide(self)
        self.table._decided_lsn = lsn
        self.buffer[:] = self.stamp.pack()

    def take_back(self, _lsn: int) -> None:
        """The disk is full and the record was not written."""
        self.table._take_back(self.batch_id)

    def show(self, lsn: int) -> None:
        """In commit order, after the sync: the rows become visible."""
        with self.table._visibility:
            self.show_inside(lsn)
        self.table._tell()

    def show_inside(self, lsn: int) -> None:
        """The same for one who holds the lock that readers of several tables take."""
        assert self.stamp is not None
        ends = (int(self.ticks[0]), int(self.ticks[-1])) if len(self.ticks) else None
        self.table._show_inside(lsn, self.stamp, self.batch, self.batch_id, self.source, ends=ends)

    def record(self, kind: int) -> Record:
        """The record for the log."""
        payload: tuple[Any, ...] = (self.buffer, names_payload(self.batch_id, self.source))
        if self.batch is not None:
            payload = (*payload, self.batch.serialize())
        return Record(kind, self.table.definition.id, payload)


class StreamingTable(StoredTable):
    """One streaming table, or a stream."""

    def __init__(
        self,
        definition: Definition,
        folder: Path,
        bounds: Callable[[], Limits],
        kept_s: Callable[[], float],
        wake: Callable[[], None],
        known_ids: Iterable[str] = (),
        sources: Iterable[str] = (),
        visibility: threading.Lock | None = None,
    ) -> None:
        super().__init__(definition, folder, bounds, kept_s, sources, visibility)
        self.kept = True  # whether rows are kept: a stream without readers keeps none
        self.is_setting_clock = False  # inserts wait meanwhile
        self.turn = threading.Lock()  # micro-batches of a table without TIMESTAMP BY take turns
        self.in_order = threading.Condition()  # the others are committed in the order of hand-outs:
        self.handed_out: list[int] = []  # where the numbers of each one that is under way end
        self._wal: WriteAheadLog | None = None
        self._wake = wake
        state = self._visible
        # Of the log's writer alone:
        self._arrival = ArrivalClock(state.arrival_us)
        self._next_sequence = state.next_sequence
        self._late_total = state.late_total
        self._decided_lsn = (
            state.lsn
        )  # of the last record that was decided: it may not be visible yet
        now = time.monotonic()
        self._ids = dict.fromkeys(known_ids, now)  # by batch id: when it was stored
        self._taken_back = False
        self._clock = self._restored_clock(state)

    @classmethod
    def make(cls, folder: Path, definition: Definition) -> None:
        """Makes the folder of a new table."""
        DeltaLog.create(folder, definition.stored_schema)

    def attach(self, wal: WriteAheadLog) -> None:
        """Gives the table the log it writes to, after recovery."""
        self._wal = wal

    # Recovery

    def replay(self, record: Record) -> None:
        """Takes in one record of the log that is not in a block yet."""
        if record.lsn <= self.sealed_lsn or record.kind == BARRIER:
            return
        data = memoryview(b"".join(bytes(part) for part in record.payload))
        found = read_record(data, record.kind, _plain(self.definition.schema))
        stamp, batch = found.stamp, found.batch
        self._next_sequence, self._late_total = stamp.next_sequence, stamp.late_total
        self._arrival = ArrivalClock(stamp.arrival_us)
        if found.batch_id is not None:
            self._ids[found.batch_id] = time.monotonic()
        if stamp.back:
            self._clock, _ = self._set_back(stamp.time.clock)
        elif stamp.removed:
            self._clock.replay_removal(stamp.time, found.source)
        else:
            ticks = NO_TICKS
            if batch is not None and batch.num_rows and not self.definition.by_arrival:
                ticks = self.definition.ticks(batch.column(self.definition.time))
            elif found.delivery is not None:
                ticks = self._delivered_ticks(found.delivery, stamp.time.clock)
            self._clock.replay(stamp.time, ticks, found.source)
        self._show(record.lsn, stamp, batch, found.batch_id, found.source, found.delivery)

    def _delivered_ticks(self, delivery: Delivery, clock: int | None) -> Ticks:
        """Ticks of rows in a source's blocks, which the log names, beyond the clock."""
        self._garbage.keep(self.folder / file.path for file in delivery.files)
        blocks = [block_files.known_block(file) for file in delivery.files]
        if self.definition.by_arrival or not blocks:
            return NO_TICKS
        return block_files.ticks_beyond(self.folder, self.definition, blocks, clock)

    def _restored_clock(self, state: TableState) -> TableClock:
        return TableClock.restore(
            state.time,
            self._waiting_ticks(state.time.clock),
            watermark=self.definition.watermark_ticks,
            max_step=self.definition.max_step_ticks,
        )

    def _set_back(self, tick: int | None) -> tuple[TableClock, ClockStamp]:
        """The clock at an earlier tick; every row that was decided is visible."""
        assert tick is not None
        return self._clock.back(tick, self._waiting_ticks(tick))

    def _waiting_ticks(self, clock: int | None) -> Ticks:
        """Ticks of stored rows beyond the clock: a watermark holds them back."""
        if self.definition.by_arrival:
            return NO_TICKS
        with self.reading() as found:
            low = None if clock is None else clock + 1
            snapshot = replace(found, clock=clock)  # RANGE hides what lies behind this clock
            rows = select(snapshot, Wanted((self.definition.time, LATE), low=low)).rows
        rows = rows.filter(pa.compute.invert(rows.column(LATE)))
        return np.sort(self.definition.ticks(rows.column(self.definition.time)))

    # Inserts

    def insert(
        self, rows: Any, batch_id: str | None = None, source: str = "", *, lenient: bool = False
    ) -> int:
        """Adds rows; returns once they are durable. 0 if the batch was there already.

        Rows too far ahead of the clocks are refused; of a source, or where it is lenient, they wait.
        """
        batch = as_batch(rows, self.definition.schema)
        check_batch_id(batch_id)
        if not batch.num_rows and batch_id is None:
            return 0
        self.wait_for_room()
        batch, ticks = self._prepared(batch)
        commit = _Commit(self, batch, ticks, batch_id, source, lenient=lenient or bool(source))
        try:
            self._append(commit, ROWS)
        except RepeatedBatch:  # the first one may be in the same group
            if self.was_stored(batch_id):
                return 0
            return self.insert(batch, batch_id, source, lenient=lenient)  # the first was refused
        except DataError:
            if commit.rejected:
                self._count_late(commit.rejected, source)
            raise
        stamp = commit.stamp
        assert stamp is not None
        return batch.num_rows - (stamp.time.late_count if stamp.late_dropped else 0)

    def _append(self, commit: _Commit, kind: int) -> None:
        self._open_log.append(
            [commit.record(kind)],
            on_assigned=commit.decide,
            on_durable=commit.show,
            on_refused=commit.take_back,
        ).wait()

    def _count_late(self, count: int, source: str) -> None:
        """Late rows are counted also where the whole insert was refused for them."""

        def event() -> ClockStamp:
            return replace(self._clock.rows(NO_TICKS, source), late_count=count)

        self._append(_Commit(self, None, NO_TICKS, None, source, event), ADVANCE)

    @property
    def _open_log(self) -> WriteAheadLog:
        if self._wal is None:
            raise StorageError("the write-ahead log is not open yet")
        return self._wal

    def check_new(self, batch_id: str | None) -> None:
        """RepeatedBatch for an id that was stored before; in commit order."""
        if batch_id is not None and batch_id in self._ids:
            raise RepeatedBatch("the batch was stored before")

    def note_id(self, batch_id: str | None) -> None:
        """A batch of this id is stored; in commit order."""
        if batch_id is not None:
            self._ids[batch_id] = time.monotonic()

    def was_stored(self, batch_id: str | None) -> bool:
        """Whether a batch of this id is durable: one that is being written is waited for."""
        if batch_id is None or batch_id not in self._ids:
            return False
        self.barrier()
        return batch_id in self._ids

    def forget_ids(self, window_s: float) -> None:
        """Forgets batch ids that were stored longer ago than this; they come in order of time."""
        oldest = time.monotonic() - window_s
        for batch_id, stored_at in list(self._ids.items()):
            if stored_at >= oldest:
                return
            self._ids.pop(batch_id, None)

    def wait_for_room(self) -> None:
        """Slows writers down while too much waits to be sealed or folded (back-pressure)."""
        with self._room:
            refusal = self._fullness()
            if refusal is None:
                return
            self._wake()
            began = time.monotonic()
            while (refusal := self._fullness()) is not None:
                left = began + self.limits.insert_timeout_s - time.monotonic()
                if left <= 0:
                    raise refusal
                self._room.wait(min(left, LOOK_AGAIN_S))

    def _fullness(self) -> OverloadError | None:
        """Why there is no room for more rows; None if there is."""
        name = self.definition.name
        if self.is_setting_clock:
            return OverloadError(f"the clock of {name} is being set", hint="try again")
        if self._tail.bytes > self.limits.unsealed_bytes:
            return OverloadError(
                f"too many rows of {name} wait to be written to blocks",
                detail=f"unsealed_mb is {self.limits.unsealed_bytes >> 20}",
                hint="slow down and try again; the disk may be too slow",
            )
        end = self._visible.next_sequence
        folded = min((folded() for folded in list(self.folded_by.values())), default=end)
        most = self.limits.queue_rows
        if end - folded > most and self._rows_since(folded) > most:  # sources leave numbers out
            return OverloadError(
                f"too many rows of {name} wait to be folded into a view",
                detail=f"view_queue_rows is {self.limits.queue_rows}",
                hint="slow down and try again; SELECT * FROM headwater.views shows who is behind",
            )
        return None

    def made_room(self) -> None:
        """A view has caught up."""
        with self._room:
            self._room.notify_all()

    def _prepared(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Ticks]:
        """The rows as one batch sorted by T (equal T in the order given), and their ticks."""
        if self.definition.by_arrival or not batch.num_rows:
            return batch, NO_TICKS
        ticks = self._checked_ticks(batch.column(self.definition.time))
        if bool(np.all(ticks[1:] >= ticks[:-1])):
            return batch, ticks
        order = np.argsort(ticks, kind="stable")
        return batch.take(pa.array(order)), ticks[order]

    def _checked_ticks(self, column: pa.Array) -> Ticks:
        if column.null_count:
            raise DataError(
                f"NULL in time column {self.definition.time}",
                sqlstate="23502",
                hint="every row of a streaming table needs its time; nothing was written",
            )
        ticks = self.definition.ticks(column)
        if ticks.size and not all(map(self._in_range, (int(ticks.min()), int(ticks.max())))):
            raise DataError(
                f"a time in column {self.definition.time} is out of range", sqlstate="22008"
            )
        return ticks

    def _in_range(self, tick: int) -> bool:
        if pa.types.is_integer(self.definition.time_type):
            return abs(tick) < LARGEST_TICK
        return FIRST_TIME <= tick <= LAST_TIME

    def _decide(self, commit: _Commit) -> RecordStamp:
        """Called by the log's writer, in commit order."""
        if self._taken_back:
            self._restore()
        self.check_new(commit.batch_id)
        count = 0 if commit.batch is None else commit.batch.num_rows
        arrival = self._arrival.stamp(self._wall_us())
        found = self._tell_clock(commit, arrival)
        self.note_id(commit.batch_id)
        self._late_total += found.late_count
        dropped = bool(found.late_count) and self.definition.late == "drop"
        stamp = RecordStamp(self._next_sequence, arrival, found, self._late_total, count, dropped)
        self._next_sequence = stamp.next_sequence
        return stamp

    def _take_back(self, batch_id: str | None) -> None:
        """Called by the log's writer: what was decided last did not come to pass."""
        self._taken_back = True
        if batch_id is not None:
            self._ids.pop(batch_id, None)

    def _restore(self) -> None:
        """Goes on from the last record that is durable; every such one is visible by now."""
        state = self.state
        self._next_sequence, self._late_total = state.next_sequence, state.late_total
        self._decided_lsn = state.lsn
        self._clock = self._restored_clock(state)
        self._taken_back = False

    def _check_late(self, commit: _Commit) -> None:
        """Called by the log's writer before `_decide`: raises what that would raise."""
        if self._taken_back:
            self._restore()
        if not self.definition.by_arrival:
            self._refuse_late(commit)
            self._refuse_ahead(commit)

    def _tell_clock(self, commit: _Commit, arrival: int) -> ClockStamp:
        if commit.event is not None:
            return commit.event()
        if self.definition.by_arrival:
            return ClockStamp(0, arrival, arrival - 1, arrival, None, False)
        self._refuse_late(commit)
        self._refuse_ahead(commit)
        return self._clock.rows(commit.ticks, commit.source, self.furthest_tick)

    @property
    def furthest_tick(self) -> int | None:
        """Rows beyond it are too far ahead of the wall clock and the table's; None: there is no bound."""
        definition = self.definition
        if not definition.has_wall_clock:
            return None
        ahead = definition.max_ahead_ticks
        ahead = int(self.limits.clock_ahead_s * 1_000_000) if ahead is None else ahead
        clock = self._clock.clock
        reached = self._wall_us() if clock is None else max(self._wall_us(), clock)
        return reached + ahead if ahead else None

    def _refuse_ahead(self, commit: _Commit) -> None:
        limit = None if commit.lenient else self.furthest_tick
        if limit is not None and commit.ticks.size and commit.ticks[-1] > limit:
            raise too_far_ahead(self.definition, int(commit.ticks[-1]), limit)

    def _refuse_late(self, commit: _Commit) -> None:
        closed, ticks = self._clock.closed, commit.ticks
        if (
            self.definition.late != "reject"
            or closed is None
            or not ticks.size
            or ticks[0] > closed
        ):
            return
        late = commit.rejected = int(np.searchsorted(ticks, closed, side="right"))
        raise DataError(
            f"{late} rows of the insert are late, and table {self.definition.name} rejects late rows",
            sqlstate="22023",
            detail=f"times up to {self.definition.value(closed)} are closed",
            hint="nothing was written; LATE KEEP stores late rows for history only",
        )

    def _show(
        self,
        lsn: int,
        stamp: RecordStamp,
        batch: pa.RecordBatch | None,
        batch_id: str | None,
        source: str,
        delivery: Delivery | None = None,
    ) -> None:
        """Called by the log's writer, in commit order, after the sync."""
        with self._visibility:
            self._show_inside(lsn, stamp, batch, batch_id, source, delivery)
        self._tell()

    def _show_inside(
        self,
        lsn: int,
        stamp: RecordStamp,
        batch: pa.RecordBatch | None,
        batch_id: str | None,
        source: str,
        delivery: Delivery | None = None,
        ends: tuple[int, int] | None = None,
    ) -> None:
        """The same for one who holds `_visibility`."""
        if batch is not None and not self.kept:
            batch = None  # a stream without readers keeps no row
        self._put(lsn, stamp, batch, batch_id, source, delivery, ends)
        self._decided_lsn = max(self._decided_lsn, lsn)

    def _tell(self) -> None:
        """Tells those who wait for rows, once these are visible."""
        if self._tail.bytes >= self.limits.block_bytes:
            self._wake()
        if self.on_show is not None:
            self.on_show()

    def advance(self, value: object, source: str | None = None) -> None:
        """Punctuation: no more rows with T ≤ the value; durable when this returns."""
        if self.definition.by_arrival:
            raise BindError(
                f"table {self.definition.name} takes its time from arrival and cannot be advanced",
                sqlstate="55000",
                hint="TIMESTAMP BY a column gives a table its own time",
            )
        tick = self.definition.tick(value)
        if not self._in_range(tick):
            raise DataError("the time is out of range", sqlstate="22008")

        def event() -> ClockStamp:
            limit = self.furthest_tick
            if limit is not None and tick > limit:
                raise too_far_ahead(self.definition, tick, limit)
            return self._clock.advance(tick, source)

        self._append(_Commit(self, None, NO_TICKS, None, source or "", event), ADVANCE)

    def tick(self) -> None:
        """Arrival time comes to now, durably: no later row gets an earlier time."""
        if self.definition.by_arrival:
            self._append(_Commit(self, None, NO_TICKS, None, ""), ADVANCE)

    def store_result(self, rows: Any, instant: int | None, ties: bool = False) -> None:
        """The result of an instant, in one commit with the advance to it; for materialized views.

        `ties`: another result may come at the same instant, so it is not closed yet. Rows beyond the
        instant wait, all of them where it is None.
        """
        batch, ticks = self._prepared(as_batch(rows, self.definition.schema))

        def event() -> ClockStamp:
            found = self._clock.rows(ticks, limit=TICK_MIN if instant is None else instant)
            if instant is None:
                return found
            moved = self._clock.reach(instant) if ties else self._clock.advance(instant)
            return replace(moved, late_count=found.late_count)

        commit = _Commit(self, batch, ticks, None, "", event)
        self._append(commit, ROWS)

    def barrier(self) -> None:
        """Waits until all that was appended to the log before is visible."""
        self._open_log.append([Record(BARRIER, self.definition.id, (NOTHING,))]).wait()

    # Commits of others

    def look_for_foreign_commits(self) -> bool:
        """Takes in what another Delta writer committed; whether there was anything.

        Files that others added are written again as blocks of ours, so that they carry bounds and
        sequence numbers; rows without a sequence count as late, for no window has seen them.
        """
        with self.upkeep:
            if not self._log.refresh() and not self.foreign:
                return False
            blocks, self.foreign = block_files.read_blocks(self._log)
            with self._lock:
                unsealed = [f for batch in self._tail.batches for f in batch.files]
                blocks += map(block_files.known_block, unsealed)
                gone = set(self._blocks.snapshot()) - set(blocks)
                self._blocks = block_files.interval_index(blocks)
                for block in gone:
                    self._memory.pop(block.path, None)
                self._version = self._log.version
            self.indexes.forget(list(gone))
            for file in self.foreign:
                self._adopt(file)
            self.foreign = []
            self._tell_image()
            return True

    def _adopt(self, file: DataFile) -> None:
        """Takes the rows of a file that another writer added, and lets the file go.

        Rows with our sequence numbers (somebody rewrote blocks) become blocks again; others are
        inserted, under a batch id that makes a second try after a crash harmless.
        """
        rows = pq.read_table(self.folder / file.path)
        known = SEQUENCE in rows.column_names and not rows.column(SEQUENCE).null_count
        written: list[tuple[Block, DataFile, pa.Table]] = []
        if known:
            columns = [rows.column(f.name).cast(f.type) for f in self.definition.stored_schema]
            written = self._write(
                pa.Table.from_arrays(columns, schema=self.definition.stored_schema)
            )
        else:
            self.insert(
                rows.select(self.schema.names), batch_id=f"foreign:{file.path}", lenient=True
            )
        version = self._log.commit([added for _, added, _ in written], [file.path])
        with self._lock:
            self._version = version
            self._add_blocks(written)
        self._tell_image()
        self._garbage.add([self.folder / file.path], version)


def check_batch_id(batch_id: str | None) -> None:
    """DataError for an id that no record has room for."""
    if batch_id is not None and len(batch_id.encode()) > LONGEST_NAME:
        raise DataError(f"a batch id has at most {LONGEST_NAME} bytes", sqlstate="22001")


def too_far_ahead(definition: Definition, tick: int, limit: int) -> DataError:
    """What a writer is told whose time would take the clock along."""
    return DataError(
        f"time {definition.value(tick)} is too far ahead for table {definition.name}",
        sqlstate="22008",
        detail=f"the clocks allow times up to {definition.value(limit)}; nothing was written",
        hint="if such times are right: SET max_clock_ahead_s = 0, or CREATE … WITH (max_clock_ahead = "
        "INTERVAL '…'), or ALTER TABLE … SET MAX_CLOCK_AHEAD INTERVAL '…'",
    )


def _plain(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])
