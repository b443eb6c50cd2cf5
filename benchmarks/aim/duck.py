"""DuckDB with deferred views: calls are appended to a table, a view is its query over all of them."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from benchmarks.aim import data
from benchmarks.aim.queries import query
from benchmarks.aim.systems import Rows


class Duck:
    """A file with the tables; one cursor writes, another reads."""

    two_threads = True

    def __init__(self, writer: Any, reader: Any) -> None:
        self._writer, self._reader = writer, reader

    def prepare(self, events: pa.Table) -> pa.Table:
        """Arrow goes in as it is."""
        return events

    def insert(self, batch: pa.Table) -> None:
        """One commit."""
        self._writer.register("rows_in", batch)
        self._writer.execute("INSERT INTO events SELECT * FROM rows_in")

    def settle(self) -> None:
        """Rows are where they stay."""
        self._writer.execute("CHECKPOINT")

    def read(self, view: str) -> Rows:
        """The whole query."""
        rows: Rows = self._reader.execute(query(view, "weekofyear(current_date)")).fetchall()
        return rows


@contextlib.contextmanager
def deferred(customers: pa.Table, views: Sequence[str]) -> Iterator[Duck]:  # noqa: ARG001
    """A file of its own."""
    import duckdb

    with (
        tempfile.TemporaryDirectory(dir=".") as folder,
        contextlib.closing(duckdb.connect(f"{folder}/db")) as connection,
    ):
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"CREATE TABLE events ({data.ddl(data.EVENTS)})")
        connection.register("customers_in", customers)
        connection.execute("CREATE TABLE customers AS SELECT * FROM customers_in")
        yield Duck(connection.cursor(), connection.cursor())
