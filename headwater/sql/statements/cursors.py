"""PostgreSQL's cursors: `DECLARE c CURSOR FOR …`, `FETCH`, `MOVE`, `CLOSE c`."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.cursor import Cursor
from headwater.sql.statements.base import Statement
from headwater.sql.text import Name, Span

_BACKWARD = ("ABSOLUTE", "BACKWARD", "FIRST", "LAST", "PRIOR", "RELATIVE", "-")
_ADJECTIVES = ("BINARY", "INSENSITIVE", "ASENSITIVE", "NO", "SCROLL")


@dataclass(frozen=True)
class DeclareCursor(Statement):
    """A cursor over the rows of the statement in a span; `holds`: it outlives its transaction."""

    name: Name
    query: Span
    holds: bool


@dataclass(frozen=True)
class Fetch(Statement):
    """The next rows of a cursor, all that are left if `count` is None; `moves`: they are passed over."""

    name: Name
    count: int | None
    moves: bool


@dataclass(frozen=True)
class CloseCursor(Statement):
    """The end of a cursor; of all if there is no name."""

    name: Name | None


def parse_declare(cursor: Cursor) -> DeclareCursor:
    """DECLARE c [NO SCROLL …] CURSOR [WITH | WITHOUT HOLD] FOR query"""
    cursor.expect("DECLARE")
    name = cursor.name("the name of a cursor")
    while cursor.accept_any(_ADJECTIVES):
        pass
    if not cursor.accept("CURSOR"):
        cursor.refuse("this form of DECLARE is not supported", hint="DECLARE c CURSOR FOR …")
    holds = cursor.accept("WITH", "HOLD")
    if not holds:
        cursor.accept("WITHOUT", "HOLD")
    cursor.expect("FOR")
    query = cursor.expression("a query", ";")
    return DeclareCursor(cursor.text, name, query, holds)


def parse_fetch(cursor: Cursor) -> Fetch:
    """FETCH | MOVE [NEXT | n | ALL | FORWARD [n | ALL]] [FROM | IN] c"""
    moves = cursor.choice("FETCH", "MOVE") == "MOVE"
    if cursor.at_any(_BACKWARD):
        cursor.refuse("cursors go forward only", hint="FETCH FORWARD 100 FROM c")
    count: int | None = 1
    if not (_named(cursor, "NEXT") and cursor.accept("NEXT")):
        if _named(cursor, "FORWARD"):
            cursor.take()
        if _named(cursor, "ALL"):
            cursor.take()
            count = None
        elif not cursor.peek().is_name:
            count = cursor.integer("a number of rows or the name of a cursor")
    cursor.accept_any(("FROM", "IN"))
    name = cursor.name("the name of a cursor")
    return Fetch(cursor.text, name, count, moves)


def _named(cursor: Cursor, word: str) -> bool:
    """Whether a word comes next that is not the cursor's own name."""
    after = Cursor(cursor.text, cursor.tokens[cursor.index + 1 :])
    return cursor.at(word) and not after.at_end


def parse_close(cursor: Cursor) -> CloseCursor:
    """CLOSE c | ALL"""
    cursor.expect("CLOSE")
    name = None if cursor.accept("ALL") else cursor.name("the name of a cursor")
    return CloseCursor(cursor.text, name)
