"""`UPDATE t [[AS] a] SET column = expression, … [WHERE condition]`."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.errors import BindError
from headwater.sql.cursor import Cursor
from headwater.sql.statements.base import Statement, optional_alias
from headwater.sql.statements.delete import take_where
from headwater.sql.text import Name, Span


@dataclass(frozen=True)
class Assignment:
    """`column = expression`; the column may be written with the alias before it."""

    column: Name
    value: Span


@dataclass(frozen=True)
class Update(Statement):
    """Change columns of the rows that meet a condition."""

    table: Name
    alias: Name | None
    assignments: tuple[Assignment, ...]
    where: Span | None


def parse(cursor: Cursor) -> Update:
    """UPDATE …"""
    cursor.expect("UPDATE")
    table = cursor.path("a table")
    alias = optional_alias(cursor, "SET")
    cursor.expect("SET")
    assignments = parse_assignments(cursor, table, alias, "WHERE", "FROM", ";")
    if cursor.at("FROM"):
        cursor.refuse("UPDATE … FROM is not supported", hint="use MERGE INTO t USING … ON …")
    where = take_where(cursor)
    return Update(cursor.text, table, alias, assignments, where)


def parse_assignments(
    cursor: Cursor, table: Name, alias: Name | None, *stops: str
) -> tuple[Assignment, ...]:
    """`column = expression, …` up to one of the words."""

    def assignment() -> Assignment:
        column = target_column(cursor, table, alias)
        if not cursor.accept("=") and not cursor.accept("=="):
            cursor.fail("=")
        return Assignment(column, cursor.expression("an expression", ",", *stops))

    assignments = cursor.listed(assignment)
    seen: set[str] = set()
    for column in (a.column for a in assignments):
        if column.key in seen:
            place = column.span.place(cursor.text)
            raise BindError(f"column {column} is set twice", sqlstate="42701", place=place)
        seen.add(column.key)
    return assignments


def target_column(cursor: Cursor, table: Name, alias: Name | None) -> Name:
    """A column to be set, without the table's name or alias before it."""
    first = cursor.name("a column")
    if not cursor.at("."):
        return first
    cursor.take()
    second = cursor.name("a column")
    if cursor.at(".") or first.key not in (table.key, alias.key if alias else table.key):
        cursor.refuse(
            "a field of a struct cannot be set alone",
            hint="set the whole column, with named_struct(…)",
            span=first.span,
        )
    return second
