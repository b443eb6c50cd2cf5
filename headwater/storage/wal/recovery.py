"""Reading the log back: which records count, where the log ends, what is damage.

Owns: the rules of recovery, as functions of a segment's bytes.
Must never: write to a disk; the log applies the `Ending` that is found here.

Rules. Records count while each is valid and has the next LSN, and only in whole appends. What
follows the last whole append is a torn tail, and is cut, unless a later valid record proves
that the bad place had once been synced: its group began after the bad LSN. Then, and in every
segment but the last, a bad place is damage, and an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from headwater.errors import StorageError
from headwater.storage.wal import record as records
from headwater.storage.wal.record import FoundRecord, Record
from headwater.storage.wal.segment import DATA_START, Segment, damage, live_name


@dataclass(frozen=True, slots=True)
class Ending:
    """Where the log ends, and what to put right there before it goes on.

    The bytes from `group_offset` to `offset` are the last group, which may be in memory only;
    those from `offset` to `dirty_end` are what is left of records that do not count.
    """

    next_lsn: int
    offset: int
    group_offset: int
    dirty_end: int


class SegmentReader:
    """Walks the records of one segment; `next_lsn` and `offset` are right at any moment."""

    def __init__(self, segment: Segment, data: bytes) -> None:
        self.segment = segment
        self.next_lsn = segment.header.first_lsn
        self.offset = DATA_START
        self._group_lsn = 0
        self._group_offset = DATA_START
        self._data = data
        self._view = memoryview(data)[: segment.header.size]
        self._bad_lsn = self.next_lsn
        self._bad_offset = DATA_START

    def __iter__(self) -> Iterator[Record]:
        """The records of whole appends, in order."""
        waiting: list[FoundRecord] = []
        offset, lsn, epoch = self.offset, self.next_lsn, self.segment.header.epoch
        while (found := records.decode(self._view, offset, epoch)) and found.lsn == lsn:
            waiting.append(found)
            offset, lsn = found.end, lsn + 1
            if found.last_of_append:
                self._advance(waiting)
                for each in waiting:
                    yield each.record(self._view)
                waiting.clear()
        self._bad_offset, self._bad_lsn = offset, lsn

    def _advance(self, append: list[FoundRecord]) -> None:
        for found in append:
            if found.group_lsn != self._group_lsn:
                self._group_lsn, self._group_offset = found.group_lsn, found.start
        self.offset, self.next_lsn = append[-1].end, append[-1].lsn + 1

    def check_complete(self, following: Segment) -> None:
        """After the walk, of a segment with one after it: every record must be there."""
        if self.next_lsn != following.header.first_lsn:
            raise damage(
                self.segment.path,
                self._bad_offset,
                f"record {self._bad_lsn} is not valid, and {following.path} goes on with "
                f"record {following.header.first_lsn}",
            )

    def ending(self) -> Ending:
        """After the walk, of the last segment: where to cut, or an error if it is damaged."""
        epoch, size = self.segment.header.epoch, self.segment.header.size
        places = [p for p in records.starts(self._data, self.offset, epoch) if p < size]
        for place in places:
            found = records.decode(self._view, place, epoch)
            if found is not None and found.group_lsn > self._bad_lsn:
                raise damage(
                    self.segment.path,
                    self._bad_offset,
                    f"record {self._bad_lsn} is not valid, but record {found.lsn} at byte "
                    f"{place} is, and was written after it",
                )
        dirty_end = places[-1] + records.HEADER_BYTES if places else self.offset
        group_offset = self._group_offset if self._group_lsn else self.offset
        return Ending(self.next_lsn, self.offset, group_offset, min(dirty_end, size))


def chain(found: list[Segment], from_lsn: int | None) -> list[Segment]:
    """The segments that hold the records from `from_lsn` on, none missing."""
    if from_lsn is not None:
        below = [s for s in found if s.header.first_lsn <= from_lsn]
        if not below:
            raise _too_short(f"begins at record {found[0].header.first_lsn}", from_lsn)
        found = found[len(below) - 1 :]
    for before, after in pairwise(found):
        epoch = before.header.epoch + 1
        if after.header.epoch != epoch:
            raise StorageError(
                f"the write-ahead log is damaged: {live_name(epoch)} is missing",
                sqlstate="XX001",
                detail=f"it lies between {before.path} and {after.path}",
                hint="put the file back; its rows are lost without it",
            )
    return found


def check_reaches(next_lsn: int, from_lsn: int | None) -> None:
    """The log must end at or after the last record that the caller knows to be durable."""
    if from_lsn is not None and next_lsn < from_lsn:
        raise _too_short(f"ends at record {next_lsn - 1}", from_lsn)


def _too_short(what: str, from_lsn: int) -> StorageError:
    return StorageError(
        f"the write-ahead log is damaged: it {what}, but record {from_lsn} is asked for",
        sqlstate="XX001",
        hint="put the missing files back into the folder of the log",
    )
