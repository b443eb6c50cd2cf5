"""`DELETE FROM t [[AS] a] [WHERE condition]`."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.cursor import Cursor
from headwater.sql.statements.base import Statement, optional_alias
from headwater.sql.text import Name, Span


@dataclass(frozen=True)
class Delete(Statement):
    """Delete the rows that meet a condition; all of them if there is none."""

    table: Name
    alias: Name | None
    where: Span | None


def parse(cursor: Cursor) -> Delete:
    """DELETE …"""
    cursor.expect("DELETE", "FROM")
    table = cursor.path("a table")
    if cursor.at("USING"):
        cursor.refuse("DELETE … USING is not supported", hint="use WHERE … IN (SELECT …) or MERGE")
    alias = optional_alias(cursor, "WHERE")
    where = take_where(cursor)
    return Delete(cursor.text, table, alias, where)


def take_where(cursor: Cursor) -> Span | None:
    """`WHERE condition` up to the end of the statement, or nothing."""
    if not cursor.accept("WHERE"):
        return None
    return cursor.expression("a condition", ";")
