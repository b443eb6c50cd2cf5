"""The segment files of the log: made, put to use, freed and used again.

Owns: which files are in the log's folder, and in which order their names become durable.
Must never: read or write records, or hand out a segment whose header is not durable.

A file goes live in this order: header written, file synced, renamed to its epoch, folder
synced. It is freed by one rename or unlink and one sync of the folder, lowest epoch first, so
that no crash leaves a gap. Losing a spare file in a crash costs nothing.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from dataclasses import replace

from headwater.errors import StorageError
from headwater.storage.disk import ZEROS, Disk, File
from headwater.storage.wal import segment as segments
from headwater.storage.wal.segment import Header, Segment

CHUNK_BYTES = len(ZEROS)  # zero-filled and synced at once, so that commits are not held up


class SegmentPool:
    """The files of one log; `free` and the making of spares may run beside the writer."""

    def __init__(
        self,
        folder: str,
        disk: Disk,
        segment_bytes: int,
        first_segment_bytes: int,
        spare_segments: int,
    ) -> None:
        self.folder = folder
        self.segment_bytes = segment_bytes
        self._first_segment_bytes = min(first_segment_bytes, segment_bytes)
        self._disk = disk
        self._spare_segments = spare_segments
        self.reuses = True  # until somebody else may have a segment mapped
        self._lock = threading.Lock()
        self._spares: list[str] = []
        self._names_used = 0

    def open(self) -> list[int]:
        """Make or tidy the folder, and list the epochs that are in it."""
        if not self._disk.exists(self.folder):
            self._disk.mkdir(self.folder)
        # Always: a crash may have come between an earlier mkdir or rename and its sync.
        self._disk.fsync_folder(os.path.dirname(os.path.abspath(self.folder)))
        self._disk.fsync_folder(self.folder)
        epochs: list[int] = []
        for name in self._disk.listdir(self.folder):
            epoch = segments.epoch_of(name)
            if epoch is not None:
                epochs.append(epoch)
            elif name.startswith("spare-"):
                self._adopt(name)
        return sorted(epochs)

    def _adopt(self, name: str) -> None:
        """Keep a spare file of an earlier run, or remove what cannot be used."""
        path = os.path.join(self.folder, name)
        digits = "".join(filter(str.isdigit, name))
        self._names_used = max(self._names_used, int(digits or 0))
        keep = name.endswith(".wal") and len(self._spares) < self._spare_segments
        if keep and self._disk.size(path) == self.segment_bytes:
            self._spares.append(path)
        else:
            self._disk.unlink(path)

    def segment(self, epoch: int) -> Segment:
        """The live segment of this epoch, its header and size checked."""
        path = os.path.join(self.folder, segments.live_name(epoch))
        file = self._disk.open(path)
        try:
            header = segments.decode_header(self._disk.pread(file, segments.HEADER_BYTES, 0), path)
        finally:
            self._disk.close(file)
        if header.epoch != epoch:
            raise segments.damage(path, 0, f"the header is that of epoch {header.epoch}")
        size = self._disk.size(path)
        if size < header.size:
            raise segments.damage(path, size, f"the file ends here, not at byte {header.size}")
        return Segment(path, header)

    def activate(self, epoch: int, first_lsn: int, room: int) -> tuple[Segment, File]:
        """A live segment with room for at least `room` bytes; the caller syncs the folder.

        If this raises, no segment went live.
        """
        usual = self._first_segment_bytes if epoch == 1 else self.segment_bytes
        size = max(usual, segments.DATA_START + room)
        live = os.path.join(self.folder, segments.live_name(epoch))
        header = Header(epoch, first_lsn, size)
        file = self._spare() if size == self.segment_bytes else None
        file = file or self._new_file(size, zero_filled=epoch == 1 and size == usual)
        try:
            self._write_header(file, header)
            self._disk.fdatasync(file)
            self._disk.rename(file.path, live)
        except StorageError:
            self._discard(file)
            raise
        return Segment(live, header), replace(file, path=live)

    def _spare(self) -> File | None:
        with self._lock:
            path = self._spares.pop(0) if self._spares else None
        return self._disk.open(path) if path else None

    def _new_file(self, size: int, *, zero_filled: bool) -> File:
        """A file with its space reserved; without zeros it is quick to make, slower to sync."""
        file = self._disk.open(self._unused_name() + ".tmp", create=True)
        try:
            if zero_filled:
                self._disk.zero_fill(file, 0, size)
            else:
                self._disk.allocate(file, size)
        except StorageError:
            self._discard(file)
            raise
        return file

    def _unused_name(self) -> str:
        """A name never used before: a spare that is just going live still has its old one."""
        with self._lock:
            self._names_used += 1
            return os.path.join(self.folder, f"spare-{self._names_used:06d}")

    def _write_header(self, file: File, header: Header) -> None:
        data, offset = segments.encode_header(header), 0
        while offset < len(data):
            written = self._disk.pwritev(file, [data[offset:]], offset)
            if not written:
                raise StorageError(f"cannot write {file.path}: nothing was written")
            offset += written

    def _discard(self, file: File) -> None:
        """Get rid of a file that did not go live; if that fails, the next open does it."""
        with contextlib.suppress(StorageError):
            self._disk.close(file)
            self._disk.unlink(file.path)

    def add_spare(self, stopped: Callable[[], bool]) -> bool:
        """Zero-fill one spare file if none is ready; whether one was made."""
        if self._spares or self._spare_segments == 0:
            return False
        file = self._disk.open(self._unused_name() + ".tmp", create=True)
        try:
            for offset in range(0, self.segment_bytes, CHUNK_BYTES):
                if stopped():
                    self._discard(file)
                    return False
                length = min(CHUNK_BYTES, self.segment_bytes - offset)
                self._disk.zero_fill(file, offset, length)
                self._disk.fdatasync(file)
            path = file.path.removesuffix(".tmp") + ".wal"
            self._disk.rename(file.path, path)
        except StorageError:
            self._discard(file)
            raise
        self._disk.close(file)
        self.keep(path)
        return True

    def retire(self, segment: Segment) -> str | None:
        """Take a segment out of the log; the path of the spare it became, or None if removed.

        The caller syncs the folder, and only then gives the spare to `keep`.
        """
        with self._lock:
            keep = self.reuses and len(self._spares) < self._spare_segments
        if not keep or segment.header.size != self.segment_bytes:
            self._disk.unlink(segment.path)
            return None
        path = self._unused_name() + ".wal"
        self._disk.rename(segment.path, path)
        return path

    def keep(self, path: str) -> None:
        """A retired file may be used again: its old name is durably gone."""
        with self._lock:
            self._spares.append(path)

    @property
    def spare_count(self) -> int:
        """How many files wait to be used again."""
        return len(self._spares)
