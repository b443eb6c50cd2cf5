"""+, -, *, /, %, DIV, unary minus and ABS as Spark's with ANSI on; TRY_ADD and its kin.

Owns: result types (the wider integer; DOUBLE for `/`; Spark's digits for decimals) and the errors:
an integer that does not fit and a divisor of zero raise, under Spark's SQLSTATE, unless the row has
a NULL. Must never: wrap. Sums and products of decimals that would need more than 38 digits are left to Spark,
if decimals beyond six digits must go, and so is `%` of decimals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Context, Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import DataError
from headwater.expression.coercion import (
    DOUBLE,
    MOMENTS,
    MOST_DIGITS,
    common_type,
    convert,
    decimal_type,
    is_integer,
    is_number,
)
from headwater.expression.nodes import INTERVAL, NULL, Bound, BoundCall, BoundConstant
from headwater.expression.operand import Kernel, Value, spread_all, vector
from headwater.expression.signature import by_row, tried
from headwater.expression.table import OPERATIONS, MakeKernel, always, called, operation

_PLAIN = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
_CHECKED = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_CHAINS = {"+": ("+", "-"), "-": ("+", "-"), "*": ("*",)}

LEAST_SCALE = 6  # decimals that Spark keeps when digits run out
MOST_WIDE_DIGITS = 76  # that Arrow computes with
FIRST_SCALE = 38  # decimals that Spark divides to, before it rounds to those of the result
_EXACT = Context(prec=200)


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


def checked(kernel: Kernel, operation: str, type_: pa.DataType) -> Kernel:
    """An Arrow kernel whose complaint becomes the error that Spark raises."""

    def compute(*values: Value) -> Value:
        try:
            return kernel(*values)
        except pa.ArrowInvalid as error:
            if "zero" in str(error):
                raise divided_by_zero(operation) from error
            raise overflow(operation, type_) from error

    return compute


def _binary(symbol: str, left: Bound, right: Bound) -> Bound | None:
    """`left + right`, `left - right` or `left * right`."""
    if NULL in (left.type, right.type):
        return None
    if symbol == "-" and left.type == right.type and left.type in MOMENTS:
        return called("-", (left, right), INTERVAL)  # a TIMESTAMP where the session's zone is UTC
    if pa.types.is_decimal(left.type) or pa.types.is_decimal(right.type):
        found = _decimal(symbol, left, right)
        if found is not None:
            return found
    type_ = common_type([left, right])
    if type_ is None or not is_number(type_):
        return None
    found = called(symbol, (convert(left, type_), convert(right, type_)), type_)
    # Spark puts the constants of a chain together first, which changes what overflows
    return None if is_integer(type_) and _several_constants(found) else found


def _several_constants(found: BoundCall) -> bool:
    kinds, sides = _CHAINS[found.function], found.arguments
    if all(isinstance(side, BoundConstant) for side in sides):
        return False
    return sum(_constants(side, kinds) for side in sides) > 1


def _constants(node: Bound, kinds: tuple[str, ...]) -> int:
    """How many constants a chain of sums, or of products, has."""
    while isinstance(node, BoundCall) and node.function in ("widen", "cast"):
        node = node.arguments[0]
    if isinstance(node, BoundCall):
        within = node.function.removeprefix("try ") in kinds
        return sum(_constants(part, kinds) for part in node.arguments) if within else 0
    return int(isinstance(node, BoundConstant))


def _decimal(symbol: str, left: Bound, right: Bound) -> BoundCall | None:
    one, other = decimal_type(left), decimal_type(right)
    if one is None or other is None:
        return None
    if symbol == "*":
        digits, scale = one.precision + other.precision + 1, one.scale + other.scale
    else:
        scale = max(one.scale, other.scale)
        digits = max(one.precision - one.scale, other.precision - other.scale) + scale + 1
    pair = (convert(left, one), convert(right, other))
    if digits <= MOST_DIGITS:
        return called(symbol, pair, pa.decimal128(digits, scale))
    # Spark gives up whole digits first, and decimals beyond six: where those go, rounding is left to it.
    if _bounded(digits, scale).scale != scale or digits > MOST_WIDE_DIGITS:
        return None
    return called(symbol, pair, pa.decimal128(MOST_DIGITS, scale), "capped")


def _bounded(digits: int, scale: int) -> pa.DataType:
    """The decimal that Spark makes of one that would have so many digits."""
    if digits <= MOST_DIGITS:
        return pa.decimal128(digits, scale)
    kept = max(MOST_DIGITS - (digits - scale), min(scale, LEAST_SCALE))
    return pa.decimal128(MOST_DIGITS, kept)


def _binary_kernel(call: BoundCall) -> Kernel:
    symbol, type_ = call.function, call.type
    if type_ == INTERVAL:
        return checked(pc.subtract_checked, "-", type_)
    if "capped" in call.parameters:
        return checked(partial(_capped, symbol, type_), symbol, type_)
    return checked(_CHECKED[symbol], symbol, type_) if _may_overflow(call) else _PLAIN[symbol]


def _may_overflow(call: BoundCall) -> bool:
    type_ = call.type
    return is_integer(type_) or type_ == INTERVAL or "capped" in call.parameters


def _capped(symbol: str, type_: pa.DataType, left: Value, right: Value) -> Value:
    """Decimals that would need more than 38 digits: Spark keeps 38 and raises if they are too few."""
    wide = [
        value.cast(pa.decimal256(value.type.precision, value.type.scale)) for value in (left, right)
    ]
    return _PLAIN[symbol](*wide).cast(pa.decimal256(MOST_DIGITS, type_.scale)).cast(type_)


for _symbol in _PLAIN:
    operation(_symbol, partial(_binary, _symbol), _binary_kernel, _may_overflow)


def _numbers(left: Bound, right: Bound) -> pa.DataType | None:
    type_ = None if NULL in (left.type, right.type) else common_type([left, right])
    return type_ if type_ is not None and is_number(type_) else None


def _divide(left: Bound, right: Bound) -> Bound | None:
    """`left / right`: DOUBLE for integers, FLOAT and DOUBLE; a decimal where one is there."""
    if pa.types.is_decimal(left.type) or pa.types.is_decimal(right.type):
        return _divide_decimals(left, right)
    if _numbers(left, right) is None:
        return None
    return called("/", (convert(left, DOUBLE), convert(right, DOUBLE)), DOUBLE)


def _divide_decimals(left: Bound, right: Bound) -> Bound | None:
    one, other = decimal_type(left), decimal_type(right)
    if one is None or other is None:
        return None
    scale = max(LEAST_SCALE, one.scale + other.precision + 1)
    type_ = _bounded(one.precision - one.scale + other.scale + scale, scale)
    return called("/", (convert(left, one), convert(right, other)), type_)


def _divide_kernel(call: BoundCall) -> Kernel:
    if not pa.types.is_decimal(call.type):
        return checked(pc.divide_checked, "/", call.type)
    return by_row(partial(_quotient, call))(call)


def _quotient(call: BoundCall, left: Decimal, right: Decimal) -> Decimal:
    """Rounded half up twice, as Spark does: to its most decimals, then to those of the type."""
    ups, downs = (argument.type.scale for argument in call.arguments)
    numerator, divisor = int(_EXACT.scaleb(left, ups)), int(_EXACT.scaleb(right, downs))
    if divisor == 0:
        raise divided_by_zero("/")
    first = _half_up(numerator * 10 ** (FIRST_SCALE + downs - ups), divisor)
    found = _half_up(first, 10 ** (FIRST_SCALE - call.type.scale))
    if abs(found) >= 10**call.type.precision:
        raise overflow("/", call.type)
    return _EXACT.scaleb(Decimal(found), -call.type.scale)


def _half_up(numerator: int, divisor: int) -> int:
    whole, rest = divmod(abs(numerator), abs(divisor))
    whole += 2 * rest >= abs(divisor)
    return whole if (numerator < 0) == (divisor < 0) else -whole


operation("/", _divide, _divide_kernel, always)


def _divide_whole(left: Bound, right: Bound) -> Bound | None:
    """`left DIV right` of integers: BIGINT, truncated."""
    if not (is_integer(left.type) and is_integer(right.type)):
        return None
    type_ = pa.int64()
    return called("div", (convert(left, type_), convert(right, type_)), type_)


operation("div", _divide_whole, lambda call: checked(pc.divide_checked, "DIV", call.type), always)


def _remainder(left: Bound, right: Bound) -> Bound | None:
    """`left % right`: the sign is the dividend's."""
    type_ = _numbers(left, right)
    if type_ is None:
        return None
    return called("%", (convert(left, type_), convert(right, type_)), type_)


