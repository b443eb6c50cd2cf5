"""What may stand after the name of a table: a window, a version; cuts are in `cuts`."""

from __future__ import annotations

from typing import NoReturn

from headwater.errors import SqlSyntaxError
from headwater.sql.cursor import CLOSING, Cursor
from headwater.sql.cuts import at_cut, parse_cut
from headwater.sql.duration import is_interval, parse_duration
from headwater.sql.extensions import Cut, NamedRelation, VersionClause, WindowClause
from headwater.sql.lexer import Kind
from headwater.sql.text import Name


def parse_postfix(cursor: Cursor, name: Name, joined: bool) -> NamedRelation:
    """A table with what is written after its name, up to its alias; `joined`: JOIN stands before it."""
    window: WindowClause | None = None
    cut: Cut | None = None
    version: VersionClause | None = None
    while True:
        if cursor.at("["):
            if window is not None:
                misplaced(cursor, "a table has one window")
            window = parse_window(cursor)
        elif cut is None and at_cut(cursor, joined):
            cut = parse_cut(cursor)
        elif version is None and (cursor.at("VERSION", "AS", "OF") or cursor.at("FOR", "VERSION")):
            version = _version(cursor)
        else:
            return NamedRelation(name, None, window, cut, version)


def misplaced(cursor: Cursor, hint: str) -> NoReturn:
    """Raise: no window can stand here."""
    raise SqlSyntaxError(
        'syntax error at or near "["', hint=hint, place=cursor.peek().span.place(cursor.text)
    )


BEFORE_ALIAS = "the window stands before the alias: t [ROWS 3] AS a"


def parse_window(cursor: Cursor) -> WindowClause:
    """`[INTERVAL i [BEFORE]]`, `[ROWS k]`, `[a, b ROWS k]`, `[LANDMARK]`."""
    start = cursor.start
    cursor.expect("[")
    if is_interval(cursor) or (cursor.at("INTERVAL") and cursor.peek(1).upper != "ROWS"):
        duration = parse_duration(cursor)
        before = cursor.accept("BEFORE")
        _close(cursor)
        return WindowClause("interval", cursor.span_from(start), duration=duration, before=before)
    if cursor.at("LANDMARK", "]"):
        cursor.take()
        _close(cursor)
        return WindowClause("landmark", cursor.span_from(start))
    keys: tuple[Name, ...] = ()
    if not cursor.at("ROWS") or cursor.peek(1).upper in ("ROWS", ","):
        if not cursor.peek().is_name:
            cursor.fail("INTERVAL, ROWS, LANDMARK or a key", hint="a window: [INTERVAL '3' SECOND]")
        keys = cursor.listed(lambda: cursor.name("a key column"))
    cursor.expect("ROWS")
    rows = cursor.positive("a number of rows")
    _close(cursor)
    return WindowClause("rows", cursor.span_from(start), rows=rows, keys=keys)


def _close(cursor: Cursor) -> None:
    if not cursor.accept("]"):
        cursor.fail("]", hint="a window is closed by ]" if cursor.at_any(CLOSING) else None)


def _version(cursor: Cursor) -> VersionClause:
    start = cursor.start
    cursor.accept("FOR")
    cursor.expect("VERSION", "AS", "OF")
    if cursor.peek().kind is Kind.STRING:
        token = cursor.peek()
        text = cursor.string()
        if text.lower() != "latest" and not (text.isdecimal() and len(text) <= 18):
            raise SqlSyntaxError(
                f'there is no version "{text}"',
                hint="VERSION AS OF takes a number or 'latest'",
                place=token.span.place(cursor.text),
            )
        number = None if text.lower() == "latest" else int(text)
    else:
        number = cursor.integer("a version number or 'latest'")
    return VersionClause(number, cursor.span_from(start))
