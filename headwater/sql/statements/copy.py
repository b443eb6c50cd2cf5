"""`COPY t [(cols)] FROM 'file' | STDIN` and `COPY t | (query) TO 'file' | STDOUT`, with formats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf

from headwater.errors import Error, SettingError, SqlSyntaxError
from headwater.sql.cursor import Cursor
from headwater.sql.lexer import Kind
from headwater.sql.names import did_you_mean
from headwater.sql.statements import subscribe
from headwater.sql.statements.base import Statement
from headwater.sql.statements.query import Query, take_parenthesised_query
from headwater.sql.statements.subscribe import Subscribe
from headwater.sql.text import Name, Span
from headwater.sql.type_parser import check_distinct

Format = OneOf["csv", "text", "parquet"]


@dataclass(frozen=True)
class Copy(Statement):
    """Rows between a table (or, going out, a query) and a file or the client's connection."""

    direction: OneOf["from", "to"]
    table: Name | None
    query: Query | Subscribe | None  # `COPY (SUBSCRIBE q) TO STDOUT` never ends
    columns: tuple[Name, ...] | None
    path: str | None  # None: STDIN or STDOUT
    format: Format
    header: bool
    delimiter: str
    null: str
    quote: str
    escape: str


_FORMATS = ("CSV", "TEXT", "PARQUET")
_NAMES = ("FORMAT", "HEADER", "DELIMITER", "NULL", "QUOTE", "ESCAPE", "ENCODING")


def parse(cursor: Cursor) -> Copy:
    """COPY …"""
    cursor.expect("COPY")
    table, query, columns = None, None, None
    start = cursor.start
    if cursor.at("("):
        query = _subject(cursor)
    else:
        if cursor.at("INTO"):
            cursor.fail("a table", hint="COPY t FROM 'file' CSV HEADER")
        table = cursor.path("a table")
        if cursor.at("("):
            columns = cursor.names("a column")
            check_distinct(cursor, columns)
    subject = cursor.span_from(start)
    direction: OneOf["from", "to"] = "from" if cursor.choice("FROM", "TO") == "FROM" else "to"
    if query is not None and direction == "from":
        place = subject.place(cursor.text)
        raise SqlSyntaxError("rows cannot be copied into a query", place=place)
    path = _path(cursor, "STDIN" if direction == "from" else "STDOUT")
    options = _options(cursor, path)
    return _copy(cursor, direction, table, query, columns, path, options)


def _subject(cursor: Cursor) -> Query | Subscribe:
    """`(query)` or `(SUBSCRIBE …)`, the form in which clients read without end."""
    if cursor.peek(1).upper != "SUBSCRIBE":
        return take_parenthesised_query(cursor)
    whole = cursor.skip_brackets()
    inner = Span(whole.start + 1, whole.end - 1)
    try:
        return subscribe.parse(Cursor(inner.of(cursor.text)))
    except Error as error:
        if error.place is not None:
            place = Span(error.place.start, error.place.end)
            error.place = place.shifted(inner.start).place(cursor.text)
        raise


def _path(cursor: Cursor, stream: str) -> str | None:
    if cursor.accept(stream):
        return None
    return cursor.string(f"a file name in quotes or {stream}")


def _options(cursor: Cursor, path: str | None) -> dict[str, str]:
    """`CSV HEADER DELIMITER ','` in any order, or `WITH (FORMAT csv, HEADER)`."""
    found: dict[str, str] = {}
    cursor.accept("WITH")
    if cursor.at("("):
        cursor.parenthesised(lambda: _listed_option(cursor, found))
    else:
        while not cursor.at_end:
            _bare_option(cursor, found)
    if "format" not in found and path is not None:
        for ending in ("csv", "parquet"):
            if path.lower().endswith(f".{ending}"):
                found["format"] = ending
    return found


def _listed_option(cursor: Cursor, found: dict[str, str]) -> None:
    token = cursor.peek()
    if token.upper not in _NAMES:
        hint = did_you_mean(token.text, _NAMES)
        place = token.span.place(cursor.text)
        raise SqlSyntaxError(f"COPY has no option {token.text}", hint=hint, place=place)
    name = cursor.take().upper
    _option(cursor, found, name)


def _bare_option(cursor: Cursor, found: dict[str, str]) -> None:
    word = cursor.choice(*_FORMATS, *_NAMES)
    if word in _FORMATS:
        _add(cursor, found, "format", word.lower())
        return
    if word not in ("FORMAT", "HEADER"):
        cursor.accept("AS")
    _option(cursor, found, word)


def _option(cursor: Cursor, found: dict[str, str], name: str) -> None:
    """The value behind an option's name."""
    if name == "FORMAT":
        value = _format(cursor)
    else:
        value = _flag(cursor) if name == "HEADER" else _text(cursor, name)
    _add(cursor, found, name.lower(), value)


def _format(cursor: Cursor) -> str:
    """A format's name, bare or in quotes."""
    token = cursor.peek()
    if token.kind is Kind.STRING and token.text[1:-1].upper() in _FORMATS:
        return cursor.string().lower()
    return cursor.choice(*_FORMATS).lower()


def _text(cursor: Cursor, name: str) -> str:
    r"""The value of an option; `NULL '\N'` is a backslash and an N, as in PostgreSQL."""
    token = cursor.peek()
    if name == "NULL" and token.kind is Kind.STRING:
        return cursor.take().text[1:-1].replace(token.text[0] * 2, token.text[0])
    return cursor.string()


def _flag(cursor: Cursor) -> str:
    if cursor.peek().kind is Kind.NUMBER:
        return "true" if cursor.integer() else "false"
    word = cursor.accept_any(("TRUE", "FALSE", "ON", "OFF"))
    return "false" if word in ("FALSE", "OFF") else "true"


def _add(cursor: Cursor, found: dict[str, str], name: str, value: str) -> None:
    place = cursor.tokens[cursor.index - 1].span.place(cursor.text)
    if name in found:
        raise SqlSyntaxError(f"option {name} occurs twice", place=place)
    if name in ("delimiter", "quote", "escape") and len(value) != 1:
        raise SettingError(f"{name} must be one character", place=place)
    if name == "encoding" and value.lower().replace("-", "") not in ("utf8", "utf_8"):
        raise SettingError(f"encoding {value} is not supported", hint="use UTF8", place=place)
    found[name] = value


def _copy(
    cursor: Cursor,
    direction: OneOf["from", "to"],
    table: Name | None,
    query: Query | Subscribe | None,
    columns: tuple[Name, ...] | None,
    path: str | None,
    options: dict[str, str],
) -> Copy:
    """The record, with PostgreSQL's defaults for each format."""
    format_: Format = {"csv": "csv", "parquet": "parquet"}.get(options.get("format", ""), "text")  # type: ignore[assignment]
    csv = format_ == "csv"
    quote = options.get("quote", '"')
    return Copy(
        cursor.text,
        direction,
        table,
        query,
        columns,
        path,
        format_,
        header=options.get("header") == "true",
        delimiter=options.get("delimiter", "," if csv else "\t"),
        null=options.get("null", "" if csv else "\\N"),
        quote=quote,
        escape=options.get("escape", quote),
    )
