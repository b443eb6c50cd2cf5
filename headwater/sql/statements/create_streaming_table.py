"""`CREATE STREAMING TABLE`, `CREATE STREAM` and `CREATE FOREIGN TABLE … SERVER stream`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import cast

import pyarrow as pa

from headwater.errors import BindError, SqlSyntaxError
from headwater.sql.cursor import Cursor
from headwater.sql.duration import Duration, parse_duration
from headwater.sql.names import did_you_mean
from headwater.sql.statements.base import (
    ColumnDefinition,
    Options,
    Statement,
    if_not_exists,
    parse_column,
    parse_options,
    refuse_replace,
)
from headwater.sql.text import Name
from headwater.sql.type_parser import check_distinct

Late = OneOf["keep", "drop", "reject"]


NONE = Duration(0)


@dataclass(frozen=True)
class CreateStreamingTable(Statement):
    """A streaming table, or a stream (whose rows are kept only while a reader needs them)."""

    name: Name
    kind: OneOf["streaming table", "stream"]
    columns: tuple[ColumnDefinition, ...]
    if_not_exists: bool
    timestamp_by: Name | None = None  # None: arrival time
    range: Duration | None = None  # None: FOREVER
    watermark: Duration = NONE
    late: Late = "keep"
    update_key: tuple[Name, ...] | None = None  # None: no clause; (): UPDATE KEY ()
    comment: str | None = None
    options: Options = field(default_factory=dict)


def parse_table(cursor: Cursor, replace: bool) -> CreateStreamingTable:
    """The rest after CREATE STREAMING TABLE."""
    refuse_replace(cursor, replace, "streaming table")
    return _parse(cursor, "streaming table")


def parse_stream(cursor: Cursor, replace: bool) -> CreateStreamingTable:
    """The rest after CREATE STREAM."""
    refuse_replace(cursor, replace, "stream")
    return _parse(cursor, "stream")


def parse_foreign(cursor: Cursor, replace: bool) -> CreateStreamingTable:
    """The rest after CREATE FOREIGN TABLE: the same as CREATE STREAM with SERVER stream."""
    refuse_replace(cursor, replace, "stream")
    return _parse(cursor, "stream", foreign=True)


def _parse(
    cursor: Cursor, kind: OneOf["streaming table", "stream"], foreign: bool = False
) -> CreateStreamingTable:
    unless = if_not_exists(cursor)
    name = cursor.new_name(f"the name of a {kind}")
    columns, said = _columns(cursor)
    if foreign:
        _server(cursor)
    clauses = _clauses(cursor, columns, said)
    return CreateStreamingTable(cursor.text, name, kind, columns, unless, **clauses)  # type: ignore[arg-type]


def _columns(cursor: Cursor) -> tuple[tuple[ColumnDefinition, ...], dict[str, object]]:
    """The columns, and what `WATERMARK FOR ts AS ts - INTERVAL …` among them says of time."""
    said: dict[str, object] = {}
    delays: list[tuple[Name, Duration]] = []

    def element() -> ColumnDefinition | None:
        if not cursor.at("WATERMARK", "FOR"):
            return parse_column(cursor)
        if delays:
            place = cursor.peek().span.place(cursor.text)
            raise SqlSyntaxError("WATERMARK occurs twice", place=place)
        delays.append(_watermark_for(cursor))
        return None

    columns = tuple(column for column in cursor.parenthesised(element) if column is not None)
    check_distinct(cursor, [column.name for column in columns])
    for name, delay in delays:
        said = {"timestamp_by": _time_column(cursor, columns, name), "watermark": delay}
    return columns, said


def _watermark_for(cursor: Cursor) -> tuple[Name, Duration]:
    """`WATERMARK FOR ts AS ts [- INTERVAL …]`."""
    cursor.expect("WATERMARK", "FOR")
    name = cursor.name("a column")
    cursor.expect("AS")
    again = cursor.name("the same column")
    if again.key != name.key:
        place = again.span.place(cursor.text)
        raise SqlSyntaxError(f"the watermark of {name} is {name} less an interval", place=place)
    return name, parse_duration(cursor, zero=True) if cursor.accept("-") else NONE


def _server(cursor: Cursor) -> None:
    cursor.expect("SERVER")
    server = cursor.name("a server")
    if server.key != "stream":
        raise BindError(
            f"server {server} does not exist",
            sqlstate="42704",
            hint="the only server is stream",
            place=server.span.place(cursor.text),
        )


def _clauses(
    cursor: Cursor, columns: tuple[ColumnDefinition, ...], said: dict[str, object]
) -> dict[str, object]:
    """The clauses in any order, each once; `said`: what the columns said already."""
    parsers: dict[str, tuple[str, Callable[[], object]]] = {
        "TIMESTAMP": ("timestamp_by", lambda: _timestamp_by(cursor, columns)),
        "RANGE": ("range", lambda: parse_range(cursor)),
        "WATERMARK": ("watermark", lambda: _watermark(cursor)),
        "LATE": ("late", lambda: _late(cursor)),
        "UPDATE": ("update_key", lambda: _update_key(cursor, columns)),
        "COMMENT": ("comment", lambda: _comment(cursor)),
        "WITH": ("options", lambda: _options(cursor)),
    }
    found = said
    while not cursor.at_end:
        token = cursor.peek()
        if not cursor.at_any(parsers):
            words = ("TIMESTAMP BY", "RANGE", "WATERMARK", "LATE", "UPDATE KEY", "WITH")
            cursor.fail("a clause or the end of the statement", words=words)
        attribute, parse = parsers[token.upper]
        if attribute in found:
            raise SqlSyntaxError(f"{token.upper} occurs twice", place=token.span.place(cursor.text))
        found[attribute] = parse()
    return found


def _timestamp_by(cursor: Cursor, columns: tuple[ColumnDefinition, ...]) -> Name:
    cursor.expect("TIMESTAMP", "BY")
    return _time_column(cursor, columns, cursor.name("a column"))


def _time_column(cursor: Cursor, columns: tuple[ColumnDefinition, ...], name: Name) -> Name:
    type_ = _column(cursor, columns, name).type
    if not (pa.types.is_timestamp(type_) or pa.types.is_date(type_) or pa.types.is_integer(type_)):
        raise BindError(
            f"column {name} cannot be the timestamp of the rows",
            sqlstate="42804",
            hint="TIMESTAMP BY takes a TIMESTAMP, TIMESTAMP_NTZ, DATE or integer column",
            place=name.span.place(cursor.text),
        )
    return name


def parse_range(cursor: Cursor) -> Duration | None:
    """`RANGE interval` or `RANGE FOREVER` (None)."""
    cursor.expect("RANGE")
    if cursor.accept("FOREVER"):
        return None
    if not cursor.at("INTERVAL"):
        cursor.fail("INTERVAL or FOREVER", words=("INTERVAL", "FOREVER"))
    return parse_duration(cursor)


def _watermark(cursor: Cursor) -> Duration:
    cursor.expect("WATERMARK")
    return parse_duration(cursor, zero=True)


def _late(cursor: Cursor) -> Late:
    cursor.expect("LATE")
    return cast(Late, cursor.choice("KEEP", "DROP", "REJECT").lower())


def parse_update_key(cursor: Cursor) -> tuple[Name, ...]:
    """`UPDATE KEY (a, b)` or `UPDATE KEY ()`."""
    cursor.expect("UPDATE", "KEY")
    if cursor.accept("(", ")"):
        return ()
    names = cursor.names("a column")
    check_distinct(cursor, names)
    return names


def _update_key(cursor: Cursor, columns: tuple[ColumnDefinition, ...]) -> tuple[Name, ...]:
    names = parse_update_key(cursor)
    for name in names:
        _column(cursor, columns, name)
    return names


def _comment(cursor: Cursor) -> str:
    cursor.expect("COMMENT")
    return cursor.string()


def _options(cursor: Cursor) -> Options:
    cursor.expect("WITH")
    return parse_options(cursor)


def _column(cursor: Cursor, columns: tuple[ColumnDefinition, ...], name: Name) -> ColumnDefinition:
    for column in columns:
        if column.name.key == name.key:
            return column
    raise BindError(
        f"column {name} does not exist",
        sqlstate="42703",
        hint=did_you_mean(name, [column.name for column in columns]),
        place=name.span.place(cursor.text),
    )
