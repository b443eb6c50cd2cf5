"""ROUND, SQRT, SIGN, PMOD, squares, EXP and logarithms, bits and what NaN is asked for.

Owns: functions of numbers whose results are exact, or rounded as IEEE says. Must never: call the C library's
EXP, LN, POWER or the like: Spark's are those of Java's own library, which rounds otherwise (`fdlibm`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.expression.coercion import (
    BOOLEAN,
    DOUBLE,
    FLOATS,
    INT,
    MOST_DIGITS,
    common_type,
    convert,
    is_integer,
    is_number,
)
from headwater.expression.functions import fdlibm
from headwater.expression.functions.arithmetic import divided_by_zero
from headwater.expression.functions.reading import EXACT
from headwater.expression.nodes import NULL, Bound, BoundCall
from headwater.expression.operand import Kernel, Value, spread_all, vector
from headwater.expression.signature import by_row, constant
from headwater.expression.table import always, called, operation

_MODES = {"round": ROUND_HALF_UP, "bround": ROUND_HALF_EVEN}
MOST_PLACES = 30


def _as_double(name: str, operand: Bound) -> Bound | None:
    return called(name, (convert(operand, DOUBLE),), DOUBLE) if is_number(operand.type) else None


def _numeric(compute: Callable[[Any], Any], _: BoundCall) -> Kernel:
    def kernel(value: pa.Array) -> pa.Array:
        numbers, nulls = vector(value)
        with np.errstate(all="ignore"):
            return pa.array(compute(numbers), DOUBLE, mask=nulls)

    return kernel


def _sign(numbers: Any) -> Any:
    return np.where((numbers == 0) | np.isnan(numbers), numbers, np.copysign(1.0, numbers))


operation("sqrt", partial(_as_double, "sqrt"), partial(_numeric, np.sqrt))
operation("sign", partial(_as_double, "sign"), partial(_numeric, _sign))
operation("exp", partial(_as_double, "exp"), partial(_numeric, fdlibm.exp))


def _logarithm(compute: Callable[..., Any], _: BoundCall) -> Kernel:
    """Of what is not larger than 0: NULL."""

    def kernel(*values: Value) -> pa.Array:
        columns = spread_all(values)
        numbers = [vector(column)[0] for column in columns]
        absent = [column.is_null().to_numpy(zero_copy_only=False) for column in columns]
        with np.errstate(all="ignore"):
            nulls = np.logical_or.reduce([*absent, *(number <= 0 for number in numbers)])
            return pa.array(compute(*numbers), DOUBLE, mask=nulls)

    return kernel


def _log_of_base(base: Bound, operand: Bound) -> Bound | None:
    if not is_number(base.type) or not is_number(operand.type):
        return None
    return called("log", (convert(base, DOUBLE), convert(operand, DOUBLE)), DOUBLE)


def _quotient(base: Any, numbers: Any) -> Any:
    return fdlibm.log(numbers) / fdlibm.log(base)


def _binary(numbers: Any) -> Any:
    return _quotient(np.array([2.0]), numbers)


for _name, _compute in {"ln": fdlibm.log, "log10": fdlibm.log10, "log2": _binary}.items():
    operation(_name, partial(_as_double, _name), partial(_logarithm, _compute))
operation("log", _log_of_base, partial(_logarithm, _quotient))


def _square(operand: Bound, power: Bound) -> Bound | None:
    """POWER(x, 2), which Java computes as x * x."""
    two = is_number(power.type) and constant(power) == 2
    return (
        called("square", (convert(operand, DOUBLE),), DOUBLE)
        if two and is_number(operand.type)
        else None
    )


operation("square", _square, partial(_numeric, np.square))


def _round(name: str, operand: Bound, *places: Bound) -> Bound | None:
    """ROUND and BROUND to a constant number of decimals: the same type, but for decimals."""
    decimals = 0 if not places else constant(places[0]) if places[0].type == INT else None
    if decimals is None or not 0 <= decimals <= MOST_PLACES:
        return None
    type_ = operand.type
    if is_integer(type_):
        return operand
    if type_ == DOUBLE:
        return called(name, (operand,), type_, decimals)
    if not pa.types.is_decimal(type_):
        return None
    scale = min(decimals, type_.scale)
    digits = type_.precision - type_.scale + scale + 1
    return called(name, (operand,), pa.decimal128(min(digits, MOST_DIGITS), scale), decimals)


def _round_kernel(call: BoundCall) -> Kernel:
    (decimals,), mode = call.parameters, _MODES[call.function]
    assert isinstance(decimals, int)
    if call.type == DOUBLE:
        return by_row(partial(rounded, decimals=decimals, mode=mode))(call)
    unit = Decimal(1).scaleb(-call.type.scale)
    return by_row(lambda value: value.quantize(unit, mode, EXACT))(call)


def rounded(value: float, decimals: int, mode: str) -> float:
    """The number that is written shortest, rounded as a decimal."""
    if not math.isfinite(value):
        return value
    exact = Decimal(repr(value))
    exponent = exact.as_tuple().exponent
    if isinstance(exponent, int) and exponent >= -decimals:
        return value + 0.0  # a decimal has no -0.0
    return float(exact.quantize(Decimal(1).scaleb(-decimals), mode, EXACT)) + 0.0


operation("round", partial(_round, "round"), _round_kernel)
operation("bround", partial(_round, "bround"), _round_kernel)


def _modulus(left: Bound, right: Bound) -> Bound | None:
    """PMOD: the remainder that has the divisor's sign, for integers."""
    type_ = None if NULL in (left.type, right.type) else common_type([left, right])
    if type_ is None or not is_integer(type_):
        return None
    return called("pmod", (convert(left, type_), convert(right, type_)), type_)


