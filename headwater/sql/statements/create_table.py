"""`CREATE [OR REPLACE] TABLE [IF NOT EXISTS] t (…)` and `CREATE TABLE t AS select`."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.errors import SqlSyntaxError
from headwater.sql.cursor import Cursor
from headwater.sql.names import words
from headwater.sql.statements.base import (
    ColumnDefinition,
    Options,
    Statement,
    if_not_exists,
    parse_columns,
    parse_with_options,
)
from headwater.sql.statements.query import Query, at_query, take_query
from headwater.sql.text import Name

_STREAMING_ONLY = ("TIMESTAMP", "RANGE", "WATERMARK", "LATE", "UPDATE")
_SPARK_ONLY = words("USING PARTITIONED CLUSTERED CLUSTER LOCATION TBLPROPERTIES STORED LIKE")


@dataclass(frozen=True)
class CreateTable(Statement):
    """A standard table: either `columns` or `query` is given."""

    name: Name
    columns: tuple[ColumnDefinition, ...]
    query: Query | None
    if_not_exists: bool
    or_replace: bool
    comment: str | None
    options: Options


def parse(cursor: Cursor, replace: bool) -> CreateTable:
    """The rest after CREATE [OR REPLACE] TABLE."""
    unless = if_not_exists(cursor)
    if unless and replace:
        raise SqlSyntaxError(
            "OR REPLACE and IF NOT EXISTS exclude each other",
            place=cursor.span_from(0).place(cursor.text),
        )
    name = cursor.new_name("the name of a table")
    columns = parse_columns(cursor) if cursor.at("(") and not _is_query(cursor) else ()
    comment = cursor.string() if cursor.accept("COMMENT") else None
    options = parse_with_options(cursor) if cursor.at("WITH", "(") else {}
    _refuse_foreign(cursor)
    query = None
    if cursor.accept("AS") or (not columns and at_query(cursor)):
        if columns:
            cursor.refuse(
                "a table takes columns or a query, not both", hint="name the columns in the query"
            )
        query = take_query(cursor)
    elif not columns:
        cursor.fail("( or AS", words=("AS",))
    return CreateTable(cursor.text, name, columns, query, unless, replace, comment, options)


def _is_query(cursor: Cursor) -> bool:
    return cursor.peek(1).upper in ("SELECT", "WITH", "VALUES", "FROM", "(")


def _refuse_foreign(cursor: Cursor) -> None:
    word = cursor.peek().upper
    if word in _STREAMING_ONLY:
        cursor.fail(
            "the end of the statement",
            hint=f"{word} belongs to a streaming table: CREATE STREAMING TABLE …",
        )
    if word in _SPARK_ONLY:
        cursor.refuse(f"{word} is not supported in CREATE TABLE", hint="the storage is managed")
