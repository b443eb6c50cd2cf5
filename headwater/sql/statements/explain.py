"""`EXPLAIN [ANALYZE] statement`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal as OneOf

from headwater.sql.cursor import Cursor
from headwater.sql.lexer import Kind
from headwater.sql.statements.base import Statement
from headwater.sql.text import Name, Span


@dataclass(frozen=True)
class Explain(Statement):
    """How a statement would be run; with ANALYZE it is run and measured."""

    statement: Statement
    statement_span: Span
    analyze: bool


@dataclass(frozen=True)
class ExplainObject(Statement):
    """`EXPLAIN [ANALYZE] QUERY q | VIEW v`: how an existing object runs."""

    kind: OneOf["query", "view"]
    name: Name
    analyze: bool


def parse(
    cursor: Cursor, parse_inner: Callable[[Cursor, Span], Statement]
) -> Explain | ExplainObject:
    """EXPLAIN …; the parser of all statements is passed in."""
    cursor.expect("EXPLAIN")
    analyze = cursor.accept("ANALYZE")
    if cursor.at_any(("QUERY", "VIEW")):
        kind: OneOf["query", "view"] = "query" if cursor.take().upper == "QUERY" else "view"
        name = cursor.path(f"the name of a {kind}")
        return ExplainObject(cursor.text, kind, name, analyze)
    if cursor.at_end:
        cursor.fail("a statement")
    alone = cursor.peek(1)
    if alone.kind is Kind.END or alone.text == ";":
        raise cursor.error(
            "a statement", hint="EXPLAIN VIEW v, EXPLAIN QUERY q, or EXPLAIN SELECT …"
        )
    last = cursor.tokens[-2]
    span = Span(cursor.start, last.start if last.text == ";" else last.end)
    inner = parse_inner(cursor, span)
    cursor.index = len(cursor.tokens) - 1
    return Explain(cursor.text, inner, span, analyze)
