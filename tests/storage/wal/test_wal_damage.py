"""Damage that no crash leaves behind: a named error or a clean cut, never wrong records."""

from __future__ import annotations

from random import Random

import pytest

from headwater.errors import StorageError
from headwater.storage.wal import Record, WriteAheadLog, witness
from headwater.storage.wal.record import HEADER_BYTES, LAST_OF_APPEND
from headwater.storage.wal.record import encode_header as encode_record_header
from headwater.storage.wal.segment import DATA_START, Header, decode_header, encode_header
from tests.crash.power import PowerDisk
from tests.crash.wal_model import FOLDER, Content, content, open_log

SIZE = 100
STEP = SIZE + HEADER_BYTES


def filled(groups: int, appends_per_group: int = 1) -> tuple[PowerDisk, dict[int, Content]]:
    """A disk with a log of records of one size; every group synced."""
    disk = PowerDisk()
    disk.mkdir("/db")
    log = open_log(disk)
    assert list(log.recover()) == []
    expected = {}
    for number in range(groups):
        made = [
            Record(number % 256, part, (Random(number).randbytes(SIZE),))
            for part in range(appends_per_group)
        ]
        tickets = [log.append([record]) for record in made]
        expected |= {t.wait(): content(r) for t, r in zip(tickets, made, strict=True)}
    log.close()
    return disk, expected


def read(disk: PowerDisk, from_lsn: int | None = None) -> dict[int, Content]:
    log = open_log(disk)
    try:
        return {record.lsn: content(record) for record in log.recover(from_lsn)}
    finally:
        log.close()


def data_of(disk: PowerDisk, name: str) -> bytearray:
    return disk.inodes[disk.names[f"{FOLDER}/{name}"]].data


def flip(disk: PowerDisk, name: str, offset: int) -> None:
    data_of(disk, name)[offset] ^= 0x10


def refused(disk: PowerDisk, sqlstate: str = "XX001") -> StorageError:
    with pytest.raises(StorageError) as caught:
        read(disk)
    assert caught.value.sqlstate == sqlstate
    return caught.value


def test_damage_before_valid_records_names_file_and_offset() -> None:
    disk, _ = filled(10)
    flip(disk, "0000000001.wal", DATA_START + 3 * STEP + 50)
    before = disk.contents()
    error = refused(disk)
    assert f"0000000001.wal at byte {DATA_START + 3 * STEP}" in error.message
    assert "record 4 is not valid, but record 5" in (error.detail or "")
    assert disk.contents() == before


def test_damage_in_the_last_group_is_known_by_the_witness() -> None:
    disk, _ = filled(10)
    flip(disk, "0000000001.wal", DATA_START + 9 * STEP + 50)
    before = disk.contents()
    error = refused(disk)
    assert "0000000001.wal ends at record 9, but record 10 was acknowledged" in error.message
    assert f"remove {FOLDER}/{witness.NAME}" in (error.hint or "")
    assert disk.contents() == before


def test_without_a_witness_damage_in_the_last_group_is_a_torn_tail() -> None:
    disk, expected = filled(10)
    disk.unlink(f"{FOLDER}/{witness.NAME}")
    flip(disk, "0000000001.wal", DATA_START + 9 * STEP + 50)
    assert read(disk) == {lsn: c for lsn, c in expected.items() if lsn < 10}


def test_damage_in_the_last_group_of_several_cuts_the_rest_of_it() -> None:
    disk, expected = filled(3, appends_per_group=5)
    disk.unlink(f"{FOLDER}/{witness.NAME}")
    flip(disk, "0000000001.wal", DATA_START + 12 * STEP + 50)
    found = read(disk)
    assert found == {lsn: c for lsn, c in expected.items() if lsn <= 12}
    log = open_log(disk)
    list(log.recover())
    assert log.append([Record(1, 1, (bytes(SIZE),))]).wait() == 13
    log.close()
    assert list(read(disk)) == list(range(1, 14)), "what was cut must not come back"


def test_a_valid_record_with_a_wrong_lsn_does_not_count() -> None:
    disk, expected = filled(3)
    header = encode_record_header(Record(1, 1, (b"stranger",)), 8, 9, 1, 8, LAST_OF_APPEND)
    start = DATA_START + 3 * STEP
    data_of(disk, "0000000001.wal")[start : start + HEADER_BYTES + 8] = header + b"stranger"
    assert read(disk) == expected
    assert b"stranger" not in data_of(disk, "0000000001.wal")[: start + HEADER_BYTES]
    assert not any(data_of(disk, "0000000001.wal")[start : start + HEADER_BYTES])


def test_damage_in_an_earlier_segment() -> None:
    disk, _ = filled(100)
    assert len(disk.names) == 5, "four segments and the witness"
    flip(disk, "0000000002.wal", DATA_START + 29 * STEP)
    error = refused(disk)
    assert f"0000000002.wal at byte {DATA_START + 29 * STEP}" in error.message
    assert "0000000003.wal goes on with" in (error.detail or "")


def test_damaged_header() -> None:
    disk, _ = filled(100)
    flip(disk, "0000000004.wal", 20)
    assert "0000000004.wal at byte 0" in refused(disk).message


def test_missing_segment_in_the_middle_is_named() -> None:
    disk, expected = filled(100)
    disk.unlink(f"{FOLDER}/0000000003.wal")
    assert "0000000003.wal is missing" in refused(disk).message
    last = min(read(disk, 95))
    assert last == 95, "segments below the wanted record do not matter"
    assert expected


