"""What a factory has instead of the driver's parts: its catalog and its streaming tables."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any, cast

import pytest

from headwater.factories.line import Line
from headwater.factories.remote import FollowedCatalog, FollowedStreams
from headwater.storage import catalog as catalogs
from headwater.storage.catalog import Catalog, CatalogObject
from headwater.storage.streaming.table import StreamingTable
from tests.crash.stream_store import Opened, rows_of, scanned
from tests.harness.patience import PATIENCE_S


def change_something(catalog: Catalog, choose: random.Random, number: int) -> None:
    """An object comes, changes or goes."""
    there = catalog.all("view")
    act = choose.choice(["add", "add", "change", "remove"])
    definition = {"sql": "x" * choose.randint(0, 400), "folder": f"f{number}"}
    if act == "add" or not there:
        catalog.add("view", f"v{number}", definition)
    elif act == "change":
        catalog.change(choose.choice(there), definition)
    else:
        catalog.remove(choose.choice(there))


def objects(catalog: Catalog) -> tuple[list[CatalogObject], int]:
    return catalog.all(), catalog.last_id


@pytest.mark.parametrize("every", [1, 7, 1000], ids="looks after {} changes".format)
def test_a_followed_catalog_is_the_catalog(
    tmp_path: Path, every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over images that replace all before them, wherever the follower stands."""
    monkeypatch.setattr(catalogs, "IMAGE_AFTER_BYTES", 8 << 10)
    monkeypatch.setattr(catalogs, "SEGMENT_BYTES", 16 << 10)
    monkeypatch.setattr(catalogs, "FIRST_SEGMENT_BYTES", 8 << 10)
    catalog, followed, choose = Catalog(tmp_path), FollowedCatalog(tmp_path), random.Random(every)
    catalog.keep_written()
    for number in range(600):
        change_something(catalog, choose, number)
        if number % every == 0:
            followed.advance(catalog.position)
            assert objects(followed) == objects(catalog)
    followed.advance(catalog.position)
    assert objects(followed) == objects(catalog)
    there = catalog.all()[0]
    assert followed.by_number(there.id) == there
    catalog.close()


def test_a_catalog_is_followed_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogs, "IMAGE_AFTER_BYTES", 4 << 10)
    monkeypatch.setattr(catalogs, "SEGMENT_BYTES", 8 << 10)
    monkeypatch.setattr(catalogs, "FIRST_SEGMENT_BYTES", 8 << 10)
    catalog, choose = Catalog(tmp_path), random.Random(4)
    catalog.keep_written()

    def write() -> None:
        for number in range(600):
            change_something(catalog, choose, number)

    writer = threading.Thread(target=write)
    writer.start()
    looks = 0
    while writer.is_alive():
        followed = FollowedCatalog(tmp_path)  # reads everything, and then on
        for _ in range(choose.randint(1, 3)):
            followed.advance(catalog.position)
            looks += 1
    writer.join(PATIENCE_S)
    followed.advance(catalog.position)
    assert objects(followed) == objects(catalog)
    assert looks > 5
    catalog.close()


class FakeLine:
    """A line that writes down what was told, and answers as the driver would."""

    def __init__(self, store: Opened) -> None:
        self._store = store
        self.told: list[tuple[str, dict[str, Any]]] = []

    def tell(self, kind: str, **head: Any) -> None:
        self.told.append((kind, head))

    def heard(self, kind: str) -> list[dict[str, Any]]:
        return [head for found, head in self.told if found == kind]


def followed_streams(opened: Opened) -> tuple[FollowedStreams, FakeLine]:
    line = FakeLine(opened)
    lsn = opened.store.durable_lsn
    return FollowedStreams(opened.folder, opened.settings, cast(Line, line), lsn), line


def follow(streams: FollowedStreams, table: StreamingTable) -> None:
    streams.follow(table.definition, table.image().since(None))


def insert(table: StreamingTable, time: int) -> None:
    table.insert(rows_of([time, time], 10 * time).to_batches()[0])  # type: ignore[union-attr]


