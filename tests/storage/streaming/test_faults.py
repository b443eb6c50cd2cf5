"""Streaming tables on a bad disk: a clear error or the documented recovery, no acknowledged row lost."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import headwater
from headwater.errors import Error, StorageError
from headwater.expression.predicate import Comparison
from headwater.storage import delta, disk
from headwater.storage import folder as folder_module
from headwater.storage.disk import Disk
from headwater.storage.streaming.read import Wanted, select
from headwater.storage.wal.pool import SegmentPool
from headwater.storage.wal.recovery import SegmentReader
from tests.crash.stream_store import SCHEMA, Opened, ids, rows_of, scanned


def refusal(call: Callable[[], object]) -> Error | None:
    """What a call was refused with; None if it went well."""
    try:
        call()
    except Error as error:
        return error
    return None


def failing(number: int, times: int = 1) -> Any:
    """A system call that fails so many times."""
    left = [times]

    def call(*_arguments: object) -> None:
        if left[0]:
            left[0] -= 1
            raise OSError(number, os.strerror(number))

    return call


# Sync errors


def test_a_sync_error_of_the_log_stops_inserts_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Opened(tmp_path / "data")
    table = found.create("a")
    table.insert(rows_of([1, 2]), "first")
    with monkeypatch.context() as patch:
        patch.setattr(disk, "_data_sync", failing(errno.EIO))
        with pytest.raises(StorageError) as caught:
            table.insert(rows_of([3], 2), "second")
    assert caught.value.sqlstate == "58030"
    with pytest.raises(StorageError) as caught:  # the disk is well again; the log stays failed
        table.insert(rows_of([3], 2), "second")
    assert caught.value.sqlstate == "58030"
    assert "close and open" in (caught.value.hint or "")
    assert ids(table) == [0, 1]
    found.close()
    with Opened(tmp_path / "data") as found:
        table = found.table("a")
        assert ids(table) in ([0, 1], [0, 1, 2])  # the second may or may not be stored
        table.insert(rows_of([3], 2), "second")
        assert ids(table) == [0, 1, 2]


@pytest.mark.parametrize("syncs", range(8))
def test_a_sync_error_while_sealing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, syncs: int
) -> None:
    """The nth sync of a seal fails: block, its folders, the commit, the log's folder, batch ids."""
    found = Opened(tmp_path / "data")
    table = found.create("a")
    table.insert(rows_of([1, 2]), "first")
    real = os.fsync
    calls = [0]

    def fsync(handle: int) -> None:
        calls[0] += 1
        if calls[0] == syncs + 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(handle)

    with monkeypatch.context() as patch:
        patch.setattr(folder_module.os, "fsync", fsync)
        refused = refusal(lambda: found.store.seal(table))
    assert (refused is not None) == (calls[0] > syncs)
    assert refused is None or refused.sqlstate == "58030"
    assert ids(table) == [0, 1]
    table.insert(rows_of([3], 2))
    assert ids(table) == [0, 1, 2]
    refused = refusal(lambda: found.store.seal(table))
    assert refused is None or "close and open" in (refused.hint or "")
    assert ids(table) == [0, 1, 2]
    found.drop()
    for _ in range(2):
        with Opened(tmp_path / "data") as found:
            assert ids(found.table("a")) == [0, 1, 2], "doubled or lost"
            assert found.table("a").insert(rows_of([9], 9), "first") == 0


# Full disk


def test_a_full_disk_refuses_an_insert_and_the_retry_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clock, late rows, sequence and batch ids are as if the refused insert had never been."""
    found = Opened(tmp_path / "data")
    table = found.create("a", watermark_ticks=5)
    table.insert(rows_of([10, 20]), "first")
    before = table.state
    real = Disk.pwritev

    def full(self: Disk, file: Any, buffers: Any, offset: int) -> int:
        raise disk.storage_error("write", file.path, OSError(errno.ENOSPC, "full"))

    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(Disk, "pwritev", full)
            with pytest.raises(StorageError) as caught:
                table.insert(rows_of([1, 100, 200], 2), "second")
            assert caught.value.sqlstate == "53100"
    assert Disk.pwritev is real
    assert ids(table) == [0, 1]
    assert table.state == before
    assert table.insert(rows_of([16], 7)) == 1  # in time: 200 has never been seen
    assert table.state.late_total == 0
    assert table.insert(rows_of([1, 100, 200], 2), "second") == 3
    assert table.insert(rows_of([1, 100, 200], 2), "second") == 0
    assert table.state.late_total == 1
    expected = [2, 0, 7, 1, 3, 4]
    assert ids(table) == expected
    found.drop()
    with Opened(tmp_path / "data") as found:
        assert ids(found.table("a")) == expected
        assert found.table("a").state.time.clock == 195 - 95  # 100: 200 still waits


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MB; only root can mount one."""
    where = tmp_path / "small"
    where.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(where)], capture_output=True
    )
    if made.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {made.stderr.decode().strip()}")
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", str(where)], check=True)


