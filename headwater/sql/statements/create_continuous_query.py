"""`CREATE CONTINUOUS QUERY q [FROM BEGINNING] [WITH (…)] AS continuous-select`."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.cursor import Cursor
from headwater.sql.statements.base import (
    Options,
    Statement,
    if_not_exists,
    parse_with_options,
    refuse_replace,
)
from headwater.sql.statements.query import Query, take_query
from headwater.sql.text import Name


@dataclass(frozen=True)
class CreateContinuousQuery(Statement):
    """A query that is evaluated at each of its instants or epochs."""

    name: Name
    query: Query
    from_beginning: bool
    options: Options
    if_not_exists: bool


def parse(cursor: Cursor, replace: bool) -> CreateContinuousQuery:
    """The rest after CREATE CONTINUOUS QUERY."""
    refuse_replace(cursor, replace, "continuous query")
    unless = if_not_exists(cursor)
    name = cursor.new_name("the name of a query")
    from_beginning = cursor.accept("FROM", "BEGINNING")
    options = parse_with_options(cursor)
    from_beginning = from_beginning or cursor.accept("FROM", "BEGINNING")
    cursor.expect("AS")
    query = take_query(cursor)
    return CreateContinuousQuery(cursor.text, name, query, from_beginning, options, unless)
