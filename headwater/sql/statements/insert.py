"""`INSERT INTO t [(cols)] VALUES … | query` and `INSERT INTO t FROM STREAM '…' [WITH (…)]`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from headwater.errors import BindError
from headwater.sql.cursor import Cursor
from headwater.sql.literals import Literal, take_literal
from headwater.sql.statements.base import Options, Statement, parse_with_options
from headwater.sql.statements.query import Query, make_query, take_query
from headwater.sql.text import Name, Span
from headwater.sql.type_parser import check_distinct

Rows = tuple[tuple[Literal, ...], ...]


@dataclass(frozen=True)
class Insert(Statement):
    """Rows into a table: `rows` if all values are plain literals, else Spark evaluates `query`."""

    table: Name
    columns: tuple[Name, ...] | None  # None: all columns in their order
    rows: Rows | None
    query_span: Span
    by_name: bool = False

    @cached_property
    def query(self) -> Query:
        """The query, or the VALUES, that gives the rows; made on demand, as VALUES may be long."""
        return make_query(self.query_span.of(self.text), self.query_span.start)


@dataclass(frozen=True)
class InsertFromStream(Statement):
    """The paper's form of CREATE SOURCE: rows come from outside until the statement is stopped."""

    table: Name
    url: str
    options: Options


def parse(cursor: Cursor) -> Insert | InsertFromStream:
    """INSERT …"""
    cursor.expect("INSERT")
    if cursor.at("OVERWRITE"):
        cursor.refuse("INSERT OVERWRITE is not supported", hint="TRUNCATE TABLE, then INSERT INTO")
    cursor.expect("INTO")
    if cursor.at("TABLE") and cursor.peek(1).is_name:
        cursor.take()
    table = cursor.path("a table")
    if cursor.at("FROM", "STREAM") and cursor.peek(2).text[:1] in ("'", '"'):
        return _from_stream(cursor, table)
    columns = _columns(cursor)
    by_name = cursor.accept("BY", "NAME")
    start = cursor.start
    rows = _plain_rows(cursor) if cursor.at("VALUES") else None
    end = cursor.previous_end
    if rows is None:
        query = take_query(cursor)
        found = Insert(cursor.text, table, columns, None, query.span, by_name)
        found.__dict__["query"] = query  # the cached property, already known
        return found
    cursor.finish()
    span = Span(start, end)
    _check_widths(cursor, rows, columns)
    return Insert(cursor.text, table, columns, rows, span, by_name)


def _from_stream(cursor: Cursor, table: Name) -> InsertFromStream:
    cursor.expect("FROM", "STREAM")
    url = cursor.string("the address of a source")
    options = parse_with_options(cursor)
    return InsertFromStream(cursor.text, table, url, options)


def _columns(cursor: Cursor) -> tuple[Name, ...] | None:
    if not cursor.at("(") or cursor.peek(1).upper in ("SELECT", "WITH", "VALUES", "FROM", "("):
        return None
    names = cursor.names("a column")
    check_distinct(cursor, names)
    return names


def _plain_rows(cursor: Cursor) -> Rows | None:
    """The rows if all of VALUES is plain and nothing follows; else the cursor stays."""
    start = cursor.index
    cursor.expect("VALUES")
    rows: list[tuple[Literal, ...]] = []
    while row := _plain_row(cursor):
        rows.append(row)
        if not cursor.accept(","):
            break
    if rows and row is not None and cursor.at_end:
        return tuple(rows)
    cursor.index = start
    return None


def _plain_row(cursor: Cursor) -> tuple[Literal, ...] | None:
    parenthesised = cursor.accept("(")
    values: list[Literal] = []
    while (value := take_literal(cursor, cursor.time_zone)) is not None:
        values.append(value)
        if not parenthesised or not cursor.accept(","):
            break
    if value is None or (parenthesised and not cursor.accept(")")):
        return None
    return tuple(values)


def _check_widths(cursor: Cursor, rows: Rows | None, columns: tuple[Name, ...] | None) -> None:
    """Raise if a row of VALUES has not as many values as the others or as the columns named."""
    if rows is None:
        return
    width = len(columns) if columns is not None else len(rows[0])
    for number, row in enumerate(rows, 1):
        if len(row) != width:
            raise BindError(
                f"row {number} has {len(row)} values, {width} are needed",
                sqlstate="42601",
                place=cursor.tokens[0].span.place(cursor.text),
            )
