"""The aggregate algebra, in one table: name → partial columns, finish, result type as Spark's.

Owns: which families an aggregate needs, what comes out of them and of which type. How a family is
folded and merged, and whether it can be undone, is `families`' business; `distinct` keeps exact
distinct values beside them. Must never: let an integer sum wrap: Spark (ANSI) raises
ARITHMETIC_OVERFLOW, and so do we, exactly when the true sum does not fit.
Follows DataCell §3 (the transformations of Figure 3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from headwater.errors import DataError, NotSupportedError
from headwater.fold.columns import INTEGER, OBJECT, Vector, decode, kind_of
from headwater.fold.families import (
    Count,
    Edge,
    Extreme,
    Family,
    FamilyRows,
    FloatSum,
    IntegerSum,
    LongSum,
    Moments,
    ObjectExtreme,
    Vectors,
    missing_words,
)

MOST_DIGITS = 38
SUM_DIGITS, AVERAGE_DIGITS = 10, 4  # what Spark adds to a decimal's precision
DISTINCT = "distinct"

Part = tuple[str, int | None]  # a family's kind and its argument column


@dataclass(frozen=True)
class Aggregate:
    """One aggregate of a query: `argument` is a column number, None for count(*)."""

    function: str
    argument: int | None
    type: pa.DataType
    name: str
    nullable: bool = True


@dataclass(frozen=True)
class Function:
    """One row of the table."""

    parts: tuple[str, ...]
    result: Callable[[pa.DataType], pa.DataType]
    finish: Callable[[Aggregate, Sequence[Vectors]], pa.Array]


def _value_type(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _number_type(type_: pa.DataType) -> pa.DataType:
    number = pa.types.is_integer(type_) or pa.types.is_floating(type_)
    if number or pa.types.is_decimal128(type_):
        return type_
    raise NotSupportedError(f"type {type_} cannot be summed by operators")


@lru_cache(maxsize=256)
def _sum_type(type_: pa.DataType) -> pa.DataType:
    type_ = _number_type(_value_type(type_))
    if pa.types.is_decimal128(type_):
        return pa.decimal128(min(type_.precision + SUM_DIGITS, MOST_DIGITS), type_.scale)
    return pa.float64() if pa.types.is_floating(type_) else pa.int64()


@lru_cache(maxsize=256)
def _average_type(type_: pa.DataType) -> pa.DataType:
    type_ = _number_type(_value_type(type_))
    if not pa.types.is_decimal128(type_):
        return pa.float64()
    digits, scale = type_.precision + AVERAGE_DIGITS, type_.scale + AVERAGE_DIGITS
    return pa.decimal128(min(digits, MOST_DIGITS), min(scale, MOST_DIGITS))


def _double(type_: pa.DataType) -> pa.DataType:
    _number_type(_value_type(type_))
    return pa.float64()


def _boolean(type_: pa.DataType) -> pa.DataType:
    if not pa.types.is_boolean(type_):
        raise NotSupportedError(f"{type_} is no boolean")
    return type_


def overflow(aggregate: Aggregate, type_: pa.DataType) -> DataError:
    """What Spark raises, under its SQLSTATE."""
    return DataError(
        "sum out of range",
        sqlstate="22003",
        detail=f"ARITHMETIC_OVERFLOW: {aggregate.function} of {aggregate.name} does not fit {type_}",
        hint="cast the argument to a wider type",
    )


def _count(_: Aggregate, parts: Sequence[Vectors]) -> pa.Array:
    return decode(parts[0][0], None, pa.int64())


def _there(counts: Vector, least: int = 1) -> Vector | None:
    valid = counts >= least
    return None if valid.all() else valid


def _totals(parts: Vectors) -> Vector:
    """Sums as Python's integers."""
    if len(parts) == 1:
        return parts[0]
    low, high = parts
    return low.astype(object) + (missing_words(low, high).astype(object) << 64)


def _sum(aggregate: Aggregate, parts: Sequence[Vectors]) -> pa.Array:
    sums, counts = parts[0], parts[1][0]
    type_, valid = _sum_type(aggregate.type), _there(counts)
    if pa.types.is_floating(type_):
        return decode(sums[0], valid, type_)
    if pa.types.is_decimal128(type_):
        fits = len(sums) == 2 and not missing_words(*sums).any() and type_.precision > 19
        totals = sums[0] if fits else _totals(sums)
        return _checked(aggregate, totals, valid, type_)
    if missing_words(*sums).any():
        raise overflow(aggregate, type_)
    return decode(sums[0], valid, type_)


def _checked(
    aggregate: Aggregate, totals: Vector, valid: Vector | None, type_: pa.DataType
) -> pa.Array:
    bound = 10**type_.precision
    if totals.dtype == object and any(not -bound < total < bound for total in totals.tolist()):
        raise overflow(aggregate, type_)
    return decode(totals, valid, type_)


