"""Headwater: lineitem a stream (or a streaming table), the other tables standard, one view at a time."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator, Sequence

import pyarrow as pa

import headwater
from benchmarks.installed import Missing
from benchmarks.tpch import data
from benchmarks.tpch.answers import Rows
from benchmarks.tpch.queries import QUERIES

IN_MEMORY = "/dev/shm"  # syncs cost nothing there: what we have in place of a setting against them


class Headwater:
    """An open database with the tables."""

    def __init__(self, db: headwater.Database) -> None:
        self.db = db

    def make(self, query: str, maintenance: str = "split") -> None:
        """Makes a view; Missing with the reason if it is refused."""
        text = f"CREATE VIEW {query} WITH (maintenance = '{maintenance}') AS {QUERIES[query]}"
        try:
            self.db.sql(text)
        except headwater.Error as error:
            raise Missing(error.message) from error

    def drop(self, query: str) -> None:
        """Drops a view."""
        self.db.sql(f"DROP VIEW {query}")

    def insert(self, batches: Sequence[pa.Table]) -> None:
        """All rows, acknowledged."""
        for batch in batches:
            self.db.insert(data.STREAM, batch)

    def read(self, query: str) -> Rows:
        """The view as of now."""
        return self.db.sql(f"SELECT * FROM {query}").rows()

    def tier(self, query: str) -> str:
        """Where the view's stream pipelines and its upper part run."""
        lines = [str(row[0]) for row in self.db.sql(f"EXPLAIN VIEW {query}").rows()]
        found = [line.rpartition(", ")[2] for line in lines if "stream pipeline:" in line]
        upper = [line.rpartition(": ")[2] for line in lines if line.startswith("at each read:")]
        return " + ".join([*found, *(f"upper {tier}" for tier in upper)])


def timed(system: Headwater, query: str, batches: Sequence[pa.Table]) -> tuple[float, Rows]:
    """Seconds of all inserts and one read, and what was read."""
    started = time.perf_counter()
    system.insert(batches)
    rows = system.read(query)
    return time.perf_counter() - started, rows


@contextlib.contextmanager
def opened(scale: float, *, durable: bool = True, kind: str = "STREAM") -> Iterator[Headwater]:
    """A database in a folder of its own, on disk or in memory; Spark has started."""
    with (
        tempfile.TemporaryDirectory(dir="." if durable else IN_MEMORY) as folder,
        headwater.connect(f"{folder}/db") as db,
    ):
        db.sql("SELECT 1")
        for name in data.STATIC:
            rows = data.table(scale, name)
            db.sql(f"CREATE TABLE {name} ({data.ddl(rows.schema)})")
            db.insert(name, rows)
        schema = data.table(scale, data.STREAM).schema
        db.sql(f"CREATE {kind} {data.STREAM} ({data.ddl(schema)})")
        yield Headwater(db)
