"""Every setting, with its default, bounds and meaning, in one table.

A setting comes from, in rising order: its default, the environment (`HEADWATER_RECENT_MB`),
`connect(settings={…})` or a command-line flag, and `SET name = value`. Names that start with
`spark.` go to Spark as they are. `docs/reference/settings.md` is checked against this table.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar, Union

from headwater.errors import SettingError

# A bound that is given once, or asked for whenever it is needed: then `SET` acts at once.
Number = TypeVar("Number", int, float)
Live = Union[Number, Callable[[], Number]]  # noqa: UP007  # mypy takes no other generic alias

type_names = {int: "an integer", float: "a number", bool: "true or false", str: "text"}


@dataclass(frozen=True)
class Setting:
    """One setting: its name, default, bounds and meaning."""

    name: str
    default: int | float | bool | str
    meaning: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] | None = None
    fixed: bool = False  # takes effect at connect() only
    check: Callable[[object], str | None] | None = None  # what is wrong with a value, or None

    def parse(self, value: object) -> int | float | bool | str:
        """The value as this setting's type, or an error that says what is allowed."""
        wanted = type(self.default)
        parsed = _converted(value, wanted)
        if parsed is None:
            raise self._refusal(value, f"{self.name} is {type_names[wanted]}")
        wrong = self.check(parsed) if self.check is not None else None
        if wrong is not None:
            raise self._refusal(value, wrong)
        if self.choices is not None and parsed not in self.choices:
            raise self._refusal(value, f"{self.name} is one of {', '.join(self.choices)}")
        if isinstance(parsed, (int, float)) and not isinstance(parsed, bool):
            if self.minimum is not None and parsed < self.minimum:
                raise self._refusal(value, f"{self.name} is at least {self.minimum:g}")
            if self.maximum is not None and parsed > self.maximum:
                raise self._refusal(value, f"{self.name} is at most {self.maximum:g}")
        return parsed

    def _refusal(self, value: object, rule: str) -> SettingError:
        return SettingError(f"setting {self.name} cannot be {value!r}", hint=rule)


def _converted(value: object, wanted: type) -> int | float | bool | str | None:
    """The value converted without loss, or None."""
    if wanted is bool:
        if isinstance(value, bool):
            return value
        words = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}
        return words.get(str(value).strip().lower())
    if wanted is str:
        return value if isinstance(value, str) else None
    if isinstance(value, bool):
        return None
    try:
        number = float(str(value)) if wanted is float else int(str(value))
    except ValueError:
        return None
    return None if number != number else number


def _wrong_time_zone(name: object) -> str | None:
    """What is wrong with a time zone: a region such as Europe/Berlin, or an offset, is right."""
    from zoneinfo import ZoneInfo

    if re.fullmatch(r"Z|UTC|GMT|(UTC|GMT)?[+-](1[0-8]|0?\d)(:[0-5]\d){0,2}", str(name), re.ASCII):
        return None
    try:
        ZoneInfo(str(name))
    except (KeyError, OSError, ValueError):
        return "time_zone is a region such as Europe/Berlin, or an offset such as +02:00"
    return None


MEBIBYTE = 1 << 20
_SECRET = re.compile(r"secret|password|token|credential|access\.?key", re.IGNORECASE)

