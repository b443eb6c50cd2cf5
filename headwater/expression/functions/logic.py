"""AND, OR, NOT with three values, and the forms that choose: CASE, COALESCE, NULLIF.

Owns: in which order and for which rows parts are evaluated. As in Spark, the right of AND is
evaluated unless the left is false, the right of OR unless the left is true, a branch of CASE only
for its rows. Must never: evaluate a part that can raise for other rows than these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from headwater.expression.coercion import BOOLEAN, common_type, convert
from headwater.expression.nodes import NULL, Bound, BoundCall, BoundConstant
from headwater.expression.operand import (
    Kernel,
    Operand,
    Value,
    apply,
    columns_of,
    evaluate_where,
    spread,
)
from headwater.expression.table import call, called, choosing, operation


def true_only(value: Value) -> Value:
    """Which rows are true: neither false nor unknown."""
    return pc.fill_null(value, False)


def _connective(name: str, *operands: Bound) -> Bound | None:
    """The parts in order; those of an operand of the same kind are parts themselves."""
    if any(operand.type not in (BOOLEAN, NULL) for operand in operands):
        return None
    parts: list[Bound] = []
    for operand in operands:
        same = isinstance(operand, BoundCall) and operand.function == name
        parts += operand.arguments if same else [convert(operand, BOOLEAN)]  # type: ignore[union-attr]
    return called(name, parts, BOOLEAN)


def _unless_false(value: Value) -> Value:
    return pc.fill_null(value, True)


def _unless_true(value: Value) -> Value:
    return pc.invert(true_only(value))


def _build_connective(
    combine: Callable[[Value, Value], Value],
    still_open: Callable[[Value], Value],
    _: BoundCall,
    parts: Sequence[Operand],
) -> Operand:
    if len(parts) == 2 and not parts[1].raises:
        return apply(BOOLEAN, parts, combine)
    return _one_by_one(BOOLEAN, parts, combine, still_open)


def _one_by_one(
    type_: pa.DataType,
    parts: Sequence[Operand],
    combine: Callable[[Value, Value], Value],
    still_open: Callable[[Value], Value],
) -> Operand:
    """Each part is evaluated for the rows that those before it have left open."""

    def evaluate(table: pa.Table) -> Value:
        result = parts[0].evaluate(table)
        for part in parts[1:]:
            so_far = result
            found = evaluate_where(part, table, lambda value=so_far: still_open(value))  # type: ignore[misc]
            result = combine(so_far, found)
        return result

    return Operand(type_, columns_of(parts), evaluate, any(part.raises for part in parts))


choosing(
    "and", partial(_connective, "and"), partial(_build_connective, pc.and_kleene, _unless_false)
)
choosing("or", partial(_connective, "or"), partial(_build_connective, pc.or_kleene, _unless_true))
# AND between the conjuncts of a filter: the right is evaluated only where the left is true.
choosing(
    "and then",
    partial(_connective, "and then"),
    partial(_build_connective, pc.and_kleene, true_only),
)


def _negation(operand: Bound) -> Bound | None:
    """`NOT operand`."""
    return called("not", (operand,), BOOLEAN) if operand.type == BOOLEAN else None


operation("not", _negation, lambda _: pc.invert)


def _is_null(operand: Bound) -> Bound | None:
    """`operand IS NULL`."""
    return None if operand.type == NULL else called("is null", (operand,), BOOLEAN)


operation("is null", _is_null, lambda _: pc.is_null)


def is_truth(operand: Bound, truth: bool) -> Bound | None:
    """`operand IS TRUE` or `IS FALSE`: never unknown."""
    if operand.type != BOOLEAN:
        return None
    return call("<=>", operand, BoundConstant(truth, BOOLEAN))


def _choice(*parts: Bound) -> Bound | None:
    """CASE: conditions and their values in turn, then the value where none is true."""
    conditions, values = parts[:-1:2], [*parts[1:-1:2], parts[-1]]
    type_ = common_type(values)
    if type_ is None or any(condition.type != BOOLEAN for condition in conditions):
        return None
    converted = [convert(value, type_) for value in values]
    pairs = zip(conditions, converted[:-1], strict=True)
    arguments = [*(part for pair in pairs for part in pair), converted[-1]]
    if all(isinstance(argument, BoundConstant) for argument in arguments):
        return None
    return called("case", arguments, type_)


def _build_choice(call: BoundCall, parts: Sequence[Operand]) -> Operand:
    evaluate = _chooser(parts[:-1:2], [*parts[1:-1:2], parts[-1]])
    return Operand(call.type, columns_of(parts), evaluate, any(part.raises for part in parts))


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


choosing("case", _choice, _build_choice)


def _coalesce(*operands: Bound) -> Bound | None:
    """COALESCE: the first value that is not NULL."""
    type_ = common_type(operands)
    if type_ is None:
        return None
    return called("coalesce", [convert(operand, type_) for operand in operands], type_)


def _build_coalesce(call: BoundCall, parts: Sequence[Operand]) -> Operand:
    """Later values are evaluated where it is still open."""
    if not any(part.raises for part in parts[1:]):
        return apply(call.type, parts, lambda *values: pc.coalesce(*values))
    return _one_by_one(call.type, parts, pc.coalesce, pc.is_null)


choosing("coalesce", _coalesce, _build_coalesce)


def _null_if(left: Bound, right: Bound) -> Bound | None:
    """NULLIF: NULL where both are equal, else the left, in the left's own type."""
    same = call("=", left, right)
    if same is None or left.type == NULL:
        return None
    return called("nullif", (same, left), left.type)


def _null_if_kernel(call: BoundCall) -> Kernel:
    nothing = pa.scalar(None, call.type)
    return lambda rows, value: pc.if_else(true_only(rows), nothing, value)


operation("nullif", _null_if, _null_if_kernel)
