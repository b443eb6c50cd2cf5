"""A database without Spark for the command line's tests."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from headwater.errors import BindError, CancelledError, Place
from headwater.execute.relations import RelationColumns
from tests.harness.patience import PATIENCE_S


class FakeResult:
    """A result made by hand."""

    def __init__(self, kind: str, table: pa.Table | None = None, count: int | None = None) -> None:
        self.kind = kind
        self.has_rows = table is not None
        self.row_count = table.num_rows if table is not None else count
        self.notice: str | None = None
        self._table = table

    def arrow(self) -> pa.Table:
        assert self._table is not None
        return self._table


class FakeDatabase:
    """Knows a handful of statements; `wait` runs until it is cancelled."""

    def __init__(self) -> None:
        self.spark_ready = True
        self.closed = False
        self.deaf = False  # ignores cancel()
        self.started = threading.Event()
        self.cancelled = threading.Event()
        self.statements: list[str] = []
        self.connected: tuple[object, ...] = ()

    def script(self, text: str, *, follow: bool = False) -> Iterator[FakeResult]:
        for part in re.split(r";\s*", text):
            statement = part.strip()
            if statement:
                self.statements.append(statement)
                yield self._answer(statement, text)

    def _answer(self, statement: str, text: str) -> FakeResult:
        words = statement.lower().split()
        if words[0] == "wait":
            self.started.set()
            self.cancelled.wait(PATIENCE_S)
            raise CancelledError("statement was cancelled")
        if words[0] == "select":
            numbers = [None if w == "null" else int(w) for w in words[1:]]
            return FakeResult("SELECT", pa.table({"n": pa.array(numbers, pa.int64())}))
        if words[0] == "many":
            return FakeResult("SELECT", pa.table({"n": list(range(int(words[1])))}))
        if words[0] == "insert":
            return FakeResult("INSERT", count=3)
        if words[0] in ("describe", "show"):
            return FakeResult(words[0].upper(), pa.table({"seen": [statement]}))
        if words[0] == "explain":
            return FakeResult("EXPLAIN", pa.table({"plan": ["plain scan", "columns: id"]}))
        if words[0] == "bug":
            raise ZeroDivisionError("oops")
        if words[0] == "bad":
            start = text.index(statement)
            place = Place(text, start, start + 3)
            raise BindError("no such thing", sqlstate="42704", hint="did you mean good?").at(place)
        return FakeResult("CREATE TABLE")

    def cancel(self) -> None:
        if not self.deaf:
            self.cancelled.set()

    def catalog_names(self) -> dict[str, list[str]]:
        return {"orders": ["id", "price", "placed at"], "line items": ["id", "count"]}

    def relations(self) -> list[RelationColumns]:
        names = self.catalog_names()
        schemas = {n: pa.schema([(c, pa.string()) for c in cs]) for n, cs in names.items()}
        return [RelationColumns(1, name, "table", schema) for name, schema in schemas.items()]

    def relation(self, name: str) -> RelationColumns | None:
        if name == "dear":
            return RelationColumns(2, name, "view", pa.schema([]), "SELECT *\n  FROM orders")
        return next((r for r in self.relations() if r.name == name), None)

    def close(self) -> None:
        self.closed = True
        self.cancelled.set()  # lets a waiting worker thread end


@pytest.fixture
def database() -> Iterator[FakeDatabase]:
    fake = FakeDatabase()
    yield fake
    fake.close()
