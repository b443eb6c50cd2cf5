"""Addresses and options of sources: ours, and those that Spark's reader gets as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from headwater.connectors import options as read
from headwater.connectors.address import Kinds
from headwater.connectors.options import Known
from headwater.sql.duration import Duration
from headwater.sql.statements.base import Options

KINDS = Kinds(
    "source",
    ("csv", "json", "parquet", "delta", "spark", "python", "tcp", "kafka", "postgresql", "demo"),
    later=("http",),
    example="'csv:/data/in', 'spark:rate' or 'python:name'",
)
TRIGGER_S = 0.5
FILES_PER_TRIGGER = 1000
BATCH_ROWS = 1000
KAFKA_ROWS = 500_000  # a micro-batch has its price: few large ones
FORMATS = ("json", "csv")


def _format(name: str, value: object) -> str:
    return str(read.one_of(*FORMATS)(name, read.text(name, value)))


COMMON: Known = {
    "idle_timeout": ("idle_timeout_s", partial(read.seconds, above_zero=True)),
    "trigger": ("trigger_s", partial(read.seconds, above_zero=True)),
    "max_files_per_trigger": ("max_files_per_trigger", read.count),
    "batch_rows": ("batch_rows", read.count),
}
# Kinds that Spark does not read take no other options than those of all and their own.
OWN: Mapping[str, Known] = {
    "delta": {},
    "tcp": {"format": ("format", _format)},
    "postgresql": {"table": ("table", read.text)},
}
ON_SPARK: Mapping[str, Known] = {
    "spark": {"columns": ("columns", lambda _, value: str(value))},
    "kafka": {
        "columns": ("columns", lambda _, value: str(value)),
        "start": ("start", read.one_of(*read.STARTS)),
    },
}


@dataclass(frozen=True)
class SourceOptions:
    """What WITH (…) says."""

    idle_timeout_s: float | None = None
    trigger_s: float = TRIGGER_S
    max_files_per_trigger: int = FILES_PER_TRIGGER
    batch_rows: int = BATCH_ROWS
    format: str = "json"  # of the lines of a tcp source
    table: str | None = None  # of a postgresql source
    start: str = "earliest"  # of a kafka source
    columns: str | None = None  # a SELECT list over what Spark reads
    spark: Mapping[str, str] = field(default_factory=dict)
    demo: Mapping[str, object] = field(default_factory=dict)
    arguments: Mapping[str, object] = field(default_factory=dict)  # of a python source's function


def parse_options(given: Options, kind: str) -> SourceOptions:
    """The options, checked; those we do not know are Spark's, for kinds that Spark reads."""
    if kind == "demo":
        return SourceOptions(demo={name.lower(): value for name, value in given.items()})
    known = {**COMMON, **OWN.get(kind, {}), **ON_SPARK.get(kind, {})}
    shown = ("idle_timeout", "batch_rows", *OWN.get(kind, ()))
    owner = f"{kind} source" if kind in OWN else None
    fields, others = read.read_options(given, known, owner, shown)
    if kind == "kafka":
        fields.setdefault("batch_rows", KAFKA_ROWS)
    if kind == "python":
        return SourceOptions(**fields, arguments=others)
    return SourceOptions(**fields, spark={name: _text(value) for name, value in others.items()})


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Duration):
        return f"{value.microseconds // 1000} milliseconds"
    return str(value)
