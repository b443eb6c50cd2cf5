"""Following a log that is being written: every append whole and once, over segments that come and go."""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path

import pytest

from headwater.errors import StorageError
from headwater.storage.wal import LogFollower, Record, WriteAheadLog
from tests.harness.patience import PATIENCE_S

KIB = 1 << 10
Appends = list[list[tuple[int, int, bytes]]]


def opened(folder: Path, **options: object) -> WriteAheadLog:
    log = WriteAheadLog(str(folder), segment_bytes=16 * KIB, **options)  # type: ignore[arg-type]
    list(log.recover())
    log.keep_written()
    return log


def random_appends(count: int, seed: int) -> list[list[Record]]:
    choose = random.Random(seed)
    return [
        [
            Record(
                choose.randint(1, 3),
                choose.randint(1, 9),
                (choose.randbytes(choose.randint(0, 900)),),
            )
            for _ in range(choose.randint(1, 3))
        ]
        for _ in range(count)
    ]


def read(follower: LogFollower, lsn: int) -> Appends:
    return [
        [(record.kind, record.table, bytes(record.payload[0])) for record in append]
        for append in follower.read_to(lsn)
    ]


def told(appends: list[list[Record]]) -> Appends:
    return [[(r.kind, r.table, bytes(r.payload[0])) for r in append] for append in appends]


def test_what_is_written_is_read_while_it_is_written(tmp_path: Path) -> None:
    """Several threads write, segments are freed as far as the follower has said; all appends are whole."""
    log, found = opened(tmp_path), Appends()
    reached: list[int] = [0]
    log.on_group = lambda lsn: reached.append(lsn)
    parts = [random_appends(150, seed) for seed in range(3)]
    writers = [
        threading.Thread(target=lambda part=part: [log.append(a).wait() for a in part])
        for part in parts
    ]
    follower = LogFollower(str(tmp_path), 0)
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers) or follower.lsn < log.next_lsn - 1:
        found += read(follower, reached[-1])
        log.free(follower.needs_from - 1)
    for writer in writers:
        writer.join(PATIENCE_S)
    assert log.state().segments < 4
    assert log.state().first_lsn > 1  # the test has freed something
    log.close()
    assert sorted(map(repr, found)) == sorted(map(repr, told([a for part in parts for a in part])))
    for part in parts:
        mine = told(part)
        assert [append for append in found if append in mine] == mine  # in the order of its writer


def test_a_follower_joins_anywhere(tmp_path: Path) -> None:
    appends = random_appends(60, 5)
    log = opened(tmp_path, threads=False)
    ends = []
    for append in appends:
        log.append(append).wait()
        ends.append(log.next_lsn - 1)
    assert log.state().segments > 2
    for place, lsn in enumerate(ends):
        follower = LogFollower(str(tmp_path), lsn)
        assert read(follower, ends[-1]) == told(appends[place + 1 :])
        assert follower.lsn == ends[-1]
        assert read(follower, ends[-1]) == []
    log.close()


def test_it_reads_no_further_than_it_may(tmp_path: Path) -> None:
    """Records stand in the file before they are durable."""
    log = opened(tmp_path, threads=False)
    for append in [
        [Record(1, 1, (b"first",))],
        [Record(1, 1, (b"second",)), Record(1, 2, (b"third",))],
    ]:
        log.append(append).wait()
    follower = LogFollower(str(tmp_path), 0)
    assert read(follower, 1) == [[(1, 1, b"first")]]
    assert follower.lsn == 1
    assert read(follower, 3) == [[(1, 1, b"second"), (1, 2, b"third")]]
    log.close()


def test_a_mapped_segment_stays_readable_when_it_is_freed(tmp_path: Path) -> None:
    """It is unlinked, and never used again: payloads that were read keep their bytes."""
    appends = random_appends(60, 6)
    log = opened(tmp_path, threads=False)
    log.append(appends[0]).wait()
    follower = LogFollower(str(tmp_path), 0)
    (kept,) = follower.read_to(len(appends[0]))
    before = set(os.listdir(tmp_path))
    for append in appends[1:]:
        log.append(append).wait()
        log.free(log.next_lsn - 1)
    assert not before & {name for name in os.listdir(tmp_path) if name.endswith(".wal")}
    assert told([kept]) == told(appends[:1])
    log.close()


def test_who_is_too_late_is_told(tmp_path: Path) -> None:
    """Records that were freed are not passed over in silence."""
    log = opened(tmp_path, threads=False)
    follower = LogFollower(str(tmp_path), 0)
    assert follower.needs_from == 1
    for append in random_appends(60, 7):
        log.append(append).wait()
    assert log.free(log.next_lsn - 1) > 0
    with pytest.raises(StorageError, match="record 1 of the log"):
        read(follower, log.next_lsn - 1)
    log.close()


def test_what_it_says_it_needs_is_enough(tmp_path: Path) -> None:
    """Everything before `needs_from` is freed after every step: the follower never misses a record."""
    log, found = opened(tmp_path, threads=False), Appends()
    appends, choose = random_appends(200, 8), random.Random(8)
    follower, written = LogFollower(str(tmp_path), 0), 0
    while written < len(appends):
        for append in appends[written : written + choose.randint(1, 40)]:
            log.append(append).wait()
            written += 1
        log.free(follower.needs_from - 1)
        found += read(follower, log.next_lsn - 1)
    assert found == told(appends)
    log.close()


def test_it_goes_on_after_the_log_was_opened_again(tmp_path: Path) -> None:
    """A follower that lives longer than the writer finds the next segment by its first record."""
    appends = random_appends(30, 9)
    log = opened(tmp_path, threads=False)
    for append in appends[:10]:
        log.append(append).wait()
    follower = LogFollower(str(tmp_path), 0)
    assert read(follower, log.next_lsn - 1) == told(appends[:10])
    log.close()
    log = opened(tmp_path, threads=False)
    for append in appends[10:]:
        log.append(append).wait()
    assert read(follower, log.next_lsn - 1) == told(appends[10:])
    log.close()
