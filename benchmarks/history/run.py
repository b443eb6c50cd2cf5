"""B8, first version: one-time queries by time and key over stored position reports.

Loads reports with indexes on vid and seg (and once without, for the cost of the indexes), then asks
Q1 (one car in a stretch of time) and Q2 (one segment in a short stretch), beside DuckDB (the same
rows, its own table) and PostgreSQL (B-trees on both). Ours also with interval and value pruning
off. Aims: ≥ 10 × our own full scan; insert rate with two indexes, until they have caught up,
within 30 % of without; a row is found right after its insert (delay 0).
"""

from __future__ import annotations

import contextlib
import io
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

import headwater
from benchmarks import postgres, report, reports
from benchmarks.targets import Target

BATCH = 100_000
PER_SECOND = 1_000
CARS = 20_000
INDEXES = ("vid", "seg")
Query = tuple[str, int, int, int]  # column, value, from, to


def main(quick: bool) -> int:
    """Measures, prints and keeps the figures; 1 if two systems disagree."""
    batches = 12 if quick else 120
    queries = _queries(batches * BATCH // PER_SECOND, 10 if quick else 30)
    figures: dict[str, Any] = {"quick": quick, "rows": batches * BATCH}
    with tempfile.TemporaryDirectory(dir=".") as folder:
        plain = _load(f"{folder}/plain", batches, ())
        figures["insert_rows_per_s"] = {"without indexes": plain}
        with_indexes = _load(f"{folder}/indexed", batches, INDEXES)
        figures["insert_rows_per_s"]["with two, caught up"] = with_indexes
        with headwater.connect(f"{folder}/indexed") as db:
            answers = _ours(db, queries, figures)
            figures["delay_0"] = _delay(db)
    right = _peers(batches, queries, answers, figures)
    _tell(figures)
    return 0 if right and figures["delay_0"] else 1


def _queries(seconds: int, count: int) -> dict[str, list[Query]]:
    random = np.random.default_rng(7)
    one, two = [], []
    for _ in range(count):
        start = int(random.integers(0, max(seconds - 1500, 1)))
        one.append(("vid", int(random.integers(0, CARS)), start, start + 1500))
        two.append(("seg", int(random.integers(0, 100)), start, start + 60))
    return {"Q1 car, 1500 s": one, "Q2 segment, 60 s": two}


def _sql(query: Query) -> str:
    column, value, low, high = query
    return f"SELECT vid, spd, seg, t FROM p WHERE {column} = {value} AND t BETWEEN {low} AND {high}"


def _load(folder: str, batches: int, indexes: tuple[str, ...]) -> float:
    """Rows per second until everything is sealed and every index has caught up."""
    with headwater.connect(folder) as db:
        db.sql("SELECT 1")
        db.sql(f"CREATE STREAMING TABLE p ({reports.DDL}) TIMESTAMP BY t")
        for name in indexes:
            db.sql(f"CREATE INDEX by_{name} ON p ({name})")
        data = [_batch(i) for i in range(batches)]
        started = time.perf_counter()
        for rows in data:
            db.insert("p", rows)
        db.seal()
        return batches * BATCH / (time.perf_counter() - started)


def _batch(number: int) -> pa.Table:
    return reports.batch(number * BATCH, BATCH, per_second=PER_SECOND, cars=CARS)


def _measured(
    queries: list[Query], ask: Callable[[Query], int]
) -> tuple[dict[str, float], list[int]]:
    """Milliseconds a query (after one round to warm up), and the rows of each."""
    counts = [ask(query) for query in queries]
    times = []
    for query in queries:
        started = time.perf_counter()
        ask(query)
        times.append((time.perf_counter() - started) * 1000)
    return {"average": float(np.mean(times)), **report.spread(times)}, counts


def _ours(
    db: headwater.Database, queries: dict[str, list[Query]], figures: dict[str, Any]
) -> dict[str, list[int]]:
    answers = {}
    table = db._context.streaming_table("p")
    files = [str(table.folder / block.path) for block in table.blocks]
    for name, some in queries.items():
        figures.setdefault(name, {})
        figures[name]["Headwater"], answers[name] = _measured(some, lambda q: len(db.sql(_sql(q))))
        figures[name]["own full scan"], full = _measured(some[:3], lambda q: _full_scan(files, q))
        assert full == answers[name][:3]
        plan = [row[0] for row in db.sql(f"EXPLAIN {_sql(some[0])}").rows()]
        figures[name]["plan"] = plan[1:3]
    return answers


def _full_scan(files: list[str], query: Query) -> int:
    """The same scan with interval and value pruning off: every block is read and filtered."""
    column, value, low, high = query
    condition = (pc.field(column) == value) & (pc.field("t") >= low) & (pc.field("t") <= high)
    return sum(
        pq.read_table(f, columns=["vid", "spd", "seg", "t"]).filter(condition).num_rows
        for f in files
    )


def _delay(db: headwater.Database) -> bool:
    """Whether a row can be found, by its key, right after its insert."""
    last = int(db.sql("SELECT t FROM p ORDER BY t DESC LIMIT 1").rows()[0][0])
    for i in range(100):
        db.insert("p", [(CARS + 1 + i, 1, 0, 0, 0, 5, 0, last + 1)])
        if len(db.sql(f"SELECT vid FROM p WHERE vid = {CARS + 1 + i}")) != 1:
            return False
    return True


def _peers(
    batches: int,
    queries: dict[str, list[Query]],
    answers: dict[str, list[int]],
    figures: dict[str, Any],
) -> bool:
    right = _duckdb(batches, queries, answers, figures)
    missing = postgres.why_missing()
    if missing is not None:
        print(f"PostgreSQL is left out: {missing}")
        return right
    return _postgres(batches, queries, answers, figures) and right


def _duckdb(batches: int, queries: Any, answers: Any, figures: Any) -> bool:
    import duckdb

    right = True
    with (
        tempfile.TemporaryDirectory(dir=".") as folder,
        contextlib.closing(duckdb.connect(f"{folder}/db")) as connection,
    ):
        connection.execute(f"CREATE TABLE p ({reports.DDL})")
        for number in range(batches):
            connection.register("rows_in", _batch(number))
            connection.execute("INSERT INTO p SELECT * FROM rows_in")

        def ask(query: Query) -> int:
            return int(connection.sql(_sql(query)).to_arrow_table().num_rows)

        for name, some in queries.items():
            figures[name]["DuckDB"], counts = _measured(some, ask)
            right &= counts == answers[name]
    return right


def _postgres(batches: int, queries: Any, answers: Any, figures: Any) -> bool:
    right = True
    with postgres.server() as text:
        connection = postgres.connect(text)
        connection.execute(f"CREATE TABLE p ({reports.DDL})")
        for name in INDEXES:
            connection.execute(f"CREATE INDEX ON p ({name}, t)")
        started = time.perf_counter()
        for number in range(batches):
            buffer = io.BytesIO()
            csv.write_csv(_batch(number), buffer, csv.WriteOptions(include_header=False))
            with connection.cursor().copy("COPY p FROM STDIN (FORMAT csv)") as copy:
                copy.write(buffer.getvalue())
        rate = batches * BATCH / (time.perf_counter() - started)
        figures["insert_rows_per_s"]["PostgreSQL, two B-trees"] = rate
        connection.execute("ANALYZE p")

        def ask(query: Query) -> int:
            return len(connection.execute(_sql(query)).fetchall())

        for name, some in queries.items():
            figures[name]["PostgreSQL"], counts = _measured(some, ask)
            right &= counts == answers[name]
        connection.close()
    return right


def _targets(figures: dict[str, Any]) -> Iterator[Target]:
    for name in [n for n in figures if n.startswith("Q")]:
        mine = figures[name]["Headwater"]["average"]
        for system, bound in (("own full scan", 10.0), ("PostgreSQL", 1.0)):
            found = figures[name].get(system)
            reached = None if found is None else found["average"] / mine
            yield Target(f"B8 {name}: {system} / ours", reached, bound)


def _tell(figures: dict[str, Any]) -> None:
    for name in [n for n in figures if n.startswith("Q")]:
        mine = figures[name]["Headwater"]["average"]
        rows = [
            (system, f"{f['average']:.2f}", f"{f['worst']:.2f}", f"{f['average'] / mine:.1f}")
            for system, f in figures[name].items()
            if isinstance(f, dict)
        ]
        report.table(f"B8 {name}", ("system", "ms on average", "worst", "theirs / ours"), rows)
        print("  " + "\n  ".join(figures[name]["plan"]))
    rates = figures["insert_rows_per_s"]
    report.table("insert, rows/s", ("", "rows/s"), [(n, f"{r:,.0f}") for n, r in rates.items()])
    print(f"\nrecent rows found at once: {figures['delay_0']}")
    figures["targets"] = [target.row() for target in _targets(figures)]
    report.table("targets", ("target", "reached", "bound", ""), figures["targets"])
    print(f"kept in {report.keep('history', figures)}")
