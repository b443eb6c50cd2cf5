"""CAST and the conversions of one number into another, FLOOR and CEIL.

Owns: casts that are exact or raise as Spark's do. Must never: cast a TIMESTAMP where the session's time
zone is not UTC; the binder sees to that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.expression.coercion import (
    BIGINT,
    DATE,
    DOUBLE,
    FLOATS,
    MOMENTS,
    STRING,
    convert,
    is_integer,
    supported,
)
from headwater.expression.functions.arithmetic import checked, overflow
from headwater.expression.nodes import NULL, Bound, BoundCall, BoundConstant
from headwater.expression.operand import Kernel, Value, vector
from headwater.expression.table import called, operation
from headwater.sql.literals import exact_float

_BOUNDS = {pa.int32(): (-(2.0**31), 2.0**31 - 1), pa.int64(): (-(2.0**63), 2.0**63)}
_DAY_US = 86_400_000_000
_EDGE = 2.0**63  # the first DOUBLE that is too large for a BIGINT


def widen(value: Value, type_: pa.DataType) -> Value:
    """A column in a wider type; a BIGINT may lose digits as a DOUBLE, as in Spark."""
    return pc.cast(value, type_, safe=type_ not in FLOATS)


operation("widen", convert, lambda call: lambda value: widen(value, call.type))


def _cast(operand: Bound, to: pa.DataType) -> Bound | None:
    """CAST(operand AS type), where it is exact or raises as Spark does."""
    if operand.type == NULL:
        return BoundConstant(None, to) if supported(to) else None
    if isinstance(operand, BoundConstant):
        operand = replace(operand, digits=None)
        found = _constant_cast(operand, to)
        if found is not None:
            return found
    if operand.type == to:
        return operand
    if is_integer(operand.type):
        return _cast_integer(operand, to)
    if operand.type == pa.float32() and to == DOUBLE:
        return convert(operand, to)
    if operand.type == DOUBLE and to in _BOUNDS:
        return called("cast", (operand,), to)
    if operand.type in MOMENTS and to == DATE:
        return called("cast", (operand,), to)
    return None


def _constant_cast(operand: BoundConstant, to: pa.DataType) -> Bound | None:
    """What sqlglot makes of 1.5D and 1.5F."""
    value = operand.value
    if value is None:
        return None
    if pa.types.is_decimal(operand.type) and to == DOUBLE:
        return BoundConstant(float(value), DOUBLE)
    if to == pa.float32() and (is_integer(operand.type) or pa.types.is_decimal(operand.type)):
        near = exact_float(Decimal(value))
        return None if near is None else BoundConstant(near, to)
    return None


def _cast_integer(operand: Bound, to: pa.DataType) -> Bound | None:
    if to == DOUBLE:
        return convert(operand, to)
    if to == STRING:
        return called("cast", (operand,), to)
    if not is_integer(to):
        return None
    if to.bit_width > operand.type.bit_width:
        return convert(operand, to)
    return called("cast", (operand,), to)


def _cast_kernel(call: BoundCall) -> Kernel:
    given, to = call.arguments[0].type, call.type
    if given == DOUBLE:
        return lambda value: _truncated(value, to)
    if given in MOMENTS:
        return _day
    if to == STRING:
        return lambda value: pc.cast(value, STRING)
    return checked(lambda value: pc.cast(value, to), "CAST", to)


def _cast_raises(call: BoundCall) -> bool:
    return is_integer(call.type)


operation("cast", _cast, _cast_kernel, _cast_raises)


def _truncated(value: pa.Array, type_: pa.DataType) -> pa.Array:
    """DOUBLE to INT or BIGINT: towards zero; NaN and what does not fit raise."""
    numbers, nulls = vector(value)
    low, high = _BOUNDS[type_]
    with np.errstate(invalid="ignore"):
        fits = (np.floor(numbers) <= high) & (np.ceil(numbers) >= low)
    if not fits.all():
        raise overflow("CAST", type_)
    return pa.array(saturated(np.trunc(numbers)), mask=nulls).cast(type_)


def _day(value: pa.Array) -> pa.Array:
    """The day that a moment lies in, of UTC: the binder has seen to it that this is the session's zone."""
    moments, nulls = vector(pc.cast(value, BIGINT))
    return pa.array((moments // _DAY_US).astype(np.int32), DATE, mask=nulls)


def saturated(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Whole DOUBLEs as 64-bit integers as Java does it: NaN is 0, the rest ends at the bounds."""
    inside = (numbers >= -_EDGE) & (numbers < _EDGE)
    whole = np.where(inside, numbers, 0.0).astype(np.int64)
    whole[numbers >= _EDGE] = np.iinfo(np.int64).max
    whole[numbers < -_EDGE] = np.iinfo(np.int64).min
    return whole


def _rounded(name: str, operand: Bound) -> Bound | None:
    """FLOOR or CEIL of an integer, FLOAT or DOUBLE: a BIGINT; NaN becomes 0."""
    if is_integer(operand.type):
        return convert(operand, BIGINT)
    return called(name, (convert(operand, DOUBLE),), BIGINT) if operand.type in FLOATS else None


def _rounded_kernel(towards: Callable[[Any], Any], call: BoundCall) -> Kernel:
    def compute(value: pa.Array) -> pa.Array:
        numbers, nulls = vector(value)
        whole = towards(numbers)
        if ((whole >= _EDGE) | (whole < -_EDGE)).any():
            raise overflow(call.function, call.type)
        return pa.array(saturated(whole), BIGINT, mask=nulls)

    return compute


operation("floor", partial(_rounded, "floor"), partial(_rounded_kernel, np.floor), lambda _: True)
operation("ceil", partial(_rounded, "ceil"), partial(_rounded_kernel, np.ceil), lambda _: True)
