"""AND, OR, NOT with three values, and the forms that choose: CASE, IF, COALESCE, NULLIF.

Owns: in which order and for which rows parts are evaluated. As in Spark, the right of AND is
evaluated unless the left is false, the right of OR unless the left is true, a branch of CASE only
for its rows. Must never: evaluate a part that can raise for other rows than these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from headwater.kernel.inline.coercion import BOOLEAN, NULL, common_type, convert
from headwater.kernel.inline.compare import comparison
from headwater.kernel.inline.operand import (
    Operand,
    Value,
    apply,
    evaluate_where,
    literal,
    spread,
)

Branch = tuple[Operand, Operand]  # a condition, and the value where it is true


def _booleans(operands: Sequence[Operand]) -> list[Operand] | None:
    if any(operand.type not in (BOOLEAN, NULL) for operand in operands):
        return None
    return [convert(operand, BOOLEAN) for operand in operands]


def _columns(operands: Sequence[Operand]) -> frozenset[str]:
    return frozenset[str]().union(*(operand.columns for operand in operands))


def true_only(value: Value) -> Value:
    """Which rows are true: neither false nor unknown."""
    return pc.fill_null(value, False)


def conjunction(left: Operand, right: Operand, filtering: bool = False) -> Operand | None:
    """`left AND right`; when filtering, the right is evaluated only where the left is true."""
    keep = true_only if filtering else lambda value: pc.fill_null(value, True)
    return _connective(left, right, pc.and_kleene, keep)


def disjunction(left: Operand, right: Operand) -> Operand | None:
    """`left OR right`."""
    return _connective(left, right, pc.or_kleene, lambda value: pc.invert(true_only(value)))


def _connective(
    left: Operand,
    right: Operand,
    combine: Callable[[Value, Value], Value],
    still_open: Callable[[Value], Value],
) -> Operand | None:
    pair = _booleans([left, right])
    if pair is None:
        return None
    first, second = pair
    if not second.raises:
        return apply(BOOLEAN, pair, combine)

    def evaluate(table: pa.Table) -> Value:
        value = first.evaluate(table)
        return combine(value, evaluate_where(second, table, lambda: still_open(value)))

    return Operand(BOOLEAN, _columns(pair), evaluate, raises=True)


def negation(operand: Operand) -> Operand | None:
    """`NOT operand`."""
    return apply(BOOLEAN, [operand], pc.invert) if operand.type == BOOLEAN else None


def is_null(operand: Operand) -> Operand | None:
    """`operand IS NULL`."""
    return None if operand.type == NULL else apply(BOOLEAN, [operand], pc.is_null)


def is_truth(operand: Operand, truth: bool) -> Operand | None:
    """`operand IS TRUE` or `IS FALSE`: never unknown."""
    if operand.type != BOOLEAN:
        return None
    return comparison("<=>", operand, literal(truth, BOOLEAN))


def between(operand: Operand, low: Operand, high: Operand) -> Operand | None:
    """`operand BETWEEN low AND high`: two comparisons, each with its own conversion."""
    above, below = comparison(">=", operand, low), comparison("<=", operand, high)
    return None if above is None or below is None else conjunction(above, below)


def choice(branches: Sequence[Branch], default: Operand | None) -> Operand | None:
    """CASE: the value of the first branch whose condition is true."""
    conditions = [condition for condition, _ in branches]
    values = [value for _, value in branches]
    values.append(literal(None, NULL) if default is None else default)
    type_ = common_type(values)
    if type_ is None or any(condition.type != BOOLEAN for condition in conditions):
        return None
    converted = [convert(value, type_) for value in values]
    parts = [*conditions, *converted]
    columns = _columns(parts)
    if not columns:
        return None
    evaluate = _chooser(conditions, converted)
    return Operand(type_, columns, evaluate, any(part.raises for part in parts))


def _chooser(
    conditions: Sequence[Operand], values: Sequence[Operand]
) -> Callable[[pa.Table], Value]:
    """Conditions in order, each on the rows that are left; then their values from last to first."""

    def evaluate(table: pa.Table) -> Value:
        rest: Value = pa.scalar(True)
        chosen: list[Value] = []
        for condition in conditions:
            left_over = rest
            answer = evaluate_where(condition, table, lambda rows=left_over: rows)  # type: ignore[misc]
            mine = pc.and_(left_over, true_only(answer))
            rest = pc.and_not(left_over, mine)
            chosen.append(mine)
        final = rest
        result = evaluate_where(values[-1], table, lambda: final)
        for rows, value in zip(reversed(chosen), reversed(values[:-1]), strict=True):
            found = evaluate_where(value, table, lambda rows=rows: rows)  # type: ignore[misc]
            result = pc.if_else(rows, found, result)
        return spread(result, table.num_rows)

    return evaluate


def coalesce(operands: Sequence[Operand]) -> Operand | None:
    """COALESCE: the first value that is not NULL; later ones are evaluated where it is still open."""
    type_ = common_type(operands)
    if type_ is None:
        return None
    parts = [convert(operand, type_) for operand in operands]
    if not any(part.raises for part in parts[1:]):
        return apply(type_, parts, lambda *values: pc.coalesce(*values))

    def evaluate(table: pa.Table) -> Value:
        result = parts[0].evaluate(table)
        for part in parts[1:]:
            so_far = result
            found = evaluate_where(part, table, lambda value=so_far: pc.is_null(value))  # type: ignore[misc]
            result = pc.coalesce(so_far, found)
        return result

    return Operand(type_, _columns(parts), evaluate, raises=True)


def null_if(left: Operand, right: Operand) -> Operand | None:
    """NULLIF: NULL where both are equal, else the left, in the left's own type."""
    same = comparison("=", left, right)
    if same is None or left.type == NULL:
        return None
    nothing = pa.scalar(None, left.type)
    return apply(
        left.type, [same, left], lambda rows, value: pc.if_else(true_only(rows), nothing, value)
    )