TABLE: tuple[Setting, ...] = (
    # Kernel
    Setting(
        "factories",
        -1,
        "how many Spark tasks hold continuous queries and views; 0 keeps them in this process, "
        "-1: as many as there are cores, or half of what another Spark than our own local one has",
        minimum=-1,
        maximum=64,
        fixed=True,
    ),
    Setting(
        "factory_timeout_s",
        30.0,
        "a factory that does not answer for so long is started again",
        minimum=1,
    ),
    Setting("master", "local[*]", "the Spark master", fixed=True),
    Setting(
        "driver_memory_mb",
        0,
        "memory of the Java process; 0 takes a quarter of the machine, between 1 and 8 GiB",
        minimum=0,
        fixed=True,
    ),
    Setting(
        "eager_spark",
        True,
        "start Spark when the database is opened; false: when a statement first needs it",
        fixed=True,
    ),
    Setting("spark_ui", False, "start Spark's own web page", fixed=True),
    Setting(
        "aot_cache", True, "keep a cache of loaded Java classes for a faster start", fixed=True
    ),
    Setting("start_timeout_s", 120.0, "how long to wait for Spark to start", minimum=1),
    Setting(
        "spark_restarts",
        10,
        "how often within an hour Spark is started again after it ended; 0 never",
        minimum=0,
        maximum=1000,
    ),
    Setting(
        "spark_restart_pause_s",
        60.0,
        "longest pause before Spark is started again; the first is 0.25 s, each twice the one before",
        minimum=0.1,
        maximum=3600,
    ),
    Setting("statement_timeout_s", 0.0, "cancel a statement after this long; 0 never", minimum=0),
    Setting(
        "statement_timeout_users_s",
        300.0,
        "cancel a statement of a reader or writer after this long; 0 never",
        minimum=0,
    ),
    Setting(
        "spark_lanes", 4, "Spark sessions that run side by side", minimum=1, maximum=64, fixed=True
    ),
    Setting("time_zone", "UTC", "how text becomes a timestamp and back", check=_wrong_time_zone),
    # Standard tables
    Setting(
        "removed_files_kept_s",
        600.0,
        "how long a file that no version uses stays on disk for readers outside this process",
        minimum=0,
    ),
    Setting("staging_mb", 512, "shared memory used for rows handed to Spark", minimum=1),
    Setting(
        "frames_held",
        256,
        "DataFrames of `db.table` and `result.spark` whose files stay; of more, those of the oldest go",
        minimum=1,
    ),
    Setting(
        "change_mb",
        64,
        "UPDATE and DELETE of a table whose files are larger are Spark's work",
        minimum=0,
    ),
    Setting(
        "select_rows",
        100_000,
        "a SELECT that reads more rows is Spark's work; 0: every one that is more than a plain scan",
        minimum=0,
    ),
    Setting("select_mb", 64, "a SELECT that reads larger files is Spark's work", minimum=0),
    # Streaming tables
    Setting("block_rows", 1_000_000, "most rows in one block", minimum=1000),
    Setting("block_mb", 32, "a tail of this size is sealed into blocks", minimum=1),
    Setting("block_age_s", 10.0, "a tail of this age is sealed, however small", minimum=0.05),
    Setting(
        "unsealed_mb", 256, "writers of a table wait while more than this is not sealed", minimum=1
    ),
    Setting(
        "view_queue_rows",
        10_000_000,
        "writers of a table wait while a view has more rows than this to fold",
        minimum=1,
    ),
    Setting("recent_mb", 256, "sealed blocks of a table kept in memory, the newest", minimum=0),
    Setting(
        "insert_timeout_s",
        30.0,
        "how long an insert waits at a bound before it is refused",
        minimum=0.1,
    ),
    Setting(
        "max_clock_ahead_s",
        86_400.0,
        "rows further than this beyond the wall clock and the table's clock are refused; 0: never",
        minimum=0,
    ),
    Setting(
        "sidecar_mb", 2048, "uncompressed copies of indexed blocks on disk, per table", minimum=0
    ),
    Setting(
        "index_lag_blocks", 32, "blocks an index may be behind before sealing waits", minimum=1
    ),
    Setting("compact_files", 8, "so many small neighbours are joined into one block", minimum=2),
    Setting(
        "wal_segment_mb", 16, "size of a segment of the write-ahead log", minimum=1, fixed=True
    ),
    Setting("dedup_window_s", 86_400.0, "how long batch ids are remembered", minimum=1),
    # Continuous queries (DESIGN §3)
    Setting(
        "spark_sql_only",
        False,
        "no operators: every part of a continuous query or view is a Spark SQL job; for doubt and tests",
    ),
    Setting(
        "rows_at_once",
        1_000_000,
        "rows that operators take in one go; larger windows that are evaluated again, and larger merges of"
        " spilled groups, are Spark jobs over files",
        minimum=1,
    ),
    Setting(
        "inline_rows",
        1_000_000,
        "of release 0.1, still accepted: 0 is spark_sql_only, any other value means nothing",
        minimum=0,
    ),
    Setting(
        "basket_mb",
        256,
        "rows that wait for a query beyond this, per table in it, are set aside on disk",
        minimum=1,
    ),
    Setting(
        "update_target_ms",
        50.0,
        "how long one run of an update query should take; it processes as many keys as fit",
        minimum=0.1,
    ),
    Setting(
        "update_queue_rows",
        4_000_000,
        "rows in the queue of one update query, and groups of its EAGER windows; more wait in its basket",
        minimum=1000,
    ),
    Setting("results_kept", 100_000, "result sets kept per query for subscribers", minimum=1),
    Setting(
        "view_state_mb",
        1024,
        "groups of a view's pipeline, or states of its circuit, kept in memory; what is more goes to disk",
        minimum=0,
    ),
    Setting("view_versions", 8, "results kept per view for VERSION AS OF", minimum=1),
    Setting("results_mb", 256, "bytes of result sets kept per query, in MiB", minimum=1),
    Setting(
        "max_empty_instants",
        1000,
        "so many results over empty windows in a row are delivered one by one; of more, "
        "the first and the last",
        minimum=2,
    ),
    Setting("snapshot_s", 60.0, "how often the state of a query is written to disk", minimum=0.1),
    Setting(
        "engine_threads",
        3,
        "continuous queries that are evaluated side by side",
        minimum=1,
        maximum=64,
        fixed=True,
    ),
    # Server
    Setting(
        "connections",
        100,
        "most connections that are logged in at a time, counted for each listener",
        minimum=1,
        maximum=10_000,
        fixed=True,
    ),
    Setting(
        "connections_reserved",
        3,
        "of these, so many are kept for admins; others always have one",
        minimum=0,
    ),
    Setting(
        "waiting_logins",
        200,
        "most connections that have not logged in, counted for each listener; the oldest of the "
        "address that has the most goes first; never fewer than connections",
        minimum=1,
    ),
    Setting(
        "waiting_logins_per_address",
        100,
        "most of them from one address; never fewer than connections",
        minimum=1,
    ),
    Setting(
        "login_timeout_s",
        10.0,
        "a client has this long to log in; over HTTP, for the head of a request before one was let in",
        minimum=0.1,
    ),
    Setting(
        "http_idle_s",
        60.0,
        "an HTTP client has this long for a request's head, and for each part of its body",
        minimum=0.1,
    ),
    Setting(
        "http_stall_s",
        300.0,
        "an HTTP client that takes nothing of its answer for this long is cut off",
        minimum=0.1,
    ),
    Setting(
        "drain_s",
        10.0,
        "how long a server that stops waits for statements under way, before it cancels them",
        minimum=0,
    ),
    Setting("message_mb", 64, "largest message that a client may send", minimum=1, maximum=1024),
    Setting("copy_mb", 1024, "most rows in memory that one COPY FROM STDIN may bring", minimum=1),
)

