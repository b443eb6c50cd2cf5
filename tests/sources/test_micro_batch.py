"""Micro-batches in commit order: late rows, clocks, sequence numbers, recovery. No Spark needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from headwater.errors import DataError
from headwater.storage.streaming import micro_batch
from headwater.storage.streaming.micro_batch import ClockMoved
from headwater.storage.streaming.store import source_key
from headwater.storage.streaming.table import StreamingTable
from tests.crash.stream_store import SCHEMA, Opened, rows_of, scanned
from tests.sources.feeding import deliver, written

ALL = ("t", "id", "_late")


@pytest.fixture
def store(folder: Path) -> Iterator[Opened]:
    with Opened(folder) as opened:
        yield opened


def source(opened: Opened, table: StreamingTable, name: str = "s") -> str:
    """A source in the catalog that the table's clock knows; its key."""
    made = opened.catalog.add("source", name, {"table_id": table.definition.id})
    micro_batch.tell(table, "add", source_key(made))
    return source_key(made)


def clock_of(table: StreamingTable) -> tuple[int | None, int | None]:
    return table.state.time.clock, table.state.time.closed


@pytest.mark.parametrize("late", ["keep", "drop"])
@pytest.mark.parametrize("watermark", [0, 6])
@pytest.mark.parametrize("seed", range(2))
def test_rows_of_a_source_are_as_inserted_ones(
    store: Opened, late: str, watermark: int, seed: int
) -> None:
    random = Random(seed)
    options: dict[str, Any] = {"late": late, "watermark_ticks": watermark}
    fed = store.create("fed", **options)
    inserted = store.create("inserted", folder="inserted-1", **options)
    key = source(store, fed)
    source(store, inserted, "other")
    other = "other-4"
    base = first = 0
    for number in range(12):
        base += random.randrange(8)
        times = [base + random.randrange(-9, 9) for _ in range(random.randrange(1, 30))]
        rows = rows_of(times, first)
        first += len(times)
        cut = random.randrange(len(times) + 1)
        deliver(fed, key, number, rows.slice(0, cut), rows.slice(cut))
        inserted.insert(rows, source=other)
        assert clock_of(fed) == clock_of(inserted)
        assert fed.state.late_total == inserted.state.late_total
        if random.random() < 0.3:
            store.store.settle(fed)
    assert sorted(scanned(fed, ALL)) == sorted(scanned(inserted, ALL))
    assert fed.state.progress[key].row_count == inserted.state.progress[other].row_count == first


def test_late_rows_are_rejected_and_counted(store: Opened) -> None:
    table = store.create("t", late="reject")
    key = source(store, table)
    deliver(table, key, 0, rows_of([5, 9]))
    with pytest.raises(DataError, match="2 rows of the source are late") as caught:
        deliver(table, key, 1, rows_of([3, 4, 10]))
    assert caught.value.sqlstate == "22023"
    assert scanned(table, ("t",)) == [(5,), (9,)]
    assert table.state.late_total == 2


def test_one_delta_commit_holds_blocks_state_and_the_number(store: Opened) -> None:
    table = store.create("t")
    key = source(store, table)
    found = deliver(table, key, 0, rows_of([1, 2, 3]), rows_of([2, 4], 3))
    before = DeltaTable(table.folder)
    assert before.transaction_version(f"headwater.batch.{key}") is None
    assert len(scanned(table)) == 5  # visible by the log's record alone
    store.store.settle(table)
    after = DeltaTable(table.folder)
    assert after.version() == before.version() + 1
    assert after.transaction_version(f"headwater.batch.{key}") == 0
    assert after.transaction_version(f"headwater.rows.{key}") == 5
    assert sorted(after.get_add_actions().column("path").to_pylist()) == sorted(
        f.path for f in found.files
    )
    assert after.to_pyarrow_table().num_rows == 5


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("clean", [False, True])
def test_a_micro_batch_survives(folder: Path, sealed: bool, clean: bool) -> None:
    opened = Opened(folder)
    table = opened.create("t", watermark_ticks=5)
    key = source(opened, table)
    table.insert(rows_of([1], 100))
    deliver(table, key, 7, rows_of([3, 20]), rows_of([16, 18], 2))
    if sealed:
        opened.store.settle(table)
    table.insert(rows_of([17], 101))
    rows, state = scanned(table, ("t", "id", "_seq", "_late")), table.state
    if clean:
        opened.close()
    else:
        opened.drop()
    with Opened(folder, removed_files_kept_s=0) as opened:
        table = opened.table("t")
        table.collect_garbage()
        assert scanned(table, ("t", "id", "_seq", "_late")) == rows
        assert table.state.progress == state.progress
        assert table.state.time == state.time
        assert table._clock.waiting_count == 4  # 16, 17, 18, 20 wait beyond 20 - 5
        deliver(table, key, 8, rows_of([30], 50))
        assert clock_of(table) == (20, 19)


