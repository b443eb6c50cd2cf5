"""CAST and the conversions of one number into another, FLOOR and CEIL.

Owns: casts that are exact or raise as Spark's do, one table of (from, to). Must never: cast a TIMESTAMP where
the session's time zone is not UTC; the binder sees to that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.expression.coercion import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOATS,
    INT,
    MOMENTS,
    STRING,
    convert,
    is_integer,
    supported,
)
from headwater.expression.functions import reading
from headwater.expression.functions.arithmetic import checked, overflow
from headwater.expression.functions.times import DAY_US, dates, moments, numbers
from headwater.expression.nodes import NULL, Bound, BoundCall, BoundConstant
from headwater.expression.operand import Kernel, Value, vector
from headwater.expression.signature import by_row, tried
from headwater.expression.table import MakeKernel, always, called, never, operation

FLOAT = pa.float32()
_EDGE = 2.0**63  # the first DOUBLE that is too large for a BIGINT


def widen(value: Value, type_: pa.DataType) -> Value:
    """A column in a wider type; a BIGINT may lose digits as a DOUBLE, as in Spark."""
    return pc.cast(value, type_, safe=type_ not in FLOATS)


operation("widen", convert, lambda call: lambda value: widen(value, call.type))


@dataclass(frozen=True)
class _Step:
    """How one kind of type becomes another."""

    kernel: MakeKernel
    raises: Callable[[BoundCall], bool] = never


def _cast(operand: Bound, to: pa.DataType) -> Bound | None:
    """CAST(operand AS type), where it is exact or raises as Spark does."""
    if operand.type == NULL:
        return BoundConstant(None, to) if supported(to) else None
    if isinstance(operand, BoundConstant):
        operand = replace(operand, digits=None)
    if operand.type == to:
        return operand
    if _is_widening(operand.type, to):
        return convert(operand, to)
    known = (_kind(operand.type), _kind(to)) in _STEPS
    return called("cast", (operand,), to) if known else None


def _is_widening(given: pa.DataType, to: pa.DataType) -> bool:
    if is_integer(given):
        return to == DOUBLE or (is_integer(to) and bool(to.bit_width > given.bit_width))
    return given == FLOAT and to == DOUBLE


def _kind(type_: pa.DataType) -> str:
    if is_integer(type_):
        return "integer"
    if pa.types.is_decimal(type_):
        return "decimal"
    if type_ in MOMENTS:
        return "moment"
    return str(type_)


def _narrowed(call: BoundCall) -> Kernel:
    to = call.type
    return checked(lambda value: pc.cast(value, to), "CAST", to)


def _truncated(call: BoundCall) -> Kernel:
    """FLOAT and DOUBLE to an integer: towards zero; NaN and what does not fit raise."""
    to = call.type
    limit = 2.0 ** (to.bit_width - 1)
    high = limit if to == BIGINT else limit - 1  # 2^63 - 1 is no DOUBLE

    def compute(value: pa.Array) -> pa.Array:
        given, nulls = vector(value)
        reals = given.astype(np.float64)  # the bounds of an INT are no FLOATs
        with np.errstate(invalid="ignore"):
            fits = (np.floor(reals) <= high) & (np.ceil(reals) >= -limit)
        if not fits.all():
            raise overflow("CAST", to)
        return pa.array(saturated(np.trunc(reals)), mask=nulls).cast(to)

    return compute


def saturated(whole_numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Whole DOUBLEs as 64-bit integers as Java does it: NaN is 0, the rest ends at the bounds."""
    inside = (whole_numbers >= -_EDGE) & (whole_numbers < _EDGE)
    whole = np.where(inside, whole_numbers, 0.0).astype(np.int64)
    whole[whole_numbers >= _EDGE] = np.iinfo(np.int64).max
    whole[whole_numbers < -_EDGE] = np.iinfo(np.int64).min
    return whole


def _as_float(_: BoundCall) -> Kernel:
    """To the nearest FLOAT."""

    def compute(value: pa.Array) -> pa.Array:
        exact, nulls = vector(value)
        with np.errstate(over="ignore"):
            return pa.array(exact.astype(np.float32), FLOAT, mask=nulls)

    return compute


def _from_decimal(call: BoundCall) -> Kernel:
    to = call.type
    if to == STRING:
        return by_row(reading.decimal_text)(call)
    if to == DOUBLE:
        return by_row(float)(call)
    limit = 1 << (to.bit_width - 1)

    def whole(value: Decimal) -> int:
        found = int(value)
        if not -limit <= found < limit:
            raise overflow("CAST", to)
        return found

    return by_row(whole)(call)


def _to_decimal(call: BoundCall) -> Kernel:
    to, given = call.type, call.arguments[0].type
    if given == STRING:
        return by_row(lambda text: reading.decimal(text, to))(call)
    if given not in FLOATS:
        return by_row(lambda value: reading.fitted(Decimal(value), to))(call)

    def fitted(value: float) -> Decimal:
        if not np.isfinite(value):
            raise overflow("CAST", to)
        return reading.fitted(Decimal(repr(value)), to)

    return by_row(fitted)(call)


