"""Conditions with subqueries → joins: IN and EXISTS are semi joins, NOT EXISTS and NOT IN are anti joins.

`a NOT IN (…)` is true where no value equals a and neither a nor a value is NULL, or where there is no value.
Rows whose a is NULL go one way, by whether there is a value; the others by their key, and by whether a value
is NULL.
"""

from __future__ import annotations

from sqlglot import exp

from headwater.expression.nodes import Bound, BoundColumn
from headwater.expression.table import call
from headwater.plan.relational.building import Known
from headwater.plan.relational.correlation import correlated, unwrapped
from headwater.plan.relational.expressions import Expressions, refuse
from headwater.plan.relational.layer import Layer
from headwater.plan.relational.nodes import (
    FilterNode,
    JoinKind,
    JoinNode,
    Node,
    ProjectNode,
    UnionNode,
)
from headwater.plan.relational.sources import equal, has_query, join_on
from headwater.plan.relational.trees import check_arguments


def is_member_test(condition: exp.Expr) -> bool:
    """Whether a condition is IN or EXISTS over a subquery, or the negation of one."""
    test, _ = _test(condition)
    return isinstance(test, exp.Exists) or (
        isinstance(test, exp.In) and test.args.get("query") is not None
    )


def with_member(layer: Layer, known: Known, condition: exp.Expr) -> Layer:
    """The rows for which such a condition holds."""
    test, negated = _test(condition)
    if isinstance(test, exp.Exists):
        return layer.over(_exists(layer, known, test, negated))
    assert isinstance(test, exp.In)
    check_arguments(test, "this query")
    if has_query(test.this):
        raise refuse("IN of a subquery", condition)
    built = layer.building.query(test.args["query"], known)
    if len(built.shown) != 1:
        raise refuse("IN with several columns", condition)
    inner = BoundColumn(built.shown[0].name, built.shown[0].type)
    tested = layer.bound(test.this)
    if negated:
        return layer.over(_not_in(layer, built.node, tested, inner))
    same = equal(tested, inner)
    return layer.over(join_on(layer.building, "semi", layer.node, built.node, [same]))


def _not_in(layer: Layer, values: Node, tested: Bound, value: Bound) -> Node:
    """The rows whose expression is none of some values."""
    building = layer.building
    known = FilterNode(layer.node, _asked("not", _asked("is null", tested)))
    node = join_on(building, "anti", known, values, [equal(tested, value)])
    node = JoinNode("anti", node, FilterNode(values, _asked("is null", value)))
    absent = JoinNode("anti", FilterNode(layer.node, _asked("is null", tested)), values)
    columns = tuple((name, BoundColumn(name, type_)) for name, type_ in layer.node.columns)
    return UnionNode((ProjectNode(node, columns), ProjectNode(absent, columns)))


def _asked(function: str, value: Bound) -> Bound:
    found = call(function, value)
    assert found is not None
    return found


def _test(condition: exp.Expr) -> tuple[exp.Expr, bool]:
    negated = False
    while isinstance(condition, exp.Not | exp.Paren):
        negated ^= isinstance(condition, exp.Not)
        condition = condition.this
    return condition, negated


def _exists(layer: Layer, known: Known, test: exp.Exists, negated: bool) -> Node:
    select = unwrapped(test.this)
    if not isinstance(select, exp.Select):
        raise refuse("EXISTS over a set operation", test)
    check_arguments(select, "expressions from_ joins where")
    inner = correlated(layer.building, known, select)
    seen = inner.with_outside(layer.expressions.names)
    expressions = Expressions(seen, layer.building.terms)
    kind: JoinKind = "anti" if negated else "semi"
    given = [expressions.bound(tie) for tie in inner.ties]
    return join_on(layer.building, kind, layer.node, inner.node, given)
