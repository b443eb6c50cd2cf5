"""The log with its threads, on a real disk: order, hooks, bounds, back-pressure, life."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.errors import ClosedError, OverloadError, StorageError
from headwater.storage.disk import IOV_MAX, Disk, File
from headwater.storage.wal import Record, WriteAheadLog, witness
from tests.crash.power import FailingDisk
from tests.harness.patience import PATIENCE_S, until

KIB = 1 << 10


class SlowDisk(Disk):
    """Syncs wait for the gate; counts writes and syncs."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.in_sync = threading.Event()
        self.writes: list[int] = []

    def pwritev(self, file: File, buffers, offset: int) -> int:  # type: ignore[no-untyped-def]
        if file.path.endswith(witness.NAME):
            return super().pwritev(file, buffers, offset)
        self.writes.append(len(buffers))
        return super().pwritev(file, buffers, offset)

    def fdatasync(self, file: File) -> None:
        if not self.gate.is_set():
            self.in_sync.set()
        self.gate.wait()
        super().fdatasync(file)


@pytest.fixture(autouse=True)
def no_leaks() -> Iterator[None]:
    files, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    yield
    assert len(os.listdir("/proc/self/fd")) == files
    assert threading.active_count() == threads


def opened(folder: Path, disk: Disk | None = None, **options: object) -> WriteAheadLog:
    options.setdefault("segment_bytes", 64 * KIB)
    log = WriteAheadLog(str(folder / "wal"), disk, **options)  # type: ignore[arg-type]
    list(log.recover())
    return log


def row(payload: bytes = b"row") -> list[Record]:
    return [Record(1, 1, (payload,))]


def payloads(folder: Path) -> list[bytes]:
    log = WriteAheadLog(str(folder / "wal"), threads=False)
    found = [bytes(record.payload[0]) for record in log.recover()]
    log.close()
    return found


