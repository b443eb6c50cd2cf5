"""Named bounds of a streaming table: unsealed_mb, recent_mb, insert_timeout_s."""

from __future__ import annotations

import gc
import os
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from headwater.errors import OverloadError
from tests.crash.stream_store import SCHEMA, Opened, ids, rows_of
from tests.harness.patience import until

MEBIBYTE = 1 << 20


def many(first: int, count: int) -> pa.Table:
    """`count` rows of 16 bytes with rising times."""
    numbers = np.arange(first, first + count, dtype=np.int64)
    return pa.table({"t": numbers, "id": numbers}, schema=SCHEMA)


def resident() -> int:
    """Memory of this process, in bytes."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def pour(folder: Path, rows: int, batch: int, bound_mb: int) -> int:
    """Inserts rows under small bounds; the most memory that Arrow held at once, in bytes."""
    settings = {"unsealed_mb": bound_mb, "recent_mb": bound_mb, "block_mb": max(bound_mb // 4, 1)}
    most = 0
    with Opened(folder, insert_timeout_s=120, **settings) as opened:
        table = opened.create("a")
        before = pa.total_allocated_bytes()
        for first in range(0, rows, batch):
            table.insert(many(first, batch))
            size = batch * 33  # the rows with their hidden columns
            assert table.tail_bytes <= bound_mb * MEBIBYTE + size, "the tail is over its bound"
            held = sum(t.nbytes for t in table._memory.values())
            assert held <= bound_mb * MEBIBYTE, "blocks in memory are over their bound"
            most = max(most, pa.total_allocated_bytes() - before)
    with Opened(folder) as opened:
        assert sum(block.row_count for block in opened.table("a").blocks) == rows
    return most


def test_memory_stays_within_its_bounds(tmp_path: Path) -> None:
    """2 M rows (about 66 MB in memory) under bounds of 8 MB each: tail, blocks, one seal at work."""
    most = pour(tmp_path / "data", 2_000_000, 20_000, bound_mb=8)
    assert most < 8 * 8 * MEBIBYTE, f"{most >> 20} MB were held"


@pytest.mark.large
@pytest.mark.timeout(3600)
def test_memory_stays_within_its_bounds_for_50_million_rows(tmp_path: Path) -> None:
    before = resident()
    pour(tmp_path / "data", 50_000_000, 100_000, bound_mb=64)
    assert resident() - before < 800 * MEBIBYTE


def test_writers_wait_at_the_bound_and_go_on(tmp_path: Path) -> None:
    """Back-pressure: nothing is refused as long as sealing keeps up within the timeout."""
    with Opened(tmp_path / "data", unsealed_mb=1, block_mb=32) as opened:
        table = opened.create("a")
        errors: list[BaseException] = []

        def insert(number: int) -> None:
            try:
                for part in range(10):
                    table.insert(many((number * 10 + part) * 10_000, 10_000))
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=insert, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        assert sorted(ids(table)) == list(range(400_000))


def test_an_insert_that_waits_too_long_is_refused(tmp_path: Path) -> None:
    with Opened(tmp_path / "data", unsealed_mb=1, insert_timeout_s=0.3) as opened:
        table = opened.create("a")
        with table.upkeep:  # nothing can be sealed
            table.insert(many(0, 100_000))
            started = time.monotonic()
            with pytest.raises(OverloadError) as caught:
                table.insert(rows_of([1_000_000], 1_000_000), "late one")
            assert time.monotonic() - started > 0.25
            assert caught.value.sqlstate.startswith("53")
            assert "unsealed_mb" in (caught.value.detail or "")
            assert len(ids(table)) == 100_000
        until(lambda: table.tail_bytes == 0)
        assert table.insert(rows_of([1_000_000], 1_000_000), "late one") == 1


def test_batch_ids_are_forgotten_after_their_window(tmp_path: Path) -> None:
    """The ids in memory are bounded by dedup_window_s, as those on disk are."""
    with Opened(tmp_path / "data") as opened:
        table = opened.create("a")
        table.insert(rows_of([1]), batch_id="one")
        assert table.insert(rows_of([1]), batch_id="one") == 0
        table.forget_ids(3600)
        assert table.insert(rows_of([1]), batch_id="one") == 0
        table.forget_ids(0)
        assert table._ids == {}


def test_blocks_are_joined_up_to_a_number_of_bytes(tmp_path: Path) -> None:
    """Few rows may be many bytes: no more of them is read at once, and joined blocks stay as they are."""
    size = (
        30_000  # rows, 0.7 MiB with their sequence numbers; four times block_mb has room for five
    )
    with Opened(tmp_path / "data", block_mb=1, compact_files=8, block_age_s=1000) as opened:
        table = opened.create("a")
        for number in range(8):
            table.insert(many(number * size, size))
            table.seal(lambda *_: None)
        assert [table.compact() for _ in range(3)] == [5, 0, 0]
        assert [block.row_count for block in table.blocks] == [5 * size, size, size, size]
        assert len(ids(table)) == 8 * size


def test_an_index_is_behind_by_a_bounded_number_of_blocks(tmp_path: Path) -> None:
    """One round of upkeep builds until the lag is within index_lag_blocks."""
    with Opened(tmp_path / "data", index_lag_blocks=3, compact_files=1000) as opened:
        table = opened.create("a")
        for number in range(20):
            table.insert(rows_of([number], number))
            opened.store.seal(table)
        table.indexes.add("i", 1, "id", "btree")
        assert table.indexes.lag("i", table.blocks) == 20
        opened.store.keep_once()
        assert table.indexes.lag("i", table.blocks) <= 3
