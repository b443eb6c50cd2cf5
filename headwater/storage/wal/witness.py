"""The witness of a log: a small file beside the segments that says how far the log was acknowledged.

Owns: the file `reached`, and what recovery concludes from it.
Must never: be synced, or be written before the group that it tells of is durable.

A log whose last groups are lost after they were acknowledged (a file cut off, deleted, or an older copy put
back) looks like a log that never had them. The witness is written after each sync, without a sync of its
own, so it costs a few microseconds and is never ahead of the log, not even after a power cut. One that is
behind, damaged or gone says nothing: it can only prove that records are missing.
"""

from __future__ import annotations

import contextlib
import os
import struct

from crc32c import crc32c

from headwater.errors import StorageError
from headwater.storage.disk import Disk, File

NAME = "reached"
MAGIC = b"HWw\xd7"
_FIELDS = struct.Struct("<4sQ")
_CRC = struct.Struct("<I")


class Witness:
    """The open witness of one log. A disk that cannot write it takes away a check, nothing else."""

    def __init__(self, folder: str, disk: Disk) -> None:
        self._path = os.path.join(folder, NAME)
        self._disk = disk
        self._file: File | None = None

    def open(self) -> int:
        """The last LSN that was surely acknowledged; 0 if that cannot be told."""
        with contextlib.suppress(StorageError):
            there = self._disk.exists(self._path)
            self._file = self._disk.open(self._path, create=not there)
            return _decoded(self._disk.pread(self._file, _FIELDS.size + _CRC.size, 0))
        return 0

    def note(self, lsn: int) -> None:
        """Everything up to this LSN is durable."""
        if self._file is None:
            return
        with contextlib.suppress(StorageError):
            self._disk.pwritev(self._file, [encoded(lsn)], 0)

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            file, self._file = self._file, None
            with contextlib.suppress(StorageError):
                self._disk.close(file)


def encoded(lsn: int) -> bytes:
    """The bytes of a witness."""
    fields = _FIELDS.pack(MAGIC, lsn)
    return fields + _CRC.pack(crc32c(fields))


def reached_in(folder: str, disk: Disk) -> int:
    """What the witness of a log says that nobody has open; 0 if that cannot be told."""
    path = os.path.join(folder, NAME)
    return _decoded(disk.read(path)) if disk.exists(path) else 0


def _decoded(data: bytes) -> int:
    if len(data) < _FIELDS.size + _CRC.size or not data.startswith(MAGIC):
        return 0
    if _CRC.unpack_from(data, _FIELDS.size)[0] != crc32c(data[: _FIELDS.size]):
        return 0
    return int(_FIELDS.unpack_from(data)[1])


def check(folder: str, newest: str | None, next_lsn: int, reached: int) -> None:
    """XX001 if the log, whose newest file this is, ends before a record that was acknowledged."""
    if next_lsn <= reached:
        raise StorageError(
            f"the log is damaged: {newest or folder} ends at record {next_lsn - 1}, "
            f"but record {reached} was acknowledged",
            sqlstate="XX001",
            detail="it is cut off, changed, or an older copy, or the file after it is missing",
            hint=f"put the newest files of {folder} back; to give up the records after {next_lsn - 1} "
            f"for good, remove {os.path.join(folder, NAME)}",
        )
