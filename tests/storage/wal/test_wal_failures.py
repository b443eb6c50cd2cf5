"""Disks that fail: every call once and for ever, full disks, short writes."""

from __future__ import annotations

import errno
from random import Random

import pytest

from headwater.errors import Error, StorageError
from headwater.storage.wal import Record
from tests.crash.power import FailingDisk, PowerDisk
from tests.crash.wal_model import Model, open_log, try_spare


def fresh_disk() -> PowerDisk:
    disk = PowerDisk()
    disk.mkdir("/db")
    disk.fsync_folder("/")
    return disk


def work(model: Model, failing: FailingDisk) -> bool:
    """A run that goes on over errors; whether the log opened."""
    try:
        log = model.recover(failing)
    except Error:
        return False
    for round_ in range(4):
        model.append(log, 3, [20])
        model.append(log, 2, [600, 700])
        model.append(log, 1, [9000])
        try_spare(log)
        if round_ % 2 and model.acknowledged:
            model.freed_lsn = max(model.acknowledged)
            try:
                log.free(model.freed_lsn)
            except Error:
                pass
    log.close()
    return True


@pytest.mark.parametrize("forever", [False, True])
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("short", [False, True])
def test_every_call_fails(number: int, forever: bool, short: bool) -> None:
    at, failed = 0, True
    while failed:
        at += 1
        disk, model = fresh_disk(), Model(Random(at))
        failing = FailingDisk(disk, at, number, forever=forever, short=short)
        work(model, failing)
        failed = failing.failed > 0
        assert disk.open_files == 0
        if at % 3:
            disk.power_cut(Random(at))
        log = model.recover(disk)
        model.append(log, 2)
        log.close()
        disk.power_cut(Random(at))
        model.recover(disk).close()
    assert at > 20


def test_failed_sync_fails_the_log_for_good() -> None:
    disk = fresh_disk()
    failing = FailingDisk(disk, 2, calls=["fdatasync"])
    log = open_log(failing)
    list(log.recover())
    first, second = (log.append([Record(1, 1, (b"x" * 20,))]) for _ in range(2))
    with pytest.raises(StorageError, match="has failed") as caught:
        first.wait()
    assert caught.value.sqlstate == "58030"
    with pytest.raises(StorageError):
        second.wait()
    syncs = failing.steps.count("fdatasync")
    for _ in range(3):
        with pytest.raises(StorageError, match="has failed"):
            log.append([Record(1, 1, (b"y",))])
    assert failing.steps.count("fdatasync") == syncs, "a failed sync is never tried again"
    assert "0000000001.wal" in (log.state().failure or "")
    log.close()


def test_group_seen_after_a_failed_sync_is_made_durable_by_recovery() -> None:
    """After a failed sync the kernel takes the pages for clean: a later sync does nothing."""
    disk = fresh_disk()
    log = open_log(FailingDisk(disk, 3, calls=["fdatasync"]))
    list(log.recover())
    log.append([Record(1, 1, (b"first",))]).wait()
    with pytest.raises(StorageError):
        log.append([Record(1, 1, (b"second",))]).wait()
    log.close()
    disk.kill()
    log = open_log(disk)
    seen = [bytes(record.payload[0]) for record in log.recover()]
    log.append([Record(1, 1, (b"third",))]).wait()
    disk.power_cut(Random(1))
    after = [bytes(record.payload[0]) for record in open_log(disk).recover()]
    assert after == [*seen, b"third"]


def test_full_disk_refuses_and_goes_on_when_space_returns() -> None:
    disk = fresh_disk()
    model = Model(Random(3))
    log = model.recover(disk)
    disk.capacity = 3 * 8192 + 100
    for _ in range(40):
        model.append(log, 2, [600])
    assert 0 < model.refused < 80
    assert log.failure is None
    with pytest.raises(StorageError) as caught:
        log.append([Record(1, 1, (bytes(7000),))]).wait()
    assert caught.value.sqlstate == "53100"
    assert caught.value.hint
    refused, disk.capacity = model.refused, None
    model.append(log, 5, [600])
    assert model.refused == refused
    log.close()
    disk.power_cut(Random(1))
    model.recover(disk).close()


@pytest.mark.parametrize("at", range(1, 8))
def test_a_partly_written_group_is_erased_before_it_is_refused(at: int) -> None:
    disk, model = fresh_disk(), Model(Random(at))
    log = model.recover(disk)
    model.append(log, 1, [20])
    log._writer._disk = FailingDisk(disk, at, errno.ENOSPC, calls=["pwritev"], short=True)
    model.append(log, 10, [20])  # short writes leave whole records behind
    assert model.refused == 10
    disk.kill()
    log = model.recover(disk)  # a refused append would be a stranger here
    model.append(log, 1, [20])
    log.close()
    model.recover(disk).close()


def test_failed_erasing_fails_the_log() -> None:
    disk, model = fresh_disk(), Model(Random(1))
    log = model.recover(disk)
    model.append(log, 1, [20])
    failing = FailingDisk(disk, 3, errno.ENOSPC, calls=["pwritev"], short=True, forever=True)
    log._writer._disk = failing
    model.append(log, 4, [20])
    assert log.failure is not None
    log.close()
    model.recover(disk).close()