def _from_text(call: BoundCall) -> Kernel:
    to = call.type
    if to == BOOLEAN:
        return by_row(reading.truth)(call)
    if to == DOUBLE:
        return by_row(reading.real)(call)
    return by_row(lambda text: reading.integer(text, to.bit_width))(call)


def _days_of_text(_: BoundCall) -> Kernel:
    def compute(value: pa.Array) -> pa.Array:
        texts = value.to_pylist()
        days = [None if text is None else reading.day(text) for text in texts]
        return pa.array(days, INT).cast(DATE)

    return compute


def _real_text(call: BoundCall) -> Kernel:
    single = call.arguments[0].type == FLOAT
    return by_row(reading.float_text if single else reading.double_text)(call)


def _time_text(write: Callable[[Any], str]) -> MakeKernel:
    def make(_: BoundCall) -> Kernel:
        def compute(value: pa.Array) -> pa.Array:
            whole, nulls = numbers(value)
            texts = [write(number) for number in whole]
            return pa.array(texts, STRING, mask=nulls)

        return compute

    return make


def _day_of(_: BoundCall) -> Kernel:
    """The day that a moment lies in, of UTC: the binder has seen to it that this is the session's zone."""

    def compute(value: pa.Array) -> pa.Array:
        micros, nulls = numbers(value)
        return dates(micros // DAY_US, nulls)

    return compute


def _midnight(call: BoundCall) -> Kernel:
    def compute(value: pa.Array) -> pa.Array:
        days, nulls = numbers(value)
        return moments(days * DAY_US, nulls, call.type)

    return compute


def _same_moment(call: BoundCall) -> Kernel:
    return lambda value: pc.cast(pc.cast(value, BIGINT), call.type)


def _plain(call: BoundCall) -> Kernel:
    return lambda value: pc.cast(value, call.type)


def _not_zero(_: BoundCall) -> Kernel:
    return lambda value: pc.not_equal(value, pa.scalar(0, value.type))


_STEPS: dict[tuple[str, str], _Step] = {
    ("integer", "integer"): _Step(_narrowed, always),
    ("integer", "float"): _Step(_as_float),
    ("integer", "string"): _Step(_plain),
    ("integer", "bool"): _Step(_not_zero),
    ("integer", "decimal"): _Step(_to_decimal, always),
    ("float", "integer"): _Step(_truncated, always),
    ("float", "string"): _Step(_real_text),
    ("float", "bool"): _Step(_not_zero),
    ("double", "integer"): _Step(_truncated, always),
    ("double", "float"): _Step(_as_float),
    ("double", "string"): _Step(_real_text),
    ("double", "bool"): _Step(_not_zero),
    ("double", "decimal"): _Step(_to_decimal, always),
    ("decimal", "integer"): _Step(_from_decimal, always),
    ("decimal", "double"): _Step(_from_decimal),
    ("decimal", "string"): _Step(_from_decimal),
    ("decimal", "decimal"): _Step(_to_decimal, always),
    ("bool", "integer"): _Step(_plain),
    ("bool", "string"): _Step(_plain),
    ("string", "integer"): _Step(_from_text, always),
    ("string", "double"): _Step(_from_text, always),
    ("string", "bool"): _Step(_from_text, always),
    ("string", "decimal"): _Step(_to_decimal, always),
    ("string", str(DATE)): _Step(_days_of_text, always),
    (str(DATE), "string"): _Step(_time_text(reading.date_text)),
    (str(DATE), "moment"): _Step(_midnight),
    ("moment", "string"): _Step(_time_text(reading.moment_text)),
    ("moment", str(DATE)): _Step(_day_of),
    ("moment", "moment"): _Step(_same_moment),
}


def _step(call: BoundCall) -> _Step:
    return _STEPS[_kind(call.arguments[0].type), _kind(call.type)]


operation(
    "cast", _cast, lambda call: _step(call).kernel(call), lambda call: _step(call).raises(call)
)


def _try_cast(operand: Bound, to: pa.DataType) -> Bound | None:
    """TRY_CAST: the same, NULL where it would raise."""
    found = _cast(operand, to)
    if isinstance(found, BoundCall) and found.function == "cast" and _step(found).raises(found):
        return replace(found, function="try_cast")
    return found


operation("try_cast", _try_cast, lambda call: tried(_step(call).kernel(call), call.type))


def _rounded(name: str, operand: Bound) -> Bound | None:
    """FLOOR or CEIL of an integer, FLOAT or DOUBLE: a BIGINT; NaN becomes 0."""
    if is_integer(operand.type):
        return convert(operand, BIGINT)
    return called(name, (convert(operand, DOUBLE),), BIGINT) if operand.type in FLOATS else None


def _rounded_kernel(towards: Callable[[Any], Any], call: BoundCall) -> Kernel:
    def compute(value: pa.Array) -> pa.Array:
        reals, nulls = vector(value)
        whole = towards(reals)
        if ((whole >= _EDGE) | (whole < -_EDGE)).any():
            raise overflow(call.function, call.type)
        return pa.array(saturated(whole), BIGINT, mask=nulls)

    return compute


operation("floor", partial(_rounded, "floor"), partial(_rounded_kernel, np.floor), always)
operation("ceil", partial(_rounded, "ceil"), partial(_rounded_kernel, np.ceil), always)
