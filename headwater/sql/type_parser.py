"""The text of a column type → its Arrow type.

Owns the grammar of types in DDL. A type that Spark knows but tables cannot store is refused with
advice; the types of expressions come from Spark and never pass here.
"""

from __future__ import annotations

import pyarrow as pa

from headwater.errors import BindError, NotSupportedError
from headwater.sql import types
from headwater.sql.cursor import Cursor
from headwater.sql.lexer import Kind, Token
from headwater.sql.names import did_you_mean
from headwater.sql.text import Name

DECIMALS = frozenset({"DECIMAL", "NUMERIC", "DEC"})
REFUSED = {
    "CHAR": "use STRING",
    "CHARACTER": "use STRING",
    "NCHAR": "use STRING",
    "NVARCHAR": "use STRING",
    "TIME": "use STRING, or TIMESTAMP with a date",
    "INTERVAL": "use BIGINT with a unit of your choice",
    "VARIANT": "use STRING with JSON in it",
    "JSON": "use STRING and functions such as get_json_object",
    "JSONB": "use STRING and functions such as get_json_object",
    "UUID": "use STRING",
    "VOID": "use a type that holds values",
    "OBJECT": "use STRUCT<…>",
    "GEOMETRY": "use STRING or BINARY",
    "GEOGRAPHY": "use STRING or BINARY",
    "SERIAL": "use BIGINT",
    "BIGSERIAL": "use BIGINT",
    "BYTEA": "use BINARY",
    "TIMESTAMPTZ": "use TIMESTAMP",
    "DATETIME": "use TIMESTAMP",
}
DEPTH = 32
_KNOWN = (*types.SIMPLE, *types.ALIASES, *sorted(DECIMALS), "ARRAY", "MAP", "STRUCT")


def parse_type(source: str | Cursor, depth: int = 0) -> pa.DataType:
    """The type at the cursor, or the type that a whole text is."""
    if isinstance(source, str):
        return _whole(Cursor(source))
    cursor = source
    token = cursor.peek()
    if token.kind is not Kind.WORD:
        cursor.fail("a type")
    if depth > DEPTH:
        cursor.refuse(f"types cannot be nested deeper than {DEPTH}")
    cursor.take()
    return _by_name(cursor, token, depth)


def parse_spark_type(text: str) -> pa.DataType:
    """The type of an expression as Spark writes it: that of NULL is VOID."""
    cursor = Cursor(text)
    cursor.void = True
    return _whole(cursor)


def _whole(cursor: Cursor) -> pa.DataType:
    found = parse_type(cursor)
    if cursor.peek().kind is not Kind.END:
        cursor.fail("the end of the type")
    return found


def _by_name(cursor: Cursor, token: Token, depth: int) -> pa.DataType:
    word = token.upper
    if word == "VOID" and cursor.void:
        return pa.null()
    if word in DECIMALS:
        return _decimal(cursor)
    if word == "ARRAY":
        return _array(cursor, depth)
    if word == "MAP":
        return _map(cursor, depth)
    if word == "STRUCT":
        return _struct(cursor, depth)
    if word in REFUSED or (word in ("VARCHAR", "STRING", "TEXT") and cursor.at("(")):
        name = word
        if cursor.at("("):
            name += cursor.skip_brackets().of(cursor.text)
        raise NotSupportedError(
            f"a column cannot have type {name}",
            hint=REFUSED.get(word, "use STRING"),
            place=token.span.place(cursor.text),
        )
    if word == "TIMESTAMP":
        return _timestamp(cursor)
    found = types.simple(word)
    if found is None:
        raise BindError(
            f"type {token.text} does not exist",
            sqlstate="42704",
            hint=did_you_mean(token.text, _KNOWN),
            place=token.span.place(cursor.text),
        )
    if word == "DOUBLE":
        cursor.accept("PRECISION")
    return found


def _timestamp(cursor: Cursor) -> pa.DataType:
    if cursor.at("("):
        cursor.refuse("timestamps have no precision", hint="use TIMESTAMP: microseconds")
    if cursor.accept("WITHOUT", "TIME", "ZONE"):
        return types.TIMESTAMP_NTZ
    if cursor.at("WITH", "TIME", "ZONE"):
        cursor.expect("WITH", "TIME", "ZONE")
    return types.TIMESTAMP


def _decimal(cursor: Cursor) -> pa.DataType:
    precision, scale = 10, 0
    if cursor.at("("):
        start = cursor.start
        cursor.expect("(")
        precision = cursor.integer("a precision")
        if cursor.accept(","):
            scale = cursor.integer("a scale")
        cursor.expect(")")
        if not 1 <= precision <= 38 or scale > precision:
            raise BindError(
                f"there is no DECIMAL({precision}, {scale})",
                sqlstate="22023",
                hint="precision is 1 to 38, scale at most the precision",
                place=cursor.span_from(start).place(cursor.text),
            )
    return pa.decimal128(precision, scale)


def _array(cursor: Cursor, depth: int) -> pa.DataType:
    cursor.expect("<")
    element = parse_type(cursor, depth + 1)
    cursor.expect(">")
    return pa.list_(pa.field("element", element))


def _map(cursor: Cursor, depth: int) -> pa.DataType:
    cursor.expect("<")
    key_token = cursor.peek()
    key = parse_type(cursor, depth + 1)
    if pa.types.is_map(key):
        cursor.refuse("a map cannot be the key of a map", span=key_token.span)
    cursor.expect(",")
    value = parse_type(cursor, depth + 1)
    cursor.expect(">")
    if pa.types.is_null(key):
        return pa.null()  # `map()`: Arrow has no map without a key type
    return pa.map_(key, value)


def _struct(cursor: Cursor, depth: int) -> pa.DataType:
    cursor.expect("<")
    names: list[Name] = []
    fields: list[pa.Field[pa.DataType]] = []
    while not fields or cursor.accept(","):
        names.append(cursor.name("the name of a field"))
        cursor.accept(":")
        type_ = parse_type(cursor, depth + 1)
        nullable = not cursor.accept("NOT", "NULL")
        if cursor.accept("COMMENT"):
            cursor.string()
        fields.append(pa.field(str(names[-1]), type_, nullable))
    cursor.expect(">")
    check_distinct(cursor, names)
    return pa.struct(fields)


def check_distinct(cursor: Cursor, names: list[Name] | tuple[Name, ...]) -> None:
    """Raise if two names are the same."""
    seen: set[str] = set()
    for name in names:
        if name.key in seen:
            raise BindError(
                f"column {name} occurs twice",
                sqlstate="42701",
                place=name.span.place(cursor.text),
            )
        seen.add(name.key)


def parse_fields(text: str) -> list[tuple[str, pa.DataType]]:
    """`a INT, b STRING` as names and types."""
    cursor = Cursor(text)
    fields = cursor.listed(lambda: (str(cursor.name("a column")), parse_type(cursor)))
    cursor.finish()
    return list(fields)