def test_many_threads_contiguous_and_in_order(tmp_path: Path) -> None:
    log = opened(tmp_path, segment_bytes=16 * KIB)
    seen: list[tuple[int, bytes]] = []
    assigned: list[int] = []

    def insert(number: int) -> None:
        for place in range(60):
            data = f"{number}:{place}:".encode() * 20
            ticket = log.append(
                [Record(1, number, (data,)), Record(2, number, (b"b", b"c"))],
                on_assigned=assigned.append,
                on_durable=lambda lsn, data=data: seen.append((lsn, data)),
            )
            lsn = ticket.wait()
            assert (lsn, data) in seen, "visible before it is acknowledged"

    threads = [threading.Thread(target=insert, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log.next_lsn == 8 * 60 * 2 + 1
    assert log.state().segments > 2
    log.close()
    lsns = [lsn for lsn, _ in seen]
    assert lsns == list(range(1, 961, 2)) == assigned
    found = payloads(tmp_path)
    assert found[::2] == [data for _, data in seen]
    assert set(found[1::2]) == {b"bc"}


def test_waiting_appends_share_one_write_and_one_sync(tmp_path: Path) -> None:
    disk = SlowDisk()
    log = opened(tmp_path, disk, spare_segments=0)
    log.append(row()).wait()
    disk.gate.clear()
    tickets = [log.append(row())]
    assert disk.in_sync.wait(PATIENCE_S)
    tickets += [log.append(row()) for _ in range(IOV_MAX)]
    groups, disk.writes = log.state().groups, []
    disk.gate.set()
    assert [ticket.wait() for ticket in tickets] == list(range(2, IOV_MAX + 3))
    assert log.state().groups == groups + 2
    assert disk.writes == [IOV_MAX, IOV_MAX], "two buffers each, so two writes, and one sync"
    log.close()


def test_hook_stamps_the_payload(tmp_path: Path) -> None:
    log = opened(tmp_path)
    stamp = bytearray(8)

    def write_stamp(lsn: int) -> None:
        stamp[:] = lsn.to_bytes(8, "big")

    log.append(row()).wait()
    log.append([Record(1, 1, (stamp, b"!"))], on_assigned=write_stamp).wait()
    log.close()
    assert payloads(tmp_path)[1] == (2).to_bytes(8, "big") + b"!"


def test_a_failing_first_hook_refuses_only_its_append(tmp_path: Path) -> None:
    log = opened(tmp_path)
    stamp = bytearray(8)

    def fail(lsn: int) -> None:
        raise ArithmeticError("no more numbers")

    def lengthen(lsn: int) -> None:
        stamp.extend(b"longer")

    for hook in (fail, lengthen):
        ticket = log.append([Record(1, 1, (stamp,))], on_assigned=hook)
        with pytest.raises((ArithmeticError, ValueError)):
            ticket.wait()
    assert log.append(row()).wait() == 1
    log.close()
    assert payloads(tmp_path) == [b"row"]


def test_a_failing_second_hook_fails_the_log(tmp_path: Path) -> None:
    log = opened(tmp_path)

    def fail(lsn: int) -> None:
        raise ArithmeticError("cannot show the row")

    with pytest.raises(StorageError, match="has failed"):
        log.append(row(), on_durable=fail).wait()
    with pytest.raises(StorageError, match="has failed"):
        log.append(row())
    log.close()


def test_back_pressure_and_its_timeout(tmp_path: Path) -> None:
    disk = SlowDisk()
    log = opened(tmp_path, disk, queue_bytes=1000, append_timeout_s=0.05)
    log.append(row()).wait()
    disk.gate.clear()
    first = log.append(row(bytes(500)))
    assert disk.in_sync.wait(PATIENCE_S)
    second = log.append(row(bytes(300)))
    assert log.state().queued_bytes <= 1000
    with pytest.raises(OverloadError) as caught:
        log.append(row(bytes(300)))
    assert caught.value.sqlstate == "53000"
    with pytest.raises(OverloadError, match="did not answer"):
        second.wait(0.01)
    disk.gate.set()
    assert (first.wait(), second.wait()) == (2, 3)
    assert log.append(row(bytes(5000))).wait() == 4, "alone, one larger than the bound goes in"
    log.close()
    assert len(payloads(tmp_path)) == 4


def test_a_blocked_append_goes_on_when_there_is_room(tmp_path: Path) -> None:
    disk = SlowDisk()
    log = opened(tmp_path, disk, queue_bytes=1000)
    log.append(row()).wait()
    disk.gate.clear()
    log.append(row(bytes(900)))
    assert disk.in_sync.wait(PATIENCE_S)
    lsns: list[int] = []
    blocked = threading.Thread(target=lambda: lsns.append(log.append(row(bytes(900))).wait()))
    blocked.start()
    until(lambda: bool(log._queue._blocked))
    disk.gate.set()
    blocked.join()
    assert lsns == [3]
    log.close()


def test_larger_than_a_segment(tmp_path: Path) -> None:
    log = opened(tmp_path)
    big = os.urandom(300 * KIB)
    log.append(row()).wait()
    log.append([Record(1, 1, (big,)), Record(1, 1, (b"with it",))]).wait()
    log.append(row()).wait()
    assert log.state().segments == 3
    log.close()
    assert payloads(tmp_path) == [b"row", big, b"with it", b"row"]


def test_bounds_of_one_append(tmp_path: Path) -> None:
    log = opened(tmp_path, append_bytes_max=1000)
    with pytest.raises(OverloadError) as caught:
        log.append(row(bytes(1000)))
    assert caught.value.sqlstate == "54000"
    for records in ([], [Record(256, 1, (b"",))], [Record(1, 1 << 32, (b"",))]):
        with pytest.raises(ValueError, match=r"at least one|out of range"):
            log.append(records)
    assert log.append([Record(255, (1 << 32) - 1, ())]).wait() == 1
    log.close()


def test_free_recycles_a_bounded_number(tmp_path: Path) -> None:
    log = opened(tmp_path, spare_segments=2, segment_bytes=16 * KIB)
    for _ in range(100):
        log.append(row(bytes(1000))).wait()
    before = log.state()
    assert before.segments >= 9
    assert log.free(0) == 0
    freed = log.free(50)
    assert 0 < freed < before.segments - 1
    state = log.state()
    assert state.first_lsn <= 51
    assert log.free(10_000) == state.segments - 1
    assert log.state().spare_segments == 2
    assert len(list((tmp_path / "wal").glob("*.wal"))) == 3
    for _ in range(100):
        log.append(row(bytes(1000))).wait()
        log.free(log.next_lsn - 1)
    assert len(list((tmp_path / "wal").glob("*.wal"))) <= 4
    log.close()
    assert len(payloads(tmp_path)) < 20


def test_free_keeps_every_record_that_is_needed(tmp_path: Path) -> None:
    log = opened(tmp_path, segment_bytes=16 * KIB)
    for _ in range(60):
        log.append(row(bytes(1000))).wait()
    first_lsns = [segment.header.first_lsn for segment in log._segments]
    assert len(first_lsns) > 4
    for first_lsn in first_lsns[1:]:
        assert log.free(first_lsn - 2) == 0
        assert log.free(first_lsn - 1) == 1
        assert log.state().first_lsn == first_lsn
    assert log.free(log.next_lsn - 1) == 0, "the active segment stays"
    log.close()


def test_spares_are_made_beside_the_writer(tmp_path: Path) -> None:
    log = opened(tmp_path, segment_bytes=64 * KIB)
    log.append(row(bytes(40 * KIB))).wait()
    until(lambda: log.state().spare_segments == 1)
    log.append(row(bytes(40 * KIB))).wait()
    assert log.state().segments == 2
    log.close()
    assert len(payloads(tmp_path)) == 2


def test_a_spare_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    disk = FailingDisk(Disk(), 3, errno.ENOSPC, calls=["open"], forever=True)
    log = opened(tmp_path, disk, segment_bytes=64 * KIB)
    log.append(row(bytes(40 * KIB))).wait()
    until(lambda: log.state().spare_failure is not None)
    assert "disk is full" in (log.state().spare_failure or "")
    assert log.append(row()).wait() == 2
    log.close()


def test_close_commits_what_waits(tmp_path: Path) -> None:
    log = opened(tmp_path)
    tickets = [log.append(row(str(n).encode())) for n in range(50)]
    log.close()
    log.close()
    assert [ticket.wait() for ticket in tickets] == list(range(1, 51))
    with pytest.raises(ClosedError):
        log.append(row())
    assert payloads(tmp_path) == [str(n).encode() for n in range(50)]


def test_an_interrupted_wait_does_not_harm_the_log(tmp_path: Path) -> None:
    disk = SlowDisk()
    log = opened(tmp_path, disk)
    log.append(row()).wait()
    disk.gate.clear()
    ticket = log.append(row(b"interrupted"))
    assert disk.in_sync.wait(PATIENCE_S)
    with pytest.raises(KeyboardInterrupt), interrupting():
        ticket.wait()
    disk.gate.set()
    assert ticket.wait() == 2
    assert log.append(row()).wait() == 3
    log.close()


@contextlib.contextmanager
def interrupting() -> Iterator[None]:
    """Interrupts this thread once. One that comes just before the wait does not end it: another follows."""
    seen: list[int] = []

    def interrupt(number: int, _frame: object) -> None:
        seen.append(number)
        if len(seen) == 1:
            raise KeyboardInterrupt

    def send() -> None:
        until(lambda: bool(seen or signal.pthread_kill(main, signal.SIGUSR1)))

    main, before = threading.get_ident(), signal.signal(signal.SIGUSR1, interrupt)
    sender = threading.Thread(target=send)
    try:
        sender.start()
        yield
    finally:
        sender.join()
        signal.signal(signal.SIGUSR1, before)


def test_a_new_log_starts_small(tmp_path: Path) -> None:
    log = WriteAheadLog(str(tmp_path / "wal"))
    list(log.recover())
    log.append(row()).wait()
    log.close()
    assert sum(p.stat().st_size for p in (tmp_path / "wal").glob("*.wal")) == 1 << 20