def test_a_clock_that_overtakes_rows_has_them_written_again(store: Opened) -> None:
    table = store.create("t")
    key = source(store, table)
    parts = [rows_of([10, 20])]
    with micro_batch.handed_out(table, key, 1) as handout:
        found = written(table, handout, parts)
        table.advance(15)
        with pytest.raises(ClockMoved):
            micro_batch.commit(table, handout, 0, found)
    micro_batch.discard(table.folder, found.files)
    assert scanned(table) == []
    assert deliver(table, key, 0, *parts).late_count == 1
    assert scanned(table, ALL) == [(10, 0, True), (20, 1, False)]


def test_a_clock_that_moves_below_the_rows_does_not_matter(store: Opened) -> None:
    table = store.create("t")
    key = source(store, table)
    with micro_batch.handed_out(table, key, 1) as handout:
        found = written(table, handout, [rows_of([10, 20])])
        table.advance(9)
        micro_batch.commit(table, handout, 0, found)
    assert scanned(table, ALL) == [(10, 0, False), (20, 1, False)]


def test_a_second_source_meanwhile_has_the_first_report_all_its_ticks(store: Opened) -> None:
    table = store.create("t")
    key = source(store, table)
    with micro_batch.handed_out(table, key, 1) as handout:
        found = written(table, handout, [rows_of([10, 20])])
        assert list(found.ticks) == [20]
        source(store, table, "second")
        with pytest.raises(ClockMoved):
            micro_batch.commit(table, handout, 0, found)
    with micro_batch.handed_out(table, key, 1) as handout:
        found = written(table, handout, [rows_of([10, 20])])
        assert list(found.ticks) == [10, 20]
        micro_batch.commit(table, handout, 0, found)
    assert clock_of(table) == (None, None)


def test_the_clock_is_the_minimum_over_live_sources(store: Opened) -> None:
    table = store.create("t")
    one, two = source(store, table, "one"), source(store, table, "two")
    deliver(table, one, 0, rows_of([10, 20, 30]))
    assert clock_of(table) == (None, None)
    deliver(table, two, 0, rows_of([15], 3))
    assert clock_of(table) == (15, 14)
    micro_batch.tell(table, "idle", two)
    assert clock_of(table) == (30, 29)
    deliver(table, two, 1, rows_of([16, 40], 4))  # too late by now, and awake again
    assert scanned(table, ALL)[2] == (16, 4, True)
    deliver(table, one, 1, rows_of([50], 6))
    assert clock_of(table) == (40, 39)
    micro_batch.tell(table, "remove", two)
    assert clock_of(table) == (50, 49)


def test_a_removed_source_stays_removed(folder: Path) -> None:
    opened = Opened(folder)
    table = opened.create("t")
    one = source(opened, table, "one")
    source(opened, table, "two")
    deliver(table, one, 0, rows_of([10]))
    micro_batch.tell(table, "remove", "two-3")
    state = table.state
    assert clock_of(table) == (10, 9)
    opened.drop()
    with Opened(folder) as opened:
        table = opened.table("t")
        assert table.state.time == state.time
        micro_batch.tell(table, "remove", one)
        state = table.state
    with Opened(folder) as opened:
        assert opened.table("t").state.time == state.time


