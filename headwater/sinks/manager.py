"""All sinks of one database: made, dropped, started again at open.

The catalog's row is what makes a sink exist: its key, where it begins, its address and options, and
whether it is paused. How far it is stands in the target alone.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from headwater.errors import Error, SettingError
from headwater.extras import (
    check_installed,
    check_kafka_settings,
    from_environment,
    kafka_topic,
)
from headwater.sinks.delta import DeltaTarget
from headwater.sinks.files import FilesTarget
from headwater.sinks.kafka import KafkaTarget
from headwater.sinks.manifest import Manifest
from headwater.sinks.options import (
    FILE_KINDS,
    Address,
    SinkOptions,
    check_columns,
    parse_address,
    parse_options,
    written,
)
from headwater.sinks.postgresql import PostgresqlTarget
from headwater.sinks.runner import RUNNING, Flow, SinkRunner, Surroundings
from headwater.sinks.target import SinkName, Target
from headwater.sql.masking import without_passwords
from headwater.sql.statements.base import Options
from headwater.sql.stored_options import from_json, to_json
from headwater.storage.catalog import Catalog, CatalogObject
from headwater.storage.local_path import local_path

PAUSED = "paused"
LOCAL_HINT = "give a local folder, and copy what is in it with a tool of that file system"


@dataclass(frozen=True)
class Status:
    """A sink as SHOW SINKS tells it."""

    name: str
    query: str
    url: str
    state: str
    row_count: int | None  # None: paused since the database was opened
    waiting_results: int | None
    last_time: str | None
    written_at: str | None
    attempts: int
    last_error: str | None
    created_at: str


class Sinks:
    """The sinks of one open database."""

    def __init__(self, catalog: Catalog, around: Surroundings, folder: Path) -> None:
        """`folder`: for the notes of those whose target forgets."""
        self._catalog, self._around, self._folder = catalog, around, folder
        self._lock = threading.RLock()
        self._runners: dict[int, SinkRunner] = {}

    # Life

    def open(self) -> None:
        """Starts all sinks that are not paused."""
        found = self._catalog.all("sink")
        for item in found:
            if item.definition["state"] != PAUSED:
                self._start(item)

    def close(self) -> None:
        """Stops all sinks; they go on at the next open."""
        with self._lock:
            runners = list(self._runners.values())
            self._runners.clear()
        for runner in runners:  # all of them, before any is waited for
            runner.ask_to_stop()
        for runner in runners:
            runner.stop()

    # Statements

    def create(self, name: str, query: str, url: str, options: Options) -> CatalogObject:
        """Makes a sink and starts it."""
        address = _placed(parse_address(url))
        parsed = parse_options(options, address.kind)
        with self._around.subscribe(query, parsed, "earliest") as probe:
            _check(address, parsed, written(probe.schema.empty_table(), parsed).schema)
        last = self._around.last_token(query) if parsed.start == "next" else None
        made = {
            "query": query,
            "key": uuid.uuid4().hex,
            "after": last or "earliest",
            "address": [address.kind, address.rest, address.url],
            "options": to_json(options),
            "state": RUNNING,
        }
        with self._lock:
            item = self._catalog.add("sink", name, made)
            self._start(item)
            return item

    def pause(self, item: CatalogObject) -> None:
        """Stops a sink until it is resumed, also over restarts."""
        self._set_state(item, PAUSED)
        with self._lock:
            runner = self._runners.get(item.id)
        if runner is not None:  # it stays, with its figures
            runner.stop()
            runner.state = PAUSED
        self._around.tell_changed()

    def resume(self, item: CatalogObject) -> None:
        """Starts a sink that is paused or failed; one that waits for its next attempt tries at once."""
        with self._lock:
            runner = self._runners.get(item.id)
        if runner is not None and runner.state == RUNNING:
            return
        self._stop(item)
        with self._lock:
            self._start(self._set_state(item, RUNNING))

    def drop(self, item: CatalogObject) -> None:
        """Stops a sink; what it has written stays."""
        self._catalog.remove(item)
        self._stop(item)
        Manifest(self._folder, _sink_name(item).plain).remove()

    def _stop(self, item: CatalogObject) -> None:
        """Ends a run; not under the lock, since a target that hangs takes its time."""
        with self._lock:
            runner = self._runners.pop(item.id, None)
        if runner is not None:
            runner.stop()

    def _set_state(self, item: CatalogObject, state: str) -> CatalogObject:
        return self._catalog.change(item, {**item.definition, "state": state})

    def find(self, name: str) -> CatalogObject | None:
        """The sink of that name."""
        return self._catalog.find(name, "sink")

    def of_query(self, query: str) -> list[str]:
        """The sinks that read a query."""
        sinks = self._catalog.all("sink")
        return [s.name for s in sinks if s.definition["query"].casefold() == query.casefold()]

    def wait_until(self, done: Callable[[], bool], timeout_s: float) -> bool:
        """Waits until a condition holds, looking again whenever a sink has come further."""
        with self._around.changed:
            return self._around.changed.wait_for(done, timeout_s)

    def _start(self, item: CatalogObject) -> None:
        saved = item.definition
        address = Address(*saved["address"])
        options = parse_options(from_json(saved["options"]), address.kind)
        made = partial(_target, address, _sink_name(item), saved["query"], options, self._folder)
        flow = Flow(item.name, saved["query"], saved["after"], options, made)
        self._runners[item.id] = runner = SinkRunner(flow, self._around)
        runner.start()

    # Figures

    def statuses(self) -> list[Status]:
        """All sinks, by name."""
        with self._lock:
            pairs = [(item, self._runners.get(item.id)) for item in self._catalog.all("sink")]
        return [_status(item, runner) for item, runner in pairs]


def _sink_name(item: CatalogObject) -> SinkName:
    return SinkName(item.name, item.definition["key"])


def _placed(address: Address) -> Address:
    """The address with a path that does not depend on where we run."""
    if address.kind not in FILE_KINDS:
        return address
    folder = local_path(address.rest, f"a {address.kind} sink", LOCAL_HINT)
    return replace(address, rest=str(folder.absolute()))


def _check(address: Address, options: SinkOptions, schema: pa.Schema) -> None:
    """Refuses what cannot work, before anything is made."""
    check_columns(schema, options)
    if address.kind in FILE_KINDS:
        if Path(address.rest).is_file():
            raise SettingError(f"{address.rest} is a file, not a folder")
        return
    check_installed(address.kind)
    from_environment(address.url)
    if address.kind == "kafka":
        kafka_topic(address.rest)
        check_kafka_settings(options.client)


def _target(
    address: Address, sink: SinkName, query: str, options: SinkOptions, notes: Path
) -> Target:
    """Made for each attempt, and reads the environment then."""
    if address.kind == "postgresql":
        url = from_environment(address.url)
        return PostgresqlTarget(url, sink, options.table or query, options)
    if address.kind == "kafka":
        client = {name: from_environment(value) for name, value in options.client.items()}
        return KafkaTarget(
            from_environment(address.rest), sink, replace(options, client=client), notes
        )
    if address.kind == "delta":
        return DeltaTarget(Path(address.rest), sink)
    return FilesTarget(Path(address.rest), sink, address.kind)


def _status(item: CatalogObject, runner: SinkRunner | None) -> Status:
    return Status(
        name=item.name,
        query=item.definition["query"],
        url=without_passwords(item.definition["address"][2]),
        state=item.definition["state"] if runner is None else runner.state,
        row_count=None if runner is None else runner.row_count,
        waiting_results=None if runner is None else runner.waiting,
        last_time=None if runner is None else runner.last_time,
        written_at=None if runner is None else runner.written_at,
        attempts=0 if runner is None else runner.attempts,
        last_error=None if runner is None else _shown(runner.error),
        created_at=item.created_at,
    )


def _shown(error: Error | None) -> str | None:
    if error is None:
        return None
    parts = [f"{error.message} ({error.sqlstate})"]
    parts += [f"detail: {error.detail}"] if error.detail else []
    parts += [f"hint: {error.hint}"] if error.hint else []
    return without_passwords("; ".join(parts))
