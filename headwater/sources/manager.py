"""All sources of one database: what each kind checks, and where its rows go.

Checkpoints are kept in a folder of their own for each source.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from headwater.connectors.address import Address, all_from_environment
from headwater.connectors.manager import Connectors, Status, safe_name
from headwater.connectors.options import from_json, to_json
from headwater.connectors.runner import FINISHED, PAUSED, RUNNING
from headwater.connectors.servers import PACKAGES, check_server, client_settings
from headwater.errors import BindError, StorageError
from headwater.kernel.functions import PythonFunction
from headwater.sources.checkpoint import sums_of
from headwater.sources.csv import Csv
from headwater.sources.delta import DeltaRunner, check_delta
from headwater.sources.demo import demo_runner, demo_source
from headwater.sources.files import absolute, check_folder
from headwater.sources.json import Json
from headwater.sources.kafka import Kafka
from headwater.sources.options import KINDS, SourceOptions, parse_options
from headwater.sources.parquet import Parquet
from headwater.sources.postgresql import PostgresqlRunner
from headwater.sources.python import PythonRunner, check_arguments
from headwater.sources.runner import SourceFeed, SourceRunner, SourceSurroundings
from headwater.sources.spark_format import SparkFormat
from headwater.sources.stream import StreamKind, StreamRunner
from headwater.sources.tcp import TcpRunner, parse_host
from headwater.sql.names import nearest
from headwater.sql.statements.base import Options
from headwater.storage.catalog import CatalogObject
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
RUNNERS: dict[str, Callable[[SourceFeed, SourceSurroundings], SourceRunner]] = {
    "delta": DeltaRunner,
    "demo": demo_runner,
    "postgresql": PostgresqlRunner,
    "python": PythonRunner,
    "tcp": TcpRunner,
}


@dataclass(frozen=True, kw_only=True)
class SourceStatus(Status):
    """A source as SHOW SOURCES tells it."""

    table_name: str
    row_count: int
    rows_per_second: float
    lag_s: float | None
    last_batch: int | None
    started_at: str | None


class Sources(Connectors[SourceRunner]):
    """The sources of one open database."""

    kind = "source"
    _around: SourceSurroundings

    def create(self, name: str, table: StreamingTable, url: str, options: Options) -> CatalogObject:
        """Makes a source and starts it."""
        item = self.add(name, table, url, options)
        self.start(item)
        return item

    def add(self, name: str, table: StreamingTable, url: str, options: Options) -> CatalogObject:
        """Makes a source that is not started yet."""
        address, _ = self._checked(url, options)
        if address.kind == "demo":
            demo_source(address.rest).check_columns(table.definition.schema)
        made = {
            "table_id": table.definition.id,
            "url": url,
            "address": [address.kind, address.rest],
            "options": to_json(options),
        }
        return self._add(name, made)

    def _checked(self, url: str, options: Options) -> tuple[Address, SourceOptions]:
        address = KINDS.parse(url)
        parsed = parse_options(options, address.kind)
        if address.kind == "python":
            self._check_function(address.rest, parsed.arguments)
        elif address.kind == "demo":
            demo_source(address.rest).check_options(parsed.demo)
        elif address.kind == "tcp":
            parse_host(address.rest)
        elif address.kind in PACKAGES:
            check_server(address, client_settings(parsed.spark))
        elif address.kind != "spark":
            address = replace(address, rest=absolute(address.rest))
            check_folder(address.rest)
            if address.kind == "delta":
                check_delta(address.rest)
        address.for_use()
        all_from_environment(parsed.spark)
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
        """Stops a source until it is resumed; the clock goes on without it."""
        self._set_state(item, PAUSED)
        self._stop(item)
        self._tell(item, "idle")

    def _forget(self, item: CatalogObject) -> None:
        self._tell(item, "remove")
        super()._forget(item)

    def _remove_notes(self, item: CatalogObject) -> None:
        shutil.rmtree(self._checkpoint(item), ignore_errors=True)
        sums_of(self._checkpoint(item)).unlink(missing_ok=True)

    def runner(self, name: str) -> SourceRunner | None:
        """The run of a source, if it was started."""
        item = self.find(name)
        return None if item is None else self._runner(item)

    def _table(self, item: CatalogObject) -> StreamingTable | None:
        return self._around.streams.find(item.definition["table_id"])

    def _checkpoint(self, item: CatalogObject) -> Path:
        return self._folder / f"{safe_name(item.name)}-{item.id}"

    def _ended(self, item: CatalogObject, runner: SourceRunner) -> None:
        """A run came to its end by itself: what has no more rows is not started again at open."""
        with self._lock:
            found = self.find(item.name)
            if runner.state != FINISHED or found is None or found.id != item.id:
                return
            if found.definition["state"] == RUNNING:  # else it was paused, or is being dropped
                # Gone with its query meanwhile, or not written: then it ends again after the next open.
                with contextlib.suppress(StorageError, BindError):
                    self._set_state(found, FINISHED)

    def _made(self, item: CatalogObject) -> SourceRunner:
        table, saved = self._table(item), item.definition
        if table is None:  # it is not dropped before its sources
            raise self._around.streams.damaged[saved["table_id"]]
        kind, rest = saved["address"]
        address = Address(kind, rest, saved["url"])
        options = parse_options(from_json(saved["options"]), address.kind)
        feed = SourceFeed(
            item.name, source_key(item), table, address, options, self._checkpoint(item)
        )
        if address.kind in RUNNERS:
            runner = RUNNERS[address.kind](feed, self._around)
        else:
            runner = StreamRunner(feed, self._around, STREAM_KINDS[address.kind])
        runner.on_end = partial(self._ended, item, runner)
        return runner

    def _tell(self, item: CatalogObject, event: micro_batch.Event) -> None:
        table = self._table(item)
        if table is None or table.definition.by_arrival:
            return
        with contextlib.suppress(ValueError):  # the clock knows no such source: nothing to tell
            micro_batch.tell(table, event, source_key(item))

    # Figures

    def statuses(self) -> list[SourceStatus]:
        """All sources, by name."""
        return [self._status(item) for item in self._catalog.all("source")]

    def _status(self, item: CatalogObject) -> SourceStatus:
        table, runner = self._table(item), self._runner(item)
        progress = None if table is None else table.state.progress.get(source_key(item))
        return SourceStatus(
            **self._common(item, item.definition["url"]),
            table_name="" if table is None else table.definition.name,
            row_count=0 if progress is None else progress.row_count,
            rows_per_second=0.0 if runner is None else runner.rate,
            lag_s=None if runner is None else runner.lag_s,
            last_batch=None if progress is None else progress.batch,
            started_at=None if runner is None else runner.started_at.isoformat(),
        )
