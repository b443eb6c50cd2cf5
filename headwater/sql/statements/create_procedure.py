"""`CREATE [OR REPLACE] PROCEDURE p(x T, …) AS BEGIN statements END`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headwater.sql.cursor import Cursor
from headwater.sql.lexer import Kind, Token
from headwater.sql.statements.base import (
    FunctionParameter,
    Statement,
    if_not_exists,
    parse_parameters,
)
from headwater.sql.text import Name, Span


@dataclass(frozen=True)
class CreateProcedure(Statement):
    """Statements under a name; `parameters.substitute` fills in the arguments at each CALL."""

    name: Name
    parameters: tuple[FunctionParameter, ...]
    body: tuple[Span, ...]  # one span per statement, without semicolons
    if_not_exists: bool
    or_replace: bool


def parse(cursor: Cursor, replace: bool) -> CreateProcedure:
    """The rest after CREATE [OR REPLACE] PROCEDURE."""
    unless = if_not_exists(cursor)
    name = cursor.new_name("the name of a procedure")
    parameters = parse_parameters(cursor)
    cursor.expect("AS", "BEGIN")
    body = _body(cursor)
    return CreateProcedure(cursor.text, name, parameters, body, unless, replace)


def _body(cursor: Cursor) -> tuple[Span, ...]:
    """The statements up to the END of this block."""
    spans: list[Span] = []
    start, depth = cursor.start, 0
    while True:
        token = cursor.peek()
        if token.kind is Kind.END:
            cursor.fail("END", hint="the body of a procedure ends with END")
        if not depth and token.upper in (";", "END"):
            if start < token.start:
                spans.append(cursor.span_from(start))
            cursor.take()
            if token.upper == "END":
                return tuple(spans)
            start = cursor.start
            continue
        if is_block_start(cursor.tokens, cursor.index):
            depth += 1
        elif token.upper == "END" and cursor.tokens[cursor.index - 1].text != ".":
            depth -= 1
        cursor.take()


def is_block_start(tokens: Sequence[Token], index: int) -> bool:
    """Whether the token starts something that ends with END, so that semicolons inside do not split.

    CASE, and BEGIN unless it is that of a transaction.
    """
    token = tokens[index]
    if token.kind is not Kind.WORD or (index and tokens[index - 1].text == "."):
        return False
    if token.upper == "CASE":
        return True
    after = tokens[index + 1]
    ends = after.kind is Kind.END or after.text == ";"
    return token.upper == "BEGIN" and not ends and after.upper not in ("TRANSACTION", "WORK")
