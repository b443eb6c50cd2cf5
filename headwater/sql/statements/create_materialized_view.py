"""`CREATE MATERIALIZED VIEW m [RANGE …] [UPDATE KEY (…)] [WITH (…)] AS continuous-select`."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.cursor import Cursor
from headwater.sql.duration import Duration
from headwater.sql.statements.base import (
    Options,
    Statement,
    if_not_exists,
    parse_with_options,
    refuse_replace,
)
from headwater.sql.statements.create_streaming_table import parse_range, parse_update_key
from headwater.sql.statements.query import Query, take_query
from headwater.sql.text import Name


@dataclass(frozen=True)
class CreateMaterializedView(Statement):
    """A continuous query whose results are kept in a streaming table."""

    name: Name
    query: Query
    range: Duration | None  # None: FOREVER
    from_beginning: bool
    options: Options
    if_not_exists: bool
    update_key: tuple[Name, ...] | None = None  # None: no clause; (): UPDATE KEY ()


def parse(cursor: Cursor, replace: bool) -> CreateMaterializedView:
    """The rest after CREATE MATERIALIZED VIEW."""
    refuse_replace(cursor, replace, "materialized view")
    unless = if_not_exists(cursor)
    name = cursor.new_name("the name of a view")
    from_beginning = cursor.accept("FROM", "BEGINNING")
    range_ = parse_range(cursor) if cursor.at("RANGE") else None
    from_beginning = from_beginning or cursor.accept("FROM", "BEGINNING")
    key = parse_update_key(cursor) if cursor.at("UPDATE") else None
    options = parse_with_options(cursor)
    cursor.expect("AS")
    query = take_query(cursor)
    return CreateMaterializedView(
        cursor.text, name, query, range_, from_beginning, options, unless, key
    )
