"""Our functions inside a query: PREV, VALID … OVERLAPS PERIOD, CURRENT_INSTANT.

Found by name and parenthesis in the tokens. Arguments that Spark must evaluate stay spans. A
column named `prev` or `valid` is never touched.
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.cursor import Cursor
from headwater.sql.extensions import CurrentInstant, Previous, Valid
from headwater.sql.lexer import Kind
from headwater.sql.text import Span


@dataclass(frozen=True)
class Calls:
    """The calls of our functions in one query, each tuple in the order of the text."""

    previous: tuple[Previous, ...] = ()
    valid: tuple[Valid, ...] = ()
    instants: tuple[CurrentInstant, ...] = ()


def find_calls(cursor: Cursor) -> Calls:
    """All calls from the cursor to its end; also those inside the arguments of others."""
    previous: list[Previous] = []
    valid: list[Valid] = []
    instants: list[CurrentInstant] = []
    tokens = cursor.tokens
    for index, token in enumerate(tokens):
        if token.kind is not Kind.WORD or tokens[index + 1].text != "(":
            continue
        if index and tokens[index - 1].text == ".":
            continue
        cursor.index = index
        match token.upper:
            case "PREV":
                previous.append(_previous(cursor))
            case "VALID":
                valid += _valid(cursor)
            case "CURRENT_INSTANT":
                cursor.expect("CURRENT_INSTANT", "(", ")")
                instants.append(CurrentInstant(cursor.span_from(token.start)))
    return Calls(tuple(previous), tuple(valid), tuple(instants))


def _previous(cursor: Cursor) -> Previous:
    start = cursor.start
    cursor.expect("PREV", "(")
    argument = cursor.expression("an expression", ",")
    steps = cursor.positive("a number of rows") if cursor.accept(",") else 1
    cursor.expect(")")
    return Previous(cursor.span_from(start), argument, steps)


def _valid(cursor: Cursor) -> list[Valid]:
    """VALID(alias); a call with anything else in it is a function of the user's."""
    start = cursor.start
    if not (cursor.peek(2).is_name and cursor.peek(3).text == ")"):
        return []
    cursor.expect("VALID", "(")
    alias = cursor.name("the alias of a table")
    cursor.expect(")")
    if not cursor.accept("OVERLAPS"):
        return [Valid(cursor.span_from(start), alias)]
    cursor.expect("PERIOD")
    low, high = _period(cursor)
    return [Valid(cursor.span_from(start), alias, (low, high))]


def _period(cursor: Cursor) -> tuple[Span, Span]:
    cursor.expect("(")
    low = cursor.expression("the start of the period", ",")
    cursor.expect(",")
    high = cursor.expression("the end of the period", ",")
    cursor.expect(")")
    return low, high
