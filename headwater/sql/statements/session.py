"""What PostgreSQL's clients tell their session: `DISCARD …`, `DEALLOCATE p`, `UNLISTEN …`."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.cursor import Cursor
from headwater.sql.statements.base import Statement
from headwater.sql.text import Name


@dataclass(frozen=True)
class Discard(Statement):
    """Forget what the session has prepared and opened."""


@dataclass(frozen=True)
class Deallocate(Statement):
    """Forget a prepared statement; all if there is no name."""

    name: Name | None


@dataclass(frozen=True)
class Unlisten(Statement):
    """Wait for no notifications: there are none."""


def parse_discard(cursor: Cursor) -> Discard:
    """DISCARD ALL | PLANS | SEQUENCES | TEMPORARY"""
    cursor.expect("DISCARD")
    cursor.choice("ALL", "PLANS", "SEQUENCES", "TEMPORARY", "TEMP")
    return Discard(cursor.text)


def parse_deallocate(cursor: Cursor) -> Deallocate:
    """DEALLOCATE [PREPARE] p | ALL"""
    cursor.expect("DEALLOCATE")
    if cursor.peek(1).is_name:
        cursor.accept("PREPARE")
    name = None if cursor.accept("ALL") else cursor.name("the name of a prepared statement")
    return Deallocate(cursor.text, name)


def parse_unlisten(cursor: Cursor) -> Unlisten:
    """UNLISTEN channel | *"""
    cursor.expect("UNLISTEN")
    if not cursor.accept("*"):
        cursor.name("the name of a channel")
    return Unlisten(cursor.text)
