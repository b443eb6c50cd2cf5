"""`TRUNCATE TABLE t`."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.cursor import Cursor
from headwater.sql.statements.base import Statement
from headwater.sql.text import Name


@dataclass(frozen=True)
class Truncate(Statement):
    """Delete all rows of a table."""

    table: Name


def parse(cursor: Cursor) -> Truncate:
    """TRUNCATE …"""
    cursor.expect("TRUNCATE")
    if cursor.at("TABLE") and cursor.peek(1).is_name:
        cursor.take()
    table = cursor.path("a table")
    return Truncate(cursor.text, table)
