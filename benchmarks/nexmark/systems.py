"""Headwater and DuckDB with NEXMark's streams: a chunk goes in durably, then views are read.

Headwater keeps its views; DuckDB has the rows and computes a query anew at each read. Both commit a chunk's
three inserts together, and hand results out as Arrow.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa

import headwater
from benchmarks.installed import Missing
from benchmarks.nexmark import data
from benchmarks.nexmark.data import Chunk
from tests.harness.workloads.queries import WorkloadQuery, read_queries

QUERIES = {one.name: one for one in read_queries("nexmark")}


class System(Protocol):
    """One system with its tables."""

    def begin(self, queries: Sequence[WorkloadQuery]) -> None:
        """Empty tables, and these queries."""

    def insert(self, chunk: Chunk) -> None:
        """Returns when the rows are durable."""

    def settle(self) -> None:
        """Returns when everything inserted has been processed."""

    def read(self, query: WorkloadQuery) -> pa.Table:
        """A query over all rows inserted so far."""


class Headwater:
    """An open database."""

    def __init__(self, db: headwater.Database) -> None:
        self.db = db
        self._views: list[str] = []

    def begin(self, queries: Sequence[WorkloadQuery]) -> None:
        """New tables, new views."""
        for view in self._views:
            self.db.sql(f"DROP VIEW IF EXISTS {view}")
        for name, columns in data.STREAMS.items():
            self.db.sql(f"DROP TABLE IF EXISTS {name}")
            self.db.sql(f"CREATE STREAMING TABLE {name} ({columns}) TIMESTAMP BY dateTime")
        self._views = [one.name for one in queries]
        for one in queries:
            try:
                self.db.sql(f"CREATE VIEW {one.name} AS {one.text}")
            except headwater.Error as error:
                raise Missing(error.message) from error

    def insert(self, chunk: Chunk) -> None:
        """One transaction."""
        self.db.insert_together({name: rows for name, rows in chunk.items() if rows.num_rows})

    def settle(self) -> None:
        """Views have taken everything."""
        self.db.flush()

    def read(self, query: WorkloadQuery) -> pa.Table:
        """The view."""
        return self.db.sql(f"SELECT * FROM {query.name}").arrow()


class Duck:
    """A DuckDB file."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def begin(self, queries: Sequence[WorkloadQuery]) -> None:  # noqa: ARG002
        """New tables."""
        for name, columns in data.STREAMS.items():
            columns = columns.replace("TIMESTAMP", "TIMESTAMPTZ")
            self._connection.execute(f"CREATE OR REPLACE TABLE {name} ({columns})")

    def insert(self, chunk: Chunk) -> None:
        """One transaction."""
        self._connection.execute("BEGIN")
        for name, rows in chunk.items():
            self._connection.register("rows_in", rows)
            self._connection.execute(f"INSERT INTO {name} SELECT * FROM rows_in")
        self._connection.execute("COMMIT")

    def settle(self) -> None:
        """Nothing waits."""

    def read(self, query: WorkloadQuery) -> pa.Table:
        """The query anew."""
        return self._connection.sql(query.in_duckdb()).to_arrow_table()


@contextlib.contextmanager
def ours(**settings: object) -> Iterator[Headwater]:
    """A database in a folder of its own; Spark has started."""
    with (
        tempfile.TemporaryDirectory(dir=".") as folder,
        headwater.connect(f"{folder}/db", settings=settings) as db,
    ):
        db.sql("SELECT 1")
        db.sql(f"CREATE TABLE side_input ({data.SIDE_INPUT})")
        db.insert("side_input", data.SIDE_ROWS)
        yield Headwater(db)


@contextlib.contextmanager
def duck() -> Iterator[Duck]:
    """A file of its own."""
    import duckdb

    with (
        tempfile.TemporaryDirectory(dir=".") as folder,
        contextlib.closing(duckdb.connect(f"{folder}/db")) as connection,
    ):
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(f"CREATE TABLE side_input ({data.SIDE_INPUT})")
        connection.executemany("INSERT INTO side_input VALUES (?, ?)", data.SIDE_ROWS)
        yield Duck(connection)
