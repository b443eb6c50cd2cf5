"""Reading a log in place while another process writes it.

Owns: the mapped segment that it reads, and how far it has come. Must never: read beyond the record that the
writer says is durable, or change a file. A segment that may be mapped is unlinked when it is freed, never
used again: whoever has it mapped keeps its bytes.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator

from headwater.errors import StorageError
from headwater.storage.wal import record as records
from headwater.storage.wal import segment as segments
from headwater.storage.wal.record import Record
from headwater.storage.wal.segment import DATA_START, Header


class LogFollower:
    """The records of one log after an LSN, in order."""

    def __init__(self, folder: str, lsn: int) -> None:
        self._folder = folder
        self.lsn = lsn  # of the last record that was read
        self._data: memoryview | None = None
        self._header: Header | None = None
        self._offset = 0

    @property
    def needs_from(self) -> int:
        """Records from this LSN on may still be read from files that are not open yet."""
        return self.lsn + 1 if self._header is None else self._header.first_lsn

    def pass_freed(self) -> None:
        """Goes on with the oldest record that is there: for one who needs none of those that were freed."""
        for epoch in self._epochs():
            mapped = self._map(epoch)
            if mapped is not None:  # else it was freed just now
                header, data = mapped
                if header.first_lsn > self.lsn + 1:
                    self.lsn = header.first_lsn - 1
                    self._header, self._data, self._offset = header, data, DATA_START
                return

    def read_to(self, lsn: int) -> Iterator[list[Record]]:
        """The appends up to an LSN that is durable, each whole; payloads are views of the file."""
        append: list[Record] = []
        while self.lsn < lsn:
            found = self._next()
            append.append(found[0])
            self.lsn = found[0].lsn
            if found[1]:
                yield append
                append = []

    def _next(self) -> tuple[Record, bool]:
        """The next record, and whether it is the last of its append."""
        found = self._peek()
        if found is None:
            self._open_segment()
            found = self._peek()
        if found is None:
            raise self._lost("no valid record stands there")
        record, last, self._offset = found
        return record, last

    def _peek(self) -> tuple[Record, bool, int] | None:
        if self._data is None or self._header is None:
            return None
        return records.view(self._data, self._offset, self._header.epoch, self.lsn + 1)

    def _open_segment(self) -> None:
        """Maps the segment that holds the next record, and goes to it."""
        wanted = self.lsn + 1
        for epoch in reversed(self._epochs()):
            mapped = self._map(epoch)
            if mapped is None:
                continue
            header, data = mapped
            if header.first_lsn <= wanted:
                self._header, self._data, self._offset = header, data, DATA_START
                self._go_to(wanted)
                return
        raise self._lost("its segment is gone")

    def _epochs(self) -> list[int]:
        """Of all segments, the oldest first."""
        return sorted(filter(None, map(segments.epoch_of, os.listdir(self._folder))))

    def _map(self, epoch: int) -> tuple[Header, memoryview] | None:
        """A segment's header and bytes; None if it went meanwhile."""
        path = os.path.join(self._folder, segments.live_name(epoch))
        try:
            with open(path, "rb") as file:
                data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except FileNotFoundError:
            return None
        header = segments.decode_header(bytes(data[: segments.HEADER_BYTES]), path)
        return header, data[: header.size]

    def _go_to(self, lsn: int) -> None:
        """Passes the records before one that stands in this segment, or after its end."""
        assert self._data is not None
        assert self._header is not None
        at = self._header.first_lsn
        while at < lsn:
            found = records.view(self._data, self._offset, self._header.epoch, at)
            if found is None:
                return
            self._offset, at = found[2], at + 1

    def _lost(self, why: str) -> StorageError:
        return StorageError(
            f"record {self.lsn + 1} of the log in {self._folder} cannot be read", detail=why
        )
