"""Rows as JSON → rows of a table: lines by Arrow where that suffices, else value by value.

Owns how JSON values become values of a column: times, dates, decimals and bytes are texts there.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from headwater.errors import DataError, NotSupportedError
from headwater.sql.literals import timestamp
from headwater.sql.types import name_of
from headwater.storage.door import names_far_year


def read_lines(
    data: bytes, schema: pa.Schema, zone: str, *, others: bool = False
) -> pa.Table | list[dict[str, Any]]:
    """The rows of JSON lines; with `others` names that the schema lacks are left out."""
    quickly = lines_by_arrow(data, schema, zone, others=others)
    if quickly is not None:
        return quickly
    return typed(parsed_lines(data), schema, zone, others=others)


def lines_by_arrow(
    data: bytes, schema: pa.Schema, zone: str, *, others: bool = False
) -> pa.Table | None:
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
                explicit_schema=asked, unexpected_field_behavior="infer" if others else "error"
            ),
        )
        if len({name.casefold() for name in found.schema.names}) < len(found.schema):
            return None  # a name in another case
        found.validate(full=True)
        columns = [
            moments(c, f) if is_moment(f.type) else c
            for c, f in ((found.column(f.name), f) for f in schema)
        ]
        return pa.Table.from_arrays(columns, names=schema.names)
    except pa.ArrowException:
        return None


def _by_arrow(type_: pa.DataType) -> bool:
    types = pa.types
    plain = types.is_integer(type_) or types.is_float64(type_) or types.is_boolean(type_)
    return bool(plain or types.is_string(type_) or types.is_timestamp(type_))


def moments(texts: Any, field: Any) -> Any:
    """Texts as times; those without a zone, where one is needed, are in UTC."""
    if field.type.tz is None:
        return texts.cast(field.type)
    zoned = pc.match_substring_regex(texts, r"[Tt ]\d\d:.*(Z|[+-]\d\d:\d\d)$")
    plain = pc.if_else(zoned, None, texts).cast(pa.timestamp("us")).cast(field.type)
    return pc.coalesce(pc.if_else(zoned, texts, None).cast(field.type), plain)


def parsed_lines(data: bytes) -> list[Any]:
    """The values of JSON lines."""
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


def typed(
    rows: list[Any], schema: pa.Schema, zone: str, *, others: bool = False
) -> list[dict[str, Any]]:
    """Rows whose values are those of their columns; with `others` unknown names are left out."""
    makers = {f.name.casefold(): (f.name, maker_of(f.type, zone)) for f in schema}
    made = []
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise DataError(f"row {number} is no JSON object", sqlstate="22P04")
        found = {}
        for key, value in row.items():
            if others and key.casefold() not in makers:
                continue
            name, make = makers.get(key.casefold(), (key, None))
            try:
                found[name] = value if make is None or value is None else make(value)
            except (ValueError, TypeError, InvalidOperation, OverflowError) as error:
                wanted = name_of(schema.field(name).type)
                raise DataError(
                    f"row {number}: {_shown(value)} is no value of column {name} {wanted}",
                    sqlstate="22008" if names_far_year(str(value)) else "22018",
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
