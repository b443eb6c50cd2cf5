"""A followed table is the driver's table: after any rows, seals, compactions, deletes, wherever one joins."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from headwater.storage.streaming.followed import FollowedTable
from headwater.storage.streaming.fresh import each_since, fresh_rows
from headwater.storage.streaming.image import TableImage, state_from_json, state_to_json
from headwater.storage.streaming.seen import EVERYTHING, Needs, SeenTable
from headwater.storage.streaming.table import StreamingTable
from headwater.storage.wal import LogFollower
from tests.crash.stream_store import Opened, rows_of, scanned

COLUMNS = ("t", "id", "_seq", "_late")
KINDS: dict[str, dict[str, Any]] = {
    "table": {},
    "disorder": {"watermark_ticks": 3},
    "range": {"range_ticks": 40},
    "stream": {"kind": "stream", "watermark_ticks": 2},
    "arrival": {"time_column": None},
}


class Follower:
    """One who follows a table as a factory does, with the driver's side of it."""

    def __init__(self, opened: Opened, table: StreamingTable) -> None:
        self._opened, self._table = opened, table
        self.images: list[TableImage] = [table.image()]
        wal = str(opened.folder / "wal")
        image = self.images[0].since(None)
        self.asked: list[str] = []
        self.seen = FollowedTable(
            table.definition,
            table.folder,
            image,
            threading.Lock(),
            lambda: 0,
            lambda what, _number: self.asked.append(what),
        )
        self._log = LogFollower(wal, image["lsn"])

    def advance(self, lsn: int | None = None) -> None:
        """Takes in the log up to a record; None: all of it."""
        end = self._opened.store.durable_lsn if lsn is None else lsn
        for append in self._log.read_to(end):
            for record in append:
                if record.table == self._table.definition.id:
                    self.seen.take(record)

    def change(self) -> None:
        """The stored side as of now."""
        self.images.append(self._table.image())
        change = self.images[-1].since(self.images[-2])
        if change["lsn"] > self._log.lsn:
            self.advance(change["lsn"])
        self.seen.change(change)
        for image in [i for i in self.images[:-1] if i.version < self.seen.oldest_image]:
            self.images.remove(image)
            self._table.let_image_go(image)

    def close(self) -> None:
        """Nobody follows any more."""
        for image in self.images:
            self._table.let_image_go(image)


def columns_of(table: SeenTable) -> tuple[str, ...]:
    return COLUMNS if not table.definition.by_arrival else COLUMNS[1:]


