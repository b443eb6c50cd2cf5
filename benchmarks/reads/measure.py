"""One row goes in, then something is read: the times of reads, and whether the last answers are equal.

Only the read is on the clock: from the moment the row is acknowledged until the whole result is there, as
Arrow. Owns the order of the three systems. Must never: read a view that has not changed.
"""

from __future__ import annotations

import contextlib
import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import pyarrow as pa

import headwater
from benchmarks.bags import difference
from benchmarks.reads import data
from benchmarks.reads.sizes import Sizes
from benchmarks.reads.views import VIEWS, in_duckdb

WARM_UP = 2
PATIENCE_S = 600.0
TIER = "SELECT tier FROM headwater.views WHERE name = 'v'"
Figures = dict[str, Any]
Read = Callable[[], pa.Table]


@contextlib.contextmanager
def ours() -> Iterator[headwater.Database]:
    """A database in a folder of its own; Spark has started."""
    with tempfile.TemporaryDirectory(dir=".") as folder, headwater.connect(f"{folder}/db") as db:
        db.sql("SELECT 1")
        yield db


@contextlib.contextmanager
def duck() -> Iterator[Any]:
    """A DuckDB file of its own."""
    import duckdb

    with (
        tempfile.TemporaryDirectory(dir=".") as folder,
        contextlib.closing(duckdb.connect(f"{folder}/db")) as connection,
    ):
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def timed(insert: Callable[[], None], read: Read, count: int) -> Figures:
    """Milliseconds of reads, each after one more row."""
    times, rows = [], 0
    for number in range(WARM_UP + count):
        insert()
        started = time.perf_counter()
        rows = read().num_rows
        if number >= WARM_UP:
            times.append((time.perf_counter() - started) * 1000)
    return {"median_ms": median(times), "worst_ms": max(times), "reads": count, "rows": rows}


def views(sizes: Sizes) -> Figures:
    """By view: kept by us, computed again by Spark, computed again by DuckDB."""
    with ours() as db, duck() as peer:
        db.sql(f"CREATE STREAMING TABLE s ({data.TABLE}) TIMESTAMP BY ts")
        db.sql(f"CREATE STREAMING TABLE r ({data.BESIDE})")
        peer.execute(f"CREATE TABLE s ({data.TABLE.replace('TIMESTAMP', 'TIMESTAMPTZ')})")
        peer.execute(f"CREATE TABLE r ({data.BESIDE})")
        both = Both(db, peer)
        both.insert("r", data.beside())
        for rows in data.batches(sizes.rows):
            both.insert("s", rows)
        coming = data.one_by_one(sizes.rows)
        return {
            name: _view(both, name, lambda: both.insert("s", next(coming)), sizes) for name in VIEWS
        }


def _view(both: Both, name: str, insert: Callable[[], None], sizes: Sizes) -> Figures:
    """One view in the three ways; every row goes to both systems, so that answers stay comparable."""
    print(f"{name} …", flush=True)
    db, text = both.db, in_duckdb(name)
    db.sql(f"CREATE VIEW v AS {VIEWS[name]}")
    try:
        kept, again = _reader(db, "SELECT * FROM v"), _reader(db, VIEWS[name])
        anew = _duck_reader(both.peer, text)
        kept()  # made from the stored rows, off the clock
        found = {
            "Headwater": timed(insert, kept, sizes.repetitions),
            "own re-evaluation": timed(insert, again, sizes.slow_repetitions),
            "DuckDB re-evaluation": timed(insert, anew, sizes.repetitions),
        }
        found["Headwater"]["tier"] = db.sql(TIER).rows()[0][0]
        found["own re-evaluation"]["void"] = difference(kept(), again())
        found["DuckDB re-evaluation"]["void"] = difference(kept(), anew())
    finally:
        db.sql("DROP VIEW v")
    return compared(found)


def compared(found: Figures) -> Figures:
    """With the times of everybody's median over ours."""
    mine = found["Headwater"]["median_ms"]
    for name, figures in found.items():
        if name != "Headwater":
            figures["ratio"] = figures["median_ms"] / mine
    return found


