"""Text → values, as Spark's ANSI casts read it; and values → text.

Owns: which texts are a number, a truth or a date, and how numbers and times are written. A text that is none
raises, under Spark's SQLSTATE. Must never: read a time, whose text may name any zone.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.errors import DataError

EXACT = Context(prec=400)  # digits enough for any DOUBLE and any decimal
# What a cast strips: control characters and the space.
_BLANK = "".join(map(chr, (*range(33), 127)))
_JAVA_BLANK = "".join(map(chr, range(33)))
_INTEGER = re.compile(r"[+-]?[0-9]+")
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?")
_HEXADECIMAL = re.compile(
    r"[+-]?0[xX]([0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[dDfF]?"
)
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,5})?")  # digits of any script
_SPECIAL = {"nan": math.nan, "inf": math.inf, "+inf": math.inf, "-inf": -math.inf}
_SPECIAL |= {"infinity": math.inf, "+infinity": math.inf, "-infinity": -math.inf}
_TRUE, _FALSE = frozenset(["t", "true", "y", "yes", "1"]), frozenset(["f", "false", "n", "no", "0"])
_DATE = re.compile(r"([+-]?)([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)


def not_read(text: str, type_: str) -> DataError:
    """What Spark raises for a text that is no value of a type."""
    return DataError(
        f"{text[:60]!r} is no {type_}",
        sqlstate="22018",
        hint="TRY_CAST gives NULL instead",
    )


def out_of_range(text: str, type_: pa.DataType) -> DataError:
    """What Spark raises for a number that its type does not hold."""
    return DataError(
        f"{text[:60]} is out of range", sqlstate="22003", detail=f"the type is {type_}"
    )


def integer(text: str, bits: int) -> int:
    """A whole number of so many bits."""
    plain = text.strip(_BLANK)
    value = int(plain) if _INTEGER.fullmatch(plain) and len(plain) < 4000 else None
    if value is None or not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise not_read(text, "whole number of its type")
    return value


def real(text: str) -> float:
    """A DOUBLE."""
    plain = text.strip(_JAVA_BLANK)
    if _REAL.fullmatch(plain):
        return float(plain.rstrip("dDfF"))
    if _HEXADECIMAL.fullmatch(plain):
        return _from_hexadecimal(plain.rstrip("dDfF"))
    special = _SPECIAL.get(plain.lower())
    if special is None:
        raise not_read(text, "DOUBLE")
    return special


def _from_hexadecimal(plain: str) -> float:
    try:
        return float.fromhex(plain)
    except OverflowError:
        return -math.inf if plain[0] == "-" else math.inf


def decimal(text: str, type_: pa.DataType) -> Decimal:
    """A decimal of a type, rounded half up to its scale."""
    plain = text.strip(_JAVA_BLANK)
    if not _DECIMAL.fullmatch(plain) or max(plain) > "\uffff":
        raise not_read(text, str(type_))
    return fitted(Decimal(plain), type_)


def fitted(value: Decimal, type_: pa.DataType) -> Decimal:
    """A number as a decimal of a type: rounded half up to its scale; raises where it does not fit."""
    if value and value.adjusted() > type_.precision - type_.scale:
        raise out_of_range(str(value), type_)
    found = value.quantize(Decimal(1).scaleb(-type_.scale), ROUND_HALF_UP, EXACT)
    if len(found.as_tuple().digits) > type_.precision and found != 0:
        raise out_of_range(str(value), type_)
    return found


def truth(text: str) -> bool:
    """A BOOLEAN."""
    plain = text.strip(_BLANK).lower()
    if plain not in _TRUE and plain not in _FALSE:
        raise not_read(text, "BOOLEAN")
    return plain in _TRUE


def day(text: str) -> int:
    """A DATE as days since 1970."""
    found = _DATE.fullmatch(text.strip(_BLANK))
    if found is None:
        raise not_read(text, "DATE")
    sign, year, month, number = found.groups()
    months = (int(sign + year) - 1970) * 12 + int(month or 1) - 1
    first, after = (
        int(np.datetime64(months + n, "M").astype("datetime64[D]").astype(int)) for n in (0, 1)
    )
    days = first + int(number or 1) - 1
    fine = 1 <= int(month or 1) <= 12 and first <= days < after and -(1 << 31) <= days < 1 << 31
    if not fine:
        raise not_read(text, "DATE")
    return days


def real_text(value: float, digits: str) -> str:
    """A FLOAT or DOUBLE as Java writes it, from the shortest digits that tell it apart, two at least."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    sign, numerals, exponent = Decimal(digits).as_tuple()
    assert isinstance(exponent, int)
    plain = "".join(map(str, numerals)).rstrip("0") or "0"
    exponent += len(numerals) - len(plain)
    point = len(plain) + exponent  # digits before the point
    minus = "-" if sign else ""
    if -3 < point <= 7:
        if point <= 0:
            return f"{minus}0.{'0' * -point}{plain}"
        whole, rest = plain[:point].ljust(point, "0"), plain[point:] or "0"
        return f"{minus}{whole}.{rest}"
    return f"{minus}{plain[0]}.{plain[1:] or '0'}E{point - 1}"


def double_text(value: float) -> str:
    """A DOUBLE as text."""
    two = f"{value:.1e}"
    return real_text(value, two if float(two) == value else repr(value))


def float_text(value: float) -> str:
    """A FLOAT as text."""
    if not math.isfinite(value):
        return real_text(value, "0")
    two = f"{value:.1e}"
    return real_text(value, two if np.float32(two) == value else str(np.float32(value)))


def decimal_text(value: Decimal) -> str:
    """A decimal as text, without an exponent."""
    return f"{abs(value) if value == 0 else value:f}"


def date_text(days: Any) -> str:
    """A day since 1970 as text."""
    text = str(np.datetime64(int(days), "D"))
    return _with_year(text)


def moment_text(micros: Any) -> str:
    """A time since 1970 as text, of UTC or of no zone, without zeros at its end."""
    text = _with_year(str(np.datetime64(int(micros), "us"))).replace("T", " ")
    whole, _, fraction = text.rpartition(".")
    fraction = fraction.rstrip("0")
    return f"{whole}.{fraction}" if fraction else whole


def _with_year(text: str) -> str:
    """A year after 9999 has a plus sign."""
    year = text[1:].partition("-")[0] if text[0] == "-" else text.partition("-")[0]
    return f"+{text}" if text[0] != "-" and len(year) > 4 else text
