"""Simulated power cuts and kills: random ones, and at every single step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import pytest

from headwater.storage.disk import Buffer, File
from headwater.storage.wal import WriteAheadLog
from headwater.storage.wal.segment import DATA_START
from tests.crash.power import PowerDisk, SimulatedCrash, StopAt, WrappedDisk
from tests.crash.wal_model import Model, open_log, until_crash

CRASHES_PER_CHAIN = 4


def crash(disk: PowerDisk, random: Random) -> None:
    """Lose power, or only the process."""
    if random.random() < 0.8:
        disk.power_cut(random)
    else:
        disk.kill()


def chain(seed: int) -> None:
    """Work, crash, recover (and crash in that), and again; then open twice and compare."""
    random = Random(seed)
    disk, model = PowerDisk(), Model(random)
    disk.mkdir("/db")
    disk.fsync_folder("/")
    for _ in range(CRASHES_PER_CHAIN):
        stop = StopAt(disk, random.randrange(1, 120), half=random.random() < 0.5)
        try:
            log = model.recover(stop)
        except SimulatedCrash:
            crash(disk, random)
            continue
        until_crash(model, log, random.randrange(2, 25))
        crash(disk, random)
    model.recover(disk).close()
    before = disk.contents()
    model.recover(disk).close()
    assert disk.contents() == before
    assert disk.open_files == 0


def test_random_power_cuts() -> None:
    for seed in range(200):
        chain(seed)


@pytest.mark.large
@pytest.mark.timeout(7200)
def test_random_power_cuts_many() -> None:
    for seed in range(1_000, 101_000):
        chain(seed)


def prepared(seed: int) -> tuple[PowerDisk, Model]:
    """A disk with a log that has rotated, freed and recycled."""
    disk, model = PowerDisk(), Model(Random(seed))
    disk.mkdir("/db")
    disk.fsync_folder("/")
    log = model.recover(disk)
    model.work(log, 30)
    log.close()
    return disk, model


def scenario(model: Model, disk: StopAt) -> None:
    """Recover, append alone and in groups, rotate, an own segment, free, spare, recycle."""
    log = model.recover(disk)
    model.append(log, 1, [20])
    model.append(log, 6, [20])
    model.append(log, 3, [30, 900, 40])
    model.append(log, 5, [700])
    log.prepare_spare()
    model.append(log, 2, [9000])
    model.freed_lsn = max(model.acknowledged) - 3
    log.free(model.freed_lsn)
    model.append(log, 12, [600])
    model.freed_lsn = max(model.acknowledged)
    log.free(model.freed_lsn)
    model.append(log, 1, [20])
    log.close()


@pytest.mark.parametrize("seed", [None, 3])
def test_every_step_of_a_scenario(seed: int | None) -> None:
    cuts = 4
    at = 0
    while True:
        at += 1
        for cut in range(cuts):
            disk, model = prepared(seed) if seed is not None else (PowerDisk(), Model(Random(1)))
            if seed is None:
                disk.mkdir("/db")
                disk.fsync_folder("/")
            stop = StopAt(disk, at, half=cut == 1)
            finished = True
            try:
                scenario(model, stop)
            except SimulatedCrash:
                finished = False
            if cut < 2:
                disk.kill()
            else:
                disk.power_cut(Random(at * cuts + cut))
            again = recover_twice(disk, model)
            model.append(again, 3)
            again.close()
            model.recover(disk).close()
            assert disk.open_files == 0
            if finished:
                assert at > 40
                return


def recover_twice(disk: PowerDisk, model: Model) -> WriteAheadLog:
    model.recover(disk).close()
    before = disk.contents()
    log = model.recover(disk)
    assert disk.contents() == before
    return log


class CrashBeforeSync(WrappedDisk):
    """The next records are written, but the process dies before it syncs them."""

    written = False

    def pwritev(self, file: File, buffers: Sequence[Buffer], offset: int) -> int:
        self.written = offset >= DATA_START
        return super().pwritev(file, buffers, offset)

    def fdatasync(self, file: File) -> None:
        if self.written:
            raise SimulatedCrash
        super().fdatasync(file)


def torn_group(seed: int) -> tuple[PowerDisk, Model]:
    """A disk on which a group of many records was written, but not synced."""
    disk, model = prepared(seed)
    log = model.recover(disk)
    log._writer._disk = log._pool._disk = CrashBeforeSync(disk)
    with pytest.raises(SimulatedCrash):
        model.append(log, 12, [20] * (3 if seed % 4 == 3 else 1))
    return disk, model


@pytest.mark.parametrize("seed", range(16))
def test_every_step_of_a_recovery_with_a_torn_tail(seed: int) -> None:
    at, finished = 0, False
    while not finished:
        at += 1
        disk, model = torn_group(seed)
        crash(disk, Random(seed))
        try:
            model.recover(StopAt(disk, at)).close()
            finished = True
        except SimulatedCrash:
            crash(disk, Random(at))
        recover_twice(disk, model).close()
        disk.power_cut(Random(at))  # what recovery has shown stays
        model.recover(disk).close()
    for _ in range(12):  # new records fill the hole; behind it lie old ones of the same length
        log = model.recover(disk)
        model.append(log, 1, [20])
        log.close()
    model.recover(disk).close()


class RotatingInFree(WrappedDisk):
    """While `free` syncs the folder the writer rotates, and power fails as it syncs too."""

    during_sync: Callable[[], None] | None = None

    def fsync_folder(self, path: str) -> None:
        during, self.during_sync = self.during_sync, None
        if during is not None:
            self.crash_next = True
            during()
        elif getattr(self, "crash_next", False):
            raise SimulatedCrash
        super().fsync_folder(path)


@pytest.mark.parametrize("seed", range(10))
def test_a_freed_file_is_not_used_again_before_its_old_name_is_gone(seed: int) -> None:
    disk, model = PowerDisk(), Model(Random(seed))
    disk.mkdir("/db")
    disk.fsync_folder("/")
    rotating = RotatingInFree(disk)
    log = model.recover(rotating)
    model.append(log, 20, [600])
    rotating.during_sync = lambda: model.append(log, 12, [600])
    model.freed_lsn = 10
    with pytest.raises(SimulatedCrash):
        log.free(model.freed_lsn)
    disk.power_cut(Random(seed))
    model.recover(disk).close()


def test_recovery_from_a_later_lsn() -> None:
    disk, model = prepared(5)
    last = max(model.acknowledged)
    log = open_log(disk)
    found = [record.lsn for record in log.recover(last - 2)]
    log.close()
    assert found == [last - 2, last - 1, last]
    log = open_log(disk)
    assert list(log.recover(last + 1)) == []
    assert log.next_lsn == last + 1
    log.close()