def test_sequence_numbers_are_given_once_and_grow_in_commit_order(store: Opened) -> None:
    table = store.create("t")
    key = source(store, table)
    deliver(table, key, 0, rows_of([1, 3]), rows_of([2, 4], 2))
    table.insert(rows_of([5], 4))
    numbers = [s for (s,) in scanned(table, ("_seq",))]
    assert [number - numbers[0] for number in numbers] == [0, 1, 2, 3, 4]
    with micro_batch.handed_out(table, key, 2) as handout:
        found = written(table, handout, [rows_of([6, 8]), rows_of([7], 9)])
        table.insert(rows_of([9], 5))
        micro_batch.commit(table, handout, 1, found)
    table.insert(rows_of([10], 6))
    by_time = [s for (s,) in scanned(table, ("_seq",))]
    assert len(set(by_time)) == len(by_time) == 10
    assert by_time[:5] == numbers
    assert (
        by_time[8] == numbers[4] + 1
    )  # inserted while the micro-batch was written: before its rows
    first = by_time[5]
    assert by_time[5:8] == [first, first + 1, first + 2]
    assert first > by_time[8]
    assert by_time[9] == first + 3
    assert table.state.next_sequence == max(by_time) + 1


def test_blocks_do_not_cross_compartments(store: Opened) -> None:
    table = store.create("t", range_ticks=80, compartments=8)
    key = source(store, table)
    found = deliver(table, key, 0, rows_of([5, 15, 12, 29, 7]))
    store.store.settle(table)
    assert sorted((b.compartment, b.row_count) for b in table.blocks) == [(0, 2), (1, 2), (2, 1)]
    assert found.row_count == 5


def test_a_change_of_range_has_blocks_written_again(store: Opened) -> None:
    table = store.create("t", range_ticks=80)
    key = source(store, table)
    with micro_batch.handed_out(table, key, 1) as handout:
        found = written(table, handout, [rows_of([5, 15])])
        store.set_range(table, 800)
        with pytest.raises(ClockMoved):
            micro_batch.commit(table, handout, 0, found)


def test_arrival_time_stands_still_while_executors_write(store: Opened) -> None:
    schema = pa.schema([SCHEMA.field("id")])
    table = store.create("t", schema, time_column=None)
    table.insert([(1,)])
    with micro_batch.handed_out(table, "s-1", 1) as handout:
        found = written(table, handout, [pa.table({"id": [2, 3]}, schema=schema)])
        table.insert([(4,)])
        with table.reading() as snapshot:
            assert snapshot.clock == handout.arrival_us
        micro_batch.commit(table, handout, 0, found)
    table.insert([(5,)])
    rows = scanned(table, ("id", "_t", "_late"))
    assert [row[0] for row in rows] in ([1, 2, 3, 4, 5], [1, 4, 2, 3, 5])
    assert len({row[1] for row in rows[1:4]}) == 1
    assert not any(row[2] for row in rows)
    with table.reading() as snapshot:
        assert snapshot.clock is not None
        assert snapshot.clock > handout.arrival_us


def test_a_stream_without_readers_keeps_no_row_but_its_clock_moves(store: Opened) -> None:
    table = store.create("t", kind="stream")
    key = source(store, table)
    found = deliver(table, key, 0, rows_of([5, 9]))
    assert found.files == ()
    assert clock_of(table) == (9, 8)
    assert table.state.progress[key].row_count == 2


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pa.table({"t": [1, None], "id": [1, 2]}, schema=SCHEMA), "NULL in time column"),
        (pa.table({"t": [1 << 62], "id": [1]}, schema=SCHEMA), "out of range"),
        (pa.table({"t": [1], "id": [None]}, schema=SCHEMA), "NULL in column id"),
    ],
)
def test_rows_that_do_not_fit_are_refused(store: Opened, rows: pa.Table, message: str) -> None:
    schema = pa.schema([SCHEMA.field("t"), SCHEMA.field("id").with_nullable(False)])
    table = store.create("t", schema)
    key = source(store, table)
    with pytest.raises(DataError, match=message):
        deliver(table, key, 0, rows)
    assert scanned(table) == []


def test_times_of_a_source_lie_in_the_years_1_to_9999(store: Opened) -> None:
    times = pa.list_(pa.timestamp("us", "UTC"))
    schema = pa.schema([SCHEMA.field("t"), pa.field("v", times)])
    table = store.create("t", schema)
    key = source(store, table)
    rows = pa.table({"t": [1, 2], "v": pa.array([[0], [None, 1 << 60]], times)})
    with pytest.raises(DataError, match="row 1: a time in column v is outside") as caught:
        deliver(table, key, 0, rows)
    assert caught.value.sqlstate == "22008"
    assert scanned(table, ("t",)) == []
