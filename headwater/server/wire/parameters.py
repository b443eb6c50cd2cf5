"""Values of parameters, in text or binary → SQL text that Headwater reads back to the same value.

Owns how a value of a PostgreSQL type is spelled in our SQL. A value is checked before it becomes text, so
that it can never become code.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from uuid import UUID

from headwater.errors import DataError
from headwater.server.wire import types, values
from headwater.sql.literals import decimal_text, float_text, number_text, sql_text
from headwater.storage.door import names_far_year

BINARY = 1
EPOCH = datetime(2000, 1, 1)
INTEGERS = {"int2": "!h", "int4": "!i", "int8": "!q", "oid": "!I", "regclass": "!I"}
TIMES = frozenset({"date", "timestamp", "timestamptz"})
FLOATS = {"float4": "!f", "float8": "!d"}
FLOAT_NAMES = {"float4": "FLOAT", "float8": "DOUBLE"}
_WORDS = {"t": True, "true": True, "1": True, "on": True, "yes": True, "y": True}
_WORDS |= {"f": False, "false": False, "0": False, "off": False, "no": False, "n": False}
# What a parameter looks like when only the columns of a statement are asked for.
SAMPLES = {
    "bool": "TRUE",
    "int2": "0",
    "int4": "0",
    "int8": "0",
    "oid": "0",
    "float4": "0F",
    "float8": "0D",
    "numeric": "0BD",
    "date": "DATE '2000-01-01'",
    "timestamp": "TIMESTAMP_NTZ '2000-01-01 00:00:00'",
    "timestamptz": "TIMESTAMP '2000-01-01 00:00:00+00:00'",
    "bytea": "X''",
    "interval": "INTERVAL '0' SECOND",
}


def sample(oid: int) -> str:
    """A value of a type as SQL text, for those who ask for columns only."""
    element = types.ELEMENTS.get(oid)
    if element is not None:
        return f"array({sample(element.oid)})"
    found = types.BY_OID.get(oid)
    return SAMPLES.get(found.name, "''") if found is not None else "''"


def parameter_text(data: bytes | None, oid: int, format_: int) -> str:
    """A parameter as SQL text; DataError if it is no value of its type."""
    if data is None:
        return "NULL"
    element = types.ELEMENTS.get(oid)
    found = types.BY_OID.get(oid)
    name = "text" if found is None else found.name
    try:
        if element is not None:
            return _array(data, element, format_)
        return _from_binary(name, data) if format_ == BINARY else _from_text(name, data.decode())
    except (ValueError, OverflowError, struct.error, InvalidOperation) as error:
        shown = data.hex() if format_ == BINARY else data.decode(errors="replace")
        far = name.lstrip("_") in TIMES and (
            isinstance(error, OverflowError) or names_far_year(shown)
        )
        raise DataError(
            f"a parameter is no {name}: {shown[:80]!r}",
            sqlstate="22008" if far else "22P03" if format_ == BINARY else "22P02",
            detail=str(error) or None,
        ) from error


def _from_binary(name: str, data: bytes) -> str:
    if name in INTEGERS:
        return number_text(int(struct.unpack(INTEGERS[name], data)[0]))
    if name in FLOATS:
        return float_text(float(struct.unpack(FLOATS[name], data)[0]), FLOAT_NAMES[name])
    if name == "bool":
        return "TRUE" if struct.unpack("!?", data)[0] else "FALSE"
    if name == "numeric":
        return decimal_text(values.numeric_from_binary(data))
    if name == "bytea":
        return sql_text(data)
    if name == "date":
        days = struct.unpack("!i", data)[0]
        return sql_text(EPOCH.date() + timedelta(days=days))
    if name in ("timestamp", "timestamptz"):
        moment = EPOCH + timedelta(microseconds=struct.unpack("!q", data)[0])
        return sql_text(moment.replace(tzinfo=UTC) if name == "timestamptz" else moment)
    if name == "time":
        moment = EPOCH + timedelta(microseconds=struct.unpack("!q", data)[0])
        return f"TIME '{moment.time().isoformat()}'"
    if name == "interval":
        return _interval(*struct.unpack("!qii", data))
    if name == "uuid":
        return sql_text(str(UUID(bytes=data)))
    if name == "jsonb":
        return sql_text(data[1:].decode())
    return sql_text(data.decode())


def _from_text(name: str, text: str) -> str:
    convert = TEXTS.get(name)
    return sql_text(text) if convert is None else convert(text.strip())


def _bool(text: str) -> str:
    if text.lower() not in _WORDS:
        raise ValueError("neither true nor false")
    return "TRUE" if _WORDS[text.lower()] else "FALSE"


def _timestamp(text: str) -> str:
    return sql_text(datetime.fromisoformat(text).replace(tzinfo=None))


def moment_text(text: str) -> str:
    """A timestamptz as SQL text: without an offset it is read in the zone that `time_zone` says."""
    found = datetime.fromisoformat(text)
    return sql_text(found) if found.tzinfo else f"TIMESTAMP '{found.isoformat(sep=' ')}'"


def _bytea(text: str) -> str:
    """`\\x6100`, or the older form with `\\000` and `\\\\`."""
    if text.startswith("\\x"):
        return sql_text(bytes.fromhex(text[2:]))
    found = _OCTAL.sub(lambda m: chr(int(m.group(1), 8)) if m.group(1) else "\\", text)
    return sql_text(found.encode("latin-1"))


_OCTAL = re.compile(r"\\(?:([0-3][0-7]{2})|\\)")
_INTERVAL = re.compile(
    r"\s*(?:([+-]?)(\d+):(\d+)(?::(\d+(?:\.\d+)?))?|([+-]?\d+(?:\.\d+)?)\s*([a-z]+))"
)
_UNITS = {"year": 12, "yr": 12, "mon": 1, "month": 1}
_SMALL_UNITS = {
    "week": 604_800, "day": 86_400, "hour": 3600, "minute": 60, "min": 60, "second": 1, "sec": 1,
}  # fmt: skip


def _interval_from_text(text: str) -> str:
    """`1 year 2 mons 3 days 04:05:06.7`, the style that clients write."""
    months, seconds = 0, Decimal(0)
    place, lower = 0, text.lower()
    while place < len(lower):
        found = _INTERVAL.match(lower, place)
        if found is None:
            raise ValueError("an interval is written as 1 day 02:03:04")
        place = found.end()
        sign, hours, minutes, rest, number, unit = found.groups()
        if hours is not None:
            length = Decimal(hours) * 3600 + Decimal(minutes) * 60 + Decimal(rest or 0)
            seconds += -length if sign == "-" else length
        elif unit.rstrip("s") in _UNITS:
            months += int(Decimal(number) * _UNITS[unit.rstrip("s")])
        elif unit.rstrip("s") in _SMALL_UNITS:
            seconds += Decimal(number) * _SMALL_UNITS[unit.rstrip("s")]
        else:
            raise ValueError(f"{unit} is no unit of time")
    return _interval(int(seconds * 1_000_000), 0, months)


def _interval(microseconds: int, days: int, months: int) -> str:
    total = days * values.DAY_US + microseconds
    if months and total:
        raise ValueError("an interval has months, or days and seconds, but not both")
    if months:
        return f"INTERVAL '{months}' MONTH"
    sign, rest = ("-" if total < 0 else ""), abs(total)
    return f"INTERVAL '{sign}{rest // 1_000_000}.{rest % 1_000_000:06}' SECOND"


TEXTS: dict[str, Callable[[str], str]] = {
    "bool": _bool,
    "bytea": _bytea,
    "int2": lambda text: number_text(int(text)),
    "int4": lambda text: number_text(int(text)),
    "int8": lambda text: number_text(int(text)),
    "oid": lambda text: number_text(int(text)),
    "float4": lambda text: float_text(float(text), "FLOAT"),
    "float8": lambda text: float_text(float(text)),
    "numeric": lambda text: decimal_text(Decimal(text)),
    "date": lambda text: sql_text(date.fromisoformat(text)),
    "time": lambda text: f"TIME '{time.fromisoformat(text).isoformat()}'",
    "timestamp": _timestamp,
    "timestamptz": moment_text,
    "interval": _interval_from_text,
}


def _array(data: bytes, element: types.PgType, format_: int) -> str:
    if format_ == BINARY:
        oid, cells = values.array_cells(data)
        texts = [parameter_text(cell, oid, BINARY) for cell in cells]
    else:
        found = array_elements(data.decode())
        texts = ["NULL" if t is None else _from_text(element.name, t) for t in found]
    return f"array({', '.join(texts)})"


_BLANKS = " \t\n\r\v\f"
_ELEMENT = re.compile(
    rf'[{_BLANKS}]*(?:"((?:[^"\\]|\\.)*)"|([^",{{}}\\]*))[{_BLANKS}]*([,}}])', re.DOTALL
)


def array_elements(text: str) -> list[str | None]:
    """The elements of an array's text; ValueError if it has more than one dimension."""
    stripped = text.strip(_BLANKS)
    if not stripped.startswith("{") or not stripped.endswith("}"):
        raise ValueError("an array is written as {1,2}")
    found: list[str | None] = []
    if stripped[1:-1].strip(_BLANKS) == "":
        return found
    place = 1
    while place < len(stripped):
        match = _ELEMENT.match(stripped, place)
        if match is None:
            raise ValueError("only arrays of one dimension")
        quoted, plain, _ = match.groups()
        if quoted is not None:
            found.append(re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL))
        else:
            word = plain.strip(_BLANKS)
            found.append(None if word.upper() == "NULL" else word)
        place = match.end()
    return found
