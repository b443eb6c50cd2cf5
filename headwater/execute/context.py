"""What the execution of statements needs of a database, and what all of them share."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from headwater.engine.engine import Engine
from headwater.engine.snapshots import SnapshotFile
from headwater.engine.view_pipeline import Pipelines
from headwater.engine.world import HeldTables
from headwater.errors import BindError, NotSupportedError
from headwater.kernel.functions import PythonFunction, SqlFunction
from headwater.kernel.inline.expression import ZONED
from headwater.kernel.kernel import Cancellation, Kernel
from headwater.kernel.relation import Relation
from headwater.settings import Settings
from headwater.sources.manager import Sources
from headwater.sql.names import nearest
from headwater.sql.text import Name
from headwater.storage.catalog import RELATIONS, Catalog, CatalogObject
from headwater.storage.folder import DataFolder
from headwater.storage.scan import scan_rows
from headwater.storage.standard_table import StandardTable
from headwater.storage.streaming.store import StreamStore
from headwater.storage.streaming.table import StreamingTable

TABLE_KINDS = (
    "table",
    "streaming table",
    "stream",
    "view",
    "materialized view",
    "continuous query",
)


@dataclass
class Context:
    """The parts of one open database."""

    settings: Settings
    folder: DataFolder
    catalog: Catalog
    kernel: Kernel
    streams: StreamStore
    engine: Engine
    sources: Sources = field(init=False)
    pipelines: Pipelines = field(default_factory=Pipelines)
    dormant: dict[str, Exception] = field(default_factory=dict)  # queries that could not start
    tables: dict[int, StandardTable] = field(default_factory=dict)
    functions: dict[str, PythonFunction | SqlFunction] = field(default_factory=dict)
    ddl: threading.RLock = field(default_factory=threading.RLock)
    _table_names: tuple[int, frozenset[str]] = (-1, frozenset())

    def kept_s(self) -> float:
        """How long removed files are kept."""
        return self.settings.number("removed_files_kept_s")

    def table_folder(self, name: str, number: int) -> Path:
        """A folder for a table; the number makes it new."""
        plain = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)
        return self.folder.tables / f"{plain}-{number}"

    def pipeline_snapshot(self, number: str) -> SnapshotFile:
        """Where the state of a pipeline of views is kept."""
        return SnapshotFile(self.folder.path / "snapshots" / f"pipeline-{number}.snapshot")

    def snapshot_of(self, query: CatalogObject) -> SnapshotFile:
        """Where the state of a continuous query is kept."""
        return SnapshotFile(self.folder.path / "snapshots" / f"{query.id}.snapshot")

    def functions_of(self, query: CatalogObject) -> SnapshotFile:
        """Where the state of a continuous query's functions is kept."""
        return SnapshotFile(self.folder.path / "snapshots" / f"{query.id}-functions.snapshot")

    def find(self, name: str) -> CatalogObject | None:
        """The table, view or query of that name."""
        return self.catalog.find(name, RELATIONS)

    def standard_table(self, name: Name | str, text: str | None = None) -> StandardTable:
        """The standard table of that name; BindError 42P01 with the nearest name if there is none."""
        found = self.find(name)
        if found is None:
            raise unknown_table(name, self.relation_names(), text)
        table = self.tables.get(found.id)
        if table is None and found.kind == "view":
            raise BindError(
                f"rows of view {found.name} are its query's",
                sqlstate="42809",
                hint="change the tables that it reads",
            )
        if table is None:
            raise NotSupportedError(f"{found.kind} {found.name} cannot be used here yet")
        return table

    def stream(self, name: str) -> StreamingTable | None:
        """The streaming table or stream of that name, or None."""
        found = self.find(name)
        if found is None or found.kind == "continuous query":
            return None
        return self.streams.find(found.id)

    def streaming_table(self, name: Name | str, text: str | None = None) -> StreamingTable:
        """The streaming table or stream of that name; an error if it is something else."""
        found = self.find(name)
        if found is None:
            raise unknown_table(name, self.relation_names(), text)
        table = self.stream(name)
        if table is None:
            place = name.span.place(text) if isinstance(name, Name) and text is not None else None
            raise BindError(
                f"{found.name} is a {found.kind}, not a streaming table",
                sqlstate="42809",
                place=place,
            )
        return table

    def writable(self, name: Name | str, text: str | None = None) -> StandardTable | StreamingTable:
        """The table of that name that rows can be added to."""
        found = self.find(name)
        if found is not None and found.kind in ("materialized view", "continuous query", "view"):
            raise BindError(
                f"{found.kind} {found.name} takes its rows from its query",
                sqlstate="42809",
                hint="insert into the tables that it reads",
                place=name.span.place(text) if isinstance(name, Name) and text else None,
            )
        return self.stream(name) or self.standard_table(name, text)

    def relation_names(self) -> list[str]:
        """All names that may stand in FROM."""
        return [
            o.name
            for o in self.catalog.all()
            if o.kind in TABLE_KINDS and not o.name.startswith("_")
        ]

    @contextlib.contextmanager
    def relations(self, identifiers: Iterable[str]) -> Iterator[dict[str, Relation]]:
        """The tables that a text may mean by its identifiers, each at one version, kept while inside."""
        found: dict[str, Relation] = {}
        with contextlib.ExitStack() as stack:
            for name in sorted(self._with_those_of_functions(identifiers)):
                item = self.find(name)
                table = self.tables.get(item.id) if item is not None else None
                if table is not None:
                    snapshot = stack.enter_context(table.reading())
                    found[name] = Relation(snapshot.schema, snapshot.files)
            yield found

    @contextlib.contextmanager
    def held(self, identifiers: Iterable[str]) -> Iterator[HeldTables]:
        """The standard tables that names may mean, each at one version, kept while inside."""
        with self.relations(identifiers) as relations:
            versions: dict[str, int] = {}
            for name in relations:
                item = self.find(name)
                table = None if item is None else self.tables.get(item.id)
                if table is not None:
                    versions[name] = table.snapshot.version
            yield HeldTables(relations, versions)

    def table_rows(self, relation: Relation) -> pa.Table:
        """All rows of a standard table at a version."""
        return scan_rows(relation.files, relation.schema)

    def table_names(self) -> frozenset[str]:
        """The standard tables, in lower case."""
        changes = self.catalog.changes
        if self._table_names[0] != changes:
            self._table_names = (changes, frozenset(o.key for o in self.catalog.all("table")))
        return self._table_names[1]

    @property
    def has_state_functions(self) -> bool:
        """Whether any function with state is registered."""
        return any(isinstance(f, PythonFunction) and f.state for f in self.functions.values())

    def function_names(self) -> frozenset[str]:
        """Functions that users made, in lower case; ZONED where text is no time of UTC."""
        utc = self.settings.text("time_zone") == "UTC"
        return frozenset(self.functions) | (frozenset() if utc else {ZONED})

    def _with_those_of_functions(self, identifiers: Iterable[str]) -> set[str]:
        names: set[str] = set()
        waiting = set(identifiers)
        while waiting:
            names |= waiting
            functions = [self.functions.get(name) for name in waiting]
            inside = [f.identifiers for f in functions if isinstance(f, SqlFunction)]
            waiting = set().union(*inside) - names
        return names


@dataclass(frozen=True)
class Running:
    """One statement under way: the database, its text, and how to stop it."""

    context: Context
    text: str
    cancellation: Cancellation


def unknown_table(name: Name | str, names: Iterable[str], text: str | None = None) -> BindError:
    """The error for a name that no table has."""
    near = nearest(str(name), list(names))
    place = name.span.place(text) if isinstance(name, Name) and text is not None else None
    return BindError(
        f"table {name} does not exist",
        sqlstate="42P01",
        hint=f"did you mean {near}?" if near else "SHOW TABLES lists what there is",
        place=place,
    )


def unknown_column(name: Name, schema: pa.Schema, text: str) -> BindError:
    """The error for a name that no column has."""
    near = nearest(str(name), schema.names)
    return BindError(
        f"column {name} does not exist",
        sqlstate="42703",
        hint=f"did you mean {near}?" if near else "columns: " + ", ".join(schema.names),
        place=name.span.place(text),
    )


def column_of(name: Name, schema: pa.Schema, text: str) -> pa.Field[pa.DataType]:
    """The column of that name, in any case of letters."""
    for column in schema:
        if column.name.casefold() == name.casefold():
            return column
    raise unknown_column(name, schema, text)
