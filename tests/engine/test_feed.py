"""A feed gives the rows after its cursor in order, however they are stored, and keeps few in memory."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import headwater
from headwater.engine import feed as feed_module
from headwater.engine.feed import Feed, FeedCursor
from headwater.settings import MEBIBYTE
from headwater.storage.streaming.table import StreamingTable

FAR = 1 << 40


@pytest.fixture
def table(db: headwater.Database) -> StreamingTable:
    """A table whose rows may come ten seconds out of order."""
    db.sql("""CREATE STREAMING TABLE t (at BIGINT NOT NULL, v STRING, w STRING) TIMESTAMP BY at
              WATERMARK INTERVAL 10 SECONDS""")
    found = db._context.stream("t")
    assert found is not None
    return found


def made(db: headwater.Database, table: StreamingTable, after: FeedCursor | None) -> Feed:
    """A feed that holds v only."""
    return Feed(db._context, table, after, ["v"])


def rows_of(table: pa.Table) -> list[tuple[int, int]]:
    if not table.num_columns:
        return []
    return list(zip(table.column("at").to_pylist(), table.column("_seq").to_pylist(), strict=True))


def fill(table: StreamingTable, rng: random.Random, commits: int, start: int = 0) -> None:
    """Commits of rows about a second that moves on; every third seals the tail, some are late."""
    for commit in range(start, start + commits):
        count = rng.randint(1, 20)
        times = [commit * 2 + rng.randint(-12, 9) for _ in range(count)]
        table.insert([(at, f"v{at}", "w") for at in times])
        if rng.random() < 0.3:
            table.seal()


def stored(table: StreamingTable, after: FeedCursor | None) -> list[tuple[int, int]]:
    """The released rows in time after a cursor, by a scan of everything."""
    with table.reading() as snapshot:
        parts = [piece.rows for piece in snapshot.tail]
        parts += [pa.parquet.read_table(snapshot.folder / block.path) for block in snapshot.blocks]
        clock = snapshot.clock
    rows = [
        (row["at"], row["_seq"])
        for part in parts
        for row in part.select(["at", "_seq", "_late"]).to_pylist()
        if not row["_late"] and clock is not None and row["at"] <= clock
    ]
    low = (-FAR, 0) if after is None else (after.tick, after.sequence)
    return sorted(row for row in rows if row > low)


@pytest.mark.parametrize("seed", range(6))
def test_all_rows_come_once_in_order(
    db: headwater.Database, table: StreamingTable, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the store in slabs, from the tail, and from blocks after a seal; with rows set aside."""
    monkeypatch.setattr(feed_module, "SLAB_ROWS", 7)
    if seed % 2:
        monkeypatch.setattr(feed_module, "MEBIBYTE", 1)  # a bound that every commit reaches
    rng = random.Random(seed)
    fill(table, rng, 20)
    cursors = [None, FeedCursor(17), FeedCursor(20, 60)]
    feeds = [made(db, table, cursor) for cursor in cursors]
    found: list[list[tuple[int, int]]] = [[] for _ in feeds]
    for turn in range(12):
        fill(table, rng, rng.randint(1, 4), 20 + 4 * turn)
        for own, feed in zip(found, feeds, strict=True):
            assert feed.pull()
            feed.basket.validate()
            assert feed.basket.rows_since(feed.basket.position).column_names == [
                "at",
                "v",
                "_seq",
            ]
            own += rows_of(feed.basket.take_rows(rng.randint(1, 50)))
    assert any(feed.basket.is_aside for feed in feeds) == bool(seed % 2)
    for cursor, own, feed in zip(cursors, found, feeds, strict=True):
        own += rows_of(feed.basket.take_until(FAR))
        assert own == stored(table, cursor)


def test_a_full_basket_is_set_aside_and_says_so(
    db: headwater.Database, table: StreamingTable
) -> None:
    """Beyond `basket_mb` no row is in memory; beyond half of it rows had better be folded."""
    db.sql("SET basket_mb = 1")
    feed = made(db, table, None)
    states = []
    for number in range(16):
        table.insert([(number, "x" * 100_000, "w") for _ in range(1)])
        assert feed.pull()
        states.append((feed.is_full, feed.basket.bytes > MEBIBYTE, feed.basket.is_aside))
    assert not any(over for _, over, _ in states), "the bound is passed"
    assert [full for full, _, _ in states].index(True) in (5, 6, 7)
    assert states[-1] == (True, False, True)
    assert feed.basket.take_until(FAR).num_rows == 16 - 10
    assert not made(db, table, FeedCursor(14)).is_full


def test_a_table_that_was_changed_is_noticed(db: headwater.Database, table: StreamingTable) -> None:
    """Before rows are taken over, from the tail or from blocks."""
    table.insert([(1, "v", "w")])
    first, second = made(db, table, None), made(db, table, None)
    table.rows_changed()
    assert not first.pull()
    table.insert([(2, "v", "w")])
    table.seal()
    assert not second.pull()
