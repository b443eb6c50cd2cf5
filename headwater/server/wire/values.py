"""One value at a time → PostgreSQL's text or binary form; for types without a fast way in `encode`.

Owns the forms of numeric, interval, arrays and json.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headwater import values
from headwater.server.wire import types
from headwater.values import json_of

POSTGRES_DAYS = 10_957  # from 1970-01-01 to 2000-01-01
POSTGRES_MICROSECONDS = POSTGRES_DAYS * 86_400_000_000
DAY_US = 86_400_000_000
Encoder = Callable[[Any], bytes]


def numeric_binary(value: Decimal) -> bytes:
    """base-10000 digits, weight, sign, scale."""
    if not value.is_finite():
        return struct.pack("!hhHh", 0, 0, 0xC000 if value.is_nan() else 0xD000, 0)
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(-exponent, 0)
    whole = "".join(map(str, digits)) + "0" * max(exponent, 0)
    whole = whole.rjust(scale + 1, "0")
    before, after = whole[: len(whole) - scale], whole[len(whole) - scale :]
    before = before.rjust(-(-len(before) // 4) * 4, "0")
    after = after.ljust(-(-len(after) // 4) * 4, "0")
    groups = [int((before + after)[i : i + 4]) for i in range(0, len(before + after), 4)]
    weight = len(before) // 4 - 1
    while groups and groups[0] == 0:
        groups.pop(0)
        weight -= 1
    while groups and groups[-1] == 0:
        groups.pop()
    head = struct.pack("!hhHh", len(groups), weight if groups else 0, 0x4000 * sign, scale)
    return head + struct.pack(f"!{len(groups)}h", *groups)


def numeric_from_binary(data: bytes) -> Decimal:
    """The number of PostgreSQL's binary form; ValueError if it is none."""
    if len(data) < 8:
        raise ValueError("a numeric has at least 8 bytes")
    count, weight, sign, scale = struct.unpack("!hhHh", data[:8])
    if sign in (0xC000, 0xD000, 0xF000):
        return Decimal({0xC000: "NaN", 0xD000: "Infinity", 0xF000: "-Infinity"}[sign])
    if count < 0 or len(data) != 8 + 2 * count:
        raise ValueError("a numeric of another length")
    number = 0
    for group in struct.unpack(f"!{count}h", data[8:]):
        number = number * 10_000 + group
    shift = scale + 4 * (weight - count + 1)  # digits beyond the scale are zeros
    number = number * 10**shift if shift >= 0 else number // 10**-shift
    return Decimal((1 if sign else 0, tuple(map(int, str(number))), -scale))


def parts_of_interval(value: Any) -> tuple[int, int, int]:
    """Months, days and microseconds."""
    if isinstance(value, timedelta):
        whole = value // timedelta(microseconds=1)
        days, rest = divmod(abs(whole), DAY_US)
        sign = -1 if whole < 0 else 1
        return 0, sign * days, sign * rest
    if isinstance(value, int):  # months
        return value, 0, 0
    return value.months, value.days, value.nanoseconds // 1000


def interval_text(value: Any) -> str:
    """PostgreSQL's own style: `1 year 2 mons 3 days 04:05:06.7`."""
    months, days, microseconds = parts_of_interval(value)
    years, months = int(months / 12), months - 12 * int(months / 12)
    words = [
        f"{n} {unit}{'' if n in (1, -1) else 's'}"
        for n, unit in ((years, "year"), (months, "mon"), (days, "day"))
        if n
    ]
    if microseconds or not words:
        sign, rest = ("-" if microseconds < 0 else ""), abs(microseconds)
        seconds, fraction = divmod(rest, 1_000_000)
        clock = f"{sign}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        words.append(clock + (f".{fraction:06}".rstrip("0") if fraction else ""))
    return " ".join(words)


def _interval_binary(value: Any) -> bytes:
    months, days, microseconds = parts_of_interval(value)
    return struct.pack("!qii", microseconds, days, months)


def json_text(type_: pa.DataType) -> Callable[[Any], str]:
    """Nested values as JSON, as everywhere: a map is an object, decimals and NaN are texts."""
    plain = json_of(type_)
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    return lambda value: encode(plain(value))


def far_time_text(scalar: Any) -> str | None:
    """A date or timestamp of any year as PostgreSQL writes it, `0044-03-15 BC` for one before 1."""
    if not scalar.is_valid:
        return None
    text = values.far_time_text(scalar)
    zoned = text.endswith("Z")
    day, _, clock = text.removesuffix("Z").partition(" ")
    year, month_and_day = day[:-6], day[-6:]
    before = int(year) < 1
    day = f"{1 - int(year) if before else int(year):04d}{month_and_day}"
    clock = clock.rstrip("0").rstrip(".") if "." in clock else clock
    return day + (f" {clock}" if clock else "") + ("+00" if zoned else "") + (" BC" * before)


def element_text(value: str) -> str:
    """An element of an array's text, in quotes where it needs them."""
    plain = value and value.upper() != "NULL" and not set(value) & set('{}",\\ \t\n\r\v\f')
    return value if plain else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def array_text(texts: list[str | None]) -> str:
    """The text of an array of these elements."""
    return "{" + ",".join("NULL" if t is None else element_text(t) for t in texts) + "}"


def array_binary(element: int, cells: list[bytes | None]) -> bytes:
    """The binary form of a one-dimensional array of encoded elements."""
    if not cells:
        return struct.pack("!iiI", 0, 0, element)
    head = struct.pack("!iiIii", 1, any(c is None for c in cells), element, len(cells), 1)
    body = [b"\xff\xff\xff\xff" if c is None else struct.pack("!I", len(c)) + c for c in cells]
    return head + b"".join(body)


def array_cells(data: bytes) -> tuple[int, list[bytes | None]]:
    """The element type and encoded elements of a binary array; ValueError if it has dimensions."""
    dimensions, _, element = struct.unpack_from("!iiI", data)
    if not dimensions:
        return element, []
    if dimensions != 1:
        raise ValueError("only arrays of one dimension")
    count, place = struct.unpack_from("!i", data, 12)[0], 20
    cells: list[bytes | None] = []
    for _ in range(count):
        (length,) = struct.unpack_from("!i", data, place)
        place += 4
        cells.append(None if length < 0 else data[place : place + length])
        place += max(length, 0)
    if place != len(data):
        raise ValueError("an array of another length")
    return element, cells


def slow_text(type_: pa.DataType) -> Callable[[Any], str] | None:
    """How a value of a type becomes text, for types that Arrow cannot cast."""
    if types.pg_type(type_).name == "interval":
        return interval_text
    if types.pg_type(type_).name == "json":
        return json_text(type_)
    return None


def slow_binary(type_: pa.DataType) -> Encoder | None:
    """How a value of a type becomes bytes, for types without a fixed width."""
    name = types.pg_type(type_).name
    if name == "numeric":
        return lambda value: numeric_binary(Decimal(value))
    if name == "interval":
        return _interval_binary
    if name == "json":
        text = json_text(type_)
        return lambda value: text(value).encode()
    return None