def test_a_really_full_disk(small_disk: Path) -> None:
    """Inserts are refused with 53100, reads go on; with space again, everything goes on."""
    filler = small_disk / "filler"
    filler.write_bytes(bytes(12 << 20))
    found = Opened(small_disk / "data", insert_timeout_s=5, unsealed_mb=64)
    schema = pa.schema([*SCHEMA, ("filler", pa.string())])
    table = found.create("a", schema)
    random = Random(1)

    def batch(number: int) -> list[dict[str, Any]]:
        text = random.randbytes(50_000).hex()
        return [{"t": number, "id": number, "filler": text}]

    def insert() -> None:
        nonlocal stored
        table.insert(batch(stored), f"batch {stored}")
        stored += 1

    stored = 0
    while (refused := refusal(insert)) is None:
        pass
    assert refused.sqlstate == "53100"
    assert stored > 10
    for _ in range(3):  # a seal finds no room either, and leaves no part of a file behind
        refused = refusal(lambda: found.store.seal(table))
        assert refused is None or refused.sqlstate == "53100"
        assert ids(table) == list(range(stored))
    filler.unlink()
    found.store.seal_all()
    for _ in range(20):
        assert table.insert(batch(stored), f"batch {stored}") == 1
        stored += 1
    assert stored > 11
    used = {str(table.folder / b.path) for b in table.blocks}
    assert {str(p) for p in (table.folder / "blocks").rglob("*.parquet")} == used
    found.drop()
    with Opened(small_disk / "data") as found:
        assert ids(found.table("a")) == list(range(stored))


# Damage


