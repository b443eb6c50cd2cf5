"""Times as text: by a constant pattern, as Java's DateTimeFormatter writes it in English, and names of days.

Owns: DATE_FORMAT, FROM_UNIXTIME, DAYNAME, MONTHNAME; the letters of a pattern that are known here, and how
each is written. A pattern with any other letter, or with what Java reserves, is Spark's. Must never: format
in another zone than UTC; the binder sees to that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.expression.coercion import BIGINT, DATE, STRING, convert, is_integer
from headwater.expression.functions.times import DAY_US, numbers
from headwater.expression.nodes import Bound, BoundCall
from headwater.expression.operand import Kernel
from headwater.expression.signature import constant, fixed
from headwater.expression.table import called, operation
from headwater.sql.types import TIMESTAMP

_MONTHS = "January February March April May June July August September October November December"
_MONTH_NAMES = _MONTHS.split()
_DAY_NAMES = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_PIECE = re.compile(r"([A-Za-z])\1*|'(?:[^']|'')*'|[^A-Za-z'\[\]{}#]+")
Fields = dict[str, list[int]]
Write = Callable[[Fields], list[str]]


def _year(year: int) -> str:
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04d}"


def _number(field: str, width: int) -> Write:
    return lambda fields: [f"{value:0{width}d}" for value in fields[field]]


def _each(field: str, write: Callable[[int], str]) -> Write:
    return lambda fields: [write(value) for value in fields[field]]


_WRITERS: dict[str, Write] = {
    "y": _number("year", 1),
    "yy": _each("year", lambda year: f"{abs(year) % 100:02d}"),
    "yyyy": _each("year", _year),
    "MMM": _each("month", lambda month: _MONTH_NAMES[month - 1][:3]),
    "MMMM": _each("month", lambda month: _MONTH_NAMES[month - 1]),
    **{run: _each("weekday", lambda day: _DAY_NAMES[day][:3]) for run in ("E", "EE", "EEE")},
    "EEEE": _each("weekday", lambda day: _DAY_NAMES[day]),
    "a": _each("hour", lambda hour: "AM" if hour < 12 else "PM"),
    **{
        letter * width: _number(field, width)
        for letter, field in zip(
            "MdHhms", ["month", "day", "hour", "clock", "minute", "second"], strict=True
        )
        for width in (1, 2)
    },
    **{
        "S" * width: _each("micro", lambda micro, width=width: f"{micro:06d}000"[:width])  # type: ignore[misc]
        for width in range(1, 10)
    },
}


def _pieces(pattern: str) -> list[Write] | None:
    """What writes each part of a pattern; None if a part is not known here."""
    found: list[Write] = []
    place = 0
    while place < len(pattern):
        match = _PIECE.match(pattern, place)
        if match is None:
            return None
        text, place = match.group(), match.end()
        if match.group(1):
            if text not in _WRITERS:
                return None
            found.append(_WRITERS[text])
            continue
        plain = text
        if text[0] == "'":
            plain = "'" if text == "''" else text[1:-1].replace("''", "'")
        found.append(lambda fields, plain=plain: [plain] * len(fields["year"]))  # type: ignore[misc]
    return found


def _format(moment: Bound, pattern: Bound) -> Bound | None:
    text = constant(pattern)
    if moment.type != TIMESTAMP or not isinstance(text, str) or not _pieces(text):
        return None
    return called("date_format", (moment,), STRING, text)


def _format_seconds(seconds: Bound, pattern: Bound) -> Bound | None:
    """FROM_UNIXTIME: seconds since 1970, which Spark lets overflow."""
    text = constant(pattern)
    if not is_integer(seconds.type) or not isinstance(text, str) or not _pieces(text):
        return None
    return called("from_unixtime", (convert(seconds, BIGINT),), STRING, text)


def _kernel(unit_us: int, call: BoundCall) -> Kernel:
    (pattern,) = call.parameters
    pieces = _pieces(str(pattern))
    assert pieces is not None

    def compute(value: pa.Array) -> pa.Array:
        micros, nulls = numbers(value)
        fields = _fields(micros * unit_us)
        texts = map("".join, zip(*(write(fields) for write in pieces), strict=True))
        return pa.array(list(texts), STRING, mask=nulls)

    return compute


def _fields(micros: np.ndarray[Any, Any]) -> Fields:
    """The fields of moments since 1970; there is a year 0, since Spark reads `y` as Java's `u`."""
    days, rest = micros // DAY_US, micros % DAY_US
    dates = days.astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    years = dates.astype("datetime64[Y]").astype(np.int64) + 1970
    hours = rest // 3_600_000_000
    return {
        "year": years.tolist(),
        "month": (months.astype(np.int64) % 12 + 1).tolist(),
        "day": ((dates - months.astype("datetime64[D]")).astype(np.int64) + 1).tolist(),
        "weekday": ((days + 3) % 7).tolist(),
        "hour": hours.tolist(),
        "clock": ((hours + 11) % 12 + 1).tolist(),
        "minute": (rest // 60_000_000 % 60).tolist(),
        "second": (rest // 1_000_000 % 60).tolist(),
        "micro": (rest % 1_000_000).tolist(),
    }


operation("date_format", _format, partial(_kernel, 1))
operation("from_unixtime", _format_seconds, partial(_kernel, 1_000_000))


def _name_of_day(_: BoundCall) -> Kernel:
    def compute(value: pa.Array) -> pa.Array:
        days, nulls = numbers(value)
        return pa.array([_DAY_NAMES[day][:3] for day in (days + 3) % 7], STRING, mask=nulls)

    return compute


def _name_of_month(_: BoundCall) -> Kernel:
    def compute(value: pa.Array) -> pa.Array:
        months = pc.month(value).to_pylist()
        return pa.array([month and _MONTH_NAMES[month - 1][:3] for month in months], STRING)

    return compute


fixed("dayname", [[DATE]], STRING, _name_of_day)
fixed("monthname", [[DATE]], STRING, _name_of_month)
