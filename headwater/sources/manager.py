"""All sources of one database: made, paused, resumed, dropped, started again at open.

The catalog's row is what makes a source exist; its state there is "running", "paused", "finished"
or "dropping". A failure is not kept: opening the database, like RESUME, tries again.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from headwater.errors import BindError, Error, SettingError
from headwater.extras import check_installed, check_kafka_settings, kafka_topic
from headwater.kernel.functions import PythonFunction
from headwater.sources.address import Address, parse_address
from headwater.sources.checkpoint import sums_of
from headwater.sources.csv import Csv
from headwater.sources.delta import DeltaRunner, check_delta
from headwater.sources.files import absolute, check_folder
from headwater.sources.json import Json
from headwater.sources.kafka import Kafka, client_settings
from headwater.sources.linearroad.options import parse_ride
from headwater.sources.linearroad.runner import LinearRoadRunner, check_columns
from headwater.sources.options import SourceOptions, parse_options
from headwater.sources.parquet import Parquet
from headwater.sources.postgresql import PostgresqlRunner
from headwater.sources.python import PythonRunner, check_arguments
from headwater.sources.runner import Feed, Runner, Surroundings, with_environment
from headwater.sources.spark_format import SparkFormat
from headwater.sources.stream import StreamKind, StreamRunner
from headwater.sources.tcp import TcpRunner, parse_host
from headwater.sql.masking import without_passwords
from headwater.sql.names import nearest
from headwater.sql.statements.base import Options
from headwater.sql.stored_options import from_json, to_json
from headwater.storage.catalog import Catalog, CatalogObject
from headwater.storage.streaming import micro_batch
from headwater.storage.streaming.store import source_key
from headwater.storage.streaming.table import StreamingTable

STREAM_KINDS: dict[str, StreamKind] = {
    "csv": Csv(),
    "json": Json(),
    "kafka": Kafka(),
    "parquet": Parquet(),
    "spark": SparkFormat(),
}
RUNNERS: dict[str, Callable[[Feed, Surroundings], Runner]] = {
    "delta": DeltaRunner,
    "demo": LinearRoadRunner,
    "postgresql": PostgresqlRunner,
    "python": PythonRunner,
    "tcp": TcpRunner,
}
LINEAR_ROAD = "linearroad"


@dataclass(frozen=True)
class Status:
    """A source as SHOW SOURCES tells it."""

    name: str
    table_name: str
    url: str
    state: str
    row_count: int
    rows_per_second: float
    lag_s: float | None
    last_batch: int | None
    last_error: str | None
    started_at: str | None
    created_at: str


class Sources:
    """The sources of one open database."""

    def __init__(self, catalog: Catalog, around: Surroundings, folder: Path) -> None:
        self._catalog = catalog
        self._around = around
        self._folder = folder
        self._lock = threading.RLock()
        self._runners: dict[int, Runner] = {}

    # Life

    def open(self) -> None:
        """Starts what ran when the database was closed, and ends what was being dropped."""
        for item in self._catalog.all("source"):
            if item.definition["state"] == "dropping":
                self._forget(item)
            elif item.definition["state"] == "running":
                self._start(item)

    def close(self) -> None:
        """Stops all sources; they go on at the next open."""
        with self._lock:
            runners = list(self._runners.values())
        for runner in runners:
            runner.stopping.set()
        for runner in runners:
            runner.stop()

    # Statements

    def create(self, name: str, table: StreamingTable, url: str, options: Options) -> CatalogObject:
        """Makes a source and starts it."""
        address, _ = self._checked(url, options)
        if address.kind == "demo":
            check_columns(table.definition.schema)
        made = {
            "table_id": table.definition.id,
            "url": url,
            "address": [address.kind, address.rest],
            "options": to_json(options),
            "state": "running",
        }
        with self._lock:
            item = self._catalog.add("source", name, made)
            shutil.rmtree(self._checkpoint(item), ignore_errors=True)
            self._start(item)
            return item

    def _checked(self, url: str, options: Options) -> tuple[Address, SourceOptions]:
        address = parse_address(url)
        parsed = parse_options(options, address.kind)
        if address.kind == "python":
            self._check_function(address.rest, parsed.arguments)
        elif address.kind == "demo":
            _check_demo(address.rest)
            parse_ride(parsed.demo)
        elif address.kind == "tcp":
            parse_host(address.rest)
        elif address.kind == "postgresql":
            check_installed(address.kind)
        elif address.kind == "kafka":
            kafka_topic(address.rest)
            check_installed(address.kind)
            check_kafka_settings(client_settings(parsed))
        elif address.kind != "spark":
            address = Address(address.kind, absolute(address.rest))
            check_folder(address.rest)
            if address.kind == "delta":
                check_delta(address.rest)
        with_environment(address, parsed)
        return address, parsed

    def table_function(self, name: str) -> PythonFunction:
        """The table function in Python of that name; BindError if there is none."""
        found = self._around.functions.get(name.lower())
        if isinstance(found, PythonFunction) and found.kind == "table":
            return found
        tables = [n for n, f in self._around.functions.items() if isinstance(f, PythonFunction)]
        near = nearest(name, tables)
        raise BindError(
            f"there is no table function {name} in Python",
            sqlstate="42883",
            hint=f"did you mean {near}?"
            if near
            else 'db.create_function(name, fn, returns="TABLE(…)", kind="table") makes one',
        )

    def _check_function(self, name: str, arguments: Mapping[str, object]) -> None:
        check_arguments(name, self.table_function(name).function, arguments)

    def pause(self, item: CatalogObject) -> None:
        """Stops a source; the clock goes on without it."""
        with self._lock:
            self._set_state(item, "paused")
            self._stop(item)
            self._tell(item, "idle")

    def resume(self, item: CatalogObject) -> None:
        """Starts a source that is paused, failed or finished; nothing if it runs."""
        with self._lock:
            runner = self._runners.get(item.id)
            if runner is not None and runner.state == "running":
                return
            self._stop(item)
            self._start(self._set_state(item, "running"))

    def drop(self, item: CatalogObject) -> None:
        """Stops a source and removes all that was kept for it, but not its rows."""
        with self._lock:
            going = self._set_state(item, "dropping")
            self._stop(item)
            self._forget(going)

    def _forget(self, item: CatalogObject) -> None:
        """What is left to do for a source in state "dropping"; may be done again."""
        self._tell(item, "remove")
        shutil.rmtree(self._checkpoint(item), ignore_errors=True)
        sums_of(self._checkpoint(item)).unlink(missing_ok=True)
        self._catalog.remove(item)

    def find(self, name: str) -> CatalogObject | None:
        """The source of that name."""
        return self._catalog.find(name, "source")

    def runner(self, name: str) -> Runner | None:
        """The run of a source, if it was started."""
        item = self.find(name)
        return None if item is None else self._runners.get(item.id)

    def wait_until(self, done: Callable[[], bool], timeout_s: float) -> bool:
        """Waits until a condition holds, looking again whenever a source has come further."""
        with self._around.changed:
            return self._around.changed.wait_for(done, timeout_s)

    # Parts

    def _set_state(self, item: CatalogObject, state: str) -> CatalogObject:
        return self._catalog.change(item, {**item.definition, "state": state})

    def _table(self, item: CatalogObject) -> StreamingTable | None:
        return self._around.streams.find(item.definition["table_id"])

    def _checkpoint(self, item: CatalogObject) -> Path:
        plain = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in item.name)
        return self._folder / f"{plain}-{item.id}"

    def _start(self, item: CatalogObject) -> None:
        runner = self._made(item)
        self._runners[item.id] = runner
        runner.on_end = partial(self._ended, item, runner)
        runner.start()

    def _ended(self, item: CatalogObject, runner: Runner) -> None:
        """A run came to its end by itself: what has no more rows is not started again at open."""
        found = self.find(item.name)
        if runner.state == "finished" and found is not None and found.id == item.id:
            self._set_state(found, "finished")

    def _made(self, item: CatalogObject) -> Runner:
        table = self._table(item)
        assert table is not None, "a table is not dropped before its sources"
        saved = item.definition
        address = Address(*saved["address"])
        options = parse_options(from_json(saved["options"]), address.kind)
        feed = Feed(item.name, source_key(item), table, address, options, self._checkpoint(item))
        if address.kind in RUNNERS:
            return RUNNERS[address.kind](feed, self._around)
        return StreamRunner(feed, self._around, STREAM_KINDS[address.kind])

    def _stop(self, item: CatalogObject) -> None:
        runner = self._runners.pop(item.id, None)
        if runner is not None:
            runner.stop()

    def _tell(self, item: CatalogObject, event: micro_batch.Event) -> None:
        table = self._table(item)
        if table is None or table.definition.by_arrival:
            return
        with contextlib.suppress(ValueError):  # the clock knows no such source: nothing to tell
            micro_batch.tell(table, event, source_key(item))

    # Figures

    def statuses(self) -> list[Status]:
        """All sources, by name."""
        return [self._status(item) for item in self._catalog.all("source")]

    def _status(self, item: CatalogObject) -> Status:
        table, runner = self._table(item), self._runners.get(item.id)
        progress = None if table is None else table.state.progress.get(source_key(item))
        return Status(
            name=item.name,
            table_name="" if table is None else table.definition.name,
            url=without_passwords(item.definition["url"]),
            state=item.definition["state"] if runner is None else runner.state,
            row_count=0 if progress is None else progress.row_count,
            rows_per_second=0.0 if runner is None else runner.rate,
            lag_s=None if runner is None else runner.lag_s,
            last_batch=None if progress is None else progress.batch,
            last_error=None if runner is None else _shown(runner.error),
            started_at=None if runner is None else runner.started_at.isoformat(),
            created_at=item.created_at,
        )


def _check_demo(name: str) -> None:
    if name.lower() != LINEAR_ROAD:
        raise SettingError(f"there is no demo named {name!r}", hint=f"write 'demo:{LINEAR_ROAD}'")


def _shown(error: Error | None) -> str | None:
    if error is None:
        return None
    parts: Mapping[str, Any] = {"detail": error.detail, "hint": error.hint}
    more = [f"{name}: {text}" for name, text in parts.items() if text]
    return without_passwords("; ".join([f"{error.message} ({error.sqlstate})", *more]))
