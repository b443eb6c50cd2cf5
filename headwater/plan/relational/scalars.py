"""Subqueries within expressions → columns: a test is a mark, one value a join with a grouping.

`(SELECT max(v) FROM s)` is a row that is always there. `(SELECT max(v) FROM s WHERE s.k = a.k)` is grouped by
s.k and joined to each row by a.k; a row without a group sees what an empty group gives: NULL, or 0 for a
count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from headwater.expression.nodes import Bound, BoundCall, BoundColumn, BoundConstant, columns_of
from headwater.expression.table import call
from headwater.plan.relational.building import Known
from headwater.plan.relational.correlation import Correlated, correlated, unwrapped
from headwater.plan.relational.expressions import Expressions, refuse, stand_in
from headwater.plan.relational.grouping import Grouping, is_grouped
from headwater.plan.relational.joining import with_columns
from headwater.plan.relational.layer import Layer
from headwater.plan.relational.members import is_test, unknown_as, with_mark
from headwater.plan.relational.nodes import GroupNode, JoinNode, Node, ProjectNode
from headwater.plan.relational.trees import check_arguments

COUNTS = ("count", "count_distinct", "approx_count_distinct")  # 0 where there is no row
LISTS = ("collect_list", "collect_set")  # empty where there is no row


@dataclass
class _Found:
    tree: exp.Expr
    unknown: bool | None  # of a test: what it counts as where it is not known
    value: exp.Expr

    def is_for(self, node: exp.Expr) -> bool:
        return self.tree == node and (
            not isinstance(node, exp.In) or self.unknown == unknown_as(node)
        )


def with_scalars(layer: Layer, known: Known, parts: Iterable[exp.Expr]) -> Layer:
    """A layer in which the subqueries of expressions are columns."""
    found: list[_Found] = []
    for tree in (one for part in parts for one in _scalars_in(part)):
        if any(one.is_for(tree) for one in found):
            continue
        unknown = unknown_as(tree) if isinstance(tree, exp.In) else None
        layer, value = _joined(layer, known, tree, unknown)
        found.append(_Found(tree, unknown, value))

    def replace(node: exp.Expr) -> exp.Expr | None:
        return next((one.value for one in found if one.is_for(node)), None)

    return layer.above(layer.node, replace) if found else layer


def _scalars_in(part: exp.Expr) -> Iterable[exp.Expr]:
    for node in part.walk(prune=_is_subquery):
        if _is_subquery(node):
            yield node


def _is_subquery(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query) or is_test(node)


def _joined(
    layer: Layer, known: Known, tree: exp.Expr, unknown: bool | None
) -> tuple[Layer, exp.Expr]:
    """The layer with one subquery joined, and what stands for its value."""
    if is_test(tree):
        return with_mark(layer, known, tree, unknown)
    select = unwrapped(tree)
    if not isinstance(select, exp.Select):
        raise refuse("a set operation as a value", tree)
    check_arguments(select, "expressions from_ joins where")
    if len(select.expressions) != 1 or not is_grouped(select, select.expressions):
        raise refuse("a subquery that may give several rows", tree)
    inner = correlated(layer.building, known, select)
    own = Layer(layer.building, inner.node, Expressions(inner.names, layer.building.terms))
    item = select.expressions[0]
    item = item.this if isinstance(item, exp.Alias) else item
    if not inner.ties:
        grouping = Grouping(own, select, [item])
        value = own.above(grouping.node, grouping.replace).bound(item)
        name = layer.building.fresh("value")
        one = ProjectNode(grouping.node, ((name, value),))
        return layer.over(JoinNode("inner", layer.node, one)), stand_in(name, value.type)
    return _tied(layer, own, inner, select, item)


def _tied(
    layer: Layer, own: Layer, inner: Correlated, select: exp.Select, item: exp.Expr
) -> tuple[Layer, exp.Expr]:
    """A subquery that depends on the row outside."""
    pairs = [_tie(layer, inner, tie) for tie in inner.ties]
    below, inner_keys = with_columns(layer.building, inner.node, [mine for mine, _ in pairs])
    own = Layer(layer.building, below, own.expressions)
    grouping = Grouping(own, select, [item], _references(below, inner_keys))
    group = grouping.node
    assert isinstance(group, GroupNode)
    if any(one.function in LISTS for one in group.calls):
        raise refuse("a list of no values, which is no NULL", select)
    left, outer_keys = with_columns(layer.building, layer.node, [theirs for _, theirs in pairs])
    safe = tuple(False for _ in pairs)
    joined = JoinNode("left", left, group, tuple(outer_keys), group.keys, safe)
    above = own.above(joined, grouping.replace)
    value = _as_if_empty(above.bound(item), group)
    name = layer.building.fresh("value")
    kept = [(n, BoundColumn(n, t)) for n, t in layer.node.columns]
    return layer.over(ProjectNode(joined, (*kept, (name, value)))), stand_in(name, value.type)


def _references(node: Node, names: Sequence[str]) -> list[exp.Expr]:
    types = dict(node.columns)
    return [stand_in(name, types[name]) for name in names]


def _tie(layer: Layer, inner: Correlated, tie: exp.Expr) -> tuple[Bound, Bound]:
    """The sides of an equality: the subquery's own, and the one outside."""
    seen = inner.with_outside(layer.expressions.names)
    bound = Expressions(seen, layer.building.terms).bound(tie)
    if isinstance(bound, BoundCall) and bound.function == "=":
        first, second = bound.arguments
        outside = frozenset(name for name, _ in layer.node.columns)
        for mine, theirs in ((first, second), (second, first)):
            here, there = columns_of(mine), columns_of(theirs)
            if here and there and here <= inner.names.all and there <= outside:
                return mine, theirs
    raise refuse("a subquery's value depends on more than an equality", tie)


def _as_if_empty(value: Bound, group: GroupNode) -> Bound:
    """A value over aggregates that a row without a group sees as those of no rows: counts are 0."""
    counts = {one.name for one in group.calls if one.function in COUNTS}
    if isinstance(value, BoundColumn) and value.name in counts:
        found = call("coalesce", value, BoundConstant(0, value.type))
        assert found is not None
        return found
    if isinstance(value, BoundCall):
        arguments = tuple(_as_if_empty(one, group) for one in value.arguments)
        return BoundCall(value.function, arguments, value.type, value.parameters)
    return value
