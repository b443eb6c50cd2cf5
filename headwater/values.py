"""Values → text and JSON, one converter per Arrow type.

A converter is chosen once per column and then called per value, so that large results stay
cheap. NULL never reaches a text converter: the formats decide how it looks. Converters must
never lose digits: decimals and integers are written in full, floats in their shortest exact form.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Json = Any
"""What `json.dumps` takes."""

_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def is_number(type_: pa.DataType) -> bool:
    """Whether values stand right-aligned."""
    types = pa.types
    return bool(types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_))


def is_nested(type_: pa.DataType) -> bool:
    """Whether values are shown as JSON."""
    return bool(pa.types.is_nested(type_))


def may_be_cut(type_: pa.DataType) -> bool:
    """Whether a long value may be shortened: text may, a number or a time never."""
    types = pa.types
    return is_nested(type_) or not (
        is_number(type_) or types.is_temporal(type_) or types.is_boolean(type_)
    )


def python_values(column: pa.ChunkedArray[Any] | pa.Array[Any]) -> list[Any]:
    """The column as Python values; times beyond Python's years become text."""
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        pass
    return [_python_value(scalar) for scalar in column]


def _python_value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        pass
    if isinstance(scalar, pa.MapScalar):
        pairs = (_python_value(pair) for pair in scalar.values or ())
        return [(pair["key"], pair["value"]) for pair in pairs]
    if isinstance(scalar, pa.StructScalar):
        return {name: _python_value(value) for name, value in scalar.items()}
    if pa.types.is_nested(scalar.type):
        return [_python_value(item) for item in scalar.values]
    return far_time_text(scalar)


def has_far_times(column: pa.ChunkedArray[Any] | pa.Array[Any]) -> bool:
    """Whether a column of dates or timestamps has one beyond Python's years."""
    try:
        pc.min_max(column).as_py()
    except (OverflowError, ValueError):
        return True
    return False


def far_time_text(scalar: Any) -> str:
    """A date or timestamp beyond Python's years, `12026-11-17 08:00:00.500000Z`; Arrow cuts its year."""
    import numpy as np

    type_ = scalar.type
    if not (pa.types.is_timestamp(type_) or pa.types.is_date32(type_)):
        return str(pc.cast(scalar, pa.string()).as_py())
    unit: Any = "D" if pa.types.is_date32(type_) else type_.unit
    text = str(np.datetime64(scalar.value, unit)).replace("T", " ")
    zoned = pa.types.is_timestamp(type_) and type_.tz is not None
    return f"{text}Z" if zoned else text


def text_of(type_: pa.DataType, machine: bool = False) -> Callable[[Any], str]:
    """The converter to text: for people, or (`machine`) for programs that read CSV."""
    if is_nested(type_):
        plain = json_of(type_)
        return lambda value: json.dumps(plain(value), ensure_ascii=False)
    if pa.types.is_float32(type_) or pa.types.is_float16(type_):
        return _short_float
    if pa.types.is_dictionary(type_):
        return text_of(type_.value_type, machine)
    return _machine_text if machine else _text


def json_of(type_: Any) -> Callable[[Any], Json]:
    """The converter to what JSON can hold; None stays None."""
    types = pa.types
    if types.is_map(type_):
        key, item = text_of(type_.key_type, machine=True), json_of(type_.item_type)
        return _optional(lambda pairs: {key(k): item(v) for k, v in pairs})
    if types.is_struct(type_):
        fields = [(f.name, json_of(f.type)) for f in (type_.field(i) for i in range(len(type_)))]
        return _optional(lambda row: {name: convert(row[name]) for name, convert in fields})
    if is_nested(type_):
        inner = json_of(type_.value_type)
        return _optional(lambda items: [inner(item) for item in items])
    if types.is_floating(type_):
        single = not types.is_float64(type_)
        return _optional(lambda value: _json_float(value, single))
    if types.is_dictionary(type_):
        return json_of(type_.value_type)
    return _json_scalar


def _optional(convert: Callable[[Any], Json]) -> Callable[[Any], Json]:
    return lambda value: None if value is None else convert(value)


def _json_scalar(value: Any) -> Json:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return _machine_text(value)


def _json_float(value: float, single: bool) -> Json:
    if not isinstance(value, float) or not math.isfinite(value):
        return _text(value)
    return float(_short_float(value)) if single else value


def _machine_text(value: Any) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, datetime):
        return _time_text(value, "T")
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        return _time_text(value, " ")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return _duration_text(value)
    if isinstance(value, bytes):
        return "0x" + value.hex()
    return str(value)


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return repr(value)


def _short_float(value: float) -> str:
    """A single-precision value in as few digits as tell it apart, not as the double it became."""
    import numpy as np

    return repr(float(str(np.float32(value)))) if math.isfinite(value) else _float_text(value)


def _time_text(value: datetime, between: str) -> str:
    """ISO 8601; a fraction only where there is one, in milliseconds if they suffice."""
    fraction = value.microsecond
    places = "seconds" if not fraction else "microseconds" if fraction % 1000 else "milliseconds"
    text = value.isoformat(between, timespec=places)
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text


def _duration_text(value: timedelta) -> str:
    """Days and a clock, as in `-1 day 02:03:04.5`; the sign holds for the whole."""
    sign, span = ("-", -value) if value < timedelta(0) else ("", value)
    minutes, seconds = divmod(span.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{span.microseconds:06d}".rstrip("0") if span.microseconds else ""
    days = f"{span.days} day{'' if span.days == 1 else 's'} " if span.days else ""
    return f"{sign}{days}{hours:02d}:{minutes:02d}:{seconds:02d}{fraction}"


def safe(text: str) -> str:
    """The text without characters that would move the cursor or talk to the terminal."""
    return _CONTROL.sub(_escaped, text) if not text.isprintable() else text


def _escaped(match: re.Match[str]) -> str:
    known = {"\t": "\\t", "\r": "\\r"}
    code = ord(match.group())
    return known.get(match.group(), f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")
