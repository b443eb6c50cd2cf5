"""DuckDB with deferred views: rows are appended, a view is its query over all of them."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from benchmarks.tpch import data
from benchmarks.tpch.answers import Rows
from benchmarks.tpch.queries import QUERIES


class Duck:
    """The tables in a file, or in memory."""

    def __init__(self, connection: Any, durable: bool) -> None:
        self.connection, self._durable = connection, durable

    def empty(self) -> None:
        """Begins anew."""
        schema = data.ddl(self._schema)
        self.connection.execute(f"CREATE OR REPLACE TABLE {data.STREAM} ({schema})")

    def load(self, scale: float) -> None:
        """The standard tables."""
        for name in data.STATIC:
            self.connection.register("rows_in", data.table(scale, name))
            self.connection.execute(f"CREATE TABLE {name} AS SELECT * FROM rows_in")
        self._schema = data.table(scale, data.STREAM).schema
        self.empty()

    def insert(self, batches: Sequence[pa.Table]) -> float:
        """Seconds until all rows are where they stay."""
        started = time.perf_counter()
        for batch in batches:
            self.connection.register("rows_in", batch)
            self.connection.execute(f"INSERT INTO {data.STREAM} SELECT * FROM rows_in")
        if self._durable:
            self.connection.execute("CHECKPOINT")
        return time.perf_counter() - started

    def read(self, query: str) -> tuple[float, Rows]:
        """Seconds of a refresh, and its rows."""
        started = time.perf_counter()
        rows: Rows = self.connection.execute(QUERIES[query]).fetchall()
        return time.perf_counter() - started, rows


@contextlib.contextmanager
def opened(scale: float, *, durable: bool = True) -> Iterator[Duck]:
    """A database of its own."""
    import duckdb

    with contextlib.ExitStack() as stack:
        path = ":memory:"
        if durable:
            path = stack.enter_context(tempfile.TemporaryDirectory(dir=".")) + "/db"
        connection = stack.enter_context(contextlib.closing(duckdb.connect(path)))
        connection.execute("SET preserve_insertion_order = false")
        system = Duck(connection, durable)
        system.load(scale)
        yield system
