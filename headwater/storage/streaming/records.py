"""What a streaming table writes to the write-ahead log.

Records are padded to multiples of eight bytes, and so is what stands before the rows: whoever maps the log
finds every buffer of an Arrow batch where a processor wants it. `PLAIN_ROWS` of earlier builds are not.

Every record begins with a *stamp*: everything that was decided when it was committed. Recovery
reads the stamp and infers nothing. Rows are sorted by T before they are written, so the late ones
are the first `late_count`.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass

import pyarrow as pa

from headwater.storage.clock import Mark
from headwater.storage.clock import Stamp as ClockStamp
from headwater.storage.delta import DataFile
from headwater.storage.wal.record import HEADER_BYTES

PLAIN_ROWS, ADVANCE, SOURCE, BARRIER, BLOCKS, ROWS = 1, 2, 3, 4, 5, 6

_STAMP = struct.Struct("<qqqqqqqiiB")
_NAMES = struct.Struct("<HH")
_NONE = -(1 << 63)
LIVE, LATE_DROPPED, REMOVED, BACK = 1, 2, 4, 8
STAMP_BYTES = _STAMP.size
LONGEST_NAME = 1000
ALIGNMENT = 8  # of numbers that Arrow computes on
NOTHING = bytes(-HEADER_BYTES % ALIGNMENT)  # the payload of a record that only marks a place


@dataclass(frozen=True)
class RecordStamp:
    """What was decided for one record, and the table's state after it."""

    base_sequence: int
    arrival_us: int
    time: ClockStamp
    late_total: int  # late rows of the table so far, those of this record included
    row_count: int
    late_dropped: bool = False
    removed: bool = False  # the source is gone
    back: bool = False  # the clock was set back

    @property
    def next_sequence(self) -> int:
        """The sequence number after this record's rows."""
        return self.base_sequence + self.row_count

    @property
    def mark(self) -> Mark:
        """How far the record's source is."""
        return Mark(self.time.seen, self.time.advanced, self.time.live)

    def pack(self) -> bytes:
        """The stamp's bytes, always of one length."""
        time = self.time
        marks = (time.clock, time.closed, time.seen, time.advanced)
        return _STAMP.pack(
            self.base_sequence,
            self.arrival_us,
            *(_NONE if mark is None else mark for mark in marks),
            self.late_total,
            time.late_count,
            self.row_count,
            LIVE * time.live
            | LATE_DROPPED * self.late_dropped
            | REMOVED * self.removed
            | BACK * self.back,
        )


def unpack_stamp(data: memoryview) -> RecordStamp:
    """The stamp at the start of a payload."""
    base, arrival, *marks, late_total, late, rows, flags = _STAMP.unpack_from(data)
    clock, closed, seen, advanced = (None if mark == _NONE else mark for mark in marks)
    time = ClockStamp(late, clock, closed, seen, advanced, bool(flags & LIVE))
    told = (bool(flags & flag) for flag in (LATE_DROPPED, REMOVED, BACK))
    return RecordStamp(base, arrival, time, late_total, rows, *told)


def names_payload(batch_id: str | None, source: str) -> bytes:
    """The batch id and the source's name as they stand after the stamp, up to where rows may begin."""
    first, second = (batch_id or "").encode(), source.encode()
    names = _NAMES.pack(len(first), len(second)) + first + second
    return names + bytes(_gap(STAMP_BYTES + len(names)))


def _gap(offset: int) -> int:
    """How many bytes of a payload are left out after an offset, so that what follows is aligned."""
    return -(HEADER_BYTES + offset) % ALIGNMENT


@dataclass(frozen=True)
class StreamRecord:
    """A record read back; `batch` is None where it holds no rows."""

    stamp: RecordStamp
    batch_id: str | None
    source: str
    batch: pa.RecordBatch | None
    delivery: Delivery | None = None


@dataclass(frozen=True)
class Delivery:
    """A micro-batch of a source: blocks that executors wrote, and how many rows came in it."""

    number: int
    row_count: int
    files: tuple[DataFile, ...] = ()

    def pack(self) -> bytes:
        """The delivery as it stands after the names."""
        files = [[f.path, f.size, f.row_count, dict(f.statistics)] for f in self.files]
        text = json.dumps([self.number, self.row_count, files]).encode()
        return text + b" " * (-len(text) % ALIGNMENT)

    @classmethod
    def unpack(cls, data: bytes) -> Delivery:
        """The delivery that pack() wrote."""
        number, row_count, files = json.loads(data)
        return cls(number, row_count, tuple(DataFile(*file) for file in files))


def _aligned(data: memoryview) -> pa.Buffer:
    """The bytes where Arrow can compute on them; records stand at any place of the log."""
    found = pa.py_buffer(data)
    return pa.py_buffer(bytes(data)) if found.address % ALIGNMENT else found


def read_record(data: memoryview, kind: int, schema: pa.Schema) -> StreamRecord:
    """A record from its payload; rows may be a view of it."""
    stamp = unpack_stamp(data)
    first, second = _NAMES.unpack_from(data, STAMP_BYTES)
    start = STAMP_BYTES + _NAMES.size
    batch_id = bytes(data[start : start + first]).decode()
    source = bytes(data[start + first : start + first + second]).decode()
    batch = delivery = None
    end = start + first + second
    rest = data[end + _gap(end) :] if kind == ROWS else data[end:]
    if kind in (ROWS, PLAIN_ROWS):
        batch = pa.ipc.read_record_batch(_aligned(rest), schema)
    elif kind == BLOCKS:
        delivery = Delivery.unpack(bytes(rest).strip(b"\0 "))
    return StreamRecord(stamp, batch_id or None, source, batch, delivery)
