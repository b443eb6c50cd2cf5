"""Rule: a correlated scalar aggregate over a stream is folded by what it is correlated on (R2 of views).

`(SELECT sum(x) FROM s WHERE s.k = t.k AND …)` becomes a fold grouped by s.k; what is left in its place looks
its group up. The paper's word for it is unnesting: the stream ends on the probe side of a grouped join.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from headwater.plan.blocks import Bound, BoundBlock, outside
from headwater.plan.folds import FoldPlan
from headwater.plan.rules.grouping import fold_groups
from headwater.plan.rules.probe import check_joins
from headwater.plan.rules.pushdown import push_down
from headwater.plan.scope import Scope
from headwater.plan.shape import SelectBlock
from headwater.plan.text import RowsSlot, Slot, SparkText, ValueSlot, joined, spark_text
from headwater.sql.spans import span_of
from headwater.sql.text import Span
from headwater.sql.types import quoted

COUNTS = frozenset({"count", "count_distinct", "count_if", "regr_count"})
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.Paren)


def fold_correlated(one: BoundBlock) -> FoldPlan | None:
    """The fold of a correlated block; None if it is not correlated, Unfit if it is in another way."""
    bound, block, scope = one.query, one.block, one.scope
    if len(one.direct) != 1 or one.direct[0][1].newest or one.direct[0][1].in_ring:
        return None
    if all(block.span == b.span or block not in bound.nested(b.span) for b in bound.blocks):
        return None
    correlated = [span for span in block.conjuncts if _is_foreign(bound, block, scope, span)]
    if not _is_foreign(bound, block, scope, block.span):
        return None
    plain = not (block.group or block.group_all or block.having or block.order or block.limit)
    items = [i for i in block.items if _is_foreign(bound, block, scope, i.span)]
    if not correlated or not plain or block.distinct or len(block.items) != 1 or items:
        raise outside()
    pairs = [_sides(bound, block, scope, span) for span in correlated]
    rest = tuple(span for span in block.conjuncts if span not in correlated)
    inner = replace(block, conjuncts=rest, group=tuple(own for own, _ in pairs))
    grouped = replace(one, block=inner)
    check_joins(grouped)
    fold = fold_groups(push_down(grouped))
    if fold is None or not fold.aggregates:
        raise outside()
    return replace(fold, outside=tuple(bound.rendering.piece(foreign) for _, foreign in pairs))


def _is_foreign(bound: Bound, block: SelectBlock, scope: Scope, span: Span) -> bool:
    names = {item.name.casefold() for item in block.items if item.name is not None}
    return any(scope.is_foreign(use, names) for use in bound.own_uses(block, span))


def _sides(bound: Bound, block: SelectBlock, scope: Scope, span: Span) -> tuple[Span, Span]:
    """The own and the outer side of an equality."""
    node = bound.rendering.node(span)
    if not isinstance(node, exp.EQ):
        raise outside()
    left, right = span_of(node.this), span_of(node.expression)
    for own, foreign in ((left, right), (right, left)):
        names = {item.name.casefold() for item in block.items if item.name is not None}
        uses = bound.own_uses(block, foreign)
        outer = bool(uses) and all(scope.is_foreign(use, names) for use in uses)
        if outer and not _is_foreign(bound, block, scope, own) and bound.own_uses(block, own):
            return own, foreign
    raise outside()


def lookup_text(fold: FoldPlan, rows: RowsSlot) -> SparkText:
    """What stands for the block: the aggregates of its group, or those over no rows."""
    assert fold.finish is not None
    output = fold.finish.outputs[0]
    found: dict[Slot, Slot | SparkText] = {}
    for number, aggregate in enumerate(fold.aggregates):
        largest = spark_text("max(", ValueSlot(number), ")")  # there is one, or none
        counts = aggregate.function in COUNTS
        found[ValueSlot(number)] = spark_text("coalesce(", largest, ", 0L)") if counts else largest
    name = "" if output.name is None else f" AS {quoted(output.name)}"
    asked = (spark_text(f"_k{n} = (", piece.text, ")") for n, piece in enumerate(fold.outside))
    chosen = output.piece.text.replaced(found)
    return spark_text("SELECT ", chosen, name, " FROM ", rows, " WHERE ", joined(" AND ", asked))


def is_null_over_nothing(fold: FoldPlan) -> bool:
    """Whether the value over no rows is surely NULL: arithmetic with aggregates that do not count."""
    assert fold.finish is not None
    if any(a.function in COUNTS for a in fold.aggregates):
        return False
    node = fold.finish.outputs[0].piece.node
    if node is None:
        return False
    leaves = [part for part in node.walk() if not isinstance(part, (*_ARITHMETIC, exp.Identifier))]
    numbers = (exp.Column, exp.Literal)
    return node.find(exp.Column) is not None and all(isinstance(part, numbers) for part in leaves)
