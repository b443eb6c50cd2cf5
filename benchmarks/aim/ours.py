"""Headwater, as a user gets it: a stream, a table, six views, the log synced at each insert."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence

import pyarrow as pa

import headwater
from benchmarks.aim import data
from benchmarks.aim.queries import query
from benchmarks.aim.systems import Rows


class Headwater:
    """An open database with the views."""

    two_threads = True

    def __init__(self, db: headwater.Database) -> None:
        self.db = db

    def prepare(self, events: pa.Table) -> pa.Table:
        """Arrow goes in as it is."""
        return events

    def insert(self, batch: pa.Table) -> None:
        """One insert."""
        self.db.insert("events", batch)

    def settle(self) -> None:
        """Everything is folded."""
        self.db.flush()

    def read(self, view: str) -> Rows:
        """As of now."""
        return self.db.sql(f"SELECT * FROM {view}").rows()

    def make(self, views: Sequence[str]) -> None:
        """Makes views."""
        for name in views:
            text = query(name, "weekofyear(current_date())")
            self.db.sql(f"CREATE VIEW {name} WITH (volatile = 'at insert') AS {text}")

    def drop(self, views: Sequence[str]) -> None:
        """Drops views."""
        for name in views:
            self.db.sql(f"DROP VIEW {name}")


@contextlib.contextmanager
def opened(customers: pa.Table, views: Sequence[str]) -> Iterator[Headwater]:
    """A database in a folder of its own; Spark has started."""
    with (
        tempfile.TemporaryDirectory(dir=".") as folder,
        headwater.connect(f"{folder}/db") as db,
    ):
        db.sql("SELECT 1")
        db.sql(f"CREATE TABLE customers ({data.ddl(data.CUSTOMERS)})")
        db.insert("customers", customers)
        db.sql(f"CREATE STREAM events ({data.ddl(data.EVENTS)})")
        system = Headwater(db)
        system.make(views)
        yield system