def test_a_table_is_joined_at_any_moment(tmp_path: Path) -> None:
    """Before and after seals, behind and ahead of what was told of the log: all rows are there once."""
    with Opened(tmp_path) as opened:
        opened.store.on_group(lambda _lsn: None)
        first, second = opened.create("first"), opened.create("second")
        insert(first, 1)
        streams, _ = followed_streams(opened)
        insert(first, 2)
        follow(streams, first)  # a row that is in no block, before and after the welcome
        insert(first, 3)
        insert(second, 3)
        second.seal()
        insert(second, 4)
        follow(streams, second)  # its image is ahead of what was read of the log
        for table in (first, second):
            streams.advance(opened.store.durable_lsn)
            seen = streams.find(table.definition.id)
            assert seen is not None
            assert scanned(cast(Any, seen)) == scanned(table)
            assert seen.state == table.state


def test_a_table_that_got_nothing_for_long_is_joined(tmp_path: Path) -> None:
    """The log after its last seal is gone: none of it was about this table."""
    with Opened(tmp_path, wal_segment_mb=1) as opened:
        opened.store.on_group(lambda _lsn: None)
        idle, busy = opened.create("idle"), opened.create("busy")
        insert(idle, 1)
        idle.seal()
        for time in range(40):
            busy.insert(rows_of([time] * 5000, time * 5000).to_batches()[0])  # type: ignore[union-attr]
        busy.seal()
        opened.store.free_log()
        assert opened.store.log_state().first_lsn > idle.sealed_lsn + 1
        streams, _ = followed_streams(opened)
        follow(streams, idle)
        for time in (2, 3):
            insert(idle, time)
            streams.advance(opened.store.durable_lsn)
            seen = streams.find(idle.definition.id)
            assert scanned(cast(Any, seen)) == scanned(idle)
        insert(idle, 4)
        follow(streams, idle)  # with rows that are in no block
        streams.advance(opened.store.durable_lsn)
        assert len(scanned(cast(Any, streams.find(idle.definition.id)))) == 8
        follow(streams, busy)
        assert len(scanned(cast(Any, streams.find(busy.definition.id)))) == 200_000


def test_followed_tables_move_together(tmp_path: Path) -> None:
    """What one append wrote to two tables is seen in both or in none."""
    with Opened(tmp_path) as opened:
        opened.store.on_group(lambda _lsn: None)
        tables = [opened.create(name) for name in ("first", "second")]
        streams, _ = followed_streams(opened)
        for table in tables:
            follow(streams, table)
        for time in range(20):
            for table in tables:
                insert(table, time)
            streams.advance(opened.store.durable_lsn - 1)
            first, second = streams.all()
            assert len(scanned(cast(Any, first))) == 2 * (time + 1)
            assert len(scanned(cast(Any, second))) == 2 * time


def test_it_says_which_records_it_still_needs(tmp_path: Path) -> None:
    """Segments of the log go once the follower has them behind itself, and not before."""
    with Opened(tmp_path, wal_segment_mb=1) as opened:
        opened.store.on_group(lambda _lsn: None)
        table = opened.create("s")
        streams, line = followed_streams(opened)
        follow(streams, table)
        for time in range(40):
            table.insert(rows_of([time] * 5000, time * 5000).to_batches()[0])  # type: ignore[union-attr]
            streams.advance(opened.store.durable_lsn)
        marks = [head["lsn"] for head in line.heard("reads")]
        assert len(marks) > 2
        assert marks == sorted(marks)
        table.seal()
        streams.change(table.definition.id, table.image().since(None))
        assert line.heard("image") == [{"table": table.definition.id, "version": 1}]
        assert len(scanned(cast(Any, streams.all()[0]))) == 200_000


def test_a_table_that_no_view_folds_holds_no_writer_back(tmp_path: Path) -> None:
    """A view that has left is not waited for."""
    with Opened(tmp_path) as opened:
        table = opened.create("s")
        streams, line = followed_streams(opened)
        follow(streams, table)
        (seen,) = streams.all()
        seen.folded_by |= {"a": lambda: 7, "b": lambda: 5}
        seen.made_room()
        seen.folded_by.clear()
        seen.made_room()
        assert [head["sequence"] for head in line.heard("folded")] == [5, None]
