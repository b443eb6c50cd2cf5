"""Addresses and options of sinks, checked before anything is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pyarrow as pa

from headwater.engine.evaluation import TIME
from headwater.errors import BindError, SettingError
from headwater.sql.addresses import kind_and_rest
from headwater.sql.duration import Duration
from headwater.sql.extensions import Emit
from headwater.sql.names import nearest
from headwater.sql.statements.base import Options

FILE_KINDS = ("csv", "json", "parquet", "delta")
KINDS = (*FILE_KINDS, "postgresql", "kafka")
OTHER_NAMES = {"postgres": "postgresql"}
LATER = ("http", "https", "tcp")
COMMON = ("start", "emit", "interval", "batch_rows", "time_column")
BY_KIND: Mapping[str, tuple[str, ...]] = {
    "postgresql": ("table", "key", "latest", "create"),
    "kafka": ("key",),
}
STARTS = ("earliest", "next")
EMITTED = ("all", "inserts", "deletes", "changes")
BATCH_ROWS = 50_000
FILE_INTERVAL_S = 1.0  # one file a second at most; servers take rows as they come


@dataclass(frozen=True)
class Address:
    """Where rows go."""

    kind: str
    rest: str
    url: str


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


def parse_address(url: str) -> Address:
    """The parts of an address; an error that names the kind if it is not there (yet)."""
    example = "'csv:/data/out' or 'postgresql://user@host/database'"
    first, colon, rest = url.partition(":")
    named = OTHER_NAMES.get(first.strip().lower(), first) + colon + rest
    return Address(*kind_and_rest(named, "sink", KINDS, LATER, example), url.strip())


def parse_options(given: Options, kind: str) -> SinkOptions:
    """The options of a sink of that kind, checked."""
    found: dict[str, Any] = {"interval_s": FILE_INTERVAL_S if kind in FILE_KINDS else 0.0}
    client: dict[str, str] = {}
    known = (*COMMON, *BY_KIND.get(kind, ()))
    for name, value in given.items():
        key = name.lower()
        if key not in known and kind == "kafka":
            client[key.replace("_", ".")] = str(value)
            continue
        if key not in known:
            near = nearest(key, known)
            raise SettingError(
                f"there is no option {name} of a {kind} sink",
                hint=f"did you mean {near}?" if near else "options: " + ", ".join(known),
            )
        found["interval_s" if key == "interval" else key] = PARSERS[key](key, value)
    made = SinkOptions(**found, client=client)
    if made.latest and not made.key:
        raise SettingError("latest needs a key", hint="key = 'column, …'")
    return made


def written(rows: pa.Table, options: SinkOptions) -> pa.Table:
    """The rows with the names that they have outside."""
    if options.time_column == TIME:
        return rows
    names = [options.time_column if name == TIME else name for name in rows.schema.names]
    return rows.rename_columns(names)


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


def _one_of(*words: str) -> Callable[[str, object], str]:
    def parse(name: str, value: object) -> str:
        word = str(value).lower()
        if word not in words:
            raise SettingError(f"there is no {name} {value!r}", hint="one of " + ", ".join(words))
        return word

    return parse


def _emit(name: str, value: object) -> Emit:
    return cast(Emit, _one_of(*EMITTED)(name, value))


def _seconds(name: str, value: object) -> float:
    if not isinstance(value, Duration) or value.microseconds < 0:
        raise SettingError(f"{name} is an interval", hint=f"{name} = INTERVAL '10' SECONDS")
    return value.seconds


def _count(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SettingError(f"{name} is a whole number of at least 1")
    return value


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise SettingError(f"{name} is true or false")
    return value


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise SettingError(f"{name} is a text", hint=f"{name} = '…'")
    return value.strip()


def _names(name: str, value: object) -> tuple[str, ...]:
    return tuple(part.strip() for part in _text(name, value).split(",") if part.strip())


PARSERS: Mapping[str, Callable[[str, object], Any]] = {
    "start": _one_of(*STARTS),
    "emit": _emit,
    "interval": _seconds,
    "batch_rows": _count,
    "time_column": _text,
    "table": _text,
    "key": _names,
    "latest": _flag,
    "create": _flag,
}
