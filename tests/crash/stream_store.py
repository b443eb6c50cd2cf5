"""Streaming tables without Spark and SQL: a bare StreamStore in a folder, for storage tests.

`Opened` does what Database does around the store (catalog, definitions, indexes, RANGE), so that a
child process starts in a fraction of a second and a test can leave out single steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.settings import Settings
from headwater.storage.catalog import Catalog
from headwater.storage.streaming.definition import Definition
from headwater.storage.streaming.read import Wanted, select
from headwater.storage.streaming.store import StreamStore
from headwater.storage.streaming.table import StreamingTable

SCHEMA = pa.schema([pa.field("t", pa.int64()), pa.field("id", pa.int64())])
QUIET = {"block_age_s": 1e9, "wal_segment_mb": 1}  # only what a test asks for is sealed


class Opened:
    """An open folder of streaming tables."""

    def __init__(self, folder: Path, **settings: object) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.settings = Settings({**QUIET, **settings}, environment={})
        self.catalog = Catalog(folder / "catalog")
        try:
            self.store = StreamStore(folder, self.catalog, self.settings)
        except BaseException:
            self.catalog.close()
            raise
        for item in self.catalog.all("index"):
            table = self.store.find(item.definition["table_id"])
            assert table is not None
            table.indexes.add(
                item.name, item.id, item.definition["column"], item.definition["method"]
            )
        for table in self.store.all():
            table.indexes.keep_only(table.blocks)

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def create(self, name: str, schema: pa.Schema = SCHEMA, **options: Any) -> StreamingTable:
        """CREATE STREAMING TABLE; options are fields of Definition."""
        given = {
            "id": 0,
            "name": name,
            "kind": "streaming table",
            "schema": schema,
            "time_column": "t",
            "range_ticks": None,
            "watermark_ticks": 0,
            "late": "keep",
            "update_key": None,
            "compartments": 8,
            "max_step_ticks": None,
            "folder": f"{name}-1",
            **options,
        }
        definition = Definition(**given)
        StreamingTable.make(self.folder / "tables" / definition.folder, definition)
        item = self.catalog.add(definition.kind, name, definition.as_json())
        return self.store.add(replace(definition, id=item.id))

    def table(self, name: str) -> StreamingTable:
        """The table of that name."""
        item = self.catalog.find(name)
        assert item is not None
        found = self.store.find(item.id)
        assert found is not None
        return found

    def create_index(self, name: str, table: StreamingTable, column: str, method: str) -> None:
        """CREATE INDEX."""
        definition = {"table_id": table.definition.id, "column": column, "method": method}
        item = self.catalog.add("index", name, definition)
        table.indexes.add(name, item.id, column, method)

    def set_range(self, table: StreamingTable, ticks: int | None, *, whole: bool = True) -> None:
        """ALTER TABLE … SET RANGE; not `whole`: as far as a process comes that dies in between."""
        changed = replace(table.definition, range_ticks=ticks)
        item = self.catalog.find(table.definition.name)
        assert item is not None
        with table.upkeep:
            self.catalog.change(item, changed.as_json())
            if whole:
                table.definition = changed
                table.rebuild_compartments()
        if whole:
            table.expire()

    def close(self) -> None:
        """A clean end: everything is sealed."""
        self._end(seal=True)

    def drop(self) -> None:
        """An unclean end: nothing is sealed, what is in memory is gone."""
        self._end(seal=False)

    def _end(self, seal: bool) -> None:
        try:
            self.store.close(seal=seal)
        finally:
            self.catalog.close()


def scanned(table: StreamingTable, columns: Sequence[str] = ("id",)) -> list[tuple[Any, ...]]:
    """All visible rows in the order (T, _seq)."""
    with table.reading() as snapshot:
        rows = select(snapshot, Wanted(tuple(columns))).rows.select(list(columns))
    return list(zip(*(rows.column(name).to_pylist() for name in columns), strict=True))


def ids(table: StreamingTable) -> list[int]:
    """The column `id` of all visible rows, in order."""
    return [row[0] for row in scanned(table)]


def rows_of(times: Sequence[int], first_id: int = 0) -> Mapping[str, Any] | pa.Table:
    """Rows of SCHEMA with these times and ids that count up."""
    return pa.table(
        {"t": list(times), "id": list(range(first_id, first_id + len(times)))}, schema=SCHEMA
    )
