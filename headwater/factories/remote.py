"""What a factory has instead of the driver's own parts: Spark, results, tables, the catalog.

Each asks the driver over the line, or follows one of its logs. Must never: write what lasts, except a
snapshot of state.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from headwater.engine.query_parts import Evaluated
from headwater.engine.query_sinks import LogSink
from headwater.engine.results import ResultLog, ResultSet
from headwater.engine.sent_results import ResultSender
from headwater.errors import StorageError
from headwater.execute.context import Context
from headwater.factories.line import Line
from headwater.factories.plain import relation_from_json, work_to_json
from headwater.kernel.cancellation import Cancellation
from headwater.kernel.kernel import BatchFunction, Work
from headwater.kernel.relation import HeldTables, Staging
from headwater.settings import Settings
from headwater.storage.catalog import Catalog, Objects, Pending, read_objects
from headwater.storage.streaming.definition import Definition
from headwater.storage.streaming.followed import FollowedTable
from headwater.storage.wal import LogFollower

READ_ATTEMPTS = 20  # of the catalog, while it is written


class RemoteKernel:
    """Spark, by way of the driver: a task has no session of its own."""

    def __init__(self, line: Line, staging: Staging) -> None:
        self._line = line
        self.staging = staging
        self.ready = self.settled = True
        self._jobs: dict[int, list[int]] = {}  # by thread: those of its last run

    def run(self, work: Work, cancellation: Cancellation | None = None) -> pa.Table:  # noqa: ARG002
        """The result of a query as Arrow."""
        answer = self._line.ask("run", work=work_to_json(work))
        self._jobs[threading.get_ident()] = list(answer.head["jobs"])
        return answer.rows()[0]

    def analyse(self, work: Work) -> list[tuple[str, str]]:
        """The names and types that a query would have."""
        found = self._line.ask("analyse", work=work_to_json(work)).head["columns"]
        return [(name, type_) for name, type_ in found]

    def map_batches(self, work: Work, function: BatchFunction, schema: pa.Schema) -> pa.Table:
        """What a function makes of a query's batches: here, for this is a Spark task already."""
        made = function(iter(self.run(work).to_batches()))
        return pa.Table.from_batches(list(made), schema)

    def jobs_of(self, thread: int | None) -> list[int]:
        """The numbers of the Spark jobs of a thread's last run."""
        return self._jobs.get(thread or 0, [])


class RemoteLog:
    """The results of a query as the driver keeps them."""

    def __init__(self, line: Line, number: int, part: int | None) -> None:
        self._line, self._whose = line, [number, part]
        self.readers: list[object] = []

    @property
    def first(self) -> int:
        """The position of the oldest kept result."""
        return int(self._asked()["first"])

    @property
    def next(self) -> int:
        """The position of the result to come."""
        return int(self._asked()["next"])

    def _asked(self) -> Mapping[str, Any]:
        return self._line.ask("results", query=self._whose).head

    def read_from(self, position: int) -> list[ResultSet]:
        """Results from a position on, some at once."""
        answer = self._line.ask("results", query=self._whose, position=position)
        return [
            ResultSet(place, instant, rows, epoch, note)
            for (place, instant, epoch, note), rows in zip(
                answer.head["found"], answer.rows(), strict=True
            )
        ]


class RemoteSink(LogSink):
    """Where a query's results go: to the driver, who makes them durable and then answers."""

    def __init__(self, line: Line, number: int, part: int | None = None) -> None:
        super().__init__(cast(ResultLog, RemoteLog(line, number, part)))
        self._line, self._whose = line, [number, part]
        self._sender = ResultSender()

    def last(self) -> tuple[int, dict[str, Any]] | None:
        """The tick and the note of the newest result."""
        found = self._line.ask("last", query=self._whose).head["last"]
        return None if found is None else (found[0], found[1])

    def recover(self) -> None:
        """After an append that failed: the driver finds its place again."""
        self._sender.forget()
        self._line.ask("recover", query=self._whose)

    def append(self, results: Sequence[Evaluated]) -> None:
        """They are durable and visible when this returns."""
        if not results:
            return
        packed = self._sender.packed([(r.instant.tick, r.rows) for r in results])
        said = [
            [r.instant.tick, r.instant.place, r.epoch, r.note, is_changes]
            for r, (is_changes, _) in zip(results, packed, strict=True)
        ]
        rows, since = [table for _, table in packed], self._sender.since
        self._sender.forget()
        answer = self._line.ask("append", rows, query=self._whose, results=said, since=since)
        self._sender.arrived(results[-1].rows, answer.head["since"])


