"""Finds the tables of a query and the windows, cuts and versions that stand after them.

Works on tokens alone, because a query with our clauses may use any SQL that Spark reads, also
what sqlglot does not. A window is looked for only where a table can stand: `a[interval '1' day]`
in an expression stays an expression. Scoping of CTE names is not done here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from headwater.errors import SqlSyntaxError
from headwater.sql.cursor import CLOSING, Cursor
from headwater.sql.cuts import at_cut, parse_cut, parse_stream_call
from headwater.sql.duration import is_interval, parse_duration
from headwater.sql.extensions import Cut, Relation, Version, Window
from headwater.sql.lexer import Kind
from headwater.sql.names import words
from headwater.sql.text import Name

# Words that end the FROM clause of their query.
_AFTER_FROM = words(
    "SELECT WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW QUALIFY "
    "UNION EXCEPT INTERSECT MINUS |>"
)
_SET_OPERATIONS = words("UNION ALL DISTINCT EXCEPT INTERSECT MINUS")
# Words that may follow a table and are therefore not its alias.
NOT_ALIAS = _AFTER_FROM | words(
    "FROM JOIN INNER LEFT RIGHT FULL CROSS SEMI ANTI NATURAL ON USING LATERAL PIVOT UNPIVOT "
    "TABLESAMPLE AS FOR SET WHEN VALUES INSERT WITH DISTINCT"
)


@dataclass
class _Level:
    """One pair of parentheses, or the whole query."""

    query: bool = False  # SELECT or a leading FROM was seen here
    in_from: bool = False
    expecting: bool = False  # a table may stand next
    joined: bool = False  # … because of JOIN
    first: bool = True  # nothing was seen here yet


@dataclass
class _Scan:
    cursor: Cursor
    levels: list[_Level] = field(default_factory=lambda: [_Level()])
    found: list[Relation] = field(default_factory=list)

    @property
    def level(self) -> _Level:
        return self.levels[-1]


def find_relations(cursor: Cursor) -> tuple[Relation, ...]:
    """All relations from the cursor to its end."""
    scan = _Scan(cursor)
    while cursor.peek().kind is not Kind.END:
        _step(scan)
    return tuple(scan.found)


def _step(scan: _Scan) -> None:
    cursor, level = scan.cursor, scan.level
    token = cursor.peek()
    if token.text == "(":
        _open(scan)
    elif token.text == ")":
        cursor.take()
        if len(scan.levels) > 1:
            scan.levels.pop()
    elif level.expecting and token.is_name:
        _relation(scan)
    else:
        _word(level, cursor)
    level.first = False


def _open(scan: _Scan) -> None:
    """A parenthesis where a table may stand holds a query or more tables."""
    level = scan.level
    inner = _Level(in_from=level.expecting, expecting=level.expecting)
    level.expecting = False
    scan.cursor.take()
    if scan.cursor.peek().upper in ("SELECT", "WITH", "FROM", "VALUES"):
        inner = _Level()
    scan.levels.append(inner)


def _word(level: _Level, cursor: Cursor) -> None:
    previous = cursor.tokens[cursor.index - 1].upper if cursor.index else ""
    word = cursor.take().upper
    if previous == ".":
        return
    if word == "SELECT":
        level.query, level.in_from, level.expecting = True, False, False
    elif word == "FROM" and (level.query or level.first) and previous != "DISTINCT":
        level.query = level.in_from = level.expecting = True
        level.joined = False
    elif word == "TABLE" and (level.first or previous in _SET_OPERATIONS):
        level.query = level.expecting = True  # `TABLE t`, also as an argument: `f(TABLE t)`
    elif word == "JOIN" and (level.in_from or level.query):
        level.in_from = level.expecting = level.joined = True
    elif word == "," and level.in_from:
        level.expecting, level.joined = True, False
    elif word in _AFTER_FROM:
        level.in_from = level.expecting = False


def _relation(scan: _Scan) -> None:
    """A name where a table may stand, with all that may follow it."""
    cursor, level = scan.cursor, scan.level
    if cursor.at("LATERAL") and cursor.peek(1).upper != "[":
        cursor.take()
        level.expecting = not cursor.accept("VIEW")
        return
    if cursor.at_any(("SELECT", "VALUES", "WITH")) or cursor.peek(1).text == "(":
        stream = parse_stream_call(cursor) if cursor.at("STREAM", "(") else None
        level.expecting = False
        if stream is None:
            _word(level, cursor)
            return
        name, cut = stream
        scan.found.append(Relation(name, _alias(cursor), cut=cut))
        return
    if cursor.at("STREAM") and cursor.peek(1).is_name and cursor.peek(1).upper not in NOT_ALIAS:
        after = cursor.peek(2)
        if after.is_name or after.text in ("[", "."):
            cursor.take()  # Spark's own `FROM STREAM t …`
    level.expecting = False
    scan.found.append(_postfix(cursor, _dotted(cursor), level.joined))


def _dotted(cursor: Cursor) -> Name:
    parts = [cursor.take()]
    while cursor.at(".") and cursor.peek(1).is_name:
        cursor.take()
        parts.append(cursor.take())
    span = cursor.span_from(parts[0].start)
    return Name(".".join(part.name for part in parts), span)


def _postfix(cursor: Cursor, name: Name, joined: bool) -> Relation:
    window: Window | None = None
    cut: Cut | None = None
    version: Version | None = None
    while True:
        if cursor.at("["):
            if window is not None:
                _misplaced(cursor, "a table has one window")
            window = parse_window(cursor)
        elif cut is None and at_cut(cursor, joined):
            cut = parse_cut(cursor)
        elif version is None and (cursor.at("VERSION", "AS", "OF") or cursor.at("FOR", "VERSION")):
            version = _version(cursor)
        else:
            break
    alias = _alias(cursor)
    if alias is not None and cursor.at("["):
        _misplaced(cursor, "the window stands before the alias: t [ROWS 3] AS a")
    return Relation(name, alias, window, cut, version)


def _misplaced(cursor: Cursor, hint: str) -> NoReturn:
    raise SqlSyntaxError(
        'syntax error at or near "["', hint=hint, place=cursor.peek().span.place(cursor.text)
    )


def _alias(cursor: Cursor) -> Name | None:
    if cursor.at("AS") and cursor.peek(1).is_name:
        cursor.take()
        token = cursor.take()
        return Name(token.name, token.span)
    token, after = cursor.peek(), cursor.peek(1)
    if not token.is_name or token.upper in NOT_ALIAS or _starts_clause(cursor):
        return None
    if after.text == "." or (token.upper == "TIMESTAMP" and after.upper == "AS"):
        return None
    cursor.take()
    return Name(token.name, token.span)


def _starts_clause(cursor: Cursor) -> bool:
    from headwater.sql.clauses import starts_clause

    return starts_clause(cursor.peek(), cursor.peek(1))


def parse_window(cursor: Cursor) -> Window:
    """`[INTERVAL i [BEFORE]]`, `[ROWS k]`, `[a, b ROWS k]`, `[LANDMARK]`."""
    start = cursor.start
    cursor.expect("[")
    if is_interval(cursor) or (cursor.at("INTERVAL") and cursor.peek(1).upper != "ROWS"):
        duration = parse_duration(cursor)
        before = cursor.accept("BEFORE")
        _close(cursor)
        return Window("interval", cursor.span_from(start), duration=duration, before=before)
    if cursor.at("LANDMARK", "]"):
        cursor.take()
        _close(cursor)
        return Window("landmark", cursor.span_from(start))
    keys: tuple[Name, ...] = ()
    if not cursor.at("ROWS") or cursor.peek(1).upper in ("ROWS", ","):
        if not cursor.peek().is_name:
            cursor.fail("INTERVAL, ROWS, LANDMARK or a key", hint="a window: [INTERVAL '3' SECOND]")
        keys = cursor.listed(lambda: cursor.name("a key column"))
    cursor.expect("ROWS")
    rows = cursor.positive("a number of rows")
    _close(cursor)
    return Window("rows", cursor.span_from(start), rows=rows, keys=keys)


def _close(cursor: Cursor) -> None:
    if not cursor.accept("]"):
        cursor.fail("]", hint="a window is closed by ]" if cursor.at_any(CLOSING) else None)


def _version(cursor: Cursor) -> Version:
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
    return Version(number, cursor.span_from(start))
