"""Predicates that the storage manager evaluates itself: `column op constant`, joined by AND, OR, NOT.

Owns: which bound conditions are such predicates, and which ranges of one column they leave, for
pruning. What a comparison means was decided when it was bound; tests/plan/test_scan.py compares scans
with Spark. Whatever is more is not an error: the query goes to Spark. Edges that are met here: NaN
equals itself and is larger than any number, comparisons with NULL are unknown (three-valued).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.expression.nodes import Bound, BoundCall, BoundColumn, BoundConstant
from headwater.sql.types import SIMPLE

BOOLEAN = pa.bool_()
LARGEST_LIST = 1000
Value = bool | int | float | str | date | datetime
NEGATED = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
MIRRORED = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True)
class Comparison:
    """`column op constant`; the constant is of the column's type. `slot`: of the `$n` that it is."""

    column: str
    op: str
    value: Value
    type: pa.DataType
    slot: int | None = field(default=None, compare=False, repr=False)

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
        return reduce(operator.and_, (part.arrow() for part in self.parts))


@dataclass(frozen=True)
class Or:
    """Any part."""

    parts: tuple[Predicate, ...]

    def arrow(self) -> pc.Expression:
        """The disjunction as Arrow evaluates it (three-valued)."""
        return reduce(operator.or_, (part.arrow() for part in self.parts))


Predicate = Comparison | IsNull | Constant | Not | And | Or

_OPERATORS: dict[str, Any] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def predicate_of(condition: Bound) -> Predicate | None:
    """The condition as the storage manager evaluates it; None if it is more than that."""
    if isinstance(condition, BoundColumn):
        return _comparison(condition, "=", BoundConstant(True, BOOLEAN))
    if isinstance(condition, BoundConstant):
        return Constant(condition.value) if condition.type == BOOLEAN else None
    first, *others = condition.arguments
    op = "!=" if condition.function == "<>" else condition.function
    if op in _OPERATORS:
        return _comparison(first, op, others[0])
    if condition.function == "in":
        few = len(others) <= LARGEST_LIST
        return _joined(Or, [_comparison(first, "=", other) for other in others]) if few else None
    if condition.function == "is null":
        return IsNull(first.name) if isinstance(first, BoundColumn) else None
    if condition.function in ("and", "or"):
        parts = [predicate_of(argument) for argument in condition.arguments]
        return _joined(And if condition.function == "and" else Or, parts)
    negated = predicate_of(first) if condition.function == "not" else None
    return None if negated is None else Not(negated)


def _joined(kind: type[And | Or], parts: Sequence[Predicate | None]) -> Predicate | None:
    known = tuple(part for part in parts if part is not None)
    if len(known) < len(parts):
        return None
    return known[0] if len(known) == 1 else kind(known)


def _comparison(left: Bound, op: str, right: Bound) -> Predicate | None:
    """`column op constant` or the other way round; both have one type, that of a column or wider."""
    if isinstance(left, BoundConstant):
        left, op, right = right, MIRRORED[op], left
    column = left.arguments[0] if isinstance(left, BoundCall) and left.function == "widen" else left
    if not isinstance(column, BoundColumn) or not isinstance(right, BoundConstant):
        return None
    if right.value is None:
        return Constant(None)
    if column.type != right.type and not _fits(right.value, column.type, right.type):
        return None
    finite = not isinstance(right.value, float) or math.isfinite(right.value)
    fine = column.type in _COMPARED and finite
    slot = right.slot if column.type == right.type else None
    return Comparison(column.name, op, right.value, column.type, slot) if fine else None


_COMPARED = frozenset(SIMPLE.values()) - {pa.binary(), pa.float32()}


def _fits(value: Any, type_: pa.DataType, wider: pa.DataType) -> bool:
    """Whether comparing as the wider integer is comparing as the column's own."""
    if not (pa.types.is_integer(type_) and pa.types.is_integer(wider)):
        return False
    limit = 1 << (type_.bit_width - 1)
    return bool(-limit <= value < limit)


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


