"""Statements that concern the session alone: PostgreSQL's parameters, cursors, DISCARD.

Owns the parameters of one session. Those of the database (`SHOW SETTINGS`) are not among them: what is
no parameter here is the database's to answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol, TypeVar

import pyarrow as pa

from headwater.errors import BindError, SettingError
from headwater.server.wire import replies
from headwater.server.wire.outcome import Outcome, Portal, Prepared
from headwater.server.wire.rows import RowSource, of_table
from headwater.sql import statements as s
from headwater.sql.scripts import Asked
from headwater.sql.text import Name

SERVER_VERSION = "14.0"  # the PostgreSQL whose catalogs and messages clients may expect
# What clients are told of at the start and on every change.
REPORTED = (
    "application_name", "client_encoding", "DateStyle", "default_transaction_read_only",
    "in_hot_standby", "integer_datetimes", "IntervalStyle", "is_superuser", "server_encoding",
    "server_version", "session_authorization", "standard_conforming_strings", "TimeZone",
)  # fmt: skip
DEFAULTS: Mapping[str, str] = {
    "application_name": "",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "DateStyle": "ISO, MDY",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "extra_float_digits": "1",
    "idle_in_transaction_session_timeout": "0",
    "in_hot_standby": "off",
    "integer_datetimes": "on",
    "IntervalStyle": "postgres",
    "is_superuser": "on",
    "jit": "off",
    "lc_collate": "C.UTF-8",
    "lc_ctype": "C.UTF-8",
    "lc_messages": "C",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "lock_timeout": "0",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "role": "none",
    "row_security": "off",
    "search_path": '"$user", public',
    "server_encoding": "UTF8",
    "server_version": SERVER_VERSION,
    "server_version_num": "140000",
    "session_authorization": "",
    "standard_conforming_strings": "off",
    "statement_timeout": "0",
    "synchronize_seqscans": "on",
    "TimeZone": "UTC",
    "transaction_isolation": "read committed",
    "transaction_read_only": "off",
}
FIXED = {
    "client_encoding": r"utf-?8|unicode|'?utf-?8'?",
    "datestyle": r"iso\b.*",
    "intervalstyle": "postgres",
    "standard_conforming_strings": "off",
    "server_version": "",
    "server_version_num": "",
    "integer_datetimes": "",
    "server_encoding": "",
}
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_NAMES = {name.lower(): name for name in DEFAULTS}
T = TypeVar("T", Prepared, Portal)


class Host(Protocol):
    """What commands ask of the session that they belong to."""

    prepared: dict[str, Prepared]
    portals: dict[str, Portal]

    def open_portal(self, portal: Portal) -> Outcome:
        """Runs a portal, if it has not been run."""


class Commands:
    """The parameters of one session, and the statements about them."""

    def __init__(self, given: Mapping[str, str], user: str, database: str) -> None:
        self.user, self.database = user, database
        self.process = 0  # the number that clients cancel by
        self.values = dict(DEFAULTS) | {"session_authorization": user}
        self._start = dict(self.values)
        for name, value in given.items():
            known = _NAMES.get(name.lower())
            if known is not None and _fits(known, value):
                self.values[known] = self._start[known] = _kept(known, value)

    @property
    def reported(self) -> dict[str, str]:
        """What a client is told at the start."""
        return {name: self.values[name] for name in REPORTED}

    @property
    def statement_timeout_s(self) -> float:
        """How long a statement may take by the client's own wish; 0: no wish."""
        return _seconds(self.values["statement_timeout"]) or 0.0

    def run(self, host: Host, asked: Asked, statement: s.Statement) -> Outcome | None:
        """What came of a statement; None if it is not one of the session's own."""
        match statement:
            case s.SetSetting(parameter=parameter) if parameter in _NAMES:
                return self._set(_NAMES[parameter], ", ".join(statement.parts))
            case s.ResetSetting(parameter=parameter) if parameter in _NAMES or parameter == "all":
                return self._reset(parameter, "SET" if statement.sets else "RESET")
            case s.ShowSetting(parameter=parameter) if parameter in _NAMES:
                name = _NAMES[parameter]
                return Outcome("SHOW", of_table(pa.table({name: [self.values[name]]})))
            case s.SetTransaction():
                return Outcome("SET")
            case s.Discard():
                host.prepared.clear()
                host.portals.clear()
                return Outcome("DISCARD ALL")
            case s.Deallocate(name=name):
                _forget(host.prepared, name)
                return Outcome("DEALLOCATE ALL" if name is None else "DEALLOCATE")
            case s.CloseCursor(name=name):
                _forget(host.portals, name)
                return Outcome("CLOSE CURSOR ALL" if name is None else "CLOSE CURSOR")
            case s.DeclareCursor():
                return _declare(host, statement, asked.original(statement.query))
            case s.Fetch():
                return _fetch(host, statement)
            case s.Unlisten():
                return Outcome("UNLISTEN")
        return None

    def _set(self, name: str, value: str) -> Outcome:
        if not _fits(name, value):
            raise SettingError(
                f"parameter {name} cannot be {value!r} here",
                hint=f"it is {self.values[name]!r}",
            )
        return Outcome("SET", messages=self._changed(name, _kept(name, value)))

    def _changed(self, name: str, value: str) -> bytes:
        self.values[name] = value
        return replies.parameter_status(name, value) if name in REPORTED else b""

    def _reset(self, parameter: str, tag: str) -> Outcome:
        names = list(self.values) if parameter == "all" else [_NAMES[parameter]]
        changed = [n for n in names if self.values[n] != self._start[n]]
        messages = b"".join(self._changed(name, self._start[name]) for name in changed)
        return Outcome(tag, messages=messages)


