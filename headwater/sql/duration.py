"""Fixed lengths of time, exact in microseconds.

Reads the intervals of windows, slides, cuts, RANGE and options. Months and years are refused:
they have no fixed length, and instants are multiples of a slide (DESIGN §5). Intervals inside
expressions are Spark's business and never come here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

from headwater.errors import BindError, DataError, Place, SqlSyntaxError
from headwater.sql.cursor import Cursor
from headwater.sql.lexer import Kind
from headwater.sql.names import did_you_mean

MICROSECONDS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 604_800_000_000,
}
SHORT_UNITS = {
    "US": "MICROSECOND",
    "MS": "MILLISECOND",
    "S": "SECOND",
    "SEC": "SECOND",
    "M": "MINUTE",
    "MIN": "MINUTE",
    "H": "HOUR",
    "HR": "HOUR",
    "D": "DAY",
    "W": "WEEK",
}
NOT_FIXED = frozenset({"MONTH", "QUARTER", "YEAR", "DECADE", "CENTURY"})
LONGEST = (1 << 63) - 1
_RANGES = ("DAY", "HOUR", "MINUTE", "SECOND")
_PART = re.compile(r"\s*([+-]?\s*(?:\d+(?:\.\d*)?|\.\d+))\s*([A-Za-z]+)\s*,?")
_NUMBER = re.compile(r"[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})\Z")


@dataclass(frozen=True, order=True)
class Duration:
    """A fixed length of time."""

    microseconds: int

    @property
    def seconds(self) -> float:
        """The length in seconds."""
        return self.microseconds / 1_000_000

    def __str__(self) -> str:
        """The length as SQL text that reads back to the same length."""
        for unit in ("WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND"):
            if self.microseconds and self.microseconds % MICROSECONDS[unit] == 0:
                return f"INTERVAL '{self.microseconds // MICROSECONDS[unit]}' {unit}"
        return f"INTERVAL '{self.microseconds}' MICROSECOND"


def unit_name(word: str) -> str | None:
    """The unit that a word names, in the singular, also of units without a fixed length."""
    upper = word.upper()
    for candidate in (upper, upper.removesuffix("S")):
        candidate = SHORT_UNITS.get(candidate, candidate)
        if candidate in MICROSECONDS or candidate in NOT_FIXED:
            return candidate
    return None


def is_interval(cursor: Cursor) -> bool:
    """Whether an interval literal comes next."""
    after = cursor.peek(2 if cursor.peek(1).text in ("-", "+") else 1)
    return cursor.at("INTERVAL") and after.kind in (Kind.STRING, Kind.NUMBER)


def parse_duration(cursor: Cursor, *, zero: bool = False) -> Duration:
    """`INTERVAL '3' SECOND`, `INTERVAL 3 SECONDS`, `INTERVAL '1 02:03:04' DAY TO SECOND`, …"""
    start = cursor.start
    cursor.expect("INTERVAL")
    total = _terms(cursor)
    span = cursor.span_from(start)
    return _checked(total, zero, span.place(cursor.text))


def duration_of(text: str, *, zero: bool = False) -> Duration:
    """The length in a text such as `60 SECS`, `1 day 2 hours` or `INTERVAL '5' MINUTE`."""
    place = Place(text, 0, len(text))
    if text.strip()[:8].upper() == "INTERVAL":
        cursor = Cursor(text)
        value = parse_duration(cursor, zero=zero)
        cursor.finish()
        return value
    total = _units_in(text, place)
    if total is None:
        raise _no_duration(place)
    return _checked(total, zero, place)


def _terms(cursor: Cursor) -> Fraction:
    """One or several `number unit` pairs, or one string that holds them."""
    total = _term(cursor)
    while cursor.peek().kind in (Kind.NUMBER, Kind.STRING) and unit_name(cursor.peek(1).text):
        total += _term(cursor)
    return total


def _term(cursor: Cursor) -> Fraction:
    negative = cursor.accept("-")
    token = cursor.peek()
    if token.kind is Kind.STRING:
        value = _string_term(cursor)
    elif token.kind is Kind.NUMBER:
        cursor.take()
        place = token.span.place(cursor.text)
        value = _number(token.text, place) * _unit(cursor)
    else:
        cursor.fail("a number or a string after INTERVAL")
    return -value if negative else value


def _string_term(cursor: Cursor) -> Fraction:
    token = cursor.peek()
    text, place = cursor.string(), token.span.place(cursor.text)
    word = cursor.peek().upper if cursor.peek().kind is Kind.WORD else ""
    if cursor.peek(1).upper == "TO" and unit_name(word):
        return _range_term(cursor, text, place)
    if unit_name(word) and _NUMBER.match(text.strip()):
        return _number(text.strip(), place) * _unit(cursor)
    total = _units_in(text, place)
    if total is None:
        if _NUMBER.match(text.strip()):
            _unit(cursor)  # raises: the unit is missing or unknown
        raise _no_duration(place)
    return total


def _range_term(cursor: Cursor, text: str, place: Place) -> Fraction:
    """`'1 02:03:04.5' DAY TO SECOND` and the shorter ranges."""
    first_span = cursor.peek().span
    first = unit_name(cursor.take().text)
    cursor.expect("TO")
    last = unit_name(cursor.name("a unit of time"))
    if first in NOT_FIXED or last in NOT_FIXED:
        raise _not_fixed(first_span.place(cursor.text))
    if first not in _RANGES or last not in _RANGES or _RANGES.index(first) >= _RANGES.index(last):
        raise SqlSyntaxError(
            "not a range of units", hint="write, for one, DAY TO SECOND", place=place
        )
    units = _RANGES[_RANGES.index(first) : _RANGES.index(last) + 1]
    pattern = "".join(
        {"DAY": r"(\d{1,9}) +", "SECOND": r"(\d{1,9}(?:\.\d{0,9})?)"}.get(unit, r"(\d{1,9}):")
        for unit in units
    ).rstrip(":")
    match = re.fullmatch(rf"\s*([+-]?){pattern.removesuffix(' +')}\s*", text)
    if not match:
        raise _no_duration(place)
    parts = zip(match.groups()[1:], units, strict=True)
    total = sum((Fraction(part) * MICROSECONDS[unit] for part, unit in parts), Fraction(0))
    return -total if match.group(1) == "-" else total


def _units_in(text: str, place: Place) -> Fraction | None:
    """The sum of `number unit` pairs in a string, or None if it is not made of them."""
    total, position = Fraction(0), 0
    while position < len(text.rstrip()):
        match = _PART.match(text, position)
        if not match:
            return None
        total += _number(match.group(1).replace(" ", ""), place) * _length(match.group(2), place)
        position = match.end()
    return total if position else None


def _number(text: str, place: Place) -> Fraction:
    if not _NUMBER.match(text):
        raise _no_duration(place)
    return Fraction(text.rstrip(".") if text != "." else "0")


def _unit(cursor: Cursor) -> int:
    token = cursor.peek()
    if token.kind is not Kind.WORD:
        cursor.fail("a unit of time", hint="for one: INTERVAL '3' SECOND")
    cursor.take()
    return _length(token.text, token.span.place(cursor.text))


def _length(word: str, place: Place) -> int:
    name = unit_name(word)
    if name is None:
        raise SqlSyntaxError(
            f"{word} is not a unit of time",
            hint=did_you_mean(word, MICROSECONDS) or "units are MICROSECOND to WEEK",
            place=place,
        )
    if name in NOT_FIXED:
        raise _not_fixed(place)
    return MICROSECONDS[name]


def _checked(total: Fraction, zero: bool, place: Place) -> Duration:
    if total.denominator != 1:
        raise DataError(
            "the interval is not a whole number of microseconds", sqlstate="22008", place=place
        )
    if total < 0 or (total == 0 and not zero):
        rule = "cannot be negative" if zero else "must be longer than 0"
        raise DataError(f"the interval {rule}", sqlstate="22023", place=place)
    if total > LONGEST:
        raise DataError("the interval is too long", sqlstate="22008", place=place)
    return Duration(int(total))


def _not_fixed(place: Place) -> DataError:
    return DataError(
        "months and years are not a fixed length",
        sqlstate="22008",
        hint="use WEEK, DAY, HOUR, MINUTE, SECOND or smaller units",
        place=place,
    )


def _no_duration(place: Place) -> SqlSyntaxError:
    return SqlSyntaxError("not an interval", hint="for one: INTERVAL '3' SECOND", place=place)


def duration_ticks(time_type: pa.DataType, microseconds: int) -> int:
    """A length of time in ticks of a time column's type."""
    if not pa.types.is_integer(time_type):
        return microseconds
    whole, rest = divmod(microseconds, 1_000_000)
    if rest:
        raise BindError(
            "the interval is not a whole number of seconds",
            sqlstate="22008",
            hint="the table's time column is an integer, which counts seconds",
        )
    return whole
