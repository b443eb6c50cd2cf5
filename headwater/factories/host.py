"""The host in a factory: the same engine as in the driver, over tables that it follows.

Owns: the queries and views that the driver has placed here, with their state. Everything that lasts is the
driver's: a result counts once he has answered. The thread that reads the line brings the tables forward;
others open queries, read views and answer questions.
"""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

from headwater.engine.elsewhere import HostGone
from headwater.engine.engine import Engine
from headwater.engine.hosted import Hosted
from headwater.engine.split_view import ViewPart
from headwater.engine.view import ContinuousView
from headwater.engine.view_versions import Version
from headwater.errors import BindError
from headwater.execute import continuous, explain_continuous, kept_views, system_tables
from headwater.factories.frames import Frame, error_to_json
from headwater.factories.line import Line
from headwater.factories.plain import schema_from_json
from headwater.factories.remote import (
    FactoryContext,
    FactoryFolder,
    FollowedCatalog,
    FollowedStreams,
    RemoteKernel,
    RemoteSink,
    StandardColumns,
)
from headwater.kernel.kernel import Kernel
from headwater.kernel.relation import Staging
from headwater.settings import MEBIBYTE, Settings
from headwater.storage.catalog import CatalogObject
from headwater.storage.folder import DataFolder
from headwater.storage.standard_table import StandardTable
from headwater.storage.streaming.definition import Definition
from headwater.storage.streaming.store import StreamStore