def point(sizes: Sizes) -> Figures:
    """One key of a view with many groups, one of which has changed since the last read."""
    with ours() as db, duck() as peer:
        columns = "k BIGINT, v BIGINT, t BIGINT"
        db.sql(f"CREATE STREAMING TABLE s ({columns}) TIMESTAMP BY t")
        db.sql("CREATE VIEW v AS SELECT k, count(*) AS n, sum(v) AS total FROM s GROUP BY k")
        peer.execute(f"CREATE TABLE s ({columns})")
        both = Both(db, peer)
        for first in range(0, sizes.groups, data.BATCH):
            count = min(data.BATCH, sizes.groups - first)
            both.insert("s", data.keyed(first, count, sizes.groups))
        db.flush()
        return _points(both, sizes)


def _points(both: Both, sizes: Sizes) -> Figures:
    numbers = itertools.count(sizes.groups)
    last = data.keyed(0, 1, sizes.groups)

    def insert() -> None:
        nonlocal last
        last = data.keyed(next(numbers), 1, sizes.groups)
        both.insert("s", last)

    def kept() -> pa.Table:
        return both.db.sql(f"SELECT * FROM v WHERE k = {last.column('k')[0]}").arrow()

    def anew() -> pa.Table:
        where = f"WHERE k = {last.column('k')[0]} GROUP BY k"
        return both.peer.sql(f"SELECT k, count(*), sum(v) FROM s {where}").to_arrow_table()

    found = {
        "Headwater": timed(insert, kept, sizes.repetitions),
        "DuckDB re-evaluation": timed(insert, anew, sizes.repetitions),
    }
    found["DuckDB re-evaluation"]["void"] = difference(kept(), anew())
    return {"groups": sizes.groups, **compared(found)}


def instants(sizes: Sizes) -> Figures:
    """By rows of a query's result: what an instant costs in which one of them changes."""
    return {f"{count:,}": _instants(count, sizes) for count in sizes.results}


def _instants(count: int, sizes: Sizes) -> Figures:
    """From the insert of the row until a reader of changes has what it changed."""
    print(f"{count:,} rows of a result …", flush=True)
    repetitions = sizes.repetitions
    with ours() as db:
        db.sql("CREATE STREAMING TABLE s (k BIGINT, v BIGINT, t BIGINT) TIMESTAMP BY t")
        db.sql(
            "CREATE CONTINUOUS QUERY q AS SELECT k, count(*) AS n, sum(v) AS total FROM s [LANDMARK] "
            "GROUP BY k SAMPLE INTERVAL 1 SECOND"
        )
        for first in range(0, count, data.BATCH):
            rows = data.keyed(first, min(data.BATCH, count - first), count)
            db.insert("s", rows.set_column(2, "t", pa.array([0] * rows.num_rows)))
        db.advance("s", 0)
        db.flush()
        elapsed, rows_told = [], []
        with db.subscribe("q", emit="changes", timeout=PATIENCE_S) as changes:
            for number in range(1, WARM_UP + repetitions + 1):
                started, used = time.perf_counter(), time.process_time()
                row = data.keyed(count + number, 1, count)
                db.insert("s", row.set_column(2, "t", pa.array([number])))
                db.advance("s", number)
                rows_told.append(next(changes).arrow().num_rows)
                elapsed.append((time.perf_counter() - started, time.process_time() - used))
        changed = set(rows_told)
        whole = db.sql("SELECT count(*), sum(n) FROM q").rows()[0]
    right = (count, count + WARM_UP + repetitions)
    times = [1000 * seconds for seconds, _ in elapsed[WARM_UP:]]
    return {
        "median_ms": median(times),
        "worst_ms": max(times),
        "cpu_ms": 1000 * median([cpu for _, cpu in elapsed[WARM_UP:]]),
        "rows_told": max(changed),
        "void": None if tuple(whole) == right else f"{tuple(whole)} instead of {right}",
    }


class Both:
    """The two systems, which get the same rows."""

    def __init__(self, db: headwater.Database, peer: Any) -> None:
        self.db, self.peer = db, peer

    def insert(self, table: str, rows: pa.Table) -> None:
        """Durable in both."""
        self.peer.register("rows_in", rows)
        self.peer.execute(f"INSERT INTO {table} SELECT * FROM rows_in")
        self.db.insert(table, rows)


def _reader(db: headwater.Database, text: str) -> Read:
    return lambda: db.sql(text).arrow()


def _duck_reader(peer: Any, text: str) -> Read:
    return lambda: peer.sql(text).to_arrow_table()
