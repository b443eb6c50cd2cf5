"""Casts and functions: numbers to whole numbers, text by code points, fields of dates.

Owns: CAST, FLOOR, CEIL, LENGTH, CONCAT, SUBSTRING, LIKE, YEAR to SECOND, WEEKOFYEAR. Must never: read a field
of a TIMESTAMP, which depends on the session's time zone, or change the case of text, where Unicode
versions differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.kernel.inline import literals
from headwater.kernel.inline.arithmetic import checked, overflow
from headwater.kernel.inline.coercion import (
    BOOLEAN,
    DOUBLE,
    FLOATS,
    NULL,
    STRING,
    convert,
    is_integer,
    supported,
)
from headwater.kernel.inline.operand import Operand, Value, apply, literal, value_of, vector
from headwater.sql.types import TIMESTAMP, TIMESTAMP_NTZ

_BOUNDS = {pa.int32(): (-(2.0**31), 2.0**31 - 1), pa.int64(): (-(2.0**63), 2.0**63)}
_DAY_US = 86_400_000_000
_EDGE = 2.0**63  # the first DOUBLE that is too large for a BIGINT
_DATE_FIELDS: dict[str, Callable[[Any], Any]] = {
    "year": pc.year,
    "month": pc.month,
    "day": pc.day,
    "week": pc.iso_week,
}
_TIME_FIELDS: dict[str, Callable[[Any], Any]] = {
    "hour": pc.hour,
    "minute": pc.minute,
    "second": pc.second,
}


def cast(operand: Operand, type_: pa.DataType) -> Operand | None:
    """CAST(operand AS type), where it is exact or raises as Spark does."""
    if operand.type == NULL:
        return literal(None, type_) if supported(type_) else None
    if operand.constant:
        found = _constant_cast(operand, type_)
        if found is not None:
            return found
    if operand.type == type_:
        return replace(operand, digits=None)
    if is_integer(operand.type):
        return _cast_integer(operand, type_)
    if operand.type == pa.float32() and type_ == DOUBLE:
        return convert(operand, type_)
    if operand.type == DOUBLE and type_ in _BOUNDS:
        return apply(type_, [operand], lambda value: _truncated(value, type_), raises=True)
    if operand.type in (TIMESTAMP, TIMESTAMP_NTZ) and type_ == pa.date32():
        return apply(type_, [operand], _day)
    return None


def _constant_cast(operand: Operand, type_: pa.DataType) -> Operand | None:
    """What sqlglot makes of DATE '…', 1.5D, 1.5F and 1.5BD."""
    value = value_of(operand)
    if value is None:
        return None
    if operand.type == STRING and type_ != STRING:
        return literals.typed_text(value, type_)
    if pa.types.is_decimal(operand.type) and type_ == DOUBLE:
        return literal(float(value), DOUBLE)
    if type_ == pa.float32() and (is_integer(operand.type) or pa.types.is_decimal(operand.type)):
        near = literals.exact_float(value)
        return None if near is None else literal(near, type_)
    return None


def _cast_integer(operand: Operand, type_: pa.DataType) -> Operand | None:
    if type_ == DOUBLE:
        return convert(replace(operand, digits=None), type_)
    if type_ == STRING:
        return apply(STRING, [operand], lambda value: pc.cast(value, STRING))
    if not is_integer(type_):
        return None
    if type_.bit_width > operand.type.bit_width:
        return convert(replace(operand, digits=None), type_)
    narrow = checked(lambda value: pc.cast(value, type_), "CAST", type_)
    return apply(type_, [operand], narrow, raises=True)


def _truncated(value: pa.Array, type_: pa.DataType) -> pa.Array:
    """DOUBLE to INT or BIGINT: towards zero; NaN and what does not fit raise."""
    numbers, nulls = vector(value)
    low, high = _BOUNDS[type_]
    with np.errstate(invalid="ignore"):
        fits = (np.floor(numbers) <= high) & (np.ceil(numbers) >= low)
    if not fits.all():
        raise overflow("CAST", type_)
    return pa.array(_saturated(np.trunc(numbers)), mask=nulls).cast(type_)


def _day(value: pa.Array) -> pa.Array:
    """The day that a moment lies in, of UTC: the caller has seen to it that this is the session's zone."""
    moments, nulls = vector(pc.cast(value, pa.int64()))
    return pa.array((moments // _DAY_US).astype(np.int32), pa.date32(), mask=nulls)


def _saturated(numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Whole DOUBLEs as 64-bit integers as Java does it: NaN is 0, the rest ends at the bounds."""
    inside = (numbers >= -_EDGE) & (numbers < _EDGE)
    whole = np.where(inside, numbers, 0.0).astype(np.int64)
    whole[numbers >= _EDGE] = np.iinfo(np.int64).max
    whole[numbers < -_EDGE] = np.iinfo(np.int64).min
    return whole


def rounded(operand: Operand, towards: Callable[[Any], Any], name: str) -> Operand | None:
    """FLOOR or CEIL of an integer, FLOAT or DOUBLE: a BIGINT; NaN becomes 0."""
    type_ = pa.int64()
    if is_integer(operand.type):
        return convert(replace(operand, digits=None), type_)
    if operand.type not in FLOATS:
        return None

    def evaluate(value: pa.Array) -> pa.Array:
        numbers, nulls = vector(value)
        whole = towards(numbers)
        if ((whole >= _EDGE) | (whole < -_EDGE)).any():
            raise overflow(name, type_)
        return pa.array(_saturated(whole), type_, mask=nulls)

    return apply(type_, [convert(operand, DOUBLE)], evaluate, raises=True)


def length(operand: Operand) -> Operand | None:
    """How many code points a text has."""
    if operand.type != STRING:
        return None
    return apply(pa.int32(), [operand], pc.utf8_length)


def concatenation(operands: Sequence[Operand]) -> Operand | None:
    """`a || b` and CONCAT: NULL if any part is."""
    if not operands or any(operand.type != STRING for operand in operands):
        return None
    if len(operands) == 1:
        return operands[0]
    nothing = pa.scalar("")
    return apply(STRING, operands, lambda *parts: pc.binary_join_element_wise(*parts, nothing))


def substring(operand: Operand, start: Operand, count: Operand | None) -> Operand | None:
    """SUBSTRING from a constant place on, counted from 1 (0 means 1), by code points."""
    bounds = [start] if count is None else [start, count]
    if operand.type != STRING or any(b.type != pa.int32() or not b.constant for b in bounds):
        return None
    values = [value_of(bound) for bound in bounds]
    if any(value is None or value < 0 for value in values):
        return None
    first = max(values[0] - 1, 0)
    end = None if count is None else min(first + values[1], 2**31 - 1)
    return apply(
        STRING, [operand], lambda value: pc.utf8_slice_codeunits(value, start=first, stop=end)
    )


def like(operand: Operand, pattern: Operand, negated: bool) -> Operand | None:
    """LIKE with a constant pattern that has no escapes."""
    if operand.type != STRING or pattern.type != STRING or not pattern.constant:
        return None
    text = value_of(pattern)
    if text is None or "\\" in text:
        return None
    match = _matcher(text)
    if negated:
        return apply(BOOLEAN, [operand], lambda value: pc.invert(match(value)))
    return apply(BOOLEAN, [operand], match)


def _matcher(pattern: str) -> Callable[[Value], Value]:
    """The cheapest kernel for a pattern."""
    inner = pattern.strip("%")
    if "_" in pattern or "%" in inner:
        return lambda value: pc.match_like(value, pattern)
    before, after = pattern.startswith("%"), pattern.endswith("%")
    if not before and not after:
        return lambda value: pc.equal(value, pattern)
    if before and after:
        return lambda value: pc.match_substring(value, inner)
    if after:
        return lambda value: pc.starts_with(value, inner)
    return lambda value: pc.ends_with(value, inner)


def field(operand: Operand, name: str) -> Operand | None:
    """YEAR, MONTH, DAY and WEEKOFYEAR of a DATE or TIMESTAMP_NTZ; HOUR, MINUTE, SECOND of a TIMESTAMP_NTZ."""
    kernel = _DATE_FIELDS.get(name)
    types: tuple[pa.DataType, ...] = (pa.date32(), TIMESTAMP_NTZ)
    if kernel is None:
        kernel, types = _TIME_FIELDS[name], (TIMESTAMP_NTZ,)
    if operand.type not in types:
        return None
    part = kernel
    return apply(pa.int32(), [operand], lambda value: pc.cast(part(value), pa.int32()))
