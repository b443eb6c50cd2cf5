"""`BEGIN`, `COMMIT`, `ROLLBACK [TO s]`, `SAVEPOINT s`, `RELEASE s`, `SET TRANSACTION …` and the like."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.cursor import Cursor
from headwater.sql.statements.base import Statement
from headwater.sql.text import Name

A_SAVEPOINT = "the name of a savepoint"


@dataclass(frozen=True)
class Begin(Statement):
    """Start a transaction."""


@dataclass(frozen=True)
class Commit(Statement):
    """End a transaction and keep its changes."""


@dataclass(frozen=True)
class Rollback(Statement):
    """End a transaction and drop its changes."""


@dataclass(frozen=True)
class RollbackToSavepoint(Statement):
    """Drop the changes of a transaction since a savepoint."""

    name: Name


@dataclass(frozen=True)
class Savepoint(Statement):
    """Mark a place in a transaction."""

    name: Name


@dataclass(frozen=True)
class ReleaseSavepoint(Statement):
    """Forget a savepoint and those behind it."""

    name: Name


@dataclass(frozen=True)
class SetTransaction(Statement):
    """Modes of transactions: they are read and mean nothing."""


def parse_begin(cursor: Cursor) -> Begin:
    """BEGIN [TRANSACTION | WORK] or START TRANSACTION; modes are read and mean nothing."""
    if cursor.accept("START"):
        cursor.expect("TRANSACTION")
    else:
        cursor.expect("BEGIN")
        cursor.accept_any(("TRANSACTION", "WORK"))
    _modes(cursor)
    return Begin(cursor.text)


def parse_set(cursor: Cursor) -> SetTransaction:
    """The rest of SET [SESSION CHARACTERISTICS AS] TRANSACTION …"""
    cursor.accept("SESSION", "CHARACTERISTICS", "AS")
    cursor.expect("TRANSACTION")
    _modes(cursor)
    return SetTransaction(cursor.text)


def _modes(cursor: Cursor) -> None:
    while not cursor.at_end:
        _mode(cursor)
        cursor.accept(",")


def _mode(cursor: Cursor) -> None:
    if cursor.accept("READ"):
        cursor.choice("ONLY", "WRITE")
    elif cursor.accept("NOT", "DEFERRABLE") or cursor.accept("DEFERRABLE"):
        return
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
    return Commit(cursor.text)


def parse_rollback(cursor: Cursor) -> Rollback | RollbackToSavepoint:
    """ROLLBACK [TRANSACTION | WORK] [TO [SAVEPOINT] s] or ABORT"""
    cursor.choice("ROLLBACK", "ABORT")
    cursor.accept_any(("TRANSACTION", "WORK"))
    if cursor.accept("TO"):
        return RollbackToSavepoint(cursor.text, _savepoint(cursor))
    return Rollback(cursor.text)


def parse_savepoint(cursor: Cursor) -> Savepoint:
    """SAVEPOINT s"""
    cursor.expect("SAVEPOINT")
    return Savepoint(cursor.text, cursor.name(A_SAVEPOINT))


def parse_release(cursor: Cursor) -> ReleaseSavepoint:
    """RELEASE [SAVEPOINT] s"""
    cursor.expect("RELEASE")
    return ReleaseSavepoint(cursor.text, _savepoint(cursor))


def _savepoint(cursor: Cursor) -> Name:
    if cursor.peek(1).is_name:
        cursor.accept("SAVEPOINT")
    return cursor.name(A_SAVEPOINT)
