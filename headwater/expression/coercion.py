"""Which common type Spark (ANSI) gives to operands of different types, and the step to it.

Owns: the implicit conversions that are exact and cheap: among integers, integers and FLOAT to
DOUBLE, integers and decimals to a wider decimal, a decimal constant to DOUBLE, a DATE constant to its
midnight. Must never: convert text or a column of dates or times implicitly, or a decimal column to
DOUBLE: None, and Spark does it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headwater.expression.nodes import NULL, Bound, BoundCall, BoundConstant
from headwater.sql.types import SIMPLE, TIMESTAMP, TIMESTAMP_NTZ

MOST_DIGITS = 38
INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
INTEGER_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}  # as Spark counts
FLOATS = (pa.float32(), pa.float64())
BOOLEAN, STRING, DOUBLE, DATE = pa.bool_(), pa.string(), pa.float64(), pa.date32()
INT, BIGINT = pa.int32(), pa.int64()
MOMENTS = (TIMESTAMP, TIMESTAMP_NTZ)
_TYPES = frozenset(SIMPLE.values()) - {pa.binary()}


def supported(type_: pa.DataType) -> bool:
    """Whether values of a type are evaluated without Spark at all."""
    return type_ in _TYPES or pa.types.is_decimal128(type_)


def is_integer(type_: pa.DataType) -> bool:
    """Whether it is TINYINT, SMALLINT, INT or BIGINT."""
    return type_ in INTEGER_DIGITS


def is_number(type_: pa.DataType) -> bool:
    """Whether it is an integer, FLOAT or DOUBLE."""
    return type_ in INTEGER_DIGITS or type_ in FLOATS


def decimal_type(operand: Bound) -> pa.DataType | None:
    """The decimal that Spark makes of an operand of +, - and * next to a decimal, or None."""
    if pa.types.is_decimal(operand.type):
        return operand.type
    if isinstance(operand, BoundConstant):
        # 10L and CAST(10 AS BIGINT) look alike, and have other digits
        return None if operand.digits is None else pa.decimal128(operand.digits, 0)
    digits = INTEGER_DIGITS.get(operand.type)
    return None if digits is None else pa.decimal128(digits, 0)


def common_type(operands: Iterable[Bound]) -> pa.DataType | None:
    """The type that comparisons, CASE, COALESCE, IN and arithmetic convert operands to."""
    typed = [operand for operand in operands if operand.type != NULL]
    types = {operand.type for operand in typed}
    if any(pa.types.is_nested(type_) for type_ in types):
        return None
    if len(types) == 1:
        return next(iter(types))
    if types and all(is_integer(type_) for type_ in types):
        return max(types, key=INTEGERS.index)
    if any(type_ in FLOATS for type_ in types):
        rest = [operand for operand in typed if not is_number(operand.type)]
        exact = all(isinstance(o, BoundConstant) and pa.types.is_decimal(o.type) for o in rest)
        return DOUBLE if exact else None
    return _common_moment(typed) or _common_decimal(types)


def _common_moment(typed: list[Bound]) -> pa.DataType | None:
    """A time beside constants that are dates; a column of dates is Spark's to convert."""
    rest = [operand for operand in typed if operand.type not in MOMENTS]
    types = {operand.type for operand in typed if operand.type in MOMENTS}
    plain = all(o.type == DATE and isinstance(o, BoundConstant) for o in rest)
    return next(iter(types)) if plain and len(types) == 1 else None


def _common_decimal(types: set[pa.DataType]) -> pa.DataType | None:
    """The decimal that holds all; here an integer literal counts as any integer."""
    if not types or not all(is_integer(t) or pa.types.is_decimal128(t) for t in types):
        return None
    decimals = [t for t in types if not is_integer(t)]
    scale = max(t.scale for t in decimals)
    whole = max(
        [t.precision - t.scale for t in decimals] + [INTEGER_DIGITS.get(t, 0) for t in types]
    )
    return pa.decimal128(whole + scale, scale) if whole + scale <= MOST_DIGITS else None


def convert(operand: Bound, type_: pa.DataType) -> Bound:
    """The operand in a common type."""
    if operand.type == type_:
        return operand
    if operand.type == NULL:
        return BoundConstant(None, type_)
    if isinstance(operand, BoundConstant):
        same = is_integer(operand.type) and is_integer(type_)  # the value stays as it came
        slot = operand.slot if same else None
        return BoundConstant(_converted(operand.value, type_), type_, slot=slot)
    return BoundCall("widen", (operand,), type_)


def without_widening(side: Bound) -> Bound:
    """A column without the conversion to a common type."""
    while isinstance(side, BoundCall) and side.function == "widen":
        side = side.arguments[0]
    return side


def _converted(value: Any, type_: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_decimal(type_):
        return Decimal(value)
    if type_ in MOMENTS and not isinstance(value, datetime):
        return datetime.combine(value, time(), UTC if type_ == TIMESTAMP else None)
    return float(value) if type_ in FLOATS else value