def test_a_segment_under_a_wrong_name() -> None:
    disk, _ = filled(100)
    disk.rename(f"{FOLDER}/0000000004.wal", f"{FOLDER}/0000000005.wal")
    assert "0000000005.wal at byte 0" in refused(disk).message


def test_truncated_segment() -> None:
    disk, _ = filled(100)
    del data_of(disk, "0000000004.wal")[5000:]
    assert "0000000004.wal at byte 5000" in refused(disk).message


def test_a_newer_format_is_refused() -> None:
    disk, _ = filled(1)
    header = bytearray(data_of(disk, "0000000001.wal")[:36])
    header[8] = 2
    from crc32c import crc32c

    header[32:36] = crc32c(bytes(header[:32])).to_bytes(4, "little")
    data_of(disk, "0000000001.wal")[:36] = header
    assert "format 2" in refused(disk, "0A000").message


@pytest.mark.parametrize("from_lsn", [12, 1000])
def test_a_log_that_ends_too_early(from_lsn: int) -> None:
    disk, _ = filled(10)
    with pytest.raises(StorageError, match="ends at record 10"):
        read(disk, from_lsn)


def test_a_log_that_begins_too_late() -> None:
    disk, _ = filled(100)
    for name in ("0000000001.wal", "0000000002.wal"):
        disk.unlink(f"{FOLDER}/{name}")
    with pytest.raises(StorageError, match="begins at record"):
        read(disk, 2)


def test_an_empty_folder_when_records_are_expected() -> None:
    disk = PowerDisk()
    with pytest.raises(StorageError, match="ends at record 0, but record 5"):
        list(open_log(disk).recover(5))
    log = open_log(disk, first_lsn=5)
    assert list(log.recover(5)) == []
    assert log.append([Record(1, 1, (b"x",))]).wait() == 5
    log.close()


def test_random_damage_is_never_read_as_records() -> None:
    random = Random(20)
    outcomes = {"error": 0, "same": 0, "unclear": 0}
    pristine, expected = filled(90, appends_per_group=1)
    images = pristine.contents()
    for _ in range(400):
        disk = PowerDisk()
        disk.mkdir("/db")
        disk.mkdir(FOLDER)
        for path, data in images.items():
            disk.pwritev(disk.open(path, create=True), [data], 0)
        damage_once(disk, random)
        try:
            found = read(disk)
        except StorageError as error:
            named = error.sqlstate in ("XX001", "0A000") and ".wal" in error.message
            outcomes["error" if named else "unclear"] += 1
            continue
        assert found == expected
        outcomes["same"] += 1
    assert outcomes.pop("unclear") == 0
    assert min(outcomes.values()) > 0, outcomes


def damage_once(disk: PowerDisk, random: Random) -> None:
    """Flip a bit, zero a sector, or cut a file short."""
    path = random.choice(sorted(path for path in disk.names if path.endswith(".wal")))
    data = disk.inodes[disk.names[path]].data
    used = max(len(bytes(data).rstrip(b"\0")), 100)
    what = random.randrange(4)
    if what < 2:
        place = random.choice((random.randrange(40), random.randrange(4096, 8192)))
        data[place] ^= 1 << random.randrange(8)
    elif what == 2:
        start = random.randrange(4096, used) // 512 * 512
        data[start : start + 512] = bytes(512)
    else:
        del data[random.randrange(len(data)) :]


def test_segment_header_bits() -> None:
    good = encode_header(Header(7, 1234, 16 << 20))
    assert decode_header(good, "x") == Header(7, 1234, 16 << 20)
    for byte in range(len(good)):
        for bit in range(8):
            bad = bytearray(good)
            bad[byte] ^= 1 << bit
            with pytest.raises(StorageError):
                decode_header(bytes(bad), "x")


def test_append_before_recovery_is_a_mistake() -> None:
    log = WriteAheadLog(FOLDER, PowerDisk())
    with pytest.raises(RuntimeError, match="recover"):
        log.append([Record(1, 1, (b"x",))])


@pytest.mark.parametrize("how", ["older", "missing", "shorter"])
def test_a_newest_segment_that_lost_records_is_noticed(how: str) -> None:
    """An older copy, a deleted file and one cut at a record look like a log that never had them."""
    disk, _ = filled(20)
    older = bytes(data_of(disk, "0000000001.wal"))
    disk, _ = filled(100)
    newest = max(name for name in disk.names if name.endswith(".wal"))
    if how == "missing":
        disk.unlink(newest)
    elif how == "shorter":
        data_of(disk, newest.rpartition("/")[2])[DATA_START + STEP :] = bytes(100)
    else:
        disk, _ = filled(25)
        data_of(disk, "0000000001.wal")[:] = older
    before = disk.contents()
    error = refused(disk)
    assert "acknowledged" in error.message or "ends here" in (error.detail or "")
    assert disk.contents() == before


@pytest.mark.parametrize("how", ["damaged", "older", "missing", "cut"])
def test_a_witness_that_says_nothing_takes_nothing_away(how: str) -> None:
    disk, expected = filled(40)
    data = data_of(disk, witness.NAME)
    if how == "damaged":
        data[6] ^= 1
    elif how == "older":
        data[:] = witness.encoded(3)
    elif how == "cut":
        del data[5:]
    else:
        disk.unlink(f"{FOLDER}/{witness.NAME}")
    assert read(disk) == expected
