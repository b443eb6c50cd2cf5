"""A scan by key and time over many blocks reads a small part of them (ST8, ST9)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pytest

import headwater
from headwater.storage.streaming.table import StreamingTable
from tests.harness.patience import until

BLOCKS, ROWS = 120, 1000


@pytest.fixture(scope="module")
def db() -> Iterator[headwater.Database]:
    """A database with a table of 120 blocks, for all: making them takes longer than what is asked of them."""
    settings = {"compact_files": 1000, "recent_mb": 0, "block_age_s": 3600}
    with headwater.connect(":memory:", settings=settings) as database:
        fill(database)
        table = table_of(database)
        until(lambda: not table.indexes.largest_lag(table.blocks), "a block has no index")
        # opens the index of every block: they stay open
        database.sql("SELECT v FROM p WHERE vid = 7")
        yield database


def fill(db: headwater.Database) -> None:
    """vid 7 is in every tenth block."""
    db.sql("CREATE STREAMING TABLE p (vid INT, v INT, t INT NOT NULL) TIMESTAMP BY t")
    db.sql("CREATE INDEX by_vid ON p (vid)")
    for number in range(BLOCKS):
        vids = [7 if number % 10 == 0 and i == 5 else 100 + i for i in range(ROWS)]
        times = [number * ROWS + i for i in range(ROWS)]
        db.insert("p", pa.table({"vid": vids, "v": times, "t": times}))
        db.seal()


def table_of(db: headwater.Database) -> StreamingTable:
    """The table."""
    return db._context.streaming_table("p")


def test_a_key_and_time_query_reads_at_most_5_percent_of_the_row_groups(
    db: headwater.Database,
) -> None:
    table = table_of(db)
    assert len(table.blocks) == BLOCKS
    query = "SELECT v FROM p WHERE vid = 7 AND t BETWEEN 20000 AND 69999"
    assert db.sql(query).rows() == [(n * ROWS + 5,) for n in range(20, 70, 10)]
    plan = "\n".join(row[0] for row in db.sql(f"EXPLAIN {query}").rows())
    found = re.search(
        r"row groups: (\d+) in all, (\d+) after the interval index, (\d+) after value indexes, (\d+) read",
        plan,
    )
    assert found is not None, plan
    total, in_time, after_values, read = (int(number) for number in found.groups())
    assert (total, in_time, after_values) == (BLOCKS, 50, 5)
    assert read <= total * 0.05


def test_a_union_of_ranges_reads_the_blocks_of_each(db: headwater.Database) -> None:
    """`t BETWEEN … OR t BETWEEN …` prunes what lies between, by operators and for Spark alike (ST8)."""
    where = "t BETWEEN 5100 AND 6100 OR t BETWEEN 90000 AND 90999 OR t = 30000"
    wanted = [*range(5100, 6101), 30000, *range(90000, 91000)]
    assert [v for (v,) in db.sql(f"SELECT v FROM p WHERE {where}").rows()] == wanted
    plan = "\n".join(row[0] for row in db.sql(f"EXPLAIN SELECT v FROM p WHERE {where}").rows())
    assert f"{BLOCKS} in all, 4 after the interval index" in plan
    query = f"SELECT count(*), sum(v) FROM p WHERE ({where}) AND v % 1 = 0"
    assert db.sql(query).rows() == [(len(wanted), sum(wanted))]
    plan = "\n".join(row[0] for row in db.sql(f"EXPLAIN {query}").rows())
    assert f"blocks of p: {BLOCKS} in all, 4 after the interval index" in plan


WITNESSES = (
    "CREATE FUNCTION witnesses(place INT, since INT, until INT) RETURNS TABLE (vid INT, v INT) "
    "RETURN SELECT r.vid, r.v FROM p r WHERE VALID(r) OVERLAPS PERIOD(since, until) "
    "AND NEAR(r.vid, place, 0)"
)
PERIODS = {
    "SELECT v FROM p WHERE VALID(p) OVERLAPS PERIOD(5100, 6100) OR t BETWEEN 90000 AND 90999": 3,
    "SELECT sum(v) FROM p r WHERE VALID(r) OVERLAPS PERIOD(5100, 6100) OR VALID(r) = 70000": 3,
    "SELECT max(v) FROM p WHERE NEAR(t, 50000, 100) OR NEAR(t, 90500, 100)": 3,
    "SELECT vid, v FROM p WHERE NEAR(t, 50500, 100) OR t BETWEEN 7000 AND 7100 AND vid = 7": 2,
    "SELECT a.v FROM p a JOIN p b ON a.v = b.v WHERE a.t < 100 OR a.t BETWEEN 5000 AND 5100": 2,
    "SELECT * FROM witnesses(7, 20000, 29999)": 10,
    "SELECT count(*) FROM witnesses(7, 20000, 29999) x JOIN items USING (vid)": 10,
}


def test_periods_ask_for_their_blocks_alone(db: headwater.Database) -> None:
    """VALID, NEAR and functions that read ask for time as BETWEEN does."""
    db.sql(WITNESSES)
    db.sql("CREATE TABLE items (vid INT)")
    for query, blocks in PERIODS.items():
        plan = "\n".join(row[0] for row in db.sql(f"EXPLAIN {query}").rows())
        assert f"blocks of p: {BLOCKS} in all, {blocks} after the interval index" in plan, query


def test_what_a_union_of_periods_does_not_need_is_not_opened(db: headwater.Database) -> None:
    """The files of all other blocks are gone; neither the storage nor Spark misses them (ST8)."""
    table = table_of(db)
    where = "t BETWEEN 5100 AND 6100 OR t BETWEEN 90000 AND 90999"
    wanted = [*range(5100, 6101), *range(90000, 91000)]
    others = [
        b
        for b in table.blocks
        if b.high < 5100 or (b.low > 6100 and b.high < 90000) or b.low > 90999
    ]
    assert len(others) == BLOCKS - 3
    for block in others:
        path = table.folder / block.path
        path.rename(path.with_suffix(".away"))
    try:
        assert [v for (v,) in db.sql(f"SELECT v FROM p WHERE {where}").rows()] == wanted
        assert db.sql(f"SELECT sum(v + 0) FROM p WHERE {where}").rows() == [(sum(wanted),)]
    finally:
        for block in others:
            path = table.folder / block.path
            path.with_suffix(".away").rename(path)


def test_rows_not_indexed_yet_are_found(db: headwater.Database) -> None:
    """The last one: it adds a row."""
    table = table_of(db)
    last = BLOCKS * ROWS
    db.insert("p", [(7, 1, last)])  # in the tail
    assert table.tail_bytes > 0
    assert db.sql(f"SELECT v FROM p WHERE vid = 7 AND t >= {last}").rows() == [(1,)]
    assert len(db.sql("SELECT v FROM p WHERE vid = 7")) == BLOCKS // 10 + 1
