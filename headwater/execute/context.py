"""What the execution of statements needs of a database, and what all of them share."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from headwater.engine.arrangement_runs import CircuitRuns
from headwater.engine.engine import Engine
from headwater.engine.pipelines import Pipelines
from headwater.engine.snapshots import SnapshotFile
from headwater.engine.state_runs import StateRuns
from headwater.engine.view import ContinuousView
from headwater.errors import BindError, NotSupportedError, StorageError
from headwater.execute.answers import Answers, SharedRows
from headwater.execute.held_frames import HeldFrames
from headwater.execute.staged_views import StagedViews
from headwater.expression.terms import PLAIN, Terms
from headwater.fold.share import Share
from headwater.kernel.cancellation import Cancellation
from headwater.kernel.functions import PythonFunction, SqlFunction
from headwater.kernel.kernel import Kernel
from headwater.kernel.relation import HeldTables, Relation
from headwater.plan.blocks import VIEW_MARK, unknown_table
from headwater.plan.calls import called_among
from headwater.settings import Settings
from headwater.sinks.manager import Sinks
from headwater.sources.manager import Sources
from headwater.sql.names import nearest
from headwater.sql.statements.query import Query
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
    sinks: Sinks = field(init=False)
    pipelines: Pipelines = field(default_factory=Pipelines)
    dormant: dict[str, Exception] = field(default_factory=dict)  # queries that could not start
    passing: dict[str, CatalogObject] = field(default_factory=dict)  # queries of readers alone
    tables: dict[int, StandardTable] = field(default_factory=dict)
    damaged: dict[int, StorageError] = field(default_factory=dict)  # tables that are not among them
    functions: dict[str, PythonFunction | SqlFunction] = field(default_factory=dict)
    function_changes: int = 0  # how often a function came or went
    identity: object = field(default_factory=object)  # unlike any other open database's
    answers: Answers = field(default_factory=Answers)
    shared: SharedRows = field(default_factory=SharedRows)
    frames: HeldFrames = field(init=False)
    numbers: list[Callable[[], Mapping[str, int]]] = field(default_factory=list)  # of listeners
    admin_given: bool = False  # the server knows an admin beside those of the catalog
    ddl: threading.RLock = field(default_factory=threading.RLock)
    tell_functions: Callable[[], None] = lambda: None  # those who call them elsewhere
    staged_views: StagedViews = field(init=False)
    _known_tables: tuple[int, frozenset[str]] = (-1, frozenset())
    _known_terms: tuple[tuple[int, int], Terms] = ((-1, -1), PLAIN)

    def __post_init__(self) -> None:
        self.staged_views = StagedViews(self.kernel.staging)
        self.frames = HeldFrames(lambda: self.settings.integer("frames_held"))

    def kept_s(self) -> float:
        """How long removed files are kept."""
        return self.settings.number("removed_files_kept_s")

    def table_folder(self, name: str, number: int) -> Path:
        """A folder for a table; the number makes it new."""
        plain = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)
        return self.folder.tables / f"{plain}-{number}"

    def discard(self, folder: Path) -> None:
        """Removes a folder made for an object that did not come about; the next open, if that is not sure."""
        if not self.catalog.failed:
            shutil.rmtree(folder, ignore_errors=True)

    def pipeline_snapshot(self, number: str) -> SnapshotFile:
        """Where the state of a pipeline of views is kept."""
        return SnapshotFile(self.folder.path / "snapshots" / f"pipeline-{number}.snapshot")

    def pipeline_runs(self, number: str) -> StateRuns:
        """Where groups of a pipeline of views are that memory has no room for."""
        return StateRuns(self.folder.path / "snapshots" / f"pipeline-{number}.runs", self)

    def circuit_runs(self, number: str) -> CircuitRuns:
        """Where states of a view's circuit are that memory has no room for."""
        return CircuitRuns(self.folder.path / "snapshots" / f"pipeline-{number}.runs")

    def forget_pipelines(self, needed: Iterable[str]) -> None:
        """Puts the states of pipelines aside that no view has any more: a crash may have left them."""
        kept = {f"pipeline-{number}" for number in needed}
        for path in (self.folder.path / "snapshots").glob("pipeline-*"):
            if path.stem not in kept:
                self.folder.put_aside(path)

    def snapshot_of(self, query: CatalogObject, mine: Share | None = None) -> SnapshotFile:
        """Where the state of a continuous query is kept, or of a part of it."""
        part = "" if mine is None else f"-part-{mine.place}-of-{mine.parts}"
        return SnapshotFile(self.folder.path / "snapshots" / f"{query.id}{part}.snapshot")

    def forget_snapshots(self, query: CatalogObject) -> None:
        """The state of a continuous query, whole or in parts, is not to be used again."""
        self.snapshot_of(query).remove()
        for path in (self.folder.path / "snapshots").glob(f"{query.id}-part-*.snapshot"):
            SnapshotFile(path).remove()

    def functions_of(self, query: CatalogObject) -> SnapshotFile:
        """Where the state of a continuous query's functions is kept."""
        return SnapshotFile(self.folder.path / "snapshots" / f"{query.id}-functions.snapshot")

    def find(self, name: str) -> CatalogObject | None:
        """The table, view or query of that name."""
        return self.catalog.find(name, RELATIONS)

    def damage(self, number: int) -> StorageError | None:
        """Why a table of the catalog could not be opened; None if it was."""
        return self.damaged.get(number) or self.streams.damaged.get(number)

    def check_sound(self, item: CatalogObject | None) -> None:
        """StorageError if something is a table that could not be opened."""
        error = None if item is None else self.damage(item.id)
        if error is not None:
            raise error

    def standard_table(self, name: Name | str, text: str | None = None) -> StandardTable:
        """The standard table of that name; BindError 42P01 with the nearest name if there is none."""
        found = self.find(name)
        if found is None:
            raise unknown_table(name, self.relation_names(), text)
        self.check_sound(found)
        table = self.tables.get(found.id)
        if table is None and found.kind == "view":
            raise BindError(
                f"rows of view {found.name} are its query's",
                sqlstate="42809",
                hint="change the tables that it reads",
            )
        if table is None:
            raise NotSupportedError(
                f"{found.kind} {found.name} cannot stand here, only a standard table",
                hint=f"a query of it in parentheses may do: (SELECT … FROM {found.name})",
                place=name.span.place(text) if isinstance(name, Name) and text else None,
            )
        return table

    def stream(self, name: str) -> StreamingTable | None:
        """The streaming table or stream of that name, or None."""
        found = self.find(name)
        if found is None or found.kind == "continuous query":
            return None
        self.check_sound(found)
        return self.streams.find(found.id)

    def columns_of(self, name: str) -> list[str] | None:
        """The columns that a query may name of a table or a continuous view; None for others."""
        stream, item = self.stream(name), self.find(name)
        if stream is not None:
            return stream.definition.stored_schema.names
        if item is not None and item.kind == "view" and item.definition["continuous"]:
            return [column for column, _ in item.definition["output"]]
        table = None if item is None else self.tables.get(item.id)
        return None if table is None else table.schema.names

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
        with self.held(identifiers) as held:
            yield dict(held.relations)

    @contextlib.contextmanager
    def held(self, identifiers: Iterable[str]) -> Iterator[HeldTables]:
        """The standard tables that names may mean, each at one version, kept while inside."""
        relations: dict[str, Relation] = {}
        versions: dict[str, int] = {}
        with contextlib.ExitStack() as stack:
            for name in sorted(self._with_those_of_functions(identifiers)):
                if name.startswith(VIEW_MARK):
                    key = name.removeprefix(VIEW_MARK)
                    held = stack.enter_context(self.staged_views.holding(self.view(key)))
                    relations[key], versions[key] = held
                    continue
                item = self.find(name)
                table = self.tables.get(item.id) if item is not None else None
                if table is not None:
                    snapshot = stack.enter_context(table.reading())
                    relations[name] = Relation(snapshot.schema, snapshot.files)
                    versions[name] = snapshot.version
            yield HeldTables(relations, versions)

    def view(self, key: str) -> ContinuousView:
        """The continuous view of that name; an error if it could not start, or is gone."""
        view = self.engine.find_view(key)
        if view is None:
            raise self.dormant.get(key) or BindError(f"there is no view {key}", sqlstate="42P01")
        return view

    def table_rows(self, relation: Relation) -> pa.Table:
        """All rows of a standard table at a version."""
        return self.pipelines.table_rows(
            relation, lambda: scan_rows(relation.files, relation.schema)
        )

    def reads_tables(self, identifiers: Iterable[str]) -> bool:
        """Whether a text with these identifiers may read a standard table, itself or by a function."""
        return self._are_read(self._with_those_of_functions(identifiers))

    def _are_read(self, names: set[str]) -> bool:
        """Whether some names, those in functions among them, may mean a standard table or a view."""
        return bool(names & self._table_names()) or any(n.startswith(VIEW_MARK) for n in names)

    def tables_of_functions(self, identifiers: Iterable[str]) -> frozenset[str]:
        """The standard tables that functions among the identifiers read, in lower case."""
        called = self.functions.keys() & set(identifiers)
        return frozenset((self._with_those_of_functions(called) - called) & self._table_names())

    def names_read(self, query: Query) -> set[str]:
        """What a query reads, by the names in its text and in that of its functions."""
        named = {reference.name.key for reference in query.table_references}
        return named | self._read_by_functions(query.identifiers)

    def _read_by_functions(self, identifiers: Iterable[str]) -> set[str]:
        """The standard tables and views that functions among the identifiers read, in lower case."""
        called = self.functions.keys() & set(identifiers)
        if not called:
            return set()
        views = {view.key for view in self.catalog.all("view")}
        return (self._with_those_of_functions(called) - called) & (self._table_names() | views)

    def _table_names(self) -> frozenset[str]:
        """The standard tables, in lower case; looked up again only when the catalog has changed."""
        changes = self.catalog.changes
        if self._known_tables[0] != changes:
            self._known_tables = (changes, frozenset(o.key for o in self.catalog.all("table")))
        return self._known_tables[1]

    @property
    def has_state_functions(self) -> bool:
        """Whether any function with state is registered."""
        return any(isinstance(f, PythonFunction) and f.state for f in self.functions.values())

    @property
    def time_zone(self) -> str:
        """How text becomes a timestamp and back, as it is set now."""
        return self.settings.text("time_zone")

    def terms(self, time_zone: str | None = None) -> Terms:
        """The names that users' functions took, and the time zone that is set or given."""
        if time_zone is not None:
            return Terms(frozenset(self.functions), time_zone)
        changes = self.function_changes, self.settings.changes
        if self._known_terms[0] != changes:
            self._known_terms = changes, Terms(frozenset(self.functions), self.time_zone)
        return self._known_terms[1]

    def functions_in(self, identifiers: Iterable[str]) -> tuple[object, ...]:
        """The functions that a text with these identifiers calls, or that those call, as they are now."""
        if not self.functions:
            return ()
        names = self._with_those_of_functions(identifiers)
        return tuple(self.functions[name] for name in sorted(names & self.functions.keys()))

    def functions_called(self, text: str) -> set[str]:
        """The functions that a text may call, or that those may call."""
        if not self.functions:
            return set()
        called = called_among(text, self.functions)
        return self._with_those_of_functions(called) & self.functions.keys()

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


def unknown_view(context: Context, name: Name, text: str) -> BindError:
    """The error for a name that no view has; it may be that of something else."""
    item = context.find(name)
    near = nearest(str(name), [view.name for view in context.catalog.all("view")])
    hint = f"did you mean {near}?" if near else "SHOW VIEWS lists what there is"
    return BindError(
        f"there is no view {name}",
        sqlstate="42P01",
        hint=hint if item is None else f"{item.name} is a {item.kind}",
        place=name.span.place(text),
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
