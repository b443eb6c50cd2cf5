"""A query that sqlglot cannot read: its tables, clauses and calls of ours, found among the tokens.

Spark may still read such a query. It is one opaque piece for the planner, but its windows and cuts must be
known, and be taken out. A window is looked for only where a table can stand: `a[interval '1' day]` in an
expression stays an expression. Scoping of CTE names is not done here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from headwater.sql.calls import NAMES, Calls, OurCall, gathered, parse_call
from headwater.sql.clauses import Clauses, parse_clauses, starts_clause
from headwater.sql.cursor import CLOSING, Cursor
from headwater.sql.cuts import parse_stream_call
from headwater.sql.extensions import NamedRelation
from headwater.sql.lexer import Kind, Token
from headwater.sql.names import words
from headwater.sql.text import Name
from headwater.sql.windows import BEFORE_ALIAS, misplaced, parse_postfix

# After these an operand or a name follows, so `sample`, `emit`, … are names there.
_BEFORE_OPERAND = words(
    "SELECT DISTINCT FROM JOIN WHERE BY AND OR NOT ON HAVING AS IN LIKE ILIKE RLIKE REGEXP BETWEEN "
    "CASE WHEN THEN ELSE USING LIMIT OFFSET UNION EXCEPT INTERSECT MINUS LATERAL OVER IS QUALIFY "
    "VALUES DIV WITH RECURSIVE STREAM"
)
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
    found: list[NamedRelation] = field(default_factory=list)

    @property
    def level(self) -> _Level:
        return self.levels[-1]


def find_relations(cursor: Cursor) -> tuple[NamedRelation, ...]:
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
        scan.found.append(replace(stream, alias=_alias(cursor)))
        return
    if cursor.at("STREAM") and cursor.peek(1).is_name and cursor.peek(1).upper not in NOT_ALIAS:
        after = cursor.peek(2)
        if after.is_name or after.text in ("[", "."):
            cursor.take()  # Spark's own `FROM STREAM t …`
    level.expecting = False
    found = parse_postfix(cursor, _dotted(cursor), level.joined)
    alias = _alias(cursor)
    if alias is not None and cursor.at("["):
        misplaced(cursor, BEFORE_ALIAS)
    scan.found.append(replace(found, alias=alias))


def read_opaque(
    text: str, tokens: tuple[Token, ...]
) -> tuple[Clauses, Calls, tuple[NamedRelation, ...]]:
    """What of ours stands in a query."""
    clauses, first = _clauses(Cursor(text, tokens))
    body = (*tokens[:first], Token(Kind.END, "", len(text), len(text)))
    return clauses, _calls(Cursor(text, tokens)), find_relations(Cursor(text, body))


def _clauses(cursor: Cursor) -> tuple[Clauses, int]:
    """The trailing clauses, and the index of their first token (or of the end)."""
    last = len(cursor.tokens) - 1  # END
    for cursor.index in range(1, last):
        token, before = cursor.peek(), cursor.tokens[cursor.index - 1]
        if starts_clause(token, cursor.peek(1)) and _ends_operand(before):
            first = cursor.index
            return parse_clauses(cursor), first
    return Clauses(), last


def _ends_operand(token: Token) -> bool:
    if token.kind is Kind.SYMBOL:
        return token.text in CLOSING
    return token.upper not in _BEFORE_OPERAND


def _calls(cursor: Cursor) -> Calls:
    """All calls; also those inside the arguments of others."""
    found: list[OurCall | None] = []
    for index, token in enumerate(cursor.tokens[:-1]):
        called = token.upper in NAMES and cursor.tokens[index + 1].text == "("
        if called and not (index and cursor.tokens[index - 1].text == "."):
            cursor.index = index
            found.append(parse_call(cursor))
    return gathered(found)


def _dotted(cursor: Cursor) -> Name:
    parts = [cursor.take()]
    while cursor.at(".") and cursor.peek(1).is_name:
        cursor.take()
        parts.append(cursor.take())
    span = cursor.span_from(parts[0].start)
    return Name(".".join(part.name for part in parts), span)


def _alias(cursor: Cursor) -> Name | None:
    if cursor.at("AS") and cursor.peek(1).is_name:
        cursor.take()
        token = cursor.take()
        return Name(token.name, token.span)
    token, after = cursor.peek(), cursor.peek(1)
    if not token.is_name or token.upper in NOT_ALIAS or starts_clause(token, after):
        return None
    if after.text == "." or (token.upper == "TIMESTAMP" and after.upper == "AS"):
        return None
    cursor.take()
    return Name(token.name, token.span)