def _seconds(value: str) -> float | None:
    """A length of time as PostgreSQL writes it, in milliseconds if it has no unit; None if it is none."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|min|h|d)?\s*", value)
    return float(found.group(1)) * _UNITS[found.group(2) or "ms"] if found else None


def _fits(name: str, value: str) -> bool:
    if name == "statement_timeout":
        return _seconds(value) is not None
    pattern = FIXED.get(name.lower())
    return pattern is None or re.fullmatch(pattern, value.strip(), re.I) is not None


def _kept(name: str, value: str) -> str:
    return DEFAULTS[name] if name.lower() in FIXED else value


def _forget(known: dict[str, T], name: Name | None) -> None:
    """Forgets what has a name; all, if there is none."""
    for each in list(known) if name is None else _named(known, name):
        del known[each]


def _named(known: Mapping[str, object], name: Name) -> list[str]:
    """What has a name, whatever its case."""
    return [each for each in known if each.casefold() == name.casefold()]


def _declare(host: Host, statement: s.DeclareCursor, text: str) -> Outcome:
    name = str(statement.name)
    if _named(host.portals, statement.name):
        raise BindError(f"cursor {name} already exists", sqlstate="42P03")
    portal = Portal(text, holds=statement.holds)
    if host.open_portal(portal).rows is None:
        raise BindError(f"cursor {name} has no rows", sqlstate="24000")
    host.portals[name] = portal
    return Outcome("DECLARE CURSOR")


def _fetch(host: Host, statement: s.Fetch) -> Outcome:
    name, count = str(statement.name), statement.count
    found = _named(host.portals, statement.name)
    if not found:
        raise BindError(f"cursor {name} does not exist", sqlstate="34000")
    rows = host.open_portal(host.portals[found[0]]).rows
    if rows is None:  # a portal of the protocol's, whose statement gives none
        raise BindError(f"cursor {name} has no rows", sqlstate="24000")
    parts = iter(()) if count == 0 else rows.parts(count or 0)
    if statement.moves:
        return Outcome("MOVE", count=sum(part.num_rows for part in parts))
    return Outcome("FETCH", RowSource(rows.schema, parts))
