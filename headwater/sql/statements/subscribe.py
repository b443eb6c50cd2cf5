"""`SUBSCRIBE q | (select) [EMIT …] [AFTER 'token' | EARLIEST] [CONFLATE BY key, …]`, or TO select."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from headwater.errors import SqlSyntaxError
from headwater.sql.clauses import EMITS
from headwater.sql.cursor import Cursor
from headwater.sql.extensions import Emit
from headwater.sql.lexer import Kind
from headwater.sql.statements.base import Statement
from headwater.sql.statements.query import Query, at_query, take_parenthesised_query, take_query
from headwater.sql.statements.query import parse as parse_query
from headwater.sql.text import Name


@dataclass(frozen=True)
class Subscribe(Statement):
    """The results of a continuous query, or the changes of something else, as they come."""

    target: Name | Query
    emit: Emit | None  # None: the query's own
    after: str | None  # a token
    earliest: bool
    conflate_by: tuple[Name, ...]


def parse(cursor: Cursor) -> Subscribe:
    """SUBSCRIBE …"""
    cursor.expect("SUBSCRIBE")
    if cursor.at("TO") and (cursor.peek(1).is_name or cursor.peek(1).text == "("):
        cursor.take()
    target: Name | Query
    if cursor.at("("):
        target = take_parenthesised_query(cursor)
    elif at_query(cursor):
        target = take_query(cursor)
    else:
        target = cursor.path("the name of a query or a query in parentheses")
    found: dict[str, object] = {}
    while not cursor.at_end:
        token = cursor.peek()
        field, value = _option(cursor)
        if field in found:
            place = token.span.place(cursor.text)
            raise SqlSyntaxError(f"{token.upper} does not fit what stands before it", place=place)
        found[field] = value
    cursor.finish()
    start = found.get("start")
    return Subscribe(
        cursor.text,
        target,
        cast(Emit | None, found.get("emit")),
        start if isinstance(start, str) else None,
        start is True,
        cast(tuple[Name, ...], found.get("conflate", ())),
    )


def parse_target(text: str) -> str | Query:
    """What a program subscribes to by a text: a continuous select, or else a query's name."""
    cursor = Cursor(text)
    if at_query(cursor):
        return parse_query(cursor)
    token = cursor.peek()
    alone = cursor.peek(1).kind is Kind.END and token.is_name
    return token.name if alone else text.strip()


def _option(cursor: Cursor) -> tuple[str, object]:
    word = cursor.choice("AFTER", "EARLIEST", "CONFLATE", "EMIT")
    if word == "EARLIEST":
        return "start", True
    if word == "AFTER":
        if cursor.accept("EARLIEST"):
            return "start", True
        return "start", cursor.string("a token in quotes")
    if word == "EMIT":
        return "emit", cursor.choice(*EMITS).lower()
    cursor.expect("BY")
    if cursor.at("("):
        return "conflate", cursor.names("a key column")
    return "conflate", cursor.listed(lambda: cursor.name("a key column"))
