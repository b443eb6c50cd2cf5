"""The trailing clauses of a continuous query: SAMPLE, EMIT, WITH …, PAIR NEWEST.

They stand at the end of the whole query, in any order, each once. `sample`, `emit`, `pair` and
`with` start a clause only where the right word follows, so all of them stay usable as names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

from headwater.errors import SqlSyntaxError
from headwater.sql.cursor import CLOSING, OPENING, Cursor
from headwater.sql.duration import Duration, parse_duration
from headwater.sql.extensions import (
    Emit,
    EmitClause,
    PairNewest,
    Refresh,
    Sample,
    SampleInterval,
    SampleRealtime,
    SampleRows,
    UpdateMode,
)
from headwater.sql.lexer import Kind, Token
from headwater.sql.text import Span

EMITS = ("ALL", "INSERTS", "DELETES", "CHANGES")
MODES = ("APPEND", "UPDATES", "SHEDDING")


@dataclass(frozen=True)
class Clauses:
    """The trailing clauses of one query."""

    sample: Sample | None = None
    emit: EmitClause | None = None
    update_mode: UpdateMode | None = None
    pair_newest: PairNewest | None = None

    @property
    def spans(self) -> tuple[Span, ...]:
        """Where the clauses stand."""
        parts = (self.sample, self.emit, self.update_mode, self.pair_newest)
        return tuple(part.span for part in parts if part is not None)


def starts_clause(token: Token, after: Token) -> bool:
    """Whether two tokens can start a trailing clause."""
    if token.kind is not Kind.WORD:
        return False
    match token.upper:
        case "SAMPLE":
            return after.kind is Kind.NUMBER or after.upper in ("INTERVAL", "REALTIME")
        case "EMIT":
            return after.upper in EMITS
        case "PAIR":
            return after.upper == "NEWEST"
        case "WITH":
            return after.upper in MODES
    return False


def parse_clauses(cursor: Cursor) -> Clauses:
    """All clauses that stand here, up to the end of the query or the brackets around all of it."""
    parsers: dict[str, tuple[str, Callable[[Cursor], object]]] = {
        "SAMPLE": ("sample", _sample),
        "EMIT": ("emit", _emit),
        "WITH": ("update_mode", _update_mode),
        "PAIR": ("pair_newest", _pair_newest),
    }
    first = cursor.index
    found: dict[str, object] = {}
    while cursor.at_any(parsers):
        field, parse = parsers[cursor.peek().upper]
        if field in found:
            token = cursor.peek()
            raise SqlSyntaxError(f"{token.upper} occurs twice", place=token.span.place(cursor.text))
        found[field] = parse(cursor)
    if cursor.index != _end(cursor.tokens):
        raise _misplaced(cursor, first)
    return Clauses(**found)  # type: ignore[arg-type]  # each parser gives its field's type


def _end(tokens: Sequence[Token]) -> int:
    """The index of the token that ends the query: END, or the first of the brackets around all of it."""
    low, high = 0, len(tokens) - 1
    while high - low > 2 and tokens[low].text == "(" and _closing(tokens, low) == high - 1:
        low, high = low + 1, high - 1
    return high


def _closing(tokens: Sequence[Token], opening: int) -> int:
    depth = 0
    for index in range(opening, len(tokens)):
        depth += (tokens[index].text in OPENING) - (tokens[index].text in CLOSING)
        if not depth:
            return index
    return len(tokens)


def _misplaced(cursor: Cursor, first: int) -> SqlSyntaxError:
    """The error of clauses after which something else comes, or that stand inside the query."""
    token = cursor.peek()
    if token.text not in CLOSING:
        return SqlSyntaxError(
            f'syntax error at or near "{token.text}"',
            detail="expected the end of the query",
            hint="SAMPLE, EMIT, PAIR NEWEST and WITH … stand at the end of the query",
            place=token.span.place(cursor.text),
        )
    token, after = cursor.tokens[first], cursor.tokens[first + 1]
    return SqlSyntaxError(
        f'syntax error at or near "{token.text}"',
        hint=f"{token.upper} {after.upper} … stands at the end of the whole query, not inside it",
        place=token.span.place(cursor.text),
    )


def _sample(cursor: Cursor) -> Sample:
    start = cursor.start
    cursor.expect("SAMPLE")
    if cursor.accept("REALTIME"):
        return SampleRealtime(cursor.span_from(start))
    if cursor.peek().kind is Kind.NUMBER:
        rows = cursor.positive("a number of rows")
        cursor.choice("ROWS", "ROW")
        return SampleRows(rows, cursor.span_from(start))
    duration = parse_duration(cursor)
    return SampleInterval(duration, cursor.span_from(start))


def _emit(cursor: Cursor) -> EmitClause:
    start = cursor.start
    cursor.expect("EMIT")
    what = cast(Emit, cursor.choice(*EMITS).lower())
    return EmitClause(what, cursor.span_from(start))


def _pair_newest(cursor: Cursor) -> PairNewest:
    start = cursor.start
    cursor.expect("PAIR", "NEWEST")
    return PairNewest(cursor.span_from(start))


def _update_mode(cursor: Cursor) -> UpdateMode:
    start = cursor.start
    cursor.expect("WITH")
    kind = cursor.choice(*MODES)
    if kind == "SHEDDING":
        fraction = _fraction(cursor)
        return UpdateMode("shedding", cursor.span_from(start), fraction=fraction)
    if kind == "APPEND":
        return UpdateMode("append", cursor.span_from(start))
    return _updates(cursor, start)


def _fraction(cursor: Cursor) -> float:
    token = cursor.peek()
    if token.kind is not Kind.NUMBER or not _is_decimal(token.text):
        cursor.fail("a fraction between 0 and 1")
    cursor.take()
    value = float(token.text)
    if not 0 <= value <= 1:
        raise SqlSyntaxError(
            "the fraction must be between 0 and 1", place=token.span.place(cursor.text)
        )
    return value


def _is_decimal(text: str) -> bool:
    return text.isascii() and text.replace(".", "", 1).isdecimal()


def _updates(cursor: Cursor, start: int) -> UpdateMode:
    found: dict[str, object] = {}
    while True:
        token = cursor.peek()
        option = _update_option(cursor)
        if option is None:
            break
        if option[0] in found:
            raise SqlSyntaxError(f"{token.upper} occurs twice", place=token.span.place(cursor.text))
        found[option[0]] = option[1]
    return UpdateMode("updates", cursor.span_from(start), **found)  # type: ignore[arg-type]


def _update_option(cursor: Cursor) -> tuple[str, object] | None:
    if cursor.accept("SCHEDULE"):
        return "schedule", cursor.choice("FIFO", "INPLACE", "LINECUTTING").lower()
    if cursor.accept("WINDOWS"):
        return "windows", cursor.choice("LAZY", "EAGER").lower()
    if cursor.accept("WHEN"):
        cursor.expect("BEHIND")
        return "when_behind", _interval(cursor)
    if cursor.at("REFRESH"):
        return "refresh", _refresh(cursor)
    return None


def _refresh(cursor: Cursor) -> Refresh:
    start = cursor.start
    cursor.expect("REFRESH", "EVERY")
    every = _interval(cursor)
    cursor.expect("FOR")
    key = cursor.name("a key column")
    cursor.expect("IN")
    values = cursor.parenthesised(lambda: cursor.expression("a value", ","))
    return Refresh(every, key, values, cursor.span_from(start))


def _interval(cursor: Cursor) -> Duration:
    if not cursor.at("INTERVAL"):
        cursor.fail("an interval", hint="for one: INTERVAL '3' SECOND")
    return parse_duration(cursor)