def _average(aggregate: Aggregate, parts: Sequence[Vectors]) -> pa.Array:
    sums, counts = parts[0], parts[1][0]
    type_, valid = _average_type(aggregate.type), _there(counts)
    divisors = np.maximum(counts, 1)
    if pa.types.is_decimal128(type_):
        shift = 10 ** (type_.scale - _value_type(aggregate.type).scale)
        pairs = zip(_totals(sums).tolist(), divisors.tolist(), strict=True)
        rounded = [_half_up(total * shift, count) for total, count in pairs]
        return _checked(aggregate, _objects(rounded), valid, type_)
    totals = sums[0].astype(np.float64)
    if len(sums) == 2:
        totals = totals + missing_words(*sums) * 2.0**64
    return decode(totals / divisors, valid, type_)


def _half_up(number: int, divisor: int) -> int:
    quotient = (2 * abs(number) + divisor) // (2 * divisor)
    return quotient if number >= 0 else -quotient


def _objects(values: Sequence[int]) -> Vector:
    out = np.empty(len(values), object)
    out[:] = values
    return out


def _extreme(aggregate: Aggregate, parts: Sequence[Vectors]) -> pa.Array:
    return decode(parts[0][0], _there(parts[1][0]), _value_type(aggregate.type))


def _edge(aggregate: Aggregate, parts: Sequence[Vectors]) -> pa.Array:
    _, _, valid, values = parts[0]
    return decode(values, None if valid.all() else valid.copy(), _value_type(aggregate.type))


def _moments(sample: bool, root: bool) -> Callable[[Aggregate, Sequence[Vectors]], pa.Array]:
    def finish(_: Aggregate, parts: Sequence[Vectors]) -> pa.Array:
        counts, _mean, squares = parts[0]
        valid = _there(counts, 2 if sample else 1)
        variances = squares / np.maximum(counts - sample, 1.0)
        return decode(np.sqrt(variances) if root else variances, valid, pa.float64())

    return finish


def _function(parts: str, result: Callable, finish: Callable) -> Function:
    return Function(tuple(parts.split()), result, finish)


FUNCTIONS: dict[str, Function] = {
    "count": _function("count", lambda _: pa.int64(), _count),
    "sum": _function("sum count", _sum_type, _sum),
    "avg": _function("sum count", _average_type, _average),
    "min": _function("min count", _value_type, _extreme),
    "max": _function("max count", _value_type, _extreme),
    "var_samp": _function("moments", _double, _moments(sample=True, root=False)),
    "var_pop": _function("moments", _double, _moments(sample=False, root=False)),
    "stddev_samp": _function("moments", _double, _moments(sample=True, root=True)),
    "stddev_pop": _function("moments", _double, _moments(sample=False, root=True)),
    "bool_and": _function("min count", _boolean, _extreme),
    "bool_or": _function("max count", _boolean, _extreme),
    "first": _function("first", _value_type, _edge),
    "last": _function("last", _value_type, _edge),
    "first_ignore_nulls": _function("first_there", _value_type, _edge),
    "last_ignore_nulls": _function("last_there", _value_type, _edge),
    "count_distinct": _function(DISTINCT, lambda _: pa.int64(), _count),
}
ALIASES = {
    "mean": "avg",
    "variance": "var_samp",
    "stddev": "stddev_samp",
    "std": "stddev_samp",
    "every": "bool_and",
    "some": "bool_or",
    "any": "bool_or",
    "first_value": "first",
    "last_value": "last",
}


def function_of(name: str) -> Function:
    """The row of the table for an aggregate's name."""
    found = FUNCTIONS.get(ALIASES.get(name, name))
    if found is None:
        raise NotSupportedError(f"aggregate {name} cannot be folded by operators")
    return found


def result_type(aggregate: Aggregate) -> pa.DataType:
    """The type Spark gives."""
    return function_of(aggregate.function).result(aggregate.type)


def parts_of(aggregate: Aggregate) -> list[Part]:
    """The families an aggregate reads; equal ones are shared by all aggregates of a query."""
    parts: list[Part] = []
    for kind in function_of(aggregate.function).parts:
        if kind == "count" and (aggregate.argument is None or not aggregate.nullable):
            parts.append(("rows", None))
        else:
            parts.append((kind, aggregate.argument))
    return parts


def family_of(kind: str, argument: int | None, type_: pa.DataType) -> Family:
    """The family behind a part, for an argument of a type."""
    if argument is None:
        return FamilyRows()
    if kind == "count":
        return Count(argument)
    vector = kind_of(type_)
    if kind == "sum":
        if vector == OBJECT:
            return LongSum(argument)
        return IntegerSum(argument) if vector == INTEGER else FloatSum(argument)
    if kind in ("min", "max"):
        if vector == OBJECT:
            return ObjectExtreme(argument, kind == "max", not pa.types.is_decimal(type_))
        return Extreme(argument, vector, kind == "max")
    if kind == "moments":
        return Moments(argument, type_.scale if pa.types.is_decimal(type_) else 0)
    return Edge(argument, vector, kind.startswith("last"), kind.endswith("_there"))
