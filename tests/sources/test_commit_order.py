"""Readers remember one sequence number: whatever is committed after a look has larger ones. No Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from headwater.database import Database
from headwater.engine.view_pipeline import ViewPipeline
from headwater.storage.streaming import micro_batch
from headwater.storage.streaming.fresh import each_since, fresh_rows, missed_rows
from headwater.storage.streaming.micro_batch import ClockMoved, Stopped
from headwater.storage.streaming.table import StreamingTable
from tests.crash.stream_store import Opened, rows_of, scanned
from tests.harness.patience import PATIENCE_S
from tests.sources.feeding import deliver, written
from tests.sources.test_micro_batch import source

OFFLINE = {"eager_spark": False}


@pytest.fixture
def store(folder: Path) -> Iterator[Opened]:
    with Opened(folder) as opened:
        yield opened


class Reader:
    """Reads a table as a view does (`each`) and as a query does, always on from where it was."""

    def __init__(self, table: StreamingTable) -> None:
        self.table = table
        self.places = {"view": 0, "query": 0}
        self.found: dict[str, list[int]] = {"view": [], "query": []}

    def look(self) -> None:
        """Takes what came since the last look."""

        def take(rows: pa.Table) -> None:
            self.found["view"] += rows.column("id").to_pylist()

        self.places["view"], _ = each_since(self.table, self.places["view"], None, take)
        place = self.places["query"]
        fresh = fresh_rows(self.table, place)
        if fresh is not None:
            self.found["query"] += fresh.rows.column("id").to_pylist()
            self.places["query"] = fresh.marks.next_sequence
            return
        with self.table.reading() as snapshot:
            for rows in missed_rows(snapshot, place, ("id",)):
                self.found["query"] += rows.column("id").to_pylist()
            self.places["query"] = snapshot.next_sequence

    def check(self, ids: set[int]) -> None:
        """Each row came once."""
        self.look()
        expected = {"view": sorted(ids), "query": sorted(ids)}
        assert {name: sorted(rows) for name, rows in self.found.items()} == expected


@pytest.mark.parametrize("seal", ["never", "before", "after", "both"])
@pytest.mark.parametrize("partitions", [1, 3])
def test_rows_inserted_while_a_micro_batch_is_written_hide_none_of_it(
    store: Opened, partitions: int, seal: str
) -> None:
    table = store.create("t")
    key = source(store, table)
    reader = Reader(table)
    table.insert(rows_of([1], 0))
    reader.look()
    with micro_batch.handed_out(table, key, partitions) as handout:
        parts = [rows_of([10, 20], 10 * (n + 1)) for n in range(partitions)]
        found = written(table, handout, parts)
        table.insert(rows_of([5, 6], 1))
        reader.look()
        if seal in ("before", "both"):
            store.store.settle(table)
        micro_batch.commit(table, handout, 0, found)
    ids = {0, 1, 2, *(10 * (n + 1) + i for n in range(partitions) for i in range(2))}
    if seal in ("after", "both"):
        store.store.settle(table)
    reader.check(ids)
    table.insert(rows_of([30], 3))
    deliver(table, key, 1, rows_of([31], 4))
    reader.check({*ids, 3, 4})


def test_micro_batches_are_committed_in_the_order_of_their_hand_outs(store: Opened) -> None:
    table = store.create("t")
    one, two = source(store, table, "one"), source(store, table, "two")
    reader = Reader(table)
    second_wrote, seen = threading.Event(), list[int]()

    def second() -> None:
        with micro_batch.handed_out(table, two, 1) as handout:
            found = written(table, handout, [rows_of([11, 12], 20)])
            second_wrote.set()
            micro_batch.commit(table, handout, 0, found)

    with micro_batch.handed_out(table, one, 1) as handout:
        other = threading.Thread(target=second)
        other.start()
        assert second_wrote.wait(PATIENCE_S)
        found = written(table, handout, [rows_of([10, 13], 10)])
        other.join(0.2)
        assert other.is_alive()  # it waits for the first
        reader.look()
        micro_batch.commit(table, handout, 0, found)
        reader.look()
        seen += reader.found["view"]
    other.join(PATIENCE_S)
    assert not other.is_alive()
    assert seen == [10, 11]
    reader.check({10, 11, 20, 21})
    numbers = dict(scanned(table, ("id", "_seq")))
    assert max(numbers[10], numbers[11]) < min(numbers[20], numbers[21])


def test_one_that_is_given_up_holds_nobody(store: Opened) -> None:
    table = store.create("t")
    one, two = source(store, table, "one"), source(store, table, "two")
    with pytest.raises(ZeroDivisionError), micro_batch.handed_out(table, one, 1):
        raise ZeroDivisionError
    deliver(table, two, 0, rows_of([1], 0))
    assert table.handed_out == []
    assert len(scanned(table)) == 1


def test_a_source_that_is_stopped_while_it_waits_commits_nothing(store: Opened) -> None:
    table = store.create("t")
    one, two = source(store, table, "one"), source(store, table, "two")
    stopping = threading.Event()
    stopping.set()
    with micro_batch.handed_out(table, one, 1) as first:
        with micro_batch.handed_out(table, two, 1) as second:
            found = written(table, second, [rows_of([1], 1)])
            with pytest.raises(Stopped):
                micro_batch.commit(table, second, 0, found, stopping)
        assert scanned(table) == []
        micro_batch.commit(table, first, 0, written(table, first, [rows_of([2], 2)]))
    assert scanned(table, ("id",)) == [(2,)]


def test_more_inserts_than_numbers_were_left_for_have_it_written_again(
    store: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(micro_batch, "INSERTED_MEANWHILE", 2)
    table = store.create("t")
    key = source(store, table)
    reader = Reader(table)
    parts = [rows_of([10, 20], 10)]
    with micro_batch.handed_out(table, key, 1) as handout:
        found = written(table, handout, parts)
        table.insert(rows_of([1, 2, 3], 0))
        reader.look()
        with pytest.raises(ClockMoved):
            micro_batch.commit(table, handout, 0, found)
    micro_batch.discard(table.folder, found.files)
    deliver(table, key, 0, *parts)
    reader.check({0, 1, 2, 10, 11})


CREATE = "CREATE STREAMING TABLE t (at BIGINT NOT NULL, id BIGINT) TIMESTAMP BY at"


def rows_for(db: Database, times: list[int], first: int) -> pa.Table:
    rows = {"at": times, "id": list(range(first, first + len(times)))}
    return pa.table(rows, schema=db._context.streaming_table("t").schema)


def pipeline_of(db: Database) -> ViewPipeline:
    (found,) = db._context.pipelines._found.values()
    return found


@pytest.mark.parametrize("kept", [False, True])
def test_a_view_sees_a_micro_batch_that_an_insert_overtook(
    folder: Path, connect: Callable[..., Database], kept: bool
) -> None:
    """Also after a restart, from a snapshot between the two."""
    with connect(folder, settings=OFFLINE) as db:
        db.sql(CREATE)
        db.sql("CREATE VIEW v AS SELECT count(*) AS n, sum(id) AS s FROM t")
        table = db._context.streaming_table("t")
        micro_batch.tell(table, "add", "s")
        with micro_batch.handed_out(table, "s", 1) as handout:
            found = written(table, handout, [rows_for(db, [6, 7, 8], 10)])
            db.insert("t", rows_for(db, [5], 1))
            assert db.sql("SELECT * FROM v").rows() == [(1, 1)]
            if kept:
                pipeline_of(db).put_away()
            micro_batch.commit(table, handout, 0, found)
        assert db.sql("SELECT * FROM v").rows() == [(4, 34)]
    with connect(folder, settings=OFFLINE) as db:
        assert db.sql("SELECT * FROM v").rows() == [(4, 34)]


def test_numbers_left_out_are_no_rows_that_wait(
    folder: Path, connect: Callable[..., Database]
) -> None:
    settings = {**OFFLINE, "view_queue_rows": 100, "insert_timeout_s": 0.1}
    with connect(folder, settings=settings) as db:
        db.sql(CREATE)
        db.sql("CREATE VIEW v AS SELECT count(*) AS n FROM t")
        table, pipeline = db._context.streaming_table("t"), pipeline_of(db)
        micro_batch.tell(table, "add", "s")
        with pipeline.lock:  # nothing is folded meanwhile
            deliver(table, "s", 0, rows_for(db, [3, 7, 8], 10))
            db.insert("t", rows_for(db, [9], 1))
            assert pipeline.waiting == 4
        assert db.sql("SELECT * FROM v").rows() == [(4,)]