def test_a_torn_tail_of_the_log_is_cut(tmp_path: Path) -> None:
    found = Opened(tmp_path / "data")
    table = found.create("a")
    for number in range(5):
        table.insert(rows_of([number], number))
    found.drop()
    segment = max((tmp_path / "data" / "wal").glob("0*.wal"))
    data = bytearray(segment.read_bytes())
    reader = SegmentReader(SegmentPool(str(segment.parent), Disk(), 1, 1, 1).segment(1), data)
    record = data[4096:4196]
    assert len(list(reader)) == 5
    data[reader.offset : reader.offset + 100] = record  # a record that is not the next one
    data[reader.offset + 100 : reader.offset + 140] = b"HW" * 20
    segment.write_bytes(data)
    for _ in range(2):
        found = Opened(tmp_path / "data")
        assert ids(found.table("a")) == list(range(5))
        found.drop()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sealed blocks with an index and a sidecar, a checkpoint, and rows in the log."""
    where = tmp_path_factory.mktemp("streams") / "whole"
    found = Opened(where, recent_mb=0)
    table = found.create("a")
    found.create_index("i", table, "id", "btree")
    for number in range(11):
        table.insert(rows_of(range(number * 50, number * 50 + 50), number * 50), f"b{number}")
        found.store.seal(table)
    table.build_indexes(100)
    for number in range(550, 560):
        table.insert(rows_of([number], number))
    found.drop()
    return where


KINDS = {
    "wal": "wal/0*.wal",
    "block": "tables/a-1/blocks/*/*.parquet",
    "commit": "tables/a-1/_delta_log/*.json",
    "checkpoint": "tables/a-1/_delta_log/*checkpoint*",
    "index": "tables/a-1/index-*/*",
    "sidecar": "tables/a-1/sidecar/*.arrow",
    "catalog": "catalog/*.wal",
    "batch ids": "batches/*.wal",
}


def answers(where: Path) -> tuple[list[int], list[int]]:
    """All rows, and those that an index helps to find."""
    found = Opened(where, recent_mb=0)
    try:
        table = found.table("a")
        with table.reading() as snapshot:
            wanted = Wanted(("id",), Comparison("id", "=", 217, pa.int64()))
            one = select(snapshot, wanted).rows.column("id").to_pylist()
        return ids(table), one
    finally:
        found.drop()


def flips(whole: Path, tmp_path: Path, kind: str, count: int, seed: int) -> int:
    """Flips single bits; how many were noticed."""
    random = Random(seed)
    noticed = 0
    for number in range(count):
        where = tmp_path / f"flip{number}"
        shutil.copytree(whole, where)
        path = random.choice(sorted(p for p in where.glob(KINDS[kind]) if p.stat().st_size))
        data = bytearray(path.read_bytes())
        used = len(bytes(data).rstrip(b"\0"))
        place = random.randrange(used)
        data[place] ^= 1 << random.randrange(8)
        path.write_bytes(data)
        found: list[tuple[list[int], list[int]]] = []
        error = refusal(lambda: found.append(answers(where)))  # noqa: B023
        if error is not None:
            assert error.sqlstate == "XX001", f"{kind} {path} at {place}: {error}"
            assert str(where) in str(error), f"{error} names no file"
            noticed += 1
        else:
            everything, one = found[0]
            assert everything == list(range(560)), f"{path} at {place}: wrong rows"
            assert one == [217], f"{path} at {place}: wrong rows by index"
        shutil.rmtree(where)
    return noticed


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_never_gives_wrong_rows(whole: Path, tmp_path: Path, kind: str) -> None:
    flips(whole, tmp_path, kind, 4, seed=3)


@pytest.mark.large
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("kind", KINDS)
def test_flipped_bits_never_give_wrong_rows_many(whole: Path, tmp_path: Path, kind: str) -> None:
    flips(whole, tmp_path, kind, 1250, seed=4)


@pytest.mark.parametrize("kind", ["index", "sidecar"])
def test_a_damaged_derived_file_is_built_again(whole: Path, tmp_path: Path, kind: str) -> None:
    where = tmp_path / "copy"
    shutil.copytree(whole, where)
    assert answers(where) == (list(range(560)), [217])
    for path in where.glob(KINDS[kind]):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert answers(where) == (list(range(560)), [217])
    found = Opened(where, recent_mb=0)
    table = found.table("a")
    with table.reading() as snapshot:
        select(snapshot, Wanted(("id",), Comparison("id", "=", 217, pa.int64())))
    table.build_indexes(100)
    assert table.indexes.lag("i", table.blocks) == 0
    found.drop()


# Batch ids


def test_eight_threads_with_one_batch_id(tmp_path: Path) -> None:
    """One stores the rows, the others hear 0, and only when they are durable."""
    with Opened(tmp_path / "data") as found:
        table = found.create("a")
        for round_ in range(20):
            counts: list[tuple[int, bool]] = []

            def insert(number: int, into: list[tuple[int, bool]], start: threading.Barrier) -> None:
                start.wait()
                added = table.insert(rows_of([number, number], number * 2), f"id {number}")
                into.append((added, number * 2 in ids(table)))

            arguments = (round_, counts, threading.Barrier(8))
            threads = [threading.Thread(target=insert, args=arguments) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(added for added, _ in counts) == [0] * 7 + [2]
            assert all(there for _, there in counts), "acknowledged, and not there"
        assert ids(table) == list(range(40))


def test_batch_ids_survive_both_kinds_of_restart(tmp_path: Path) -> None:
    found = Opened(tmp_path / "data")
    table = found.create("a")
    table.insert(rows_of([1]), "sealed")
    found.store.seal(table)
    table.insert(rows_of([2], 1), "in the log")
    table.insert(rows_of([]), "empty")
    for end in ("drop", "close", "drop"):
        getattr(found, end)()
        found = Opened(tmp_path / "data")
        table = found.table("a")
        for name in ("sealed", "in the log", "empty"):
            assert table.insert(rows_of([7], 7), name) == 0
        assert scanned(table, ("t", "id")) == [(1, 0), (2, 1)]
    found.drop()


def test_a_close_that_fails_still_lets_the_folder_go(
    connect: Callable[..., headwater.Database], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = connect(folder)
    db.sql("CREATE STREAMING TABLE a (t BIGINT, id BIGINT) TIMESTAMP BY t")
    db.insert("a", [(1, 0)])
    with monkeypatch.context() as patch:
        patch.setattr(delta, "sync_file", failing(errno.EIO, times=9))
        with pytest.raises(StorageError):
            db.close()
    assert connect(folder).sql("SELECT id FROM a").rows() == [(0,)]
