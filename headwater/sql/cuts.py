"""Epoch cuts: `s CUT ON ts BY …` and the paper's `STREAM(s, 'CUT ON ts BY 60 SECS', 'BLOCK', 12)`.

Both forms give the same `Cut`; in the second a generator may be called, `STREAM(f(x), 'CUT …')` (EQ9).
Positions inside the string of the second form are reported as the place of that string.
"""

from __future__ import annotations

from headwater.errors import Error, SqlSyntaxError
from headwater.sql.cursor import Cursor
from headwater.sql.duration import duration_of, parse_duration, unit_name
from headwater.sql.extensions import Cut, Generator, NamedRelation
from headwater.sql.lexer import Kind
from headwater.sql.names import words
from headwater.sql.text import Name, Span

CHUNKS_KEPT = 1_000_000
_NEXT_CLAUSE = words("WHERE GROUP HAVING ORDER LIMIT JOIN ON USING INNER LEFT RIGHT")


def at_cut(cursor: Cursor, joined: bool) -> bool:
    """Whether a cut comes next, and not an alias named `cut`."""
    if not cursor.at("CUT"):
        return False
    second, third, fourth = (cursor.peek(i) for i in (1, 2, 3))
    if second.upper == "BY":
        return True
    if second.upper != "ON" or not third.is_name:
        return False
    if fourth.upper == "BY":
        return True
    if joined:  # JOIN s cut ON cut.a = …: an alias, unless an alias follows
        return fourth.upper in ("KEEP", "AS") or (
            fourth.is_name and fourth.upper not in _NEXT_CLAUSE | {"AND", "OR", "IN", "IS", "LIKE"}
        )
    return True


def parse_cut(cursor: Cursor) -> Cut:
    """`CUT ON c BY INTERVAL … | CUT BY n ROWS | CUT ON c`, then `[KEEP n CHUNKS]`."""
    start = cursor.start
    cut = _condition(cursor)
    keep, block = 1, False
    if cursor.at("KEEP") and cursor.peek(1).kind is Kind.NUMBER:
        cursor.take()
        keep, block = _chunks(cursor), True
        cursor.choice("CHUNKS", "CHUNK")
    span = cursor.span_from(start)
    return Cut(cut.kind, span, (span,), cut.column, cut.duration, cut.rows, cut.step, keep, block)


def _condition(cursor: Cursor) -> Cut:
    start = cursor.start
    cursor.expect("CUT")
    if cursor.accept("BY"):
        rows = cursor.positive("a number of rows")
        cursor.choice("ROWS", "ROW")
        return Cut("rows", cursor.span_from(start), (), rows=rows)
    cursor.expect("ON")
    column = cursor.name("a column")
    if not cursor.accept("BY"):
        return Cut("key", cursor.span_from(start), (), column)
    if cursor.at("INTERVAL"):
        duration = parse_duration(cursor)
        return Cut("interval", cursor.span_from(start), (), column, duration)
    return _plain_step(cursor, column, start)


def _plain_step(cursor: Cursor, column: Name, start: int) -> Cut:
    """`BY 60 SECS`, or `BY 60` for a column that is a number."""
    if cursor.peek().kind is not Kind.NUMBER:
        cursor.fail("an interval", hint="for one: CUT ON ts BY INTERVAL '60' SECOND")
    if unit_name(cursor.peek(1).text) is None:
        step = cursor.positive("a step")
        return Cut("interval", cursor.span_from(start), (), column, step=step)
    first = cursor.take()
    cursor.take()
    span = cursor.span_from(first.start)
    try:
        duration = duration_of(span.of(cursor.text))
    except Error as error:
        error.place = span.place(cursor.text)
        raise
    return Cut("interval", cursor.span_from(start), (), column, duration)


def parse_stream_call(cursor: Cursor) -> NamedRelation | None:
    """`STREAM(s | f(x, …), 'CUT …' [, 'BLOCK' [, n]])`; None if it is Spark's own STREAM(s)."""
    if not _at_stream_call(cursor):
        return None
    start = cursor.start
    cursor.expect("STREAM", "(")
    before = cursor.span_from(start)
    name = cursor.name("a stream")
    after = cursor.start
    generator = _generator(cursor, name) if cursor.at("(") else None
    cursor.expect(",")
    condition = _condition_in_string(cursor)
    keep, block = 1, False
    if cursor.accept(","):
        _block_word(cursor)
        block = True
        if cursor.accept(","):
            keep = _chunks(cursor)
    cursor.expect(")")
    removals = (before, cursor.span_from(after))
    c = condition
    whole = cursor.span_from(start)
    cut = Cut(c.kind, whole, removals, c.column, c.duration, c.rows, c.step, keep, block)
    return NamedRelation(name, None, cut=cut, generator=generator)


def _at_stream_call(cursor: Cursor) -> bool:
    """Whether a name, or a call, and a comma follow `STREAM(`."""
    first = cursor.index
    try:
        cursor.index += 2
        if not cursor.peek().is_name:
            return False
        cursor.take()
        if cursor.at("("):
            cursor.skip_brackets()
        return cursor.at(",")
    finally:
        cursor.index = first


def _generator(cursor: Cursor, name: Name) -> Generator:
    arguments = cursor.arguments()
    return Generator(cursor.span_from(name.span.start), arguments)


def _condition_in_string(cursor: Cursor) -> Cut:
    token = cursor.peek()
    text = cursor.string("a cut such as 'CUT ON ts BY 60 SECS'")
    try:
        inner = Cursor(text)
        cut = _condition(inner)
        inner.finish()
    except Error as error:
        error.place = token.span.place(cursor.text)
        error.hint = error.hint or "'CUT ON ts BY 60 SECS', 'CUT BY 1000 ROWS' or 'CUT ON key'"
        raise
    column = None if cut.column is None else Name(cut.column, token.span)
    return Cut(cut.kind, token.span, (), column, cut.duration, cut.rows, cut.step)


def _block_word(cursor: Cursor) -> None:
    token = cursor.peek()
    if cursor.string("'BLOCK'").upper() != "BLOCK":
        raise SqlSyntaxError("expected 'BLOCK'", place=token.span.place(cursor.text))


def _chunks(cursor: Cursor) -> int:
    token = cursor.peek()
    keep = cursor.positive("a number of chunks")
    if keep > CHUNKS_KEPT:
        raise SqlSyntaxError(
            f"at most {CHUNKS_KEPT} chunks can be kept",
            place=Span(token.start, token.end).place(cursor.text),
        )
    return keep