def slots_of(predicate: Predicate | None) -> list[int]:
    """The slots whose values a predicate compares with, as they came."""
    if isinstance(predicate, Comparison):
        return [] if predicate.slot is None else [predicate.slot]
    if isinstance(predicate, Not):
        return slots_of(predicate.part)
    parts = predicate.parts if isinstance(predicate, And | Or) else ()
    return [slot for part in parts for slot in slots_of(part)]


def with_values(predicate: Predicate, values: Sequence[Any]) -> Predicate:
    """The predicate with other values in its slots, each of the type that was there."""
    if isinstance(predicate, Comparison) and predicate.slot is not None:
        return replace(predicate, value=values[predicate.slot - 1])
    if isinstance(predicate, Not):
        return Not(with_values(predicate.part, values))
    if isinstance(predicate, And | Or):
        return type(predicate)(tuple(with_values(part, values) for part in predicate.parts))
    return predicate


def conjuncts(predicate: Predicate | None) -> Iterator[Predicate]:
    """The parts that must all hold."""
    if isinstance(predicate, And):
        for part in predicate.parts:
            yield from conjuncts(part)
    elif predicate is not None:
        yield predicate


@dataclass(frozen=True)
class Range:
    """A stretch of ticks between closed bounds; None is open."""

    low: int | None = None
    high: int | None = None

    def within(self, other: Range) -> Range | None:
        """What both have; None if that is nothing."""
        lows = [bound for bound in (self.low, other.low) if bound is not None]
        highs = [bound for bound in (self.high, other.high) if bound is not None]
        found = Range(max(lows, default=None), min(highs, default=None))
        empty = found.low is not None and found.high is not None and found.low > found.high
        return None if empty else found


Ranges = tuple[Range, ...]  # ascending, apart from each other
EVERYTHING: Ranges = (Range(),)


def ranges_of(
    predicate: Predicate | None, column: str, tick: Callable[[Any], int], negated: bool = False
) -> Ranges:
    """Where the column of a row for which the predicate (or its negation) is true can lie."""
    if isinstance(predicate, Not):
        return ranges_of(predicate.part, column, tick, not negated)
    if isinstance(predicate, Constant):
        truth = predicate.value if not negated or predicate.value is None else not predicate.value
        return EVERYTHING if truth else ()
    if isinstance(predicate, Comparison) and predicate.column == column:
        return _range(NEGATED[predicate.op] if negated else predicate.op, tick(predicate.value))
    if isinstance(predicate, And | Or):
        parts = [ranges_of(part, column, tick, negated) for part in predicate.parts]
        return union(parts) if isinstance(predicate, Or) != negated else common(*parts)
    return EVERYTHING


def _range(op: str, tick: int) -> Ranges:
    if op == "!=":
        return EVERYTHING
    return (
        Range(tick if op in ("=", ">", ">=") else None, tick if op in ("=", "<", "<=") else None),
    )


def common(*sides: Ranges) -> Ranges:
    """What all sides have."""
    found: Ranges = EVERYTHING
    for side in sides:
        both = (one.within(other) for one in found for other in side)
        found = tuple(part for part in both if part is not None)
    return found


def union(sides: Sequence[Ranges]) -> Ranges:
    """What any side has, in order, those that meet put together."""
    found: list[Range] = []
    parts = (part for side in sides for part in side)
    for part in sorted(parts, key=lambda one: (one.low is not None, one.low or 0)):
        last = found[-1] if found else None
        if last is None or _apart(last, part):
            found.append(part)
        elif last.high is not None:
            high = None if part.high is None else max(last.high, part.high)
            found[-1] = Range(last.low, high)
    return tuple(found)


def _apart(first: Range, second: Range) -> bool:
    return first.high is not None and second.low is not None and second.low > first.high


def hull(ranges: Ranges) -> Range | None:
    """The stretch from the first to the last; None if there is none."""
    return Range(ranges[0].low, ranges[-1].high) if ranges else None
