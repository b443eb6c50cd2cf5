"""Addresses and options of sinks, checked before anything is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from headwater.connectors import options as read
from headwater.connectors.address import Kinds
from headwater.connectors.options import Known
from headwater.connectors.servers import client_settings
from headwater.engine.evaluation import TIME
from headwater.errors import BindError, SettingError
from headwater.sql.extensions import Emit
from headwater.sql.statements.base import Options

FILE_KINDS = ("csv", "json", "parquet", "delta")
KINDS = Kinds(
    "sink",
    (*FILE_KINDS, "postgresql", "kafka"),
    later=("http", "https", "tcp"),
    example="'csv:/data/out' or 'postgresql://user@host/database'",
    other_names={"postgres": "postgresql"},
)
EMITTED = ("all", "inserts", "deletes", "changes")
BATCH_ROWS = 50_000
FILE_INTERVAL_S = 1.0  # one file a second at most; servers take rows as they come
COMMON: Known = {
    "start": ("start", read.one_of(*read.STARTS)),
    "emit": ("emit", read.one_of(*EMITTED)),
    "interval": ("interval_s", read.seconds),
    "batch_rows": ("batch_rows", read.count),
    "time_column": ("time_column", read.text),
}
OWN: Mapping[str, Known] = {
    "postgresql": {
        "table": ("table", read.text),
        "key": ("key", read.names),
        "latest": ("latest", read.flag),
        "create": ("create", read.flag),
    },
    "kafka": {"key": ("key", read.names)},
}


@dataclass(frozen=True)
class SinkOptions:
    """What WITH (…) says."""

    start: str = "earliest"
    emit: Emit | None = None
    interval_s: float = 0.0
    batch_rows: int = BATCH_ROWS
    time_column: str = TIME
    table: str | None = None
    key: tuple[str, ...] = ()
    latest: bool = False
    create: bool = True
    client: Mapping[str, str] = field(default_factory=dict)  # settings of Kafka's client


def parse_options(given: Options, kind: str) -> SinkOptions:
    """The options of a sink of that kind, checked; those we do not know are of Kafka's client."""
    known = {**COMMON, **OWN.get(kind, {})}
    fields, others = read.read_options(given, known, None if kind == "kafka" else f"{kind} sink")
    fields.setdefault("interval_s", FILE_INTERVAL_S if kind in FILE_KINDS else 0.0)
    made = SinkOptions(**fields, client=client_settings(others))
    if made.latest and not made.key:
        raise SettingError("latest needs a key", hint="key = 'column, …'")
    return made


def written(rows: pa.Table, options: SinkOptions) -> pa.Table:
    """The rows with the names that they have outside."""
    if options.time_column == TIME:
        return rows
    return rows.rename_columns(
        [options.time_column if name == TIME else name for name in rows.schema.names]
    )


def check_columns(schema: pa.Schema, options: SinkOptions) -> None:
    """BindError if a column of the key is not in the result, or the time has the name of another."""
    if schema.names.count(options.time_column) > 1:
        raise BindError(
            f"the result has a column {options.time_column}",
            sqlstate="42701",
            hint="choose another time_column",
        )
    for name in options.key:
        if name not in schema.names:
            raise BindError(
                f"column {name} of the key does not exist",
                sqlstate="42703",
                hint="columns: " + ", ".join(schema.names),
            )
