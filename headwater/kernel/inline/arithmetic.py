"""+, -, *, /, %, DIV, unary minus and ABS as Spark's with ANSI on.

Owns: result types (the wider integer; DOUBLE for `/`; Spark's digits for decimals) and the errors:
an integer that does not fit and a divisor of zero raise, under Spark's SQLSTATE, unless the row has
a NULL. Must never: wrap. Decimals whose result would need more than 38 digits are left to Spark,
if decimals beyond six digits must go, and so is `/` and `%` of decimals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import DataError
from headwater.kernel.inline.coercion import (
    DOUBLE,
    FLOATS,
    INTERVAL,
    MOST_DIGITS,
    NULL,
    common_type,
    convert,
    decimal_type,
    is_integer,
    is_number,
)
from headwater.kernel.inline.operand import Operand, Value, apply, spread, vector
from headwater.sql.types import TIMESTAMP, TIMESTAMP_NTZ

_PLAIN = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
_CHECKED = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}

LEAST_SCALE = 6  # decimals that Spark keeps when digits run out


def overflow(operation: str, type_: pa.DataType) -> DataError:
    """What Spark raises for a number that does not fit, under its SQLSTATE."""
    return DataError(
        "number out of range",
        sqlstate="22003",
        detail=f"a result of {operation} does not fit {type_}",
        hint="cast the operands to a wider type",
    )


def divided_by_zero(operation: str) -> DataError:
    """What Spark raises for a divisor of zero, under its SQLSTATE."""
    return DataError(
        "division by zero",
        sqlstate="22012",
        detail=f"the divisor of {operation} is zero",
        hint="use NULLIF(divisor, 0) to get NULL instead",
    )


def checked(kernel: Callable[..., Any], operation: str, type_: pa.DataType) -> Callable[..., Any]:
    """An Arrow kernel whose complaint becomes the error that Spark raises."""

    def call(*values: Value) -> Value:
        try:
            return kernel(*values)
        except pa.ArrowInvalid as error:
            if "zero" in str(error):
                raise divided_by_zero(operation) from error
            raise overflow(operation, type_) from error

    return call


def binary(symbol: str, left: Operand, right: Operand) -> Operand | None:
    """`left + right`, `left - right` or `left * right`."""
    if NULL in (left.type, right.type):
        return None
    if pa.types.is_decimal(left.type) or pa.types.is_decimal(right.type):
        found = _decimal(symbol, left, right)
        if found is not None:
            return found
    type_ = common_type([left, right])
    if type_ is None or not is_number(type_):
        return None
    pair = [convert(left, type_), convert(right, type_)]
    if type_ in FLOATS:
        return apply(type_, pair, _PLAIN[symbol])
    return apply(type_, pair, checked(_CHECKED[symbol], symbol, type_), raises=True)


def elapsed(left: Operand, right: Operand) -> Operand | None:
    """`left - right` of two TIMESTAMPs where the session's zone is UTC, or of two TIMESTAMP_NTZs."""
    if left.type != right.type or left.type not in (TIMESTAMP, TIMESTAMP_NTZ):
        return None
    subtract = checked(pc.subtract_checked, "-", INTERVAL)
    return apply(INTERVAL, [left, right], subtract, raises=True)


def _decimal(symbol: str, left: Operand, right: Operand) -> Operand | None:
    one, other = decimal_type(left), decimal_type(right)
    if one is None or other is None:
        return None
    if symbol == "*":
        digits, scale = one.precision + other.precision + 1, one.scale + other.scale
    else:
        scale = max(one.scale, other.scale)
        digits = max(one.precision - one.scale, other.precision - other.scale) + scale + 1
    pair = [convert(left, one), convert(right, other)]
    if digits > MOST_DIGITS:
        return _capped(symbol, pair, digits, scale)
    return apply(pa.decimal128(digits, scale), pair, _PLAIN[symbol])


def _capped(symbol: str, pair: list[Operand], digits: int, scale: int) -> Operand | None:
    """Decimals that would need more than 38 digits: Spark keeps 38 and raises if they are too few.

    It gives up whole digits first, and decimals beyond six: where those go, rounding is left to it.
    """
    kept = max(MOST_DIGITS - (digits - scale), min(scale, LEAST_SCALE))
    if kept != scale or any(operand.constant for operand in pair):
        return None
    type_, wide = pa.decimal128(MOST_DIGITS, scale), pa.decimal256(MOST_DIGITS, scale)

    def compute(left: Value, right: Value) -> Value:
        both = [
            value.cast(pa.decimal256(value.type.precision, value.type.scale))
            for value in (left, right)
        ]
        return _PLAIN[symbol](*both).cast(wide).cast(type_)

    return apply(type_, pair, checked(compute, symbol, type_), raises=True)


def _numbers(left: Operand, right: Operand) -> pa.DataType | None:
    type_ = None if NULL in (left.type, right.type) else common_type([left, right])
    return type_ if type_ is not None and is_number(type_) else None


def divide(left: Operand, right: Operand) -> Operand | None:
    """`left / right`: DOUBLE for integers, FLOAT and DOUBLE."""
    if _numbers(left, right) is None:
        return None
    pair = [convert(left, DOUBLE), convert(right, DOUBLE)]
    return apply(DOUBLE, pair, checked(pc.divide_checked, "/", DOUBLE), raises=True)


def divide_whole(left: Operand, right: Operand) -> Operand | None:
    """`left DIV right` of integers: BIGINT, truncated."""
    if not (is_integer(left.type) and is_integer(right.type)):
        return None
    type_ = pa.int64()
    pair = [convert(left, type_), convert(right, type_)]
    return apply(type_, pair, checked(pc.divide_checked, "DIV", type_), raises=True)


def remainder(left: Operand, right: Operand) -> Operand | None:
    """`left % right`: the sign is the dividend's."""
    type_ = _numbers(left, right)
    if type_ is None:
        return None
    result = type_

    def divide_values(dividend: Value, divisor: Value) -> Value:
        row_count = 1 if isinstance(dividend, pa.Scalar) else len(dividend)
        row_count = row_count if isinstance(divisor, pa.Scalar) else len(divisor)
        return _remainders(spread(dividend, row_count), spread(divisor, row_count), result)

    return apply(type_, [convert(left, type_), convert(right, type_)], divide_values, raises=True)


def _remainders(dividend: pa.Array, divisor: pa.Array, type_: pa.DataType) -> pa.Array:
    ups, ups_null = vector(dividend)
    downs, downs_null = vector(divisor)
    nulls = ups_null if downs_null is None else downs_null
    if ups_null is not None and downs_null is not None:
        nulls = ups_null | downs_null
    zero = downs == 0 if nulls is None else (downs == 0) & ~nulls
    if zero.any():
        raise divided_by_zero("%")
    with np.errstate(all="ignore"):
        return pa.array(np.fmod(ups, downs), type_, mask=nulls)


def negate(operand: Operand) -> Operand | None:
    """`-operand`."""
    return _one_sided(operand, pc.negate, pc.negate_checked, "-")


def absolute(operand: Operand) -> Operand | None:
    """`abs(operand)`."""
    return _one_sided(operand, pc.abs, pc.abs_checked, "abs")


def _one_sided(
    operand: Operand, plain: Callable[[Any], Any], careful: Callable[[Any], Any], name: str
) -> Operand | None:
    type_ = operand.type
    if is_integer(type_):
        return apply(type_, [operand], checked(careful, name, type_), raises=True)
    if type_ in FLOATS or pa.types.is_decimal(type_):
        return apply(type_, [operand], plain)
    return None