def _remainders(type_: pa.DataType, *values: Value) -> pa.Array:
    dividend, divisor = spread_all(values)
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


def _remainder_kernel(call: BoundCall) -> Kernel:
    return partial(_remainders, call.type)


operation("%", _remainder, _remainder_kernel, always)


def _attempt(symbol: str) -> None:
    """TRY_ADD and its kin: the same operation, NULL where it would raise."""
    known = OPERATIONS[symbol]

    def type_rule(left: Bound, right: Bound) -> Bound | None:
        found = known.type_rule(left, right)
        if not isinstance(found, BoundCall) or found.type == INTERVAL:
            return None
        return replace(found, function=f"try {symbol}")

    def kernel(call: BoundCall) -> Kernel:
        return tried(KERNELS[symbol](replace(call, function=symbol)), call.type)

    operation(f"try {symbol}", type_rule, kernel)


KERNELS: dict[str, MakeKernel] = {
    **dict.fromkeys(_PLAIN, _binary_kernel),
    "/": _divide_kernel,
    "%": _remainder_kernel,
}
for _symbol in KERNELS:
    _attempt(_symbol)


def _one_sided(name: str, operand: Bound) -> Bound | None:
    """`-operand` or `abs(operand)`: the same type."""
    type_ = operand.type
    fine = is_number(type_) or pa.types.is_decimal(type_)
    return called(name, (operand,), type_) if fine else None


def _of_integers(call: BoundCall) -> bool:
    return is_integer(call.type)


def _one_sided_kernel(
    plain: Callable[[Any], Any], careful: Callable[[Any], Any], call: BoundCall
) -> Kernel:
    return checked(careful, call.function, call.type) if _of_integers(call) else plain


operation(
    "negative",
    partial(_one_sided, "negative"),
    partial(_one_sided_kernel, pc.negate, pc.negate_checked),
    _of_integers,
)
operation(
    "abs",
    partial(_one_sided, "abs"),
    partial(_one_sided_kernel, pc.abs, pc.abs_checked),
    _of_integers,
)
