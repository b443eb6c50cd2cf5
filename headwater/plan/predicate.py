"""Predicates that the storage manager evaluates itself: `column op constant`, joined by AND, OR, NOT.

A closed list of (operator, type) pairs, each proven equal to Spark in tests/plan/test_scan.py.
Whatever is not on the list is not an error: the query goes to Spark. Edges that are met here: NaN
equals itself and is larger than any number, comparisons with NULL are unknown (three-valued).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Value = bool | int | float | str | date | datetime
NEGATED = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
MIRRORED = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True)
class Comparison:
    """`column op constant`; the constant is of the column's type."""

    column: str
    op: str
    value: Value
    type: pa.DataType

    def arrow(self) -> pc.Expression:
        """The comparison as Arrow evaluates it."""
        field, value = pc.field(self.column), pa.scalar(self.value, self.type)
        plain = _OPERATORS[self.op](field, value)
        if pa.types.is_floating(self.type) and self.op in (">", ">="):
            return plain | pc.is_nan(field)
        return plain


@dataclass(frozen=True)
class IsNull:
    """`column IS NULL`."""

    column: str

    def arrow(self) -> pc.Expression:
        """The test as Arrow evaluates it."""
        return pc.field(self.column).is_null()


@dataclass(frozen=True)
class Constant:
    """TRUE, FALSE or NULL."""

    value: bool | None

    def arrow(self) -> pc.Expression:
        """The constant as Arrow evaluates it."""
        return pc.scalar(pa.scalar(self.value, pa.bool_()))


@dataclass(frozen=True)
class Not:
    """`NOT part`."""

    part: Predicate

    def arrow(self) -> pc.Expression:
        """The negation as Arrow evaluates it."""
        return ~self.part.arrow()


@dataclass(frozen=True)
class And:
    """All parts."""

    parts: tuple[Predicate, ...]

    def arrow(self) -> pc.Expression:
        """The conjunction as Arrow evaluates it (three-valued)."""
        whole = self.parts[0].arrow()
        for part in self.parts[1:]:
            whole = whole & part.arrow()
        return whole


@dataclass(frozen=True)
class Or:
    """Any part."""

    parts: tuple[Predicate, ...]

    def arrow(self) -> pc.Expression:
        """The disjunction as Arrow evaluates it (three-valued)."""
        whole = self.parts[0].arrow()
        for part in self.parts[1:]:
            whole = whole | part.arrow()
        return whole


Predicate = Comparison | IsNull | Constant | Not | And | Or

_OPERATORS: dict[str, Any] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def comparable(value: Any, literal_type: pa.DataType, column_type: pa.DataType) -> Value | None:
    """The constant in the column's type, if comparing so is what Spark does; else None."""
    if isinstance(value, bool):
        return value if pa.types.is_boolean(column_type) else None
    if pa.types.is_integer(column_type):
        exact = pa.types.is_integer(literal_type) and isinstance(value, int)
        return value if exact and _fits(value, column_type) else None
    if pa.types.is_float64(column_type):
        number = isinstance(value, (int, float, Decimal))
        as_float = float(value) if number else math.nan
        return as_float if math.isfinite(as_float) else None
    for is_type in (pa.types.is_string, pa.types.is_date):
        if is_type(column_type) and is_type(literal_type):
            return value
    if pa.types.is_timestamp(column_type) and literal_type == column_type:
        return value
    return None


def _fits(value: int, type_: pa.DataType) -> bool:
    limit = 1 << (type_.bit_width - 1)
    return -limit <= value < limit


def compares_floats(predicate: Predicate) -> bool:
    """Whether a float is compared; the bounds in a Parquet file leave out NaN, so they do not help."""
    if isinstance(predicate, Comparison):
        return bool(pa.types.is_floating(predicate.type))
    if isinstance(predicate, Not):
        return compares_floats(predicate.part)
    return isinstance(predicate, And | Or) and any(map(compares_floats, predicate.parts))


def columns_of(predicate: Predicate) -> set[str]:
    """The columns that a predicate looks at."""
    if isinstance(predicate, Comparison | IsNull):
        return {predicate.column}
    if isinstance(predicate, Not):
        return columns_of(predicate.part)
    return (
        set().union(*map(columns_of, predicate.parts)) if isinstance(predicate, And | Or) else set()
    )


def conjuncts(predicate: Predicate | None) -> Iterator[Predicate]:
    """The parts that must all hold."""
    if isinstance(predicate, And):
        for part in predicate.parts:
            yield from conjuncts(part)
    elif predicate is not None:
        yield predicate
