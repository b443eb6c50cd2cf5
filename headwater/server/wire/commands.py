"""Statements that concern the session alone: PostgreSQL's parameters, cursors, DISCARD.

Owns the parameters of one session. Those of the database (`SHOW SETTINGS`) are not among them: what is
no parameter here is the database's to answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Protocol

import pyarrow as pa

from headwater.errors import BindError, NotSupportedError, SettingError
from headwater.server.wire import replies
from headwater.server.wire.outcome import Outcome, Portal, Prepared
from headwater.server.wire.rows import RowSource, of_table

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
_LEAD = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_WORD = re.compile(r"\(|[\w.$]+|`[^`]*`")
_SET = re.compile(
    r"SET\s+(?:SESSION\s+|LOCAL\s+)?(?:TIME\s+ZONE|([\w.]+)\s*(?:=|TO\b))\s*(.*)", re.I | re.DOTALL
)
_CURSOR = re.compile(
    r"DECLARE\s+(`[^`]+`|\w+)\s+(?:(?:BINARY|INSENSITIVE|ASENSITIVE|NO|SCROLL)\s+)*CURSOR\s+"
    r"(?:WITHOUT\s+HOLD\s+|(WITH\s+HOLD)\s+)?FOR\s+(.*)",
    re.I | re.DOTALL,
)
_FETCH = re.compile(
    r"(FETCH|MOVE)\s+(?:(NEXT|ALL|FORWARD\s+ALL|FORWARD\s+\d+|FORWARD|\d+)\s+)?"
    r"(?:(?:FROM|IN)\s+)?(`[^`]+`|\w+)",
    re.I,
)


@lru_cache(maxsize=1024)
def _words(head: str) -> tuple[str, ...]:
    lead = _LEAD.match(head)
    found = _WORD.findall(head, lead.end() if lead else 0)[:8]
    return tuple(word.strip("`").upper() for word in found) or ("",)


def first_words(text: str) -> tuple[str, ...]:
    """The first words of a statement, in upper case and without comments."""
    return _words(text[:300])


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

    def knows(self, text: str) -> bool:
        """Whether a statement is one of those answered here."""
        return self._find(first_words(text), text) is not None

    def run(self, host: Host, text: str) -> Outcome | None:
        """What came of a statement; None if it is not one of the session's own."""
        act = self._find(first_words(text), text)
        return None if act is None else act(host, text)

    def _find(self, words: tuple[str, ...], text: str) -> Callable[[Host, str], Outcome] | None:
        word, second = words[0], words[1] if len(words) > 1 else ""
        if word == "SET" and self._sets(words, text):
            return self._set
        if word == "SHOW" and (second.lower() in _NAMES or words[1:3] in _LONG_NAMES):
            return self._show
        if word == "RESET" and (second.lower() in _NAMES or second == "ALL"):
            return self._reset
        return _COMMANDS.get(word)

    def _sets(self, words: tuple[str, ...], text: str) -> bool:
        if words[1:3] in (("TIME", "ZONE"), ("SESSION", "CHARACTERISTICS")):
            return True
        if words[1:2] == ("TRANSACTION",):
            return True
        found = _SET.match(text)
        return found is not None and (found.group(1) or "timezone").lower() in _NAMES

    def _set(self, _host: Host, text: str) -> Outcome:
        found = _SET.match(text)
        if found is None:  # SET TRANSACTION …, SET SESSION CHARACTERISTICS …
            return Outcome("SET")
        name = _NAMES[(found.group(1) or "timezone").lower()]
        value = ", ".join(part.strip().strip("'\"`") for part in found.group(2).split(","))
        if value.upper() in ("DEFAULT", "LOCAL"):
            value = self._start[name]
        if not _fits(name, value):
            raise SettingError(
                f"parameter {name} cannot be {value!r} here",
                hint=f"it is {self.values[name]!r}",
            )
        return Outcome("SET", messages=self._changed(name, _kept(name, value)))

    def _changed(self, name: str, value: str) -> bytes:
        self.values[name] = value
        return replies.parameter_status(name, value) if name in REPORTED else b""

    def _show(self, _host: Host, text: str) -> Outcome:
        words = first_words(text)
        name = _LONG_NAMES.get(words[1:3], "") or _NAMES[words[1].lower()]
        return Outcome("SHOW", of_table(pa.table({name: [self.values[name]]})))

    def _reset(self, _host: Host, text: str) -> Outcome:
        second = first_words(text)[1].lower()
        names = list(self.values) if second == "all" else [_NAMES[second]]
        changed = [n for n in names if self.values[n] != self._start[n]]
        messages = b"".join(self._changed(name, self._start[name]) for name in changed)
        return Outcome("RESET", messages=messages)


