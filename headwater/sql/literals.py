"""Plain literals, read without Spark exactly as Spark (ANSI) reads them.

Owns the values of literal INSERTs, of statement arguments and of constants in expressions: there is
no other reader of them. The rule of the module: when in
doubt a literal is *not plain* and the answer is None, so that Spark evaluates it. It never
rounds, never guesses a format and never reports an error in a value: Spark's own error is better.
"""

from __future__ import annotations

import re
import struct
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from math import isfinite, isinf
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pyarrow as pa

from headwater.sql import types
from headwater.sql.cursor import Cursor
from headwater.sql.lexer import Kind

LiteralValue = None | bool | int | float | Decimal | str | bytes | date | datetime
_INT = 1 << 31
_BIGINT = 1 << 63
_WIDTHS = {"L": ("BIGINT", _BIGINT), "S": ("SMALLINT", 1 << 15), "Y": ("TINYINT", 1 << 7)}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_ESCAPE = re.compile(r"\\(.)|(''|\"\")", re.DOTALL)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}:\d{2}:\d{2})(?:\.(\d{1,6}))?(Z|[+-]\d{2}:\d{2})?)?"
)
# What `SET time_zone` takes besides regions; seconds only in Java's form of two digits each.
_FIXED_ZONE = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::(\d{2})(?::(\d{2}))?)?", re.ASCII)
_FARTHEST_ZONE = timedelta(hours=18)


class Literal(NamedTuple):
    """A plain literal: its value as Python holds it, and the type that Spark gives it."""

    value: LiteralValue
    type: pa.DataType

    @property
    def type_name(self) -> str:
        """The type as SQL text; NULL has type VOID."""
        return types.name_of(self.type)


NULL = Literal(None, pa.null())
TRUE = Literal(True, pa.bool_())
FALSE = Literal(False, pa.bool_())
_WORDS = {"NULL": NULL, "TRUE": TRUE, "FALSE": FALSE}


def literal(text: str, time_zone: str = "UTC") -> Literal | None:
    """The literal that a text is, or None if it is not plain."""
    cursor = Cursor(text)
    found = take_literal(cursor, time_zone)
    return found if cursor.peek().kind is Kind.END else None


def take_literal(cursor: Cursor, time_zone: str = "UTC") -> Literal | None:
    """Take a plain literal from the cursor, or take nothing and answer None."""
    kind, text, _, _ = cursor.tokens[cursor.index]  # not peek(): this is the loop of long VALUES
    found, taken = None, 1
    if kind is Kind.NUMBER:
        found = number(text)
    elif kind is Kind.STRING:
        found = _string(text) if cursor.peek(1).kind is not Kind.STRING else None
    elif kind is Kind.WORD:
        after = cursor.peek(1)
        if after.kind is not Kind.STRING:
            found = _WORDS.get(text.upper())
        elif cursor.peek(2).kind is not Kind.STRING:
            value = string_value(after.text)
            found = None if value is None else typed(text.upper(), value, time_zone)
            taken = 2
    elif text == "-" and cursor.peek(1).kind is Kind.NUMBER:
        found, taken = number(cursor.peek(1).text, "-"), 2
    if found is not None:
        cursor.index += taken
    return found


def string_value(text: str) -> str | None:
    """The value of a string token, or None if it has an escape that we leave to Spark."""
    if text[0] in "rR":
        return text[2:-1]
    if text[0] == "$":
        return None
    body, quote = text[1:-1], text[0]
    if "\\" not in body:
        return body.replace(quote * 2, quote)
    plain = True

    def unescaped(match: re.Match[str]) -> str:
        nonlocal plain
        doubled = match.group(2)
        if doubled:
            return quote if doubled[0] == quote else doubled
        plain = plain and match.group(1) in _ESCAPES
        return _ESCAPES.get(match.group(1), "")

    value = _ESCAPE.sub(unescaped, body)
    return value if plain else None


def _string(text: str) -> Literal | None:
    value = string_value(text)
    return None if value is None else Literal(value, _STRING)


_INT32, _STRING = pa.int32(), pa.string()


def number(text: str, sign: str = "") -> Literal | None:
    """A number as it is written, with its suffix; a minus sign before it belongs to it."""
    if text.isdecimal() and text.isascii():
        if len(text) < 10:
            return Literal(int(sign + text), _INT32)
        return _integer(int(sign + text)) if len(text) <= 38 else None
    if not text.isascii():
        return None
    upper = text.upper()
    if upper[-1] in _WIDTHS:
        name, limit = _WIDTHS[upper[-1]]
        value = int(sign + text[:-1]) if len(text) <= 38 else limit
        return Literal(value, types.SIMPLE[name]) if -limit <= value < limit else None
    if upper.endswith("BD"):
        return None if "E" in upper else _decimal(sign + text[:-2])
    if upper[-1] in "DF":
        return _double(sign + text[:-1]) if upper[-1] == "D" else _float(sign + text[:-1])
    return _double(sign + text) if "E" in upper else _decimal(sign + text)


def _integer(value: int) -> Literal | None:
    if -_INT <= value < _INT:
        return Literal(value, pa.int32())
    if -_BIGINT <= value < _BIGINT:
        return Literal(value, pa.int64())
    return _decimal(str(value))


def _decimal(text: str) -> Literal | None:
    value = Decimal(text)
    _, digits, exponent = value.as_tuple()
    scale = -int(exponent)
    precision = max(len(digits), scale)
    if precision > 38 or scale < 0:
        return None
    return Literal(value if value else abs(value), pa.decimal128(precision, scale))


