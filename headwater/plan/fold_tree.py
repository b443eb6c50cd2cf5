"""A fold's block as a tree over the fold's result: what `rules` write for Spark as text, for operators.

The upper part of a query is its tree with these in the places of its blocks. Must never: write SQL.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headwater.plan.folds import Finish, FoldPlan
from headwater.plan.rules.correlated import COUNTS
from headwater.plan.text import RowsSlot, ValueSlot
from headwater.sql.dialect import named_table


class _NoTree(Exception):
    """A piece that only Spark can compute, or a clause that has no tree here."""


def fold_tree(fold: FoldPlan) -> exp.Select | None:
    """The SELECT that stands for the block; None if a part of it is a text for Spark alone."""
    if fold.finish is None:
        return None
    rows = exp.From(this=named_table(RowsSlot("fold", fold.number).name))
    try:
        if fold.outside:
            found = _lookup(fold, fold.finish)
        else:
            found = _value(fold.finish) if _is_value(fold, fold.finish) else _select(fold.finish)
    except _NoTree:
        return None
    found.set("from_", rows)
    return found


def _select(finish: Finish) -> exp.Select:
    made = exp.Select(expressions=_items(finish))
    if finish.distinct:
        made.set("distinct", exp.Distinct())
    if finish.condition is not None:
        made.set("where", exp.Where(this=_node(finish.condition.node)))
    if finish.order:
        items = [
            exp.Ordered(this=_node(p.node), desc=i.descending, nulls_first=i.nulls_first)
            for p, i in finish.order
        ]
        made.set("order", exp.Order(expressions=items))
    limit = finish.limit
    if limit is not None:
        if not limit.plain:
            raise _NoTree
        if limit.count is not None:
            made.set("limit", exp.Limit(expression=exp.Literal.number(limit.count)))
        if limit.offset:
            made.set("offset", exp.Offset(expression=exp.Literal.number(limit.offset)))
    return made


def _lookup(fold: FoldPlan, finish: Finish) -> exp.Select:
    """The aggregates of the group that the rows outside ask for, or those over no rows."""
    counts = {ValueSlot(n).name for n, a in enumerate(fold.aggregates) if a.function in COUNTS}

    def over_group(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        only = exp.AnyValue(this=node.copy())  # there is one, or none
        zero = exp.Cast(this=exp.Literal.number(0), to=exp.DataType.build("BIGINT"))
        return exp.Coalesce(this=only, expressions=[zero]) if node.name in counts else only

    made = exp.Select(expressions=[item.transform(over_group) for item in _items(finish)])
    asked = [
        exp.EQ(this=exp.column(f"_k{n}"), expression=exp.Paren(this=_node(piece.node)))
        for n, piece in enumerate(fold.outside)
    ]
    made.set("where", exp.Where(this=_all(asked)))
    return made


def _is_value(fold: FoldPlan, finish: Finish) -> bool:
    """Whether it has one row of one column, always."""
    plain = finish.condition is None and finish.limit is None and not finish.distinct
    return plain and not fold.keys and bool(fold.aggregates) and len(finish.outputs) == 1


def _value(finish: Finish) -> exp.Select:
    """One row of one column, in a form that says so: any of the values that there are."""
    (item,) = _items(finish)
    value = item.this if isinstance(item, exp.Alias) else item
    if value.find(exp.Window) is not None:
        raise _NoTree
    called = exp.AnyValue(this=value.copy())
    if isinstance(item, exp.Alias):
        return exp.Select(expressions=[exp.Alias(this=called, alias=item.args["alias"])])
    return exp.Select(expressions=[called])


def _items(finish: Finish) -> list[exp.Expr]:
    found = []
    for output in finish.outputs:
        node = _node(output.piece.node)
        named = output.name is not None
        alias = exp.to_identifier(output.name, quoted=True) if named else None
        found.append(node if alias is None else exp.Alias(this=node, alias=alias))
    return found


def _node(node: exp.Expr | None) -> exp.Expr:
    if node is None:
        raise _NoTree
    return node.copy()


def _all(conditions: Sequence[exp.Expr]) -> exp.Expr:
    found = conditions[0]
    for one in conditions[1:]:
        found = exp.And(this=found, expression=one)
    return found
