"""Our functions inside a query: PREV, VALID … OVERLAPS PERIOD, CURRENT_INSTANT, NEAR.

Arguments that Spark must evaluate stay spans. A column named `prev` or `valid` is never touched.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headwater.sql.cursor import Cursor
from headwater.sql.extensions import CurrentInstant, Near, Previous, Valid
from headwater.sql.text import Span

NAMES = frozenset({"PREV", "VALID", "CURRENT_INSTANT", "NEAR"})
OurCall = Previous | Valid | CurrentInstant | Near


@dataclass(frozen=True)
class Calls:
    """The calls of our functions in one query, each tuple in the order of the text."""

    previous: tuple[Previous, ...] = ()
    valid: tuple[Valid, ...] = ()
    instants: tuple[CurrentInstant, ...] = ()
    near: tuple[Near, ...] = ()


def parse_call(cursor: Cursor) -> OurCall | None:
    """The call of one of our functions that stands here; None if it is one of the user's."""
    match cursor.peek().upper:
        case "PREV":
            return _previous(cursor)
        case "VALID":
            return _valid(cursor)
        case "CURRENT_INSTANT":
            start = cursor.start
            cursor.expect("CURRENT_INSTANT", "(", ")")
            return CurrentInstant(cursor.span_from(start))
        case "NEAR":
            return _near(cursor)
    return None


def gathered(calls: Iterable[OurCall | None]) -> Calls:
    """The calls of one query by kind."""
    found = list(calls)
    return Calls(
        tuple(call for call in found if isinstance(call, Previous)),
        tuple(call for call in found if isinstance(call, Valid)),
        tuple(call for call in found if isinstance(call, CurrentInstant)),
        tuple(call for call in found if isinstance(call, Near)),
    )


def _previous(cursor: Cursor) -> Previous:
    start = cursor.start
    cursor.expect("PREV", "(")
    argument = cursor.expression("an expression", ",")
    steps = cursor.positive("a number of rows") if cursor.accept(",") else 1
    cursor.expect(")")
    return Previous(cursor.span_from(start), argument, steps)


def _near(cursor: Cursor) -> Near | None:
    """NEAR(x, y, distance); with other arguments it is a function of the user's."""
    start = cursor.start
    cursor.expect("NEAR")
    arguments = cursor.arguments()
    return Near(cursor.span_from(start), *arguments) if len(arguments) == 3 else None


def _valid(cursor: Cursor) -> Valid | None:
    """VALID(alias); a call with anything else in it is a function of the user's."""
    start = cursor.start
    if not (cursor.peek(2).is_name and cursor.peek(3).text == ")"):
        return None
    cursor.expect("VALID", "(")
    alias = cursor.name("the alias of a table")
    cursor.expect(")")
    if not cursor.accept("OVERLAPS"):
        return Valid(cursor.span_from(start), alias)
    cursor.expect("PERIOD")
    low, high = _period(cursor)
    return Valid(cursor.span_from(start), alias, (low, high))


def _period(cursor: Cursor) -> tuple[Span, Span]:
    cursor.expect("(")
    low = cursor.expression("the start of the period", ",")
    cursor.expect(",")
    high = cursor.expression("the end of the period", ",")
    cursor.expect(")")
    return low, high