class FollowedStreams:
    """The streaming tables that queries here read, all brought to the same place in the log."""

    def __init__(self, folder: Path, settings: Settings, line: Line, lsn: int) -> None:
        self._wal, self._tables_folder = str(folder / "wal"), folder / "tables"
        self._settings, self._line = settings, line
        self.visibility = threading.Lock()
        self.damaged: dict[
            int, StorageError
        ] = {}  # none: what reads such a table stays in the driver
        self._lock = threading.RLock()
        self._log = LogFollower(self._wal, lsn)
        self._tables: dict[int, FollowedTable] = {}
        self._needs_told = 0

    def find(self, number: int) -> FollowedTable | None:
        """The table of that number."""
        return self._tables.get(number)

    def all(self) -> list[FollowedTable]:
        """All tables that are followed."""
        return list(self._tables.values())

    def advance(self, lsn: int) -> None:
        """Takes in what the log holds up to a record that is durable."""
        with self._lock:
            if lsn <= self._log.lsn:
                return
            told: dict[int, FollowedTable] = {}
            for append in self._log.read_to(lsn):
                mine = [(r, t) for r in append if (t := self._tables.get(r.table)) is not None]
                if mine:
                    with self.visibility:
                        for record, table in mine:
                            table.take(record)
                    told |= {record.table: table for record, table in mine}
        for table in told.values():
            table.tell()
        if self._log.needs_from != self._needs_told:  # it reads another file now
            self._needs_told = self._log.needs_from
            self._line.tell("reads", lsn=self._needs_told)

    def follow(self, definition: Definition, image: Mapping[str, Any]) -> None:
        """A table is followed from now on: its blocks as told, and what the log holds since."""
        with self._lock:
            self.advance(image["lsn"])
            table = FollowedTable(
                definition,
                self._tables_folder / definition.folder,
                image,
                self.visibility,
                lambda: 0,
                self._ask,
            )
            since = LogFollower(self._wal, image["lsn"])
            since.pass_freed()  # rows of this table that are in no block are all there
            for append in since.read_to(self._log.lsn):
                for record in append:
                    if record.table == definition.id:
                        table.take(record)
            self._tables[definition.id] = table

    def change(self, number: int, told: Mapping[str, Any]) -> None:
        """The blocks of a table have changed."""
        with self._lock:
            table = self._tables.get(number)
            if table is not None:
                self.advance(told["lsn"])
                table.change(told)
                self._line.tell("image", table=number, version=table.oldest_image)

    def forget(self, number: int) -> None:
        """Nobody here reads a table any more."""
        with self._lock:
            self._tables.pop(number, None)

    def _ask(self, what: str, number: int) -> None:
        table = self._tables.get(number)
        if what == "tick":
            self.advance(self._line.ask("tick", table=number).head["lsn"])
        elif what == "room" and table is not None:
            folded = [sequence() for sequence in list(table.folded_by.values())]
            self._line.tell("folded", table=number, sequence=min(folded, default=None))
        elif what == "needs" and table is not None:
            needs = table.needs
            said = [needs.from_tick, needs.held_tick, needs.sequence]
            self._line.tell("needs", table=number, needs=said)


class FollowedCatalog(Catalog):
    """The driver's catalog, read from its log."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.changes = 0
        self._lock = threading.Lock()
        self._objects = Objects()
        self._pending = Pending()
        self._follower: LogFollower | None = None

    def advance(self, lsn: int) -> None:
        """Takes in what the log holds up to a record that is durable."""
        with self._lock:
            if self._follower is None or not self._read_on(self._follower, lsn):
                self._objects, reached = self._read_all(lsn)
                self._follower = LogFollower(str(self._folder), reached)
            self.changes += 1

    def _read_all(self, lsn: int) -> tuple[Objects, int]:
        """Everything; again if files went while they were read, as an image stood after them."""
        for attempt in range(READ_ATTEMPTS):
            try:
                objects, reached = read_objects(self._folder)
            except StorageError:
                if attempt == READ_ATTEMPTS - 1:
                    raise
            else:
                if reached >= lsn:
                    return objects, reached
        raise StorageError(f"the catalog in {self._folder} ends before record {lsn}")

    def _read_on(self, follower: LogFollower, lsn: int) -> bool:
        """False if records between were freed: an image of everything stands after them."""
        try:
            for append in follower.read_to(lsn):
                for record in append:
                    self._objects.apply(record.kind, bytes(record.payload[0]))
        except Exception:  # whatever is there instead: all of it is read again
            return False
        return True

    @property
    def failed(self) -> bool:
        """A follower does not know; it removes nothing."""
        return True


@dataclass(frozen=True)
class StandardColumns:
    """What a factory knows of a standard table: its columns, and where it is."""

    schema: pa.Schema
    folder: Path


@dataclass(frozen=True)
class FactoryFolder:
    """The data folder, which the driver has open."""

    path: Path

    @property
    def tables(self) -> Path:
        """The folder of all tables."""
        return self.path / "tables"


@dataclass
class FactoryContext(Context):
    """The parts of the database as a factory has them."""

    line: Line = field(init=False)

    @contextlib.contextmanager
    def held(self, identifiers: Iterable[str]) -> Iterator[HeldTables]:
        """The standard tables that names may mean, each at one version, kept while inside."""
        names = self._with_those_of_functions(identifiers)
        if not self._are_read(names):
            yield HeldTables({}, {})
            return
        found = self.line.ask("hold", names=sorted(names)).head
        try:
            relations = {name: relation_from_json(r) for name, r in found["relations"].items()}
            yield HeldTables(relations, found["versions"])
        finally:
            self.line.tell("let_go", token=found["token"])
