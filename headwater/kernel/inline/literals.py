"""Literals and their types as Spark reads them.

Owns: 5 is an INT, 5000000000 a BIGINT, 1.50 a DECIMAL(3,2), 1e3 a DOUBLE; DATE and TIMESTAMP
literals in full ISO form; intervals of one unit from days down to seconds. Must never: guess. A date
or time written any other way (with a zone, shortened, with more than six decimals) is left to Spark.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.kernel.inline.coercion import DOUBLE, INTERVAL, MOST_DIGITS, STRING
from headwater.kernel.inline.operand import Operand, literal
from headwater.sql.types import TIMESTAMP, TIMESTAMP_NTZ

_INTEGER = re.compile(r"[0-9]+")
_DECIMAL = re.compile(r"[0-9]+\.[0-9]*|\.[0-9]+")
_DOUBLE = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+")
_SIGNED = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_SECONDS = re.compile(r"([0-9]{1,9})(?:\.([0-9]{1,6}))?")
_WHOLE = re.compile(r"[0-9]{1,6}")
_TIME = re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{1,6})?)?", re.ASCII)
_UNITS_US = {"DAY": 86_400_000_000, "HOUR": 3_600_000_000, "MINUTE": 60_000_000}


def number(text: str, negative: bool = False) -> Operand | None:
    """A numeric literal without a suffix; its minus sign belongs to it."""
    sign = "-" if negative else ""
    if _INTEGER.fullmatch(text):
        return _integer(int(sign + text))
    if _DECIMAL.fullmatch(text):
        return _decimal(Decimal(sign + text))
    if _DOUBLE.fullmatch(text):
        value = float(sign + text)
        return literal(value, DOUBLE) if math.isfinite(value) else None
    return None


def _integer(value: int) -> Operand | None:
    digits = len(str(abs(value)))
    if -(2**31) <= value < 2**31:
        return literal(value, pa.int32(), digits)
    if -(2**63) <= value < 2**63:
        return literal(value, pa.int64(), digits)
    return _decimal(Decimal(value))


def _decimal(value: Decimal) -> Operand | None:
    _, digits, exponent = value.as_tuple()
    scale = -int(exponent)
    precision = max(len(digits), scale)
    if precision > MOST_DIGITS:
        return None
    return literal(value, pa.decimal128(precision, scale))


def text(value: str) -> Operand:
    """A string literal."""
    return literal(value, STRING)


def typed_text(value: str, type_: pa.DataType) -> Operand | None:
    """DATE '…', TIMESTAMP '…', TIMESTAMP_NTZ '…' and 1.5BD, which sqlglot reads as casts of text."""
    found: Any = None
    try:
        if type_ == pa.date32() and _DATE.fullmatch(value):
            found = date.fromisoformat(value)
        elif type_ in (TIMESTAMP, TIMESTAMP_NTZ) and _TIME.fullmatch(value):
            moment = datetime.fromisoformat(value)
            found = moment if type_ == TIMESTAMP_NTZ else moment.replace(tzinfo=UTC)
        elif pa.types.is_decimal(type_) and _SIGNED.fullmatch(value):
            found = pa.scalar(Decimal(value), type_).as_py()
    except (ValueError, pa.ArrowInvalid):
        return None
    return None if found is None else literal(found, type_)


def interval(value: str, unit: str) -> Operand | None:
    """INTERVAL '0.2' SECOND and the like; only seconds have a fraction."""
    unit = unit.upper().removesuffix("S")
    seconds = _SECONDS.fullmatch(value)
    if unit == "SECOND" and seconds is not None:
        fraction = (seconds[2] or "").ljust(6, "0")
        return literal(int(seconds[1]) * 1_000_000 + int(fraction), INTERVAL)
    if unit in _UNITS_US and _WHOLE.fullmatch(value):
        return literal(int(value) * _UNITS_US[unit], INTERVAL)
    return None


def exact_float(value: Decimal | float) -> float | None:
    """The constant as a FLOAT if it is one exactly."""
    near = float(np.float32(value))
    return near if math.isfinite(near) and Decimal(near) == Decimal(value) else None