class FactoryHost:
    """What runs in one factory."""

    def __init__(self, line: Line, welcome: dict[str, Any]) -> None:
        """`welcome`: what the driver says to a factory that has come."""
        self._line = line
        path = Path(welcome["folder"])
        settings = Settings(welcome["settings"], {})
        staging = Staging(
            path / "staging" / f"factory-{os.getpid()}",  # names are of one process
            lambda: settings.integer("staging_mb") * MEBIBYTE,
            shared_memory=welcome["shared_memory"],
        )
        self._staging = staging
        self.streams = FollowedStreams(path, settings, line, welcome["lsn"])
        self.catalog = FollowedCatalog(path / "catalog")
        self.engine = Engine(
            settings.integer("engine_threads"), lambda: settings.number("snapshot_s")
        )
        self.context = FactoryContext(
            settings,
            cast(DataFolder, FactoryFolder(path)),
            self.catalog,
            cast(Kernel, RemoteKernel(line, staging)),
            cast(StreamStore, self.streams),
            self.engine,
        )
        self.context.line = line
        self.engine.on_state = self._tell_state
        self.engine.open(())
        self._opening = threading.Lock()
        self._passing: dict[int, CatalogObject] = {}  # queries that are in no catalog
        for kind, work in self._works().items():
            line.on(kind, work)
        for kind, work in self._notes().items():
            line.on(kind, work, here=True)

    def _works(self) -> dict[str, Callable[[Frame], Frame | None]]:
        """What takes time."""
        return {
            "open": self._open,
            "release": self._release,
            "read": self._read,
            "find": self._find,
            "halt": self._halt,
            "read part": self._read_part,
            "go on": self._go_on,
            "changes": self._changes,
            "newest": self._newest,
            "flush": self._flush,
            "rows": self._rows,
            "explain": self._explain,
            "numbers": self._numbers,
            "stop": self._stop,
        }

    def _notes(self) -> dict[str, Callable[[Frame], Frame | None]]:
        """What is done in the order in which it comes."""
        return {
            "log": self._log,
            "follow": self._follow,
            "blocks": self._blocks,
            "forget": self._forget,
            "catalog": self._catalog,
            "settings": self._settings,
            "functions": self._functions,
            "standard": self._standard,
            "pulse": lambda _frame: Frame({"spent": self.engine.take_spent()}),
        }

    # What changes in the database

    def _log(self, frame: Frame) -> None:
        self.streams.advance(frame.head["lsn"])

    def _follow(self, frame: Frame) -> None:
        said = frame.head
        definition = Definition.from_json(
            said["table"], said["name"], said["of"], said["definition"]
        )
        self.streams.follow(definition, said["image"])

    def _blocks(self, frame: Frame) -> None:
        self.streams.change(frame.head["table"], frame.head["change"])

    def _forget(self, frame: Frame) -> None:
        self.streams.forget(frame.head["table"])

    def _catalog(self, frame: Frame) -> None:
        self.catalog.advance(frame.head["lsn"])

    def _settings(self, frame: Frame) -> None:
        for name, value in frame.head["values"].items():
            self.context.settings.force(name, value)

    def _functions(self, frame: Frame) -> None:
        """Functions are code: the driver's own, as in every task that Spark runs."""
        self.context.functions = pickle.loads(frame.bodies[0])

    def _standard(self, frame: Frame) -> None:
        columns = {
            int(number): StandardColumns(schema_from_json(schema), Path(folder))
            for number, (schema, folder) in frame.head["columns"].items()
        }
        self.context.tables = cast(dict[int, StandardTable], columns)

    # Queries and views

    def _item(self, number: int) -> CatalogObject:
        item = self._passing.get(number) or self.catalog.by_number(number)
        if item is None:
            raise BindError(f"there is no object {number}", sqlstate="42704")
        return item

    def _open(self, frame: Frame) -> None:
        """Queries or views that the driver has let go of go on here."""
        with self._opening:
            passing = [CatalogObject(**said) for said in frame.head["passing"]]
            self._passing |= {item.id: item for item in passing}
            items = [self._item(number) for number in dict.fromkeys(frame.head["numbers"])]
            found = [item for item in items if item.kind == "view"]
            places = {int(number): mine for number, mine in frame.head["places"].items()}
            if found:
                kept_views.open_some(self.context, found, places)
            for item in found:
                view = self.engine.find_view(item.name)
                if view is not None:
                    view.on_version = partial(self._tell_version, view.name)
            for item in items:
                if item.kind != "view" and item.id in places:
                    sink_of = partial(RemoteSink, self._line, item.id)
                    continuous.start_parts(self.context, item, places[item.id], sink_of)
                elif item.kind != "view":
                    continuous.start(self.context, item, self._sink)
            for item in items:
                error = self.context.dormant.pop(item.key, None)
                if error is not None:
                    raise error

    def _sink(self, _context: object, item: CatalogObject, _made: object) -> RemoteSink:
        return RemoteSink(self._line, item.id)

    def _release(self, frame: Frame) -> None:
        """They are put away and gone from here; the driver goes on with them."""
        names = frame.head["names"]
        with self._opening:
            found = [query for name in names if (query := self.engine.remove(name)) is not None]
            for query in found:
                query.hand_over()
                self._passing.pop(query.number, None)
            for query in found:
                if isinstance(query, ContinuousView):
                    for pipeline in query.pipelines:
                        self.context.pipelines.drop(pipeline)

    def _found(self, frame: Frame) -> Hosted:
        found = self.engine.hosted(frame.head["name"])
        if found is None:
            raise HostGone(f"{frame.head['name']} is not here any more")
        return found

    def _read(self, frame: Frame) -> Frame:
        """A view over every row up to a place in the log."""
        began = time.thread_time()
        self.streams.advance(frame.head["lsn"])
        view = self._found(frame)
        assert isinstance(view, ContinuousView)
        version = view.read()
        self.engine.spend(view.name, time.thread_time() - began)
        return _version_frame(version)

    def _find(self, frame: Frame) -> Frame:
        """The rows of one key of a view, if it can be found without the others."""
        began = time.thread_time()
        self.streams.advance(frame.head["lsn"])
        view = self._found(frame)
        assert isinstance(view, ContinuousView)
        rows = view.find(frame.rows()[0])
        self.engine.spend(view.name, time.thread_time() - began)
        return Frame({}, [] if rows is None else [rows])

    def _part(self, frame: Frame) -> ViewPart:
        part = self._found(frame)
        assert isinstance(part, ViewPart)
        return part

    def _halt(self, frame: Frame) -> Frame:
        """A part of a view folds up to a place in the log, and no further until its reader comes back."""
        began, part = time.thread_time(), self._part(frame)
        self.streams.advance(frame.head["lsn"])
        ends = part.halt_here(frame.head["reader"])
        self.engine.spend(part.name, time.thread_time() - began)
        return Frame({"ends": ends})

    def _read_part(self, frame: Frame) -> Frame:
        """The rows of a halted part, folded to exactly there."""
        began, part, said = time.thread_time(), self._part(frame), frame.head
        self.streams.advance(said["lsn"])
        found = part.read_at_here(said["reader"], tuple(said["ends"]), said["instant"])
        self.engine.spend(part.name, time.thread_time() - began)
        if found is None:
            return Frame({"there": False})
        rows = [] if found.rows is None else [found.rows]
        return Frame({"there": True, "places": found.places, "versions": found.versions}, rows)

    def _go_on(self, frame: Frame) -> None:
        """The reader of a halted part does not come back."""
        part = self.engine.hosted(frame.head["name"])
        if isinstance(part, ViewPart):
            part.go_on_here(frame.head["reader"])

    def _changes(self, frame: Frame) -> Frame:
        """What has changed in a view since a mark, or all of its rows."""
        began = time.thread_time()
        self.streams.advance(frame.head["lsn"])
        view = self._found(frame)
        assert isinstance(view, ContinuousView)
        found = view.follow(frame.head["mark"])
        self.engine.spend(view.name, time.thread_time() - began)
        if found.changes is None:
            assert found.rows is not None
            return Frame({"mark": found.mark, "whole": True}, [found.rows])
        parts = [found.changes.going, found.changes.coming]
        return Frame({"mark": found.mark, "whole": False}, parts)

    def _tell_version(self, name: str, version: Version) -> None:
        """An eager view has a new result; the driver has it at hand for its readers."""
        said = _version_frame(version)
        self._line.tell("version", said.tables, name=name, **said.head)

    def _newest(self, frame: Frame) -> Frame:
        self.streams.advance(frame.head["lsn"])
        query = self._found(frame)
        return Frame({}, [query.newest.shown()])  # type: ignore[attr-defined]

    def _flush(self, frame: Frame) -> Frame:
        """Of some queries, those that have answered every row up to a place in the log."""
        self.streams.advance(frame.head["lsn"])
        patience = frame.head["patience_s"]
        until = None if patience is None else time.monotonic() + patience
        return Frame({"names": sorted(self.engine.flush_here(frame.head["names"], until))})

    def _tell_state(self, query: Hosted) -> None:
        """A query has stopped, for a while or for good, or goes on: the driver tells its readers."""
        error = None if query.error is None else error_to_json(query.error)
        self._line.tell("state", name=query.name, state=query.state, error=error)

    # What others ask

    def _rows(self, frame: Frame) -> Frame:
        """The rows of system tables about what is here."""
        made = getattr(system_tables, frame.head["table"])(self.context)
        return Frame({}, [made])

    def _explain(self, frame: Frame) -> Frame:
        name = self._found(frame).name
        lines = explain_continuous.object_lines(self.context, name, frame.head["analyze"])
        return Frame({"lines": lines})

    def _numbers(self, _frame: Frame) -> Frame:
        """How much was done here."""
        rows = self.engine.rows_folded
        return Frame({"rows": rows, "cpu_us": time.process_time_ns() // 1000, "pid": os.getpid()})

    def _stop(self, _frame: Frame) -> None:
        """Everything is put away: the database is being closed."""
        self.engine.close()

    def close(self) -> None:
        """The line has ended."""
        self.engine.abandon()
        self._staging.close()


def _version_frame(version: Version) -> Frame:
    """A result of a view, with what it was made of; nothing of that if it depends on the time."""
    key: Any = version.key
    places = versions = None
    if isinstance(key, tuple):
        places, versions = list(key[0]), dict(key[1])
    return Frame(
        {"places": places, "versions": versions, "instant": version.instant}, [version.rows]
    )
