"""All sinks of one database: what each kind checks, and where its rows go.

The catalog has a sink's key, where it begins, its address and options. How far it is stands in the target
alone.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from headwater.connectors.address import Address, all_from_environment
from headwater.connectors.manager import Connectors, Status
from headwater.connectors.options import from_json, to_json
from headwater.connectors.runner import PAUSED
from headwater.connectors.servers import check_server
from headwater.errors import SettingError
from headwater.sinks.delta import DeltaTarget
from headwater.sinks.files import FilesTarget
from headwater.sinks.kafka import KafkaTarget
from headwater.sinks.manifest import Manifest
from headwater.sinks.options import (
    FILE_KINDS,
    KINDS,
    SinkOptions,
    check_columns,
    parse_options,
    written,
)
from headwater.sinks.postgresql import PostgresqlTarget
from headwater.sinks.runner import Flow, SinkRunner, SinkSurroundings
from headwater.sinks.target import SinkName, Target
from headwater.sql.statements.base import Options
from headwater.storage.catalog import CatalogObject
from headwater.storage.local_path import local_path

LOCAL_HINT = "give a local folder, and copy what is in it with a tool of that file system"


@dataclass(frozen=True, kw_only=True)
class SinkStatus(Status):
    """A sink as SHOW SINKS tells it."""

    query: str
    row_count: int | None  # None: paused since the database was opened
    waiting_results: int | None
    last_time: str | None
    written_at: str | None
    attempts: int


class Sinks(Connectors[SinkRunner]):
    """The sinks of one open database."""

    kind = "sink"
    _around: SinkSurroundings

    def create(self, name: str, query: str, url: str, options: Options) -> CatalogObject:
        """Makes a sink and starts it."""
        address = _placed(KINDS.parse(url))
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
        }
        item = self._add(name, made)
        self.start(item)
        return item

    def pause(self, item: CatalogObject) -> None:
        """Stops a sink until it is resumed, also over restarts."""
        self._set_state(item, PAUSED)
        runner = self._runner(item)
        if runner is not None:  # it stays, with its figures
            runner.stop()
            runner.state = PAUSED
        self._around.tell_changed()

    def _remove_notes(self, item: CatalogObject) -> None:
        Manifest(self._folder, _sink_name(item).plain).remove()

    def of_query(self, query: str) -> list[str]:
        """The sinks that read a query."""
        sinks = self._catalog.all("sink")
        return [s.name for s in sinks if s.definition["query"].casefold() == query.casefold()]

    def _made(self, item: CatalogObject) -> SinkRunner:
        saved = item.definition
        address = Address(*saved["address"])
        options = parse_options(from_json(saved["options"]), address.kind)
        made = partial(_target, address, _sink_name(item), saved["query"], options, self._folder)
        flow = Flow(item.name, saved["query"], saved["after"], options, made)
        return SinkRunner(flow, self._around)

    # Figures

    def statuses(self) -> list[SinkStatus]:
        """All sinks, by name."""
        return [self._status(item) for item in self._catalog.all("sink")]

    def _status(self, item: CatalogObject) -> SinkStatus:
        runner = self._runner(item)
        return SinkStatus(
            **self._common(item, item.definition["address"][2]),
            query=item.definition["query"],
            row_count=None if runner is None else runner.row_count,
            waiting_results=None if runner is None else runner.waiting,
            last_time=None if runner is None else runner.last_time,
            written_at=None if runner is None else runner.written_at,
            attempts=0 if runner is None else runner.attempts,
        )


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
    if address.kind not in FILE_KINDS:
        check_server(address, options.client)
    elif Path(address.rest).is_file():
        raise SettingError(f"{address.rest} is a file, not a folder")


def _target(
    address: Address, sink: SinkName, query: str, options: SinkOptions, notes: Path
) -> Target:
    """Made for each attempt, and reads the environment then."""
    if address.kind == "postgresql":
        return PostgresqlTarget(address.for_use().url, sink, options.table or query, options)
    if address.kind == "kafka":
        used = replace(options, client=all_from_environment(options.client))
        return KafkaTarget(address.for_use().rest, sink, used, notes)
    if address.kind == "delta":
        return DeltaTarget(Path(address.rest), sink)
    return FilesTarget(Path(address.rest), sink, address.kind)
