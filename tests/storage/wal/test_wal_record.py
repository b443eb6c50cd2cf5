"""The record format: round trips, and every single bit that flips."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.storage.wal import record as records
from headwater.storage.wal.record import LAST_OF_APPEND, Record

EPOCH, LSN, BACK = 7, 1_000_000_007, 3


def encoded(record: Record, flags: int = LAST_OF_APPEND) -> bytes:
    length = records.payload_bytes(record.payload)
    header = records.encode_header(record, length, LSN, EPOCH, BACK, flags)
    return header + b"".join(bytes(part) for part in record.payload)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.integers(0, 255),
    st.integers(0, 2**32 - 1),
    st.lists(st.binary(max_size=100), max_size=4),
    st.booleans(),
    st.integers(0, 50),
)
def test_round_trip(kind: int, table: int, parts: list[bytes], last: bool, start: int) -> None:
    record = Record(kind, table, tuple(parts))
    data = memoryview(bytes(start) + encoded(record, LAST_OF_APPEND if last else 0) + b"after")
    found = records.decode(data, start, EPOCH)
    assert found is not None
    assert (found.lsn, found.group_lsn, found.last_of_append) == (LSN, LSN - BACK, last)
    assert found.end == len(data) - 5
    back = found.record(data)
    assert (back.kind, back.table, back.lsn) == (kind, table, LSN)
    assert bytes(back.payload[0]) == b"".join(parts)


FIELDS = {
    "magic": (0, 4),
    "epoch": (4, 8),
    "length": (8, 12),
    "lsn": (12, 20),
    "back": (20, 24),
    "table": (24, 28),
    "version": (28, 29),
    "kind": (29, 30),
    "flags": (30, 31),
    "zero": (31, 32),
    "crc": (32, 36),
    "payload": (36, 86),
}


@pytest.mark.parametrize("name", FIELDS)
def test_every_flipped_bit_is_found(name: str) -> None:
    good = encoded(Record(5, 9, (bytes(range(50)),))) + bytes(1 << 17)
    assert records.decode(memoryview(good), 0, EPOCH) is not None
    for byte in range(*FIELDS[name]):
        for bit in range(8):
            bad = bytearray(good)
            bad[byte] ^= 1 << bit
            assert records.decode(memoryview(bad), 0, EPOCH) is None, f"byte {byte} bit {bit}"


def test_the_fields_are_all_of_the_header() -> None:
    ends = sorted(FIELDS.values())
    assert [a for a, _ in ends[1:]] == [b for _, b in ends[:-1]]
    assert FIELDS["payload"][0] == records.HEADER_BYTES


def test_another_epoch_is_not_read() -> None:
    assert records.decode(memoryview(encoded(Record(1, 1, (b"x",)))), 0, EPOCH + 1) is None


@pytest.mark.parametrize("cut", range(0, 46))
def test_cut_short(cut: int) -> None:
    whole = encoded(Record(1, 1, (b"0123456789",)))
    assert records.decode(memoryview(whole[:cut]), 0, EPOCH) is None


def test_lengths_are_counted_in_bytes() -> None:
    import array

    wide = memoryview(array.array("q", [1, 2, 3]))
    assert records.payload_bytes((wide, b"ab")) == 26
    with pytest.raises(ValueError, match="contiguous"):
        records.payload_bytes((memoryview(b"abcdef")[::2],))


def test_starts_finds_every_record_of_the_epoch() -> None:
    one = encoded(Record(1, 1, (b"x" * 10,)))
    data = b"junk" + one + b"?" + one
    assert records.starts(data, 0, EPOCH) == [4, 5 + len(one)]
    assert records.starts(data, 5, EPOCH) == [5 + len(one)]
    assert records.starts(data, 0, EPOCH + 1) == []
