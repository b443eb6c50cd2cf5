"""Which common type Spark (ANSI) gives to operands of different types, and the step to it.

Owns: the implicit conversions that are exact and cheap: among integers, integers and FLOAT to
DOUBLE, integers and decimals to a wider decimal, a decimal constant to DOUBLE. Must never: convert
text, dates or times implicitly, or a decimal column to DOUBLE: None, and Spark does it.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.kernel.inline.operand import Operand, Value, apply, literal, value_of
from headwater.sql.types import SIMPLE

MOST_DIGITS = 38
INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
INTEGER_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}  # as Spark counts
FLOATS = (pa.float32(), pa.float64())
BOOLEAN, STRING, DOUBLE, NULL = pa.bool_(), pa.string(), pa.float64(), pa.null()
INTERVAL = pa.duration("us")  # of days to seconds; only within an expression, never its result
_TYPES = frozenset(SIMPLE.values()) - {pa.binary()}


def supported(type_: pa.DataType) -> bool:
    """Whether values of a type are evaluated in line at all."""
    return type_ in _TYPES or pa.types.is_decimal128(type_)


def is_integer(type_: pa.DataType) -> bool:
    """Whether it is TINYINT, SMALLINT, INT or BIGINT."""
    return type_ in INTEGER_DIGITS


def is_number(type_: pa.DataType) -> bool:
    """Whether it is an integer, FLOAT or DOUBLE."""
    return type_ in INTEGER_DIGITS or type_ in FLOATS


def decimal_type(operand: Operand) -> pa.DataType | None:
    """The decimal that Spark makes of an operand of +, - and * next to a decimal, or None."""
    if pa.types.is_decimal(operand.type):
        return operand.type
    if operand.digits is not None:
        return pa.decimal128(operand.digits, 0)
    if operand.constant:
        return None  # 10L and CAST(10 AS BIGINT) look alike, and have other digits
    digits = INTEGER_DIGITS.get(operand.type)
    return None if digits is None else pa.decimal128(digits, 0)


def common_type(operands: Iterable[Operand]) -> pa.DataType | None:
    """The type that comparisons, CASE, COALESCE, IN and arithmetic convert operands to."""
    typed = [operand for operand in operands if operand.type != NULL]
    types = {operand.type for operand in typed}
    if len(types) == 1:
        return next(iter(types))
    if types and all(is_integer(type_) for type_ in types):
        return max(types, key=INTEGERS.index)
    if any(type_ in FLOATS for type_ in types):
        rest = [operand for operand in typed if not is_number(operand.type)]
        exact = all(o.constant and pa.types.is_decimal(o.type) for o in rest)
        return DOUBLE if exact else None
    return _common_decimal(types)


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


def convert(operand: Operand, type_: pa.DataType) -> Operand:
    """The operand in a common type."""
    if operand.type == type_:
        return operand
    if operand.type == NULL:
        return literal(None, type_)
    if operand.constant:
        return literal(_converted(value_of(operand), type_), type_)
    found = apply(type_, [operand], lambda value: widen(value, type_))
    assert found is not None  # only constants can be refused
    return found


def _converted(value: Any, type_: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_decimal(type_):
        return Decimal(value)
    return float(value) if type_ in FLOATS else value


def widen(value: Value, type_: pa.DataType) -> Value:
    """A column in a wider type; a BIGINT may lose digits as a DOUBLE, as in Spark."""
    return pc.cast(value, type_, safe=type_ not in FLOATS)
