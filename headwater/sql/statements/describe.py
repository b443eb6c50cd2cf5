"""`DESCRIBE | DESC [TABLE | VIEW | QUERY | STREAM] x`, and of a query in full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from headwater.sql.cursor import Cursor
from headwater.sql.statements.base import Statement
from headwater.sql.statements.query import Query, at_query, take_query
from headwater.sql.text import Name

Kind = OneOf["table", "query"] | None
_KINDS: dict[str, Kind] = {"TABLE": "table", "STREAM": "table", "VIEW": "table", "QUERY": "query"}


@dataclass(frozen=True)
class Describe(Statement):
    """The columns of an object, or of the result of a query."""

    target: Name | Query
    kind: Kind  # None: whatever has the name


def parse(cursor: Cursor) -> Describe:
    """DESCRIBE …"""
    cursor.choice("DESCRIBE", "DESC")
    kind: Kind = None
    cursor.accept("MATERIALIZED")
    if cursor.at_any(_KINDS) and (cursor.peek(1).is_name or cursor.peek(1).text == "("):
        kind = _KINDS[cursor.take().upper]
    cursor.accept("EXTENDED")
    target: Name | Query
    if at_query(cursor) and not (cursor.at("TABLE") and cursor.peek(1).text in ("", ";")):
        target, kind = take_query(cursor), "query"
    else:
        target = cursor.path("the name of a table, view or query")
    return Describe(cursor.text, target, kind)