def check_same(table: StreamingTable, followed: FollowedTable) -> None:
    """Rows, clocks and numbers, and what a reader at any place gets next."""
    assert scanned(followed, columns_of(table)) == scanned(table, columns_of(table))  # type: ignore[arg-type]
    assert followed.state == table.state
    assert (followed.generation, followed.let_go) == (table.generation, table.let_go)
    end = table.state.next_sequence
    for sequence in {0, end // 2, max(end - 3, 0), end}:
        assert since(followed, sequence) == since(table, sequence)
        mine, its = fresh_rows(followed, sequence), fresh_rows(table, sequence)  # type: ignore[arg-type]
        assert mine is None or its is None or (mine.marks, mine.rows) == (its.marks, its.rows)
        assert followed.rows_since(end) == table.rows_since(end)


def since(table: SeenTable, sequence: int) -> tuple[object, ...]:
    found: list[tuple[Any, ...]] = []

    def take(rows: Any) -> None:
        found.extend(zip(*(rows.column(n).to_pylist() for n in ("id", "_seq")), strict=True))

    ends = each_since(table, sequence, None, take)  # type: ignore[arg-type]
    return sorted(found), ends


def delete_some(table: StreamingTable, choose: random.Random) -> None:
    """As DELETE does: some blocks are replaced by what is left of their rows."""
    with table.upkeep:  # the keeper may join or expire the same blocks
        table.seal()
        blocks = choose.sample(table.blocks, min(len(table.blocks), 2))
        if blocks:
            table.replace(blocks, None)
            table.rows_changed()


def steps(
    table: StreamingTable, choose: random.Random, kind: str
) -> Iterator[Callable[[], object]]:
    """Random things that happen to a table."""
    clock, number = 0, 0
    for _ in range(60):
        clock += choose.randint(0, 4)
        times = [
            max(clock - choose.choice([0, 0, 1, 2, 9]), 0) for _ in range(choose.randint(1, 4))
        ]
        rows = rows_of(times, number)
        act = choose.choice(
            ["insert"] * 6 + ["advance", "seal", "seal", "compact", "delete", "expire"]
        )
        if act == "insert":
            number += len(times)
            yield lambda rows=rows: table.insert(rows.to_batches()[0])  # type: ignore[union-attr,misc]
        elif act == "advance" and kind != "arrival":
            yield lambda clock=clock: table.advance(clock)  # type: ignore[misc]
        elif act == "seal":
            yield table.seal
        elif act == "compact":
            yield table.compact
        elif act == "expire" and kind == "range":
            yield table.expire
        elif act == "expire" and kind == "stream":
            yield lambda clock=clock: table.keep_from(clock - 12)  # type: ignore[misc]
        elif act == "delete" and kind != "stream":
            yield lambda: delete_some(table, choose)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_a_followed_table_is_the_table(kind: str, seed: int, tmp_path: Path) -> None:
    """Followers join at random moments, lag behind by the log or by images, and are the table in the end."""
    choose = random.Random(f"{kind} {seed}")
    settings = {
        "compact_files": 2,
        "removed_files_kept_s": 0.0,
        "recent_mb": choose.choice([0, 64]),
    }
    with Opened(tmp_path, **settings) as opened, ExitStack() as stack:
        opened.store.on_group(lambda _lsn: None)
        table = opened.create("s", **KINDS[kind])
        table.kept = True  # somebody reads it
        followers: list[Follower] = []
        for act in steps(table, choose, kind):
            if choose.random() < 0.1:
                followers.append(Follower(opened, table))
                stack.callback(followers[-1].close)
            act()
            for follower in followers:
                if choose.random() < 0.5:
                    follower.advance()
                if choose.random() < 0.3:
                    follower.change()
            table.collect_garbage()
        assert followers
        with table.upkeep:  # the keeper lets rows go too
            for follower in followers:
                follower.advance()
                follower.change()
                check_same(table, follower.seen)


def test_a_reader_keeps_the_files_that_it_reads(tmp_path: Path) -> None:
    """Blocks that were joined meanwhile stay until the last reader of the older image is done."""
    with Opened(tmp_path, compact_files=2, removed_files_kept_s=0.0, recent_mb=0) as opened:
        table = opened.create("s")
        for time in range(4):
            table.insert(rows_of([time], time).to_batches()[0])  # type: ignore[union-attr]
            table.seal()
        follower = Follower(opened, table)
        old = {table.folder / block.path for block in table.blocks}
        with follower.seen.reading() as snapshot:
            assert table.compact()
            follower.change()
            table.collect_garbage()
            assert all(path.exists() for path in old)
            assert len(snapshot.blocks) == 4
        follower.change()
        table.collect_garbage()
        assert not any(path.exists() for path in old)
        check_same(table, follower.seen)
        follower.close()


def test_what_readers_need_is_told_when_it_changes(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        table = opened.create("s")
        follower = Follower(opened, table)
        seen = follower.seen
        assert seen.needs == EVERYTHING
        seen.hold_sequence(5)
        seen.hold_sequence(5)
        seen.keep_from(3)
        seen.hold(None)
        assert seen.needs == Needs(3, None, 5)
        seen.tick()
        seen.made_room()
        assert follower.asked == ["needs", "needs", "needs", "tick", "room"]
        follower.close()


def test_a_state_is_the_same_after_its_way_as_plain_data(tmp_path: Path) -> None:
    with Opened(tmp_path) as opened:
        table = opened.create("s", watermark_ticks=2)
        table.insert(rows_of([5, 9, 1]).to_batches()[0])  # type: ignore[union-attr]
        table.insert(rows_of([2], 3).to_batches()[0])  # type: ignore[union-attr]
        assert any(row[0] for row in scanned(table, ("_late",)))
        assert state_from_json(state_to_json(table.state)) == table.state