BY_NAME: Mapping[str, Setting] = {setting.name: setting for setting in TABLE}


class Settings:
    """The values in force, by attribute or key; safe to share between threads."""

    def __init__(
        self,
        given: Mapping[str, object] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self.changes = 0  # how often a value was set: what was computed before may not hold
        self._values: dict[str, int | float | bool | str] = {s.name: s.default for s in TABLE}
        self.spark: dict[str, str] = {}
        self.on_set: Callable[[str], None] = lambda _name: None  # told after each change
        self.explicit: set[str] = set()
        for name, text in (os.environ if environment is None else environment).items():
            key = name.removeprefix("HEADWATER_").lower()
            if name.startswith("HEADWATER_") and key in BY_NAME:
                self._set(key, text)
        for name, value in (given or {}).items():
            self._set(name, value)

    def set(self, name: str, value: object) -> None:
        """`SET name = value`: refused for settings that take effect at connect() only."""
        setting = BY_NAME.get(name)
        if setting is not None and setting.fixed:
            raise SettingError(
                f"setting {name} takes effect at connect() only",
                sqlstate="55P02",
                hint=f"connect(…, settings={{'{name}': …}}) or the environment variable "
                f"HEADWATER_{name.upper()}",
            )
        self._set(name, value)

    def force(self, name: str, value: object) -> None:
        """Takes a value over from another process, whether it may be set here or not."""
        self._set(name, value)

    def _set(self, name: str, value: object) -> None:
        if name.startswith("spark."):
            with self._lock:
                self.spark[name] = str(value).lower() if isinstance(value, bool) else str(value)
                self.changes += 1
            self.on_set(name)
            return
        setting = BY_NAME.get(name)
        if setting is None:
            raise unknown_setting(name)
        parsed = setting.parse(value)
        with self._lock:
            self._values[name] = parsed
            self.explicit.add(name)
            self.changes += 1  # after the value: what is computed from now on is right
        self.on_set(name)

    def __getitem__(self, name: str) -> int | float | bool | str:
        with self._lock:
            return self._values[name]

    def integer(self, name: str) -> int:
        """An integer setting."""
        return int(self[name])

    def number(self, name: str) -> float:
        """A number setting."""
        return float(self[name])

    @property
    def operators(self) -> bool:
        """Whether operators do what they can; if not, everything is a Spark SQL job."""
        return not self.flag("spark_sql_only") and self.integer("inline_rows") > 0

    @property
    def rows_at_once(self) -> int:
        """The rows that operators take in one go; none if everything is a Spark SQL job."""
        return self.integer("rows_at_once") if self.operators else 0

    def flag(self, name: str) -> bool:
        """A true-or-false setting."""
        return bool(self[name])

    def text(self, name: str) -> str:
        """A text setting."""
        return str(self[name])

    def __iter__(self) -> Iterator[tuple[Setting, int | float | bool | str]]:
        return ((setting, self[setting.name]) for setting in TABLE)


def current(bound: Live[Number]) -> Number:
    """The value of a bound at this moment."""
    return bound() if callable(bound) else bound


def shown(name: str, value: str) -> str:
    """The value of a setting as anybody may see it: Spark's secrets are not shown."""
    return "***" if name.startswith("spark.") and _SECRET.search(name) else value


def unknown_setting(name: str) -> SettingError:
    """The error for a name that is no setting, with the nearest one as a hint."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(BY_NAME), n=1)
    hint = f"did you mean {near[0]}?" if near else "SHOW SETTINGS lists all of them"
    return SettingError(f"setting {name} does not exist", sqlstate="42704", hint=hint)
