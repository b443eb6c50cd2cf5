"""`DROP TABLE | STREAM | VIEW | … [IF EXISTS] x`."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.cursor import Cursor
from headwater.sql.statements.base import Statement, if_exists
from headwater.sql.text import Name

# Words after DROP → the kind of object, as messages name it.
KINDS: dict[tuple[str, ...], str] = {
    ("TABLE",): "table",
    ("STREAMING", "TABLE"): "table",
    ("FOREIGN", "TABLE"): "stream",
    ("STREAM",): "stream",
    ("VIEW",): "view",
    ("MATERIALIZED", "VIEW"): "materialized view",
    ("QUERY",): "query",
    ("CONTINUOUS", "QUERY"): "query",
    ("SOURCE",): "source",
    ("SINK",): "sink",
    ("INDEX",): "index",
    ("FUNCTION",): "function",
    ("PROCEDURE",): "procedure",
    ("USER",): "user",
    ("TOKEN",): "token",
}


@dataclass(frozen=True)
class Drop(Statement):
    """Remove an object; `kind` is one of the values of KINDS."""

    kind: str
    name: Name
    if_exists: bool


def _kind(cursor: Cursor) -> str:
    for words, kind in KINDS.items():
        if cursor.accept(*words):
            return kind
    raise cursor.error("TABLE, STREAM, VIEW, QUERY, …", words=[words[0] for words in KINDS])


def parse(cursor: Cursor) -> Drop:
    """DROP …"""
    cursor.expect("DROP")
    kind = _kind(cursor)
    if_there = if_exists(cursor)
    name = cursor.path(f"the name of a {kind}")
    cursor.accept_any(("CASCADE", "RESTRICT"))
    return Drop(cursor.text, kind, name, if_there)
