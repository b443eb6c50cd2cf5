"""`CREATE [OR REPLACE] FUNCTION f(x T, …) RETURNS T RETURN expr` and its table form."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headwater.sql.cursor import Cursor
from headwater.sql.statements.base import (
    ColumnDefinition,
    FunctionParameter,
    Statement,
    if_not_exists,
    parse_columns,
    parse_parameters,
)
from headwater.sql.statements.query import Query, take_query
from headwater.sql.text import Name, Span
from headwater.sql.type_parser import parse_type


@dataclass(frozen=True)
class CreateFunction(Statement):
    """A function in SQL: `returns` and `body`, or `columns` and `query` for a table function."""

    name: Name
    parameters: tuple[FunctionParameter, ...]
    returns: pa.DataType | None
    body: Span | None
    columns: tuple[ColumnDefinition, ...] | None
    query: Query | None
    if_not_exists: bool
    or_replace: bool


def parse(cursor: Cursor, replace: bool) -> CreateFunction:
    """The rest after CREATE [OR REPLACE] FUNCTION."""
    unless = if_not_exists(cursor)
    name = cursor.new_name("the name of a function")
    parameters = parse_parameters(cursor)
    cursor.expect("RETURNS")
    returns, body, columns, query = None, None, None, None
    if cursor.accept("TABLE"):
        columns = parse_columns(cursor)
        _return(cursor)
        query = take_query(cursor)
    else:
        returns = parse_type(cursor)
        _return(cursor)
        body = cursor.expression("an expression", ";")
    return CreateFunction(
        cursor.text, name, parameters, returns, body, columns, query, unless, replace
    )


def _return(cursor: Cursor) -> None:
    while cursor.accept("DETERMINISTIC") or cursor.accept("LANGUAGE", "SQL"):
        continue
    if cursor.accept("COMMENT"):
        cursor.string()
    cursor.expect("RETURN")
