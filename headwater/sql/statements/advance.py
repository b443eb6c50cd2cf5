"""`ADVANCE t TO ts`: punctuation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from headwater.errors import DataError
from headwater.sql.cursor import Cursor
from headwater.sql.literals import take_literal, timestamp
from headwater.sql.statements.base import Statement
from headwater.sql.text import Name

Instant = int | datetime | date  # seconds of an integer T; aware in UTC or naive; midnight


@dataclass(frozen=True)
class Advance(Statement):
    """No more rows with T <= time will come."""

    table: Name
    time: Instant


def parse(cursor: Cursor) -> Advance:
    """ADVANCE …"""
    cursor.expect("ADVANCE")
    table = cursor.path("a table")
    cursor.expect("TO")
    time = parse_instant(cursor)
    return Advance(cursor.text, table, time)


def parse_instant(cursor: Cursor) -> Instant:
    """A whole number, `TIMESTAMP '…'`, `DATE '…'` or an ISO time in quotes."""
    start = cursor.start
    found = take_literal(cursor, cursor.time_zone)
    value = found.value if found is not None else None
    if isinstance(value, str):
        value = timestamp(value, cursor.time_zone)
    if isinstance(value, int | datetime | date) and not isinstance(value, bool):
        return value
    if found is None and cursor.peek(1).text[:1] not in ("'", '"'):
        cursor.fail("a time", hint="a whole number, TIMESTAMP '…' or DATE '…'")
    if found is None:
        cursor.take(), cursor.take()
    raise DataError(
        "not a time",
        sqlstate="22007",
        hint="a whole number, TIMESTAMP '2026-01-31 12:00:00' or DATE '2026-01-31'",
        place=cursor.span_from(start).place(cursor.text),
    )
