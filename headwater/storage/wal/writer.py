"""Writing groups: LSNs, bytes, one write, one sync, then the answer.

Owns: the active segment, the next LSN and the order in which things happen in a commit.
Must never: run in two threads at once, answer a ticket before its sync, or go on after a
write or sync that failed (`Refused` is the one exception: nothing of the group is on disk).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headwater.errors import StorageError
from headwater.storage.disk import IOV_MAX, Buffer, Disk, File, is_full
from headwater.storage.wal.pool import SegmentPool
from headwater.storage.wal.queue import Ticket
from headwater.storage.wal.record import LAST_OF_APPEND, encode_header, payload_bytes
from headwater.storage.wal.recovery import Ending
from headwater.storage.wal.segment import DATA_START, Segment


class AppendRefused(Exception):
    """The disk is full, and nothing of the group is on it: the log is as it was before."""

    def __init__(self, error: StorageError) -> None:
        super().__init__(error.message)
        self.error = error


class GroupWriter:
    """The end of the log. `rotated` is told of segments that go live, `reached` of LSNs that are durable."""

    def __init__(
        self,
        pool: SegmentPool,
        disk: Disk,
        first_lsn: int,
        rotated: Callable[[Segment], None],
        reached: Callable[[int], None],
    ) -> None:
        self.next_lsn = first_lsn
        self.groups = 0
        self._pool = pool
        self._disk = disk
        self._rotated = rotated
        self._reached = reached
        self._file: File | None = None
        self._epoch = 0
        self._offset = 0
        self._size = 0

    def resume(self, segment: Segment, ending: Ending, data: bytes) -> None:
        """Put the end of the last segment right on disk, and go on from there.

        The last group is written again: it may never have been synced, and after a failed
        sync the kernel may hold it in memory as clean. All groups before it were synced.
        """
        file = self._disk.open(segment.path)
        try:
            if ending.offset > ending.group_offset:
                group = memoryview(data)[ending.group_offset : ending.offset]
                self._write_all(file, [group], ending.group_offset)
            self._disk.zero_fill(file, ending.offset, ending.dirty_end - ending.offset)
            self._disk.fdatasync(file)
        except BaseException:
            self._disk.close(file)
            raise
        self._file, self._offset, self.next_lsn = file, ending.offset, ending.next_lsn
        self._epoch, self._size = segment.header.epoch, segment.header.size

    def commit(self, tickets: Sequence[Ticket]) -> None:
        """Commit the tickets in order, as few groups as the segments allow.

        A full disk refuses the tickets that it hits. Any other error is raised, and then the
        outcome of every ticket that is not done is open.
        """
        start = 0
        while start < len(tickets):
            end = self._fitting(tickets, start)
            try:
                if end == start:
                    self._rotate(tickets[start].bytes)
                else:
                    self._commit_group(tickets[start:end])
            except AppendRefused as refused:
                end = len(tickets) if end == start else end
                waiting = [ticket for ticket in tickets[start:end] if not ticket.done]
                for ticket in waiting:
                    if ticket.lsn and ticket.on_refused is not None:
                        ticket.on_refused(ticket.lsn)
                for ticket in waiting:
                    ticket.refuse(refused.error)
            start = end

    def _fitting(self, tickets: Sequence[Ticket], start: int) -> int:
        """The end of the run of tickets, from `start`, that fit into the active segment."""
        room = self._size - self._offset
        for place in range(start, len(tickets)):
            room -= tickets[place].bytes
            if room < 0:
                return place
        return len(tickets)

    def _rotate(self, room: int) -> None:
        try:
            segment, file = self._pool.activate(self._epoch + 1, self.next_lsn, room)
        except StorageError as error:
            if is_full(error):
                raise AppendRefused(error) from error
            raise
        old, self._file = self._file, file
        if old is not None:
            self._disk.close(old)
        self._disk.fsync_folder(self._pool.folder)
        self._epoch, self._offset, self._size = (
            segment.header.epoch,
            DATA_START,
            segment.header.size,
        )
        self._rotated(segment)

    def _commit_group(self, group: Sequence[Ticket]) -> None:
        """One write and one sync for the whole group; then it is visible, then answered."""
        accepted, buffers, next_lsn = self._encode(group)
        if not accepted:
            return
        file = self._file
        assert file is not None
        end = self._write(file, buffers)
        self._disk.fdatasync(file)
        self._offset, self.next_lsn = end, next_lsn
        self.groups += 1
        self._reached(next_lsn - 1)
        for ticket in accepted:
            if ticket.on_durable is not None:
                ticket.on_durable(ticket.lsn)
        for ticket in accepted:
            ticket.release()

    def _encode(self, group: Sequence[Ticket]) -> tuple[list[Ticket], list[Buffer], int]:
        """Give out LSNs in order; the buffers to write, and the LSN after them."""
        accepted: list[Ticket] = []
        buffers: list[Buffer] = []
        lsn = first = self.next_lsn
        for ticket in group:
            if ticket.on_assigned is not None and not _stamped(ticket, lsn):
                continue
            ticket.lsn = lsn
            accepted.append(ticket)
            last = len(ticket.records) - 1
            for place, record in enumerate(ticket.records):
                flags = LAST_OF_APPEND if place == last else 0
                length = ticket.lengths[place]
                buffers.append(encode_header(record, length, lsn, self._epoch, lsn - first, flags))
                buffers.extend(record.payload)
                lsn += 1
        return accepted, buffers, lsn

    def _write(self, file: File, buffers: list[Buffer]) -> int:
        """Write a group at the end of the log; the offset after it."""
        start = self._offset
        try:
            return self._write_all(file, buffers, start)
        except _Stopped as stopped:
            if not is_full(stopped.error):
                raise stopped.error from stopped
            if stopped.written:
                # Whole records may be on disk. They must be gone before the caller hears no.
                self._disk.zero_fill(file, start, stopped.written)
                self._disk.fdatasync(file)
            raise AppendRefused(stopped.error) from stopped

    def _write_all(self, file: File, buffers: list[Buffer], offset: int) -> int:
        """Write all buffers, going on after short writes; the offset after them."""
        begin = offset
        try:
            for start in range(0, len(buffers), IOV_MAX):
                part: Sequence[Buffer] = buffers[start : start + IOV_MAX]
                while part:
                    written = self._disk.pwritev(file, part, offset)
                    offset += written
                    part = _after(part, written)
                    if part and not written:
                        raise StorageError(f"cannot write {file.path}: nothing was written")
        except StorageError as error:
            raise _Stopped(error, offset - begin) from error
        return offset

    def close(self) -> None:
        """Close the active segment's file."""
        if self._file is not None:
            self._disk.close(self._file)
            self._file = None

    @property
    def half_full(self) -> bool:
        """Whether it is time to make the next segment ready."""
        return self._offset * 2 > self._size


class _Stopped(Exception):
    """A write stopped after `written` bytes."""

    def __init__(self, error: StorageError, written: int) -> None:
        super().__init__(error.message)
        self.error = error
        self.written = written


def _stamped(ticket: Ticket, lsn: int) -> bool:
    """Call the hook; a hook that fails, or changes a length, refuses its own append only."""
    assert ticket.on_assigned is not None
    try:
        ticket.on_assigned(lsn)
        lengths = [payload_bytes(record.payload) for record in ticket.records]
        if lengths != ticket.lengths:
            raise ValueError("the hook changed the length of a payload")
    except Exception as error:
        ticket.refuse(error)
        return False
    return True


def _after(buffers: Sequence[Buffer], written: int) -> Sequence[Buffer]:
    """What is left of the buffers after the first `written` bytes."""
    for place, buffer in enumerate(buffers):
        view = memoryview(buffer).cast("B")
        if written < view.nbytes:
            return [view[written:], *buffers[place + 1 :]]
        written -= view.nbytes
    return ()
