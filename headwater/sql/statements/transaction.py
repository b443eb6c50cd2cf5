"""`BEGIN [TRANSACTION]`, `START TRANSACTION`, `COMMIT`, `ROLLBACK` (and PostgreSQL's spellings)."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.cursor import Cursor
from headwater.sql.statements.base import Statement


@dataclass(frozen=True)
class Begin(Statement):
    """Start a transaction."""


@dataclass(frozen=True)
class Commit(Statement):
    """End a transaction and keep its changes."""


@dataclass(frozen=True)
class Rollback(Statement):
    """End a transaction and drop its changes."""


def parse_begin(cursor: Cursor) -> Begin:
    """BEGIN [TRANSACTION | WORK] or START TRANSACTION; modes are read and mean nothing."""
    if cursor.accept("START"):
        cursor.expect("TRANSACTION")
    else:
        cursor.expect("BEGIN")
        cursor.accept_any(("TRANSACTION", "WORK"))
    while not cursor.at_end:
        _mode(cursor)
        cursor.accept(",")
    cursor.finish()
    return Begin(cursor.text)


def _mode(cursor: Cursor) -> None:
    if cursor.accept("READ"):
        cursor.choice("ONLY", "WRITE")
    elif cursor.accept("ISOLATION"):
        cursor.expect("LEVEL")
        if cursor.choice("SERIALIZABLE", "REPEATABLE", "READ") != "SERIALIZABLE":
            cursor.choice("READ", "COMMITTED", "UNCOMMITTED")
    else:
        cursor.fail("the end of the statement")


def parse_commit(cursor: Cursor) -> Commit:
    """COMMIT [TRANSACTION | WORK] or END"""
    cursor.choice("COMMIT", "END")
    cursor.accept_any(("TRANSACTION", "WORK"))
    cursor.finish()
    return Commit(cursor.text)


def parse_rollback(cursor: Cursor) -> Rollback:
    """ROLLBACK [TRANSACTION | WORK] or ABORT"""
    cursor.choice("ROLLBACK", "ABORT")
    cursor.accept_any(("TRANSACTION", "WORK"))
    if cursor.at("TO"):
        cursor.refuse("savepoints are not supported")
    cursor.finish()
    return Rollback(cursor.text)
