"""One record of the write-ahead log: its bytes, and nothing about files.

Owns: the header layout, the checksum and the search for records in damaged bytes.
Must never: touch a disk, assign an LSN, or copy a payload.

Layout, little-endian, 36 bytes, then the payload:

    magic 4s | epoch u32 | length u32 | lsn u64 | back u32 | table u32
    | version u8 | kind u8 | flags u8 | zero u8 | crc32c u32

The crc covers the 32 bytes before it and the payload. `epoch` is that of the segment, so that
what an earlier use left in a recycled file is never read. `back` is the distance to the first
LSN of the group that was written and synced together: everything before that LSN was durable
when this record was written, which tells a torn group from damage.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from crc32c import crc32c

from headwater.storage.disk import Buffer

MAGIC = b"HWr\xd7"
VERSION = 1
LAST_OF_APPEND = 1  # flag: the records of one append are all here
KNOWN_FLAGS = LAST_OF_APPEND

_FIELDS = struct.Struct("<4sIIQIIBBBB")
_CRC = struct.Struct("<I")
_START = struct.Struct("<4sI")
_pack_fields = _FIELDS.pack
_pack_crc = _CRC.pack
HEADER_BYTES = _FIELDS.size + _CRC.size
PAYLOAD_BYTES_MAX = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class Record:
    """What is logged. `payload` is one buffer or several that are written one after another."""

    kind: int
    table: int
    payload: tuple[Buffer, ...]
    lsn: int = 0  # given by the log


def check(record: Record, length: int) -> None:
    """Refuse, before it is queued, what the header cannot hold."""
    if not (0 <= record.kind < 1 << 8 and 0 <= record.table < 1 << 32):
        raise ValueError(f"kind {record.kind} or table {record.table} is out of range")
    if length > PAYLOAD_BYTES_MAX:
        raise ValueError(f"a payload of {length} bytes is too long")


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """A valid record in a segment's bytes: its header, and where its payload lies."""

    start: int
    end: int
    lsn: int
    group_lsn: int
    kind: int
    table: int
    last_of_append: bool

    def record(self, data: memoryview) -> Record:
        """The record, its payload a view of the segment's bytes."""
        payload = data[self.start + HEADER_BYTES : self.end]
        return Record(self.kind, self.table, (payload,), self.lsn)


def payload_bytes(payload: Sequence[Buffer]) -> int:
    """The length of a payload in bytes, whatever the items of its buffers are."""
    if len(payload) == 1 and type(payload[0]) is bytes:
        return len(payload[0])
    total = 0
    for buffer in payload:
        view = memoryview(buffer)
        if not view.c_contiguous:
            raise ValueError("a payload buffer must be contiguous")
        total += view.nbytes
    return total


def encode_header(
    record: Record, length: int, lsn: int, epoch: int, back: int, flags: int
) -> bytes:
    """The header of a record whose payload is `length` bytes long."""
    fields = _pack_fields(
        MAGIC, epoch, length, lsn, back, record.table, VERSION, record.kind, flags, 0
    )
    crc = crc32c(fields)
    for buffer in record.payload:
        crc = crc32c(buffer, crc)
    return fields + _pack_crc(crc)


def decode(data: memoryview, start: int, epoch: int) -> FoundRecord | None:
    """The record that starts at `start`, or None if there is no valid one of this epoch."""
    body = start + HEADER_BYTES
    if body > len(data):
        return None
    fields = _FIELDS.unpack_from(data, start)
    magic, its_epoch, length, lsn, back, table, version, kind, flags, zero = fields
    if magic != MAGIC or its_epoch != epoch or body + length > len(data):
        return None
    if version != VERSION or zero != 0 or flags & ~KNOWN_FLAGS or back >= lsn:
        return None
    crc = crc32c(data[start : start + _FIELDS.size])
    crc = crc32c(data[body : body + length], crc)
    if _CRC.unpack_from(data, start + _FIELDS.size)[0] != crc:
        return None
    last = bool(flags & LAST_OF_APPEND)
    return FoundRecord(start, body + length, lsn, lsn - back, kind, table, last)


def view(data: memoryview, start: int, epoch: int, lsn: int) -> tuple[Record, bool, int] | None:
    """A record that is known to be durable: itself, whether it is the last of its append, its end.

    None if there is another at its place, or none. The checksum is not looked at.
    """
    body = start + HEADER_BYTES
    if body > len(data):
        return None
    magic, its_epoch, length, its_lsn, _, table, version, kind, flags, _ = _FIELDS.unpack_from(
        data, start
    )
    if magic != MAGIC or its_epoch != epoch or its_lsn != lsn or version != VERSION:
        return None
    record = Record(kind, table, (data[body : body + length],), lsn)
    return record, bool(flags & LAST_OF_APPEND), body + length


def starts(data: bytes, begin: int, epoch: int) -> Sequence[int]:
    """Every place at or after `begin` that looks like the start of a record of this epoch."""
    sign = _START.pack(MAGIC, epoch)
    places: list[int] = []
    place = data.find(sign, begin)
    while place >= 0:
        places.append(place)
        place = data.find(sign, place + 1)
    return places
