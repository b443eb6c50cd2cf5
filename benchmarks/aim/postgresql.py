"""PostgreSQL, two ways: aggregates kept by upserts as in the paper's pg-cv, or calls kept as they are.

pg-cv: a batch is copied into a temporary table, one statement a view brings its groups into a table of
aggregates, and the view reads these; all in one transaction, synchronous_commit on.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv

from benchmarks import postgres
from benchmarks.aim import data
from benchmarks.aim.queries import query
from benchmarks.aim.systems import Rows

WEEK = "extract(week FROM current_date)::int"
SUM = "{0} = s.{0} + excluded.{0}"
MAX = "{0} = greatest(s.{0}, excluded.{0})"

# By view: the columns of its table with their aggregates, the rest of the statement, and the view.
FOLDS: dict[str, tuple[str, dict[str, str], str, str]] = {
    "q1": (
        "entity_id",
        {"duration": "sum(duration)", "calls": "count(local_calls)"},
        "FROM batch WHERE week = {week}",
        "SELECT avg(duration) FROM q1_state WHERE calls > 2",
    ),
    "q2": (
        "entity_id",
        {"cost": "max(cost)", "calls": "count(*)"},
        "FROM batch WHERE week = {week}",
        "SELECT max(cost) FROM q2_state WHERE calls > 2",
    ),
    "q3": (
        "entity_id",
        {"cost": "sum(cost)", "duration": "sum(duration)", "calls": "count(*)"},
        "FROM batch WHERE week = {week}",
        "SELECT sum(cost)::float8 / sum(duration) FROM q3_state GROUP BY calls LIMIT 100",
    ),
    "q4": (
        "entity_id",
        {"calls": "count(*)", "duration": "sum(duration)"},
        "FROM batch WHERE NOT long_distance AND week = {week}",
        "SELECT city_zip, avg(calls), sum(duration) FROM q4_state e, customers c "
        "WHERE calls > 4 AND duration > 25 AND e.entity_id = c.id GROUP BY city_zip",
    ),
    "q5": (
        "region_id",
        {"cost_long": "sum(long_distance_cost)", "cost_local": "sum(local_cost)"},
        "FROM batch e, customers c WHERE e.entity_id = c.id AND week = {week} "
        "AND c.type = 2 AND c.category = 1",
        "SELECT region_id, cost_long, cost_local FROM q5_state",
    ),
    "q7": (
        "one",
        {"cost": "sum(cost)", "duration": "sum(duration)"},
        "FROM batch e, customers c, (SELECT 1 AS one) o WHERE e.entity_id = c.id "
        "AND week = {week} AND c.value_type = 2",
        "SELECT sum(cost)::float8 / sum(duration) FROM q7_state",
    ),
}


def upsert(view: str) -> str:
    """The statement that brings a batch into a view's table."""
    key, aggregates, source, _ = FOLDS[view]
    values = ", ".join(aggregates.values())
    changes = [(MAX if a.startswith("max") else SUM).format(c) for c, a in aggregates.items()]
    return (
        f"INSERT INTO {view}_state AS s SELECT {key}, {values} {source.format(week=WEEK)} "
        f"GROUP BY {key} ON CONFLICT ({key}) DO UPDATE SET {', '.join(changes)}"
    )


class Upserting:
    """pg-cv: one connection writes, another reads."""

    two_threads = True

    def __init__(self, text: str, views: Sequence[str]) -> None:
        self.writer, self.reader = postgres.connect(text), postgres.connect(text)
        self._upserts = [upsert(view) for view in views]
        for view in views:
            key, aggregates, _, _ = FOLDS[view]
            columns = ", ".join(f"{name} BIGINT" for name in aggregates)
            self.writer.execute(f"CREATE TABLE {view}_state ({key} BIGINT PRIMARY KEY, {columns})")
        self.writer.execute(
            f"CREATE TEMP TABLE batch ({data.ddl(data.EVENTS)}) ON COMMIT DELETE ROWS"
        )

    def prepare(self, events: pa.Table) -> bytes:
        """Text for COPY."""
        return as_csv(events)

    def insert(self, batch: bytes) -> None:
        """One transaction."""
        with self.writer.transaction():
            copy_in(self.writer, "batch", batch)
            for statement in self._upserts:
                self.writer.execute(statement)

    def settle(self) -> None:
        """Commits have done it."""

    def read(self, view: str) -> Rows:
        """From its table of aggregates."""
        rows: Rows = self.reader.execute(FOLDS[view][3]).fetchall()
        return rows

    def close(self) -> None:
        """Both connections."""
        self.writer.close()
        self.reader.close()


class Plain(Upserting):
    """Calls are kept in a table; a view is its query over all of them."""

    def __init__(self, text: str) -> None:
        super().__init__(text, ())
        self.writer.execute(f"CREATE TABLE events ({data.ddl(data.EVENTS)})")

    def insert(self, batch: bytes) -> None:
        """One COPY."""
        copy_in(self.writer, "events", batch)

    def read(self, view: str) -> Rows:
        """The whole query."""
        text = query(view, WEEK).replace(" / ", "::float8 / ")
        rows: Rows = self.reader.execute(text).fetchall()
        return rows


@contextlib.contextmanager
def upserting(customers: pa.Table, views: Sequence[str]) -> Iterator[Upserting]:
    """A server with pg-cv's tables."""
    with _server(customers) as text, contextlib.closing(Upserting(text, views)) as system:
        yield system


@contextlib.contextmanager
def plain(customers: pa.Table, views: Sequence[str]) -> Iterator[Plain]:  # noqa: ARG001
    """A server with the calls."""
    with _server(customers) as text, contextlib.closing(Plain(text)) as system:
        yield system


@contextlib.contextmanager
def _server(customers: pa.Table) -> Iterator[str]:
    with postgres.server() as text:
        with contextlib.closing(postgres.connect(text)) as first:
            first.execute(f"CREATE TABLE customers ({data.ddl(data.CUSTOMERS)})")
            for part in range(0, customers.num_rows, 1_000_000):
                copy_in(first, "customers", as_csv(customers.slice(part, 1_000_000)))
            first.execute("ALTER TABLE customers ADD PRIMARY KEY (id)")
            first.execute("ANALYZE customers")
        yield text


def as_csv(rows: pa.Table) -> bytes:
    """Rows as COPY reads them."""
    buffer = io.BytesIO()
    csv.write_csv(rows, buffer, csv.WriteOptions(include_header=False))
    return buffer.getvalue()


def copy_in(connection: Any, table: str, content: bytes) -> None:
    """COPY."""
    with connection.cursor().copy(f"COPY {table} FROM STDIN (FORMAT csv)") as copy:
        copy.write(content)
