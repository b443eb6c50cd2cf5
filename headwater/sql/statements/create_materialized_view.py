"""`CREATE MATERIALIZED VIEW m [RANGE …] [UPDATE KEY (…)] [WITH (…)] AS continuous-select`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headwater.errors import SqlSyntaxError
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
    clauses = _clauses(cursor)
    options = parse_with_options(cursor)
    cursor.expect("AS")
    query = take_query(cursor)
    return CreateMaterializedView(
        cursor.text,
        name,
        query,
        clauses.get("RANGE"),
        "FROM" in clauses,
        options,
        unless,
        clauses.get("UPDATE"),
    )


def _clauses(cursor: Cursor) -> dict[str, Any]:
    """The clauses before AS by their first words, in any order, each once."""
    parsers: dict[str, Callable[[], object]] = {
        "FROM": lambda: cursor.expect("FROM", "BEGINNING"),
        "RANGE": lambda: parse_range(cursor),
        "UPDATE": lambda: parse_update_key(cursor),
    }
    found: dict[str, Any] = {}
    while cursor.at_any(parsers):
        token = cursor.peek()
        if token.upper in found:
            raise SqlSyntaxError(f"{token.upper} occurs twice", place=token.span.place(cursor.text))
        found[token.upper] = parsers[token.upper]()
    return found
