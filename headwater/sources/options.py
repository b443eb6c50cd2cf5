"""Options of sources: ours, and those that Spark's reader gets as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater.errors import SettingError
from headwater.sql.duration import Duration
from headwater.sql.statements.base import Options

TRIGGER_S = 0.5
FILES_PER_TRIGGER = 1000
BATCH_ROWS = 1000
KAFKA_ROWS = 500_000  # a micro-batch has its price: few large ones
INTERVALS = ("idle_timeout", "trigger")
WHOLE_NUMBERS = ("max_files_per_trigger", "batch_rows")
COLUMNS = "columns"
START = "start"
STARTS = ("earliest", "next")
# Options of the kinds that Spark does not read, beside those of all.
OWN: Mapping[str, tuple[str, ...]] = {
    "delta": (),
    "tcp": ("format",),
    "postgresql": ("table",),
}
FORMATS = ("json", "csv")


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
    found: dict[str, Any] = {}
    spark: dict[str, str] = {}
    demo: dict[str, object] = {}
    arguments: dict[str, object] = {}
    for name, value in given.items():
        key = name.lower()
        if kind == "demo":
            demo[key] = value
        elif key in INTERVALS:
            found[f"{key}_s"] = _seconds(key, value)
        elif key in WHOLE_NUMBERS:
            found[key] = _whole_number(key, value)
        elif key == COLUMNS and kind in ("spark", "kafka"):
            found[key] = str(value)
        elif key == START and kind == "kafka":
            found[key] = _start(value)
        elif kind == "python":
            arguments[name] = value
        elif key in OWN.get(kind, ()):
            found[key] = _word(key, value)
        elif kind in OWN:
            raise SettingError(
                f"there is no option {name} of a {kind} source",
                hint="options: " + ", ".join(("idle_timeout", "batch_rows", *OWN[kind])),
            )
        else:
            spark[name] = _text(value)
    if kind == "kafka":
        found.setdefault("batch_rows", KAFKA_ROWS)
    return SourceOptions(**found, spark=spark, demo=demo, arguments=arguments)


def _seconds(name: str, value: object) -> float:
    if not isinstance(value, Duration) or value.microseconds <= 0:
        raise SettingError(
            f"{name} is an interval above zero", hint=f"{name} = INTERVAL '10' SECONDS"
        )
    return value.seconds


def _whole_number(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SettingError(f"{name} is a whole number of at least 1")
    return value


def _start(value: object) -> str:
    if value not in STARTS:
        raise SettingError(f"there is no start {value!r}", hint="one of " + ", ".join(STARTS))
    return str(value)


def _word(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise SettingError(f"{name} is a text", hint=f"{name} = '…'")
    if name == "format" and value.lower() not in FORMATS:
        raise SettingError(f"there is no format {value!r}", hint="one of " + ", ".join(FORMATS))
    return value.lower() if name == "format" else value.strip()


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Duration):
        return f"{value.microseconds // 1000} milliseconds"
    return str(value)
