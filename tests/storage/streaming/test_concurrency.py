"""Many writers, readers and upkeep at once: batches whole, in commit order, never back in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.storage.streaming.read import StreamSnapshot, Wanted, select
from tests.crash.stream_store import Opened, scanned
from tests.harness.patience import until

SCHEMA = pa.schema([("t", pa.int64()), ("writer", pa.int32()), ("batch", pa.int32())])
ROWS = 3  # per batch


def batch(writer: int, number: int) -> pa.Table:
    """The rows of one batch, out of order, with ties to other writers."""
    times = [number + 1, number, number + 1]
    return pa.table({"t": times, "writer": [writer] * ROWS, "batch": [number] * ROWS}, SCHEMA)


class Crew:
    """Threads that run until they are told to stop; the first error is raised in the test."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.errors: list[BaseException] = []
        self.threads: list[threading.Thread] = []
        self.rounds = 0

    def add(self, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                while not self.stop.is_set():
                    work()
                    self.rounds += 1
            except BaseException as error:
                self.errors.append(error)
                self.stop.set()

        self.threads.append(threading.Thread(target=run))

    def run(self, seconds: float, enough: Callable[[], bool]) -> None:
        """For so long, and until enough was done."""
        for thread in self.threads:
            thread.start()
        try:
            self.stop.wait(seconds)
            until(lambda: self.stop.is_set() or enough())
        finally:
            self.stop.set()
        for thread in self.threads:
            thread.join()
        if self.errors:
            raise self.errors[0]


def seen(snapshot: StreamSnapshot) -> dict[int, int]:
    """How many batches of each writer a snapshot shows; each must be whole and none left out."""
    rows = select(snapshot, Wanted(("writer", "batch"))).rows
    counts: dict[tuple[int, int], int] = {}
    for pair in zip(
        rows.column("writer").to_pylist(), rows.column("batch").to_pylist(), strict=True
    ):
        counts[pair] = counts.get(pair, 0) + 1
    assert set(counts.values()) <= {ROWS}, "half a batch, or one twice"
    found: dict[int, int] = {}
    for writer in {writer for writer, _ in counts}:
        numbers = sorted(number for other, number in counts if other == writer)
        assert numbers == list(range(len(numbers))), f"writer {writer} has a gap"
        found[writer] = len(numbers)
    return found


def run_writers(folder: Path, writers: int, readers: int, seconds: float) -> None:
    """Writers, readers, sealing and compacting at once."""
    with Opened(folder, removed_files_kept_s=0, recent_mb=0) as opened:
        table = opened.create("a", SCHEMA, watermark_ticks=4)
        table.bounds = partial(
            replace, table.limits, block_rows=1000, compact_files=2, recent_bytes=0
        )
        opened.create_index("i", table, "batch", "btree")
        crew = Crew()
        done = [0] * writers

        def writer(number: int) -> Callable[[], None]:
            def work() -> None:
                table.insert(batch(number, done[number]), f"{number}.{done[number]}")
                done[number] += 1  # acknowledged

            return work

        def reader() -> Callable[[], None]:
            before: dict[int, int] = {}

            def work() -> None:
                acknowledged = list(done)
                with table.reading() as snapshot:
                    now = seen(snapshot)
                for number, count in enumerate(acknowledged):
                    shown = now.get(number, 0)
                    assert shown >= before.get(number, 0), "a reader went back in time"
                    assert count <= shown, "acknowledged, and not seen"
                before.update(now)

            return work

        def upkeep() -> None:
            opened.store.seal(table)
            table.compact()
            table.build_indexes(2)
            opened.store.free_log()

        for number in range(writers):
            crew.add(writer(number))
        for _ in range(readers):
            crew.add(reader())
        crew.add(upkeep)
        crew.run(seconds, lambda: sum(done) > 50)
        with table.reading() as snapshot:
            assert seen(snapshot) == {n: count for n, count in enumerate(done) if count}
        total = sum(done)
    with Opened(folder) as opened:
        assert len(scanned(opened.table("a"), ("batch",))) == total * ROWS


def test_readers_see_prefixes_of_every_writer(tmp_path: Path) -> None:
    run_writers(tmp_path / "data", 8, 2, seconds=2)


@pytest.mark.large
@pytest.mark.timeout(1200)
def test_readers_see_prefixes_of_every_writer_long(tmp_path: Path) -> None:
    run_writers(tmp_path / "data", 8, 4, seconds=120)


def test_two_tables_are_seen_at_one_instant(tmp_path: Path) -> None:
    """Who sees the row in B sees the one that was inserted into A before it, as SQL reads them."""
    with Opened(tmp_path / "data") as opened:
        first, second = opened.create("a"), opened.create("b")
        crew = Crew()
        number = [0]

        def writer() -> None:
            number[0] += 1
            row = {"t": number[0], "id": number[0]}
            first.insert([row])
            second.insert([row])

        def reader() -> None:
            with opened.store.visibility:
                one, two = first.reading(), second.reading()
                a, b = one.__enter__(), two.__enter__()
            try:
                count_a = select(a, Wanted(("id",))).rows.num_rows
                count_b = select(b, Wanted(("id",))).rows.num_rows
                assert count_b <= count_a <= count_b + 1
            finally:
                one.__exit__(None, None, None)
                two.__exit__(None, None, None)

        def upkeep() -> None:
            opened.store.seal_all()
            time.sleep(0.01)  # not a wait for progress: upkeep at a pace

        for work in (writer, reader, reader, upkeep):
            crew.add(work)
        crew.run(1.5, lambda: number[0] > 10)


def test_readers_keep_their_files_while_expiry_removes_them(tmp_path: Path) -> None:
    """A snapshot reads blocks that were compacted, expired and garbage-collected meanwhile."""
    with Opened(tmp_path / "data", removed_files_kept_s=0) as opened:
        table = opened.create("a", range_ticks=100)
        table.bounds = partial(
            replace, table.limits, block_rows=10, compact_files=2, recent_bytes=0
        )
        for number in range(0, 60, 2):
            table.insert([{"t": number, "id": number}, {"t": number + 1, "id": number + 1}])
            opened.store.seal(table)
        with table.reading() as old:
            while table.compact():
                pass
            with table.reading() as compacted:
                table.advance(10_000)
                assert table.expire() > 0
                table.collect_garbage()
                for snapshot in (old, compacted):
                    rows = select(snapshot, Wanted(("id",))).rows
                    assert rows.column("id").to_pylist() == list(range(60))
        assert scanned(table) == []
        table.collect_garbage()
        assert not list((table.folder / "blocks").rglob("*.parquet")), (
            "disk space did not come back"
        )


def test_a_reader_in_the_middle_of_everything(tmp_path: Path) -> None:
    """RANGE, expiry and compaction with removed_files_kept_s = 0 under readers that scan all the time."""
    with Opened(tmp_path / "data", removed_files_kept_s=0) as opened:
        table = opened.create("a", range_ticks=50)
        table.bounds = partial(replace, table.limits, block_rows=8, compact_files=2, recent_bytes=0)
        crew = Crew()
        number = [0]

        def writer() -> None:
            table.insert([{"t": number[0], "id": number[0]}])
            number[0] += 1

        def reader() -> None:
            with table.reading() as snapshot:
                rows = select(snapshot, Wanted(("id",), descending=True)).rows
                found = rows.column("id").to_pylist()
            newest = found[0] if found else -1
            assert found == list(range(newest, max(newest - 51, -1), -1)), "not the last 51 ticks"

        def upkeep() -> None:
            opened.store.seal(table)
            table.compact()
            table.expire()

        for work in (writer, reader, reader, upkeep):
            crew.add(work)
        crew.run(1.5, lambda: number[0] > 50)
