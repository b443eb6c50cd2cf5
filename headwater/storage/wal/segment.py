"""A segment file of the write-ahead log: its name and its header; nothing about disks.

Owns: file names and the header at the start of a segment.
Must never: touch a disk or read records.

A file is named by its epoch (`0000000007.wal`), so a name says which use of a file it holds;
spare files are `spare-*.wal` and unfinished ones end in `.tmp`: neither is ever read back.

Header, little-endian, in the first 512 bytes; records start at byte 4096:

    magic 8s | version u16 | zero u16 | epoch u32 | first LSN u64 | size u64 | crc32c u32
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from crc32c import crc32c

from headwater.errors import StorageError

MAGIC = b"HWATERWL"
VERSION = 1
DATA_START = 4096  # records never share a disk block with the header

_FIELDS = struct.Struct("<8sHHIQQ")
_CRC = struct.Struct("<I")
HEADER_BYTES = _FIELDS.size + _CRC.size
_LIVE = re.compile(r"(\d{10})\.wal")


@dataclass(frozen=True, slots=True)
class Header:
    """What a segment says about itself: its epoch, its first LSN, and its size in bytes."""

    epoch: int
    first_lsn: int
    size: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of the log on disk."""

    path: str
    header: Header


def live_name(epoch: int) -> str:
    """The file name of the segment with this epoch."""
    return f"{epoch:010d}.wal"


def epoch_of(name: str) -> int | None:
    """The epoch in the name of a live segment; None for any other file."""
    match = _LIVE.fullmatch(name)
    return int(match[1]) if match else None


def encode_header(header: Header) -> bytes:
    """The header's bytes."""
    fields = _FIELDS.pack(MAGIC, VERSION, 0, header.epoch, header.first_lsn, header.size)
    return fields + _CRC.pack(crc32c(fields))


def decode_header(data: bytes, path: str) -> Header:
    """The header in the first bytes of a segment; damage and newer formats are errors."""
    fields = data[: _FIELDS.size]
    if len(data) < HEADER_BYTES:
        raise damage(path, 0, "the file is shorter than a segment header")
    if _CRC.unpack_from(data, _FIELDS.size)[0] != crc32c(fields):
        raise damage(path, 0, "the checksum of the segment header does not match")
    magic, version, _, epoch, first_lsn, size = _FIELDS.unpack(fields)
    if magic != MAGIC:
        raise damage(path, 0, "the file is not a segment of the log")
    if version != VERSION:
        raise StorageError(
            f"segment {path} has format {version}, and this version reads format {VERSION}",
            sqlstate="0A000",
            hint="open the database with the version that wrote it, or a newer one",
        )
    return Header(epoch, first_lsn, size)


def damage(path: str, offset: int, detail: str) -> StorageError:
    """The error for bytes that no crash of ours leaves behind."""
    return StorageError(
        f"the write-ahead log is damaged: {path} at byte {offset}",
        sqlstate="XX001",
        detail=detail,
        hint="restore the file from a copy; rows after this place would be lost without it",
    )