def _double(text: str) -> Literal | None:
    value = float(text)
    return None if isinf(value) else Literal(value, pa.float64())


def _float(text: str) -> Literal | None:
    value = exact_float(Decimal(text))
    return None if value is None else Literal(value, pa.float32())


def exact_float(value: Decimal) -> float | None:
    """A number as a FLOAT only where that is exact: rounding twice could differ from Java."""
    try:
        near: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return None
    return near if Decimal(near) == value else None


def typed(word: str, value: str, time_zone: str) -> Literal | None:
    """`DATE '…'`, `TIMESTAMP '…'`, `TIMESTAMP_NTZ '…'`, `TIMESTAMP_LTZ '…'`, `X'…'`."""
    if word == "X":
        return _binary(value)
    if word == "DATE":
        return _date(value)
    if word in ("TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"):
        found = timestamp(value, None if word == "TIMESTAMP_NTZ" else time_zone)
        ntz = word == "TIMESTAMP_NTZ"
        type_ = types.TIMESTAMP_NTZ if ntz else types.TIMESTAMP
        return None if found is None else Literal(found, type_)
    return None


def _binary(value: str) -> Literal | None:
    if len(value) % 2 or not re.fullmatch(r"[0-9A-Fa-f]*", value):
        return None
    return Literal(bytes.fromhex(value), pa.binary())


def _date(value: str) -> Literal | None:
    if not (_DATE.fullmatch(value) and value.isascii()):
        return None
    try:
        return Literal(date.fromisoformat(value), pa.date32())
    except ValueError:
        return None


def timestamp(value: str, time_zone: str | None) -> datetime | None:
    """The instant of an ISO text: aware in UTC, or naive without a time zone; None if not plain."""
    match = _TIMESTAMP.fullmatch(value)
    if not match or not value.isascii():
        return None
    day, clock, fraction, offset = match.groups()
    try:
        found = datetime.fromisoformat(f"{day} {clock or '00:00:00'}")
        found = found.replace(microsecond=int((fraction or "0").ljust(6, "0")))
        if time_zone is None:
            return None if offset else found
        zone = _offset(offset) if offset else _zone(time_zone)
        return None if zone is None else found.replace(tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


_SECONDS = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,6}))?")
_WHOLE = re.compile(r"[0-9]{1,6}")
_UNITS = {"DAY": timedelta(days=1), "HOUR": timedelta(hours=1), "MINUTE": timedelta(minutes=1)}


def interval(value: str, unit: str) -> timedelta | None:
    """INTERVAL '0.2' SECOND and the like: one unit from days down to seconds; only these have a fraction."""
    unit = unit.upper().removesuffix("S")
    seconds = _SECONDS.fullmatch(value)
    if unit == "SECOND" and seconds is not None:
        fraction = (seconds[2] or "").ljust(6, "0")
        return timedelta(seconds=int(seconds[1]), microseconds=int(fraction))
    return int(value) * _UNITS[unit] if unit in _UNITS and _WHOLE.fullmatch(value) else None


def calendar_interval(value: str, unit: str) -> tuple[str, int] | None:
    """INTERVAL '3' MONTH and the like, of which Spark makes a date of a date: days, or months."""
    unit = unit.upper().removesuffix("S")
    if _WHOLE.fullmatch(value) is None or unit not in ("DAY", "MONTH", "YEAR"):
        return None
    return ("MONTH", 12 * int(value)) if unit == "YEAR" else (unit, int(value))


def _offset(text: str) -> tzinfo | None:
    if text == "Z":
        return UTC
    hours, minutes = int(text[1:3]), int(text[4:6])
    if hours > 17 or minutes > 59:
        return None
    length = timedelta(hours=hours, minutes=minutes)
    return timezone(-length if text[0] == "-" else length)


def _zone(name: str) -> tzinfo | None:
    if name in ("UTC", "Z", "Etc/UTC"):
        return UTC
    fixed = _FIXED_ZONE.fullmatch(name)
    if fixed is not None:
        sign, hours, minutes, seconds = fixed.groups()
        length = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
        far = length > _FARTHEST_ZONE or int(minutes or 0) > 59 or int(seconds or 0) > 59
        return None if far else timezone(-length if sign == "-" else length)
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        return None


def sql_text(value: LiteralValue) -> str:
    """SQL text that Spark reads back to exactly this value; used to fill in parameters."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return f"({value})" if value < 0 else str(value)
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"
    if isinstance(value, Decimal):
        return f"CAST('{value:f}' AS DECIMAL(38, {max(-int(value.as_tuple().exponent), 0)}))"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, datetime):
        zone = "+00:00" if value.tzinfo else ""
        word = "TIMESTAMP" if value.tzinfo else "TIMESTAMP_NTZ"
        moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return f"{word} '{moment.isoformat(sep=' ')}{zone}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def number_text(value: int) -> str:
    """An integer; a blank before the sign keeps it from joining another one to a comment."""
    return str(value) if value >= 0 else f" {value}"


def float_text(value: float, type_: str = "DOUBLE") -> str:
    """A number with a fraction, of that type."""
    if not isfinite(value):
        return f"CAST('{value}' AS {type_})"
    text = repr(value)
    body = f"{text}{type_[0]}"
    return f" {body}" if text.startswith("-") else body


def decimal_text(value: Decimal) -> str:
    """An exact number, of as many digits as it has; ValueError if it is not finite."""
    if not value.is_finite():
        raise ValueError("a decimal is finite")
    text = format(value, "f")
    return f" {text}BD" if text.startswith("-") else f"{text}BD"