def _moduli(type_: pa.DataType, *values: Value) -> pa.Array:
    dividend, divisor = spread_all(values)
    valid = pc.and_(pc.is_valid(dividend), pc.is_valid(divisor)).to_numpy(zero_copy_only=False)
    ups, downs = vector(dividend)[0], vector(divisor)[0]
    if ((downs == 0) & valid).any():
        raise divided_by_zero("pmod")
    wide = np.promote_types(downs.dtype, np.int32)  # Java adds small integers as INTs
    safe = np.where(downs == 0, 1, downs).astype(wide)
    with np.errstate(all="ignore"):
        rest = np.fmod(ups.astype(wide), safe)
        found = np.where(rest < 0, np.fmod(rest + safe, safe), rest)
    return pa.array(found.astype(downs.dtype), type_, mask=~valid)


operation("pmod", _modulus, lambda call: partial(_moduli, call.type), always)


def _is_nan(operand: Bound) -> Bound | None:
    """ISNAN: never unknown."""
    return called("isnan", (operand,), BOOLEAN) if operand.type in FLOATS else None


operation("isnan", _is_nan, lambda _: lambda value: pc.fill_null(pc.is_nan(value), False))

_BITS = {"&": pc.bit_wise_and, "|": pc.bit_wise_or, "^": pc.bit_wise_xor}


def _bitwise(name: str, left: Bound, right: Bound) -> Bound | None:
    type_ = None if NULL in (left.type, right.type) else common_type([left, right])
    if type_ is None or not is_integer(type_):
        return None
    return called(name, (convert(left, type_), convert(right, type_)), type_)


def _itself(kernel: Kernel, _: BoundCall) -> Kernel:
    return kernel


for _name, _bit in _BITS.items():
    operation(_name, partial(_bitwise, _name), partial(_itself, _bit))


def _inverted(operand: Bound) -> Bound | None:
    return called("~", (operand,), operand.type) if is_integer(operand.type) else None


operation("~", _inverted, lambda _: pc.bit_wise_not)