_LONG_NAMES: Mapping[tuple[str, ...], str] = {
    ("TIME", "ZONE"): "TimeZone",
    ("TRANSACTION", "ISOLATION"): "transaction_isolation",
    ("SESSION", "AUTHORIZATION"): "session_authorization",
}


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


def _discard(host: Host, _text: str) -> Outcome:
    host.prepared.clear()
    host.portals.clear()
    return Outcome("DISCARD ALL")


def _deallocate(host: Host, text: str) -> Outcome:
    name = first_words(text)[-1]
    if name == "ALL":
        host.prepared.clear()
        return Outcome("DEALLOCATE ALL")
    for known in list(host.prepared):
        if known.upper() == name:
            del host.prepared[known]
    return Outcome("DEALLOCATE")


def _close(host: Host, text: str) -> Outcome:
    name = first_words(text)[-1]
    for known in list(host.portals):
        if name == "ALL" or known.upper() == name:
            del host.portals[known]
    return Outcome("CLOSE CURSOR ALL" if name == "ALL" else "CLOSE CURSOR")


def _declare(host: Host, text: str) -> Outcome:
    found = _CURSOR.match(text)
    if found is None:
        raise NotSupportedError(
            "this form of DECLARE is not supported", hint="DECLARE c CURSOR FOR …"
        )
    name = found.group(1).strip("`")
    if name in host.portals:
        raise BindError(f"cursor {name} already exists", sqlstate="42P03")
    portal = Portal(found.group(3), holds=found.group(2) is not None)
    if host.open_portal(portal).rows is None:
        raise BindError(f"cursor {name} has no rows", sqlstate="24000")
    host.portals[name] = portal
    return Outcome("DECLARE CURSOR")


def _fetch(host: Host, text: str) -> Outcome:
    found = _FETCH.match(text)
    if found is None:
        raise NotSupportedError("cursors go forward only", hint="FETCH FORWARD 100 FROM c")
    word, how, name = (
        found.group(1).upper(),
        (found.group(2) or "1").upper(),
        found.group(3).strip("`"),
    )
    portal = host.portals.get(name)
    if portal is None:
        raise BindError(f"cursor {name} does not exist", sqlstate="34000")
    rows = host.open_portal(portal).rows
    if rows is None:  # a portal of the protocol's, whose statement gives none
        raise BindError(f"cursor {name} has no rows", sqlstate="24000")
    number = re.search(r"\d+", how)
    limit = 0 if how.endswith("ALL") else int(number.group()) if number else 1
    parts = rows.parts(limit) if limit or how.endswith("ALL") else iter(())
    if word == "MOVE":
        return Outcome("MOVE", count=sum(part.num_rows for part in parts))
    return Outcome("FETCH", RowSource(rows.schema, parts))


def _refuse(_host: Host, text: str) -> Outcome:
    raise NotSupportedError(f"{first_words(text)[0]} is not supported")


_COMMANDS: Mapping[str, Callable[[Host, str], Outcome]] = {
    "DISCARD": _discard,
    "DEALLOCATE": _deallocate,
    "CLOSE": _close,
    "DECLARE": _declare,
    "FETCH": _fetch,
    "MOVE": _fetch,
    "UNLISTEN": lambda _host, _text: Outcome("UNLISTEN"),
    "LISTEN": _refuse,
    "NOTIFY": _refuse,
}
