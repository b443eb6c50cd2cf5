"""The write-ahead log: append from any thread, group commit, recover, free.

Owns: the threads of the log, and its life from recover() to close().
Must never: acknowledge before a sync, go on after a failed one, or know what payloads mean.

One writer thread takes everything that waits and commits it as one group (DESIGN §6). A
failed write or sync fails the log for good: only a new process that recovers knows what is
on disk. A full disk refuses appends with 53100, and the log goes on when space returns.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from headwater.errors import ClosedError, OverloadError, StorageError
from headwater.settings import Live
from headwater.storage.disk import Disk
from headwater.storage.wal import recovery
from headwater.storage.wal.pool import SegmentPool
from headwater.storage.wal.queue import AppendQueue, Hook, Ticket, fresh
from headwater.storage.wal.record import HEADER_BYTES, Record, check
from headwater.storage.wal.segment import DATA_START, Segment, decode_header, epoch_of
from headwater.storage.wal.witness import Witness, reached_in
from headwater.storage.wal.witness import check as check_witness
from headwater.storage.wal.writer import GroupWriter

MEBIBYTE = 1 << 20
SEGMENT_BYTES = 16 * MEBIBYTE
FIRST_SEGMENT_BYTES = MEBIBYTE  # small: a new database writes its zeros at the first append
SPARE_SEGMENTS = 4
QUEUE_BYTES = 64 * MEBIBYTE
GROUP_BYTES = 8 * MEBIBYTE
APPEND_BYTES_MAX = 1024 * MEBIBYTE
APPEND_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class LogState:
    """What the log looks like now, for system tables."""

    segments: int
    spare_segments: int
    bytes: int
    first_lsn: int
    next_lsn: int
    queued_bytes: int
    groups: int
    failure: str | None
    spare_failure: str | None


class WriteAheadLog:
    """The log in one folder. Call recover() first and read it to its end; then append()."""

    def __init__(
        self,
        folder: str,
        disk: Disk | None = None,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        first_segment_bytes: int = FIRST_SEGMENT_BYTES,
        spare_segments: int = SPARE_SEGMENTS,
        queue_bytes: int = QUEUE_BYTES,
        group_bytes: int = GROUP_BYTES,
        append_bytes_max: int = APPEND_BYTES_MAX,
        append_timeout_s: Live[float] = APPEND_TIMEOUT_S,
        first_lsn: int = 1,
        threads: bool = True,
    ) -> None:
        """`first_lsn` is where an empty folder starts; without `threads`, wait() commits."""
        if min(segment_bytes, first_segment_bytes) < DATA_START + HEADER_BYTES:
            raise ValueError(f"a segment has at least {DATA_START + HEADER_BYTES} bytes")
        self._disk = disk or Disk()
        self._pool = SegmentPool(
            folder, self._disk, segment_bytes, first_segment_bytes, spare_segments
        )
        self._witness = Witness(folder, self._disk)
        self._writer = GroupWriter(
            self._pool, self._disk, first_lsn, self._add_segment, self._witness.note
        )
        self._queue = AppendQueue(queue_bytes, append_timeout_s)
        self._group_bytes = group_bytes
        self._append_bytes_max = append_bytes_max
        self._segments: list[Segment] = []
        self._segments_lock = threading.Lock()
        self._free_lock = threading.Lock()
        self._commit_lock = threading.Lock()  # without threads: one caller commits at a time
        self._use_threads = threads
        self._threads: list[threading.Thread] = []
        self._spare_wanted = threading.Event()
        self._spare_failure: str | None = None
        self._ready = False
        self._closing = False
        self.on_group: Callable[[int], None] | None = None  # told the last LSN of each group

    # Recovery

    def recover(self, from_lsn: int | None = None) -> Iterator[Record]:
        """The records from `from_lsn` on (None: all that are kept), then open for appends.

        Payloads are views of a whole segment's bytes: copy what is kept for long. At the end
        the torn tail is gone from the disk too, and the last group is durable.
        """
        if self._ready or self._segments:
            raise RuntimeError("recover() is called once")
        try:
            yield from self._recovered(from_lsn)
        except BaseException:
            self._witness.close()
            raise
        self._start()

    def _recovered(self, from_lsn: int | None) -> Iterator[Record]:
        found = [self._pool.segment(epoch) for epoch in self._pool.open()]
        self._segments = found
        reached = self._witness.open()
        needed = recovery.chain(found, from_lsn) if found else []
        for place, segment in enumerate(needed):
            data = self._disk.read(segment.path)
            reader = recovery.SegmentReader(segment, data)
            for record in reader:
                if from_lsn is None or record.lsn >= from_lsn:
                    yield record
            if place + 1 < len(needed):
                reader.check_complete(needed[place + 1])
            else:
                ending = reader.ending()
                recovery.check_reaches(ending.next_lsn, from_lsn)
                check_witness(self._pool.folder, segment.path, ending.next_lsn, reached)
                self._writer.resume(segment, ending, data)
        recovery.check_reaches(self._writer.next_lsn, from_lsn)
        check_witness(
            self._pool.folder, found[-1].path if found else None, self._writer.next_lsn, reached
        )

    def _start(self) -> None:
        self._ready = True
        if self._use_threads:
            for name, run in (("wal-writer", self._write_loop), ("wal-spares", self._spare_loop)):
                thread = threading.Thread(target=run, name=name, daemon=True)
                self._threads.append(thread)
                thread.start()

    # Appending

    def append(
        self,
        records: Sequence[Record],
        *,
        on_assigned: Hook | None = None,
        on_durable: Hook | None = None,
        on_refused: Hook | None = None,
    ) -> Ticket:
        """Queue the records, which become durable all together or not at all.

        All hooks get the first LSN and are called by the writer, in commit order:
        `on_assigned` before the write, to stamp payload buffers in place (if it raises, this
        append is refused); `on_durable` after the sync, before wait() returns (if it raises,
        the log fails); `on_refused` if a full disk refuses the append after `on_assigned` ran, to
        take back what that decided. A hook must not wait for the log.
        """
        ticket = Ticket(records, on_assigned, on_durable, on_refused)
        self._check(ticket)
        self._queue.put(ticket, None if self._use_threads else self.flush)
        return ticket

    def _check(self, ticket: Ticket) -> None:
        if not self._ready:
            raise RuntimeError("the log takes no appends before recover() was read to its end")
        if not ticket.records:
            raise ValueError("an append has at least one record")
        for record, length in zip(ticket.records, ticket.lengths, strict=True):
            check(record, length)
        if ticket.bytes > self._append_bytes_max:
            raise OverloadError(
                f"{ticket.bytes} bytes are too many for one append",
                sqlstate="54000",
                detail=f"the bound is {self._append_bytes_max} bytes",
                hint="insert in smaller batches",
            )

    def flush(self) -> None:
        """Without threads: commit everything that waits, in this thread."""
        with self._commit_lock:
            while tickets := self._queue.take(self._group_bytes, block=False):
                self._commit(tickets)

    def _write_loop(self) -> None:
        while tickets := self._queue.take(self._group_bytes, block=True):
            try:
                self._commit(tickets)
            except BaseException:  # every ticket has been told, and so will later ones be
                continue

    def _commit(self, tickets: list[Ticket]) -> None:
        """Commit or refuse; a failure is told to every ticket and then raised if not ours."""
        failure = self._queue.stopped
        try:
            if isinstance(failure, ClosedError | None):
                self._writer.commit(tickets)
                if self.on_group is not None:
                    self.on_group(self._writer.next_lsn - 1)
            else:
                _refuse(tickets, failure)
        except BaseException as error:
            self._fail(error)
            _refuse(tickets, self._queue.stopped or error)
            if not isinstance(error, StorageError):
                raise
        if self._writer.half_full:
            self._spare_wanted.set()

    def _fail(self, error: BaseException) -> None:
        """No more appends: what is on disk is known only after a recovery."""
        cause = error if isinstance(error, StorageError) else None
        failure = StorageError(
            f"the write-ahead log in {self._pool.folder} has failed and takes no more records",
            sqlstate=cause.sqlstate if cause else "58030",
            detail=cause.message if cause else repr(error),
            hint="close and open the database; rows not acknowledged may or may not be stored",
        )
        failure.__cause__ = error
        self._queue.stop(failure)

    # Segments

    def _add_segment(self, segment: Segment) -> None:
        with self._segments_lock:
            self._segments.append(segment)

    def keep_written(self) -> None:
        """Others may have segments mapped: those that are freed are unlinked, never used again."""
        self._pool.reuses = False

    def free(self, up_to_lsn: int) -> int:
        """Records up to this LSN are no longer needed; how many segments that freed."""
        freed = 0
        with self._free_lock:
            while (segment := self._freeable(up_to_lsn)) is not None:
                spare = self._pool.retire(segment)
                with self._segments_lock:
                    self._segments.remove(segment)
                freed += 1
                try:
                    self._disk.fsync_folder(self._pool.folder)
                except StorageError as error:
                    self._fail(error)
                    raise
                if spare is not None:
                    self._pool.keep(spare)
        return freed

    def _freeable(self, up_to_lsn: int) -> Segment | None:
        """The oldest segment, if all of its records may go; never the active one."""
        with self._segments_lock:
            if len(self._segments) < 2 or self._segments[1].header.first_lsn > up_to_lsn + 1:
                return None
            return self._segments[0]

    def prepare_spare(self) -> bool:
        """Make a spare segment ready if none is; whether one was made."""
        return self._pool.add_spare(lambda: self._closing)

    def _spare_loop(self) -> None:
        while self._spare_wanted.wait() and not self._closing:
            self._spare_wanted.clear()
            try:
                self.prepare_spare()
                self._spare_failure = None
            except StorageError as error:  # only speed is lost: the writer makes its own file
                self._spare_failure = str(error)

    # Life

    @property
    def next_lsn(self) -> int:
        """The LSN that the next record gets; every record before it is durable."""
        return self._writer.next_lsn

    @property
    def failure(self) -> BaseException | None:
        """Why the log takes no more appends, if it has failed."""
        stopped = self._queue.stopped
        return None if stopped is None or isinstance(stopped, ClosedError) else fresh(stopped)

    def state(self) -> LogState:
        """What the log looks like now."""
        with self._segments_lock:
            segments = list(self._segments)
        failure = self.failure
        return LogState(
            segments=len(segments),
            spare_segments=self._pool.spare_count,
            bytes=sum(segment.header.size for segment in segments),
            first_lsn=segments[0].header.first_lsn if segments else self.next_lsn,
            next_lsn=self.next_lsn,
            queued_bytes=self._queue.bytes,
            groups=self._writer.groups,
            failure=None if failure is None else str(failure),
            spare_failure=self._spare_failure,
        )

    def close(self) -> None:
        """Commit what waits, stop the threads and close the files. May be called again."""
        self._closing = True
        self._queue.stop(ClosedError("the write-ahead log is closed"))
        self._spare_wanted.set()
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        if self._ready and not self._use_threads:
            self.flush()
        self._writer.close()
        self._witness.close()


def peek(folder: str, disk: Disk | None = None) -> Iterator[Record]:
    """The records of a log that may be open elsewhere; nothing is changed, a torn tail is left out."""
    disk = disk or Disk()
    for name in disk.listdir(folder):
        if epoch_of(name) is not None:
            path = os.path.join(folder, name)
            data = disk.read(path)
            yield from recovery.SegmentReader(Segment(path, decode_header(data, path)), data)


def check_log(folder: str, disk: Disk | None = None) -> None:
    """XX001 if a log that nobody has open is damaged, as recovery would find it; nothing is changed."""
    disk = disk or Disk()
    names = (name for name in sorted(disk.listdir(folder)) if epoch_of(name) is not None)
    paths = [os.path.join(folder, name) for name in names]
    found = [Segment(path, decode_header(disk.read(path), path)) for path in paths]
    next_lsn = 1
    for place, segment in enumerate(recovery.chain(found, None)):
        reader = recovery.SegmentReader(segment, disk.read(segment.path))
        deque(reader, maxlen=0)
        if place + 1 < len(found):
            reader.check_complete(found[place + 1])
        else:
            next_lsn = reader.ending().next_lsn
    check_witness(folder, paths[-1] if paths else None, next_lsn, reached_in(folder, disk))


def _refuse(tickets: Sequence[Ticket], error: BaseException) -> None:
    for ticket in tickets:
        if not ticket.done:
            ticket.refuse(error)
