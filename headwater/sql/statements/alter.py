"""`ALTER QUERY`, `ALTER VIEW`, `ALTER TABLE`; ALTER USER stands with the users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headwater.sql.cursor import Cursor
from headwater.sql.duration import Duration, parse_duration
from headwater.sql.statements.advance import Instant, parse_instant
from headwater.sql.statements.base import (
    ColumnDefinition,
    Options,
    Statement,
    if_exists,
    parse_column,
    parse_columns,
    parse_options,
)
from headwater.sql.statements.create_streaming_table import parse_range
from headwater.sql.text import Name
from headwater.sql.type_parser import check_distinct


@dataclass(frozen=True)
class AlterQueryResetLandmark(Statement):
    """`ALTER QUERY q RESET LANDMARK [AT ts]`."""

    name: Name
    at: Instant | None


@dataclass(frozen=True)
class AlterViewRefreshStatic(Statement):
    """`ALTER VIEW v REFRESH STATIC`."""

    name: Name


@dataclass(frozen=True)
class AlterSetParts(Statement):
    """`ALTER VIEW v SET (parts = n)`, `ALTER QUERY q SET (parts = n)`."""

    kind: Literal["view", "query"]
    name: Name
    options: Options


@dataclass(frozen=True)
class AlterTableSetRange(Statement):
    """`ALTER TABLE t SET RANGE interval | FOREVER`."""

    name: Name
    range: Duration | None  # None: FOREVER


@dataclass(frozen=True)
class AlterTableSetClock(Statement):
    """`ALTER TABLE t SET CLOCK TO ts`."""

    name: Name
    time: Instant


@dataclass(frozen=True)
class AlterTableSetMaxClockAhead(Statement):
    """`ALTER TABLE t SET MAX_CLOCK_AHEAD interval | DEFAULT`."""

    name: Name
    ahead: Duration | None  # None: as the setting says


@dataclass(frozen=True)
class AlterTableAddColumns(Statement):
    """`ALTER TABLE t ADD COLUMN c T` or `ADD COLUMNS (…)`."""

    name: Name
    columns: tuple[ColumnDefinition, ...]


@dataclass(frozen=True)
class AlterTableRename(Statement):
    """`ALTER TABLE t RENAME TO u`."""

    name: Name
    new_name: Name


@dataclass(frozen=True)
class AlterTableRenameColumn(Statement):
    """`ALTER TABLE t RENAME COLUMN a TO b`."""

    name: Name
    column: Name
    new_name: Name


@dataclass(frozen=True)
class AlterTableDropColumns(Statement):
    """`ALTER TABLE t DROP COLUMN [IF EXISTS] a` or `DROP COLUMNS (a, b)`."""

    name: Name
    columns: tuple[Name, ...]
    if_exists: bool


def parse_query(cursor: Cursor) -> AlterQueryResetLandmark | AlterSetParts:
    """The rest after ALTER QUERY."""
    name = cursor.path("the name of a query")
    if cursor.accept("SET"):
        return AlterSetParts(cursor.text, "query", name, parse_options(cursor))
    cursor.expect("RESET", "LANDMARK")
    at = parse_instant(cursor) if cursor.accept("AT") else None
    return AlterQueryResetLandmark(cursor.text, name, at)


def parse_view(cursor: Cursor) -> AlterViewRefreshStatic | AlterSetParts:
    """The rest after ALTER VIEW."""
    name = cursor.path("the name of a view")
    if cursor.accept("SET"):
        return AlterSetParts(cursor.text, "view", name, parse_options(cursor))
    cursor.expect("REFRESH", "STATIC")
    return AlterViewRefreshStatic(cursor.text, name)


def parse_table(cursor: Cursor) -> Statement:
    """The rest after ALTER TABLE (or ALTER STREAM, ALTER STREAMING TABLE)."""
    name = cursor.path("a table")
    match cursor.choice("SET", "ADD", "RENAME", "DROP"):
        case "SET":
            return _set(cursor, name)
        case "ADD":
            return _add(cursor, name)
        case "RENAME":
            return _rename(cursor, name)
        case _:
            return _drop(cursor, name)


def _set(
    cursor: Cursor, name: Name
) -> AlterTableSetRange | AlterTableSetClock | AlterTableSetMaxClockAhead:
    if cursor.at("RANGE"):
        range_ = parse_range(cursor)
        return AlterTableSetRange(cursor.text, name, range_)
    if cursor.choice("RANGE", "CLOCK", "MAX_CLOCK_AHEAD") == "CLOCK":
        cursor.expect("TO")
        time = parse_instant(cursor)
        return AlterTableSetClock(cursor.text, name, time)
    ahead = None if cursor.accept("DEFAULT") else parse_duration(cursor, zero=True)
    return AlterTableSetMaxClockAhead(cursor.text, name, ahead)


def _add(cursor: Cursor, name: Name) -> AlterTableAddColumns:
    cursor.accept_any(("COLUMN", "COLUMNS"))
    if cursor.at("("):
        columns = parse_columns(cursor)
    else:
        columns = cursor.listed(lambda: parse_column(cursor))
        check_distinct(cursor, [column.name for column in columns])
    return AlterTableAddColumns(cursor.text, name, columns)


def _rename(cursor: Cursor, name: Name) -> AlterTableRename | AlterTableRenameColumn:
    if cursor.accept("COLUMN"):
        column = cursor.name("a column")
        cursor.expect("TO")
        new_name = cursor.new_name("a column")
        return AlterTableRenameColumn(cursor.text, name, column, new_name)
    cursor.expect("TO")
    new_name = cursor.new_name("the new name")
    return AlterTableRename(cursor.text, name, new_name)


def _drop(cursor: Cursor, name: Name) -> AlterTableDropColumns:
    cursor.choice("COLUMN", "COLUMNS")
    if_there = if_exists(cursor)
    if cursor.at("("):
        columns = cursor.names("a column")
    else:
        columns = cursor.listed(lambda: cursor.name("a column"))
    check_distinct(cursor, columns)
    return AlterTableDropColumns(cursor.text, name, columns, if_there)
