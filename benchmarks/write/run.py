"""B11: acknowledged rows per second, durable: single rows from 8 threads, 1 000-row batches, and
100 000-row Arrow batches. Every system is measured until its rows are where they stay: we seal,
DuckDB checkpoints. Target: at least SQLite and PostgreSQL at every size, DuckDB on batches.
"""

from __future__ import annotations

import contextlib
import io
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv

import headwater
from benchmarks import postgres, report, reports
from benchmarks.targets import Target

THREADS = 8
SINGLE = "single rows, 8 threads"
Insert = Callable[[Any], None]
Work = tuple[str, int, int]  # name, rows a batch, batches


def main(quick: bool) -> int:
    """Measures, prints and keeps the figures; 1 if rows were missing somewhere."""
    scale = 1 if quick else 5
    works: list[Work] = [
        (SINGLE, 1, 2_000 * scale),
        ("1 000-row batches", 1_000, 300 * scale),
        ("100 000-row batches", 100_000, 20 * scale),
    ]
    systems = {"Headwater": ours, "SQLite": sqlite, "DuckDB": duckdb_}
    missing = postgres.why_missing()
    if missing is None:
        systems["PostgreSQL"] = postgresql
    else:
        print(f"PostgreSQL is left out: {missing}")
    figures: dict[str, Any] = {}
    right = True
    for name, rows, batches in works:
        figures[name] = {}
        data = [reports.batch(i * rows, rows, per_second=1000, cars=5000) for i in range(batches)]
        repetitions = 3 if quick else 5
        for system, run in systems.items():
            rates = []
            for _ in range(repetitions):
                rate, stored = run(data, THREADS if rows == 1 else 1)
                rates.append(rate)
                right &= stored == rows * batches
            figures[name][system] = report.spread(rates)
    _tell(figures, quick)
    return 0 if right else 1


def _targets(figures: dict[str, Any]) -> Iterator[Target]:
    for work, systems in figures.items():
        mine = systems["Headwater"]["median"]
        for system, rate in systems.items():
            wanted = system != "Headwater" and (system != "DuckDB" or work != SINGLE)
            if wanted:
                yield Target(f"B11 {work}: times {system}", mine / rate["median"], 1.0)


def _tell(figures: dict[str, Any], quick: bool) -> None:
    for name, systems in figures.items():
        mine = systems["Headwater"]["median"]
        rows = [
            (
                system,
                f"{rate['median']:,.0f}",
                f"{rate['best']:,.0f} … {rate['worst']:,.0f}",
                f"{mine / rate['median']:.2f}",
            )
            for system, rate in systems.items()
        ]
        report.table(f"B11 {name}", ("system", "rows/s", "least … most", "ours / theirs"), rows)
    reached = [target.row() for target in _targets(figures)]
    report.table("targets", ("target", "reached", "bound", ""), reached)
    kept = report.keep("write", {"quick": quick, "works": figures, "targets": reached})
    print(f"\nkept in {kept}")


def _timed(
    count: int, items: list[Any], threads: int, insert: Callable[[], Insert], end: Callable[[], Any]
) -> float:
    """Rows per second of all items over some threads, with what must happen at the end."""
    begin = threading.Barrier(threads + 1)

    def work(part: list[Any]) -> None:
        one = insert()
        begin.wait()
        for item in part:
            one(item)

    workers = [threading.Thread(target=work, args=(items[i::threads],)) for i in range(threads)]
    for worker in workers:
        worker.start()
    begin.wait()
    started = time.perf_counter()
    for worker in workers:
        worker.join()
    end()
    return count / (time.perf_counter() - started)


def _count(data: list[pa.Table]) -> int:
    return sum(batch.num_rows for batch in data)


def ours(data: list[pa.Table], threads: int) -> tuple[float, int]:
    """Headwater, as a user gets it: WAL synced per group, blocks sealed at the end."""
    with tempfile.TemporaryDirectory(dir=".") as folder, headwater.connect(folder) as db:
        db.sql("SELECT 1")  # Spark's start is not part of a write
        db.sql(f"CREATE STREAMING TABLE p ({reports.DDL}) TIMESTAMP BY t")
        items: list[Any] = data
        if threads > 1:
            items = [b.to_pylist() for b in data]
        rate = _timed(_count(data), items, threads, lambda: lambda b: db.insert("p", b), db.seal)
        return rate, int(db.sql("SELECT count(*) FROM p").rows()[0][0])


def sqlite(data: list[pa.Table], threads: int) -> tuple[float, int]:
    """SQLite: WAL, synchronous=FULL, one connection a thread."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = f"{folder}/db"
        with contextlib.closing(sqlite3.connect(path)) as first:
            first.execute("PRAGMA journal_mode = WAL")
            first.execute(f"CREATE TABLE p ({reports.DDL})")
        items = [list(zip(*[c.to_pylist() for c in b.columns], strict=True)) for b in data]

        def insert() -> Insert:
            connection = sqlite3.connect(
                path, timeout=60, isolation_level=None, check_same_thread=False
            )
            connection.execute("PRAGMA synchronous = FULL")
            sql = f"INSERT INTO p VALUES ({', '.join('?' * len(reports.COLUMNS))})"

            def one(rows: list[Any]) -> None:
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany(sql, rows)
                connection.execute("COMMIT")

            return one

        rate = _timed(_count(data), items, threads, insert, lambda: None)
        with contextlib.closing(sqlite3.connect(path)) as last:
            return rate, int(last.execute("SELECT count(*) FROM p").fetchone()[0])


def duckdb_(data: list[pa.Table], threads: int) -> tuple[float, int]:
    """DuckDB: a file, one cursor a thread, a checkpoint at the end."""
    import duckdb

    with (
        tempfile.TemporaryDirectory(dir=".") as folder,
        contextlib.closing(duckdb.connect(f"{folder}/db")) as connection,
    ):
        connection.execute(f"CREATE TABLE p ({reports.DDL})")

        def insert() -> Insert:
            cursor = connection.cursor()

            def one(rows: pa.Table) -> None:
                cursor.register("rows_in", rows)
                cursor.execute("INSERT INTO p SELECT * FROM rows_in")

            return one

        rate = _timed(_count(data), data, threads, insert, lambda: connection.execute("CHECKPOINT"))
        found = connection.execute("SELECT count(*) FROM p").fetchone()
        return rate, int(found[0]) if found else 0


def postgresql(data: list[pa.Table], threads: int) -> tuple[float, int]:
    """PostgreSQL: INSERT for single rows, COPY for batches, text made beforehand."""
    with postgres.server() as text:
        first = postgres.connect(text)
        first.execute(f"CREATE TABLE p ({reports.DDL})")
        items = [_csv(b) if threads == 1 else tuple(c[0].as_py() for c in b.columns) for b in data]

        def insert() -> Insert:
            connection = postgres.connect(text)
            sql = f"INSERT INTO p VALUES ({', '.join(['%s'] * len(reports.COLUMNS))})"

            def one_row(row: Any) -> None:
                connection.execute(sql, row, prepare=True)

            def one_batch(content: bytes) -> None:
                with connection.cursor().copy("COPY p FROM STDIN (FORMAT csv)") as copy:
                    copy.write(content)

            return one_row if threads > 1 else one_batch

        rate = _timed(_count(data), items, threads, insert, lambda: None)
        stored = int(first.execute("SELECT count(*) FROM p").fetchone()[0])
        first.close()
        return rate, stored


def _csv(rows: pa.Table) -> bytes:
    buffer = io.BytesIO()
    csv.write_csv(rows, buffer, csv.WriteOptions(include_header=False))
    return buffer.getvalue()
