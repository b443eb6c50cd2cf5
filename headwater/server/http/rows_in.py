"""Bodies of `POST /tables/{t}` → rows: JSON, JSON lines, CSV, Arrow.

Owns how JSON values become values of a column: times, dates, decimals and bytes are texts there.
Whatever does not fit is refused with the row's number before anything is written.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from headwater.errors import DataError, NotSupportedError
from headwater.server.http.failure import HttpError
from headwater.server.http.request import json_of_body
from headwater.server.http.rows_out import ARROW, JSON, LINES
from headwater.server.wire.copying import IncomingRows
from headwater.sql import parser
from headwater.sql.literals import timestamp
from headwater.sql.statements.copy import Copy
from headwater.sql.types import name_of, quoted

CSV = "text/csv"
LINE_TYPES = (LINES, "application/jsonl", "application/x-jsonlines", "application/json-lines")
KINDS = (JSON, *LINE_TYPES, CSV, ARROW)


def read_rows(
    kind: str, data: bytes, schema: pa.Schema, table: str, *, header: bool = True, zone: str = "UTC"
) -> pa.Table | list[dict[str, Any]]:
    """The rows of a body; DataError if they do not fit the table."""
    if kind == ARROW:
        return _arrow(data)
    if kind == CSV:
        return _csv(data, schema, table, header)
    if kind in LINE_TYPES:
        quickly = _lines_by_arrow(data, schema, zone)
        return _typed(_lines(data), schema, zone) if quickly is None else quickly
    if kind == JSON:
        found = json_of_body(data, ExactFloat)
        return _typed(found if isinstance(found, list) else [found], schema, zone)
    raise HttpError(
        415,
        f"rows cannot be of type {kind or 'unknown'}",
        sqlstate="22023",
        hint="Content-Type: " + ", ".join((LINES, JSON, CSV, ARROW)),
    )


def _arrow(data: bytes) -> pa.Table:
    try:
        with pa.ipc.open_stream(pa.BufferReader(data)) as reader:
            table = reader.read_all()
        table.validate(full=True)
        return table
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            "the body is no Arrow stream", sqlstate="22P04", detail=str(error)[:200]
        ) from error


def _csv(data: bytes, schema: pa.Schema, table: str, header: bool) -> pa.Table:
    """CSV as COPY FROM STDIN reads it; the header says which columns come, in which order."""
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    if header:
        schema = _named(data, schema)
    text = f"COPY {quoted(table)} FROM STDIN CSV{' HEADER' if header else ''}"
    statement = parser.parse(text)
    assert isinstance(statement, Copy)
    incoming = IncomingRows(statement, schema, len(data) * 64 + (1 << 20))
    incoming.take(data)
    return incoming.rows()


def _named(data: bytes, schema: pa.Schema) -> pa.Schema:
    import csv

    try:
        first = io.StringIO(data.partition(b"\n")[0].decode())
    except UnicodeDecodeError as error:
        raise DataError("the body is not UTF-8", sqlstate="22021") from error
    names = [name.strip() for name in next(csv.reader(first), [])]
    known = {f.name.casefold(): f for f in schema}
    fields = []
    for name in names:
        found = known.pop(name.casefold(), None)
        if found is None:
            raise DataError(
                f"the table has no column {name!r}, or it occurs twice",
                sqlstate="42703",
                hint="the first line names the columns; ?header=false if it does not",
            )
        fields.append(found)
    return pa.schema(fields)


def _lines_by_arrow(data: bytes, schema: pa.Schema, zone: str) -> pa.Table | None:
    """JSON lines of plain types as Arrow reads them; None: look more closely, line by line."""
    is_moment = pa.types.is_timestamp
    if zone != "UTC" or not data.strip() or not all(_by_arrow(f.type) for f in schema):
        return None
    asked = pa.schema([pa.field(f.name, pa.string()) if is_moment(f.type) else f for f in schema])
    try:
        found = pa_json.read_json(
            pa.BufferReader(data),
            read_options=pa_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
            parse_options=pa_json.ParseOptions(
                explicit_schema=asked, unexpected_field_behavior="error"
            ),
        )
        found.validate(full=True)
        columns = [
            _moments(c, f) if is_moment(f.type) else c
            for c, f in zip(found.columns, schema, strict=True)
        ]
        return pa.Table.from_arrays(columns, names=schema.names)
    except pa.ArrowException:
        return None


def _by_arrow(type_: pa.DataType) -> bool:
    types = pa.types
    plain = types.is_integer(type_) or types.is_float64(type_) or types.is_boolean(type_)
    return bool(plain or types.is_string(type_) or types.is_timestamp(type_))


def _moments(texts: Any, field: pa.Field[pa.DataType]) -> Any:
    """Texts as times; those without a zone, where one is needed, are in UTC."""
    if field.type.tz is None:
        return texts.cast(field.type)
    zoned = pc.match_substring_regex(texts, r"[Tt ]\d\d:.*(Z|[+-]\d\d:\d\d)$")
    plain = pc.if_else(zoned, None, texts).cast(pa.timestamp("us")).cast(field.type)
    return pc.coalesce(pc.if_else(zoned, texts, None).cast(field.type), plain)


def _lines(data: bytes) -> list[Any]:
    rows = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            rows.append(json.loads(line, parse_constant=_refused, parse_float=ExactFloat))
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"line {number} is not JSON", sqlstate="22P04", detail=str(error)[:200]
            ) from error
    return rows


def _refused(name: str) -> None:
    raise ValueError(f"{name} is no JSON; write it as a text")


def _typed(rows: list[Any], schema: pa.Schema, zone: str) -> list[dict[str, Any]]:
    """Rows whose values are those of their columns."""
    makers = {f.name.casefold(): (f.name, maker_of(f.type, zone)) for f in schema}
    made = []
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise DataError(f"row {number} is no JSON object", sqlstate="22P04")
        found = {}
        for key, value in row.items():
            name, make = makers.get(key.casefold(), (key, None))
            try:
                found[name] = value if make is None or value is None else make(value)
            except (ValueError, TypeError, InvalidOperation, OverflowError) as error:
                wanted = name_of(schema.field(name).type)
                raise DataError(
                    f"row {number}: {_shown(value)} is no value of column {name} {wanted}",
                    sqlstate="22018",
                    detail="nothing was inserted",
                ) from error
        made.append(found)
    return made


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "…"


def maker_of(type_: Any, zone: str) -> Callable[[Any], Any] | None:
    """What makes a JSON value one of a type; None where it is one already."""
    types = pa.types
    if types.is_timestamp(type_):
        return lambda value: _moment(value, zone if type_.tz else None)
    if types.is_date(type_):
        return lambda value: date.fromisoformat(value)
    if types.is_decimal(type_):
        return _decimal
    if types.is_binary(type_):
        return lambda value: base64.b64decode(value, validate=True)
    if types.is_floating(type_):
        return _number
    if types.is_struct(type_):
        return _struct(type_, zone)
    if types.is_map(type_):
        raise NotSupportedError("a map cannot come as JSON", hint="send Arrow")
    if types.is_list(type_) or types.is_large_list(type_):
        inner = maker_of(type_.value_type, zone)
        return lambda items: _items(items, inner)
    return None


def _moment(value: Any, zone: str | None) -> Any:
    found = timestamp(value.strip(), zone) if isinstance(value, str) else None
    if found is None:
        raise ValueError("not a time")
    return found


class ExactFloat(float):
    """A number of JSON that knows how it was written: a decimal has more digits than a float."""

    written: str

    def __new__(cls, text: str) -> ExactFloat:
        """The number of a text."""
        made = super().__new__(cls, text)
        made.written = text
        return made


def _decimal(value: Any) -> Decimal:
    if isinstance(value, bool):
        raise ValueError("not a number")
    if isinstance(value, float):
        return Decimal(value.written if isinstance(value, ExactFloat) else repr(value))
    return Decimal(value)


def _number(value: Any) -> Any:
    if isinstance(value, str):
        if value not in ("NaN", "Infinity", "-Infinity"):
            raise ValueError("not a number")
        return float(value)
    return float(value) if type(value) is int else value


def _items(items: Any, make: Callable[[Any], Any] | None) -> list[Any]:
    if not isinstance(items, list):
        raise TypeError("not an array")
    return [item if make is None or item is None else make(item) for item in items]


def _struct(type_: Any, zone: str) -> Callable[[Any], Any]:
    makers = {f.name: maker_of(f.type, zone) for f in (type_.field(i) for i in range(len(type_)))}

    def make(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict) or not value.keys() <= makers.keys():
            raise TypeError("not an object of these fields")
        made = {}
        for name, inner in makers.items():
            found = value.get(name)
            made[name] = found if inner is None or found is None else inner(found)
        return made

    return make
