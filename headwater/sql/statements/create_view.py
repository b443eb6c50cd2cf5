"""`CREATE [OR REPLACE] VIEW v [(cols)] [FROM NOW] [WITH (…)] AS select`."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.cursor import Cursor
from headwater.sql.statements.base import Options, Statement, if_not_exists, parse_with_options
from headwater.sql.statements.query import Query, take_query
from headwater.sql.text import Name
from headwater.sql.type_parser import check_distinct


@dataclass(frozen=True)
class CreateView(Statement):
    """A view; continuous if a stream or streaming table is in it."""

    name: Name
    query: Query
    columns: tuple[Name, ...] | None  # names for the query's columns
    from_now: bool
    options: Options
    if_not_exists: bool
    or_replace: bool
    materialized: bool = False  # kept, whatever it reads


def parse(cursor: Cursor, replace: bool) -> CreateView:
    """The rest after CREATE [OR REPLACE] VIEW."""
    unless = if_not_exists(cursor)
    name = cursor.new_name("the name of a view")
    columns = None
    if cursor.at("("):
        columns = cursor.parenthesised(lambda: cursor.new_name("a column"))
        check_distinct(cursor, columns)
    from_now = cursor.accept("FROM", "NOW")
    options = parse_with_options(cursor)
    from_now = from_now or cursor.accept("FROM", "NOW")
    cursor.expect("AS")
    query = take_query(cursor)
    return CreateView(cursor.text, name, query, columns, from_now, options, unless, replace)
