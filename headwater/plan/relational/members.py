"""Conditions with subqueries → joins: IN and EXISTS are semi joins, NOT EXISTS and NOT IN are anti joins.

`a NOT IN (…)` is true where no value equals a and neither a nor a value is NULL, or where there is no value.
Rows whose a is NULL go one way, by whether there is a value; the others by their key, and by whether a value
is NULL.

Elsewhere in an expression (under OR, in a CASE) such a test is a column: the rows that have a partner stand
beside those that have none, each with its truth; IN is NULL where no value equals a and one of them is NULL.
Where it is a value, not asked for its truth alone, Spark makes IN and NOT IN FALSE then.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headwater.expression.coercion import BOOLEAN
from headwater.expression.nodes import NULL, Bound, BoundColumn, BoundConstant, columns_of
from headwater.expression.table import call
from headwater.plan.relational.building import Known
from headwater.plan.relational.correlation import (
    Correlated,
    correlated,
    is_correlated,
    unwrapped,
)
from headwater.plan.relational.explode import GENERATORS
from headwater.plan.relational.expressions import Expressions, refuse, stand_in
from headwater.plan.relational.grouping import is_grouped
from headwater.plan.relational.joining import equal, join_on, with_columns
from headwater.plan.relational.layer import Layer
from headwater.plan.relational.nodes import (
    FilterNode,
    JoinKind,
    Node,
    ProjectNode,
    UnionNode,
)
from headwater.plan.relational.sources import has_query
from headwater.plan.relational.trees import check_arguments


def is_member_test(condition: exp.Expr) -> bool:
    """Whether a condition is IN or EXISTS over a subquery, or the negation of one."""
    return is_test(_test(condition)[0])


def is_test(node: exp.Expr) -> bool:
    """Whether a node is IN or EXISTS over a subquery."""
    return isinstance(node, exp.Exists) or (
        isinstance(node, exp.In) and node.args.get("query") is not None
    )


def with_member(layer: Layer, known: Known, condition: exp.Expr) -> Layer:
    """The rows for which such a condition holds."""
    test, negated = _test(condition)
    if isinstance(test, exp.Exists):
        node, given = _existing(layer, known, test)
        kind: JoinKind = "anti" if negated else "semi"
        return layer.over(join_on(layer.building, kind, layer.node, node, given))
    assert isinstance(test, exp.In)
    values = _Values(layer, known, test)
    return layer.over(values.without() if negated else values.joined("semi", layer.node))


def unknown_as(test: exp.Expr) -> bool | None:
    """What a test counts as where its truth is not known: NULL where no more than truth is asked for.

    As a value it is FALSE then, or TRUE right under a NOT.
    """
    node, negated, joined, turned = test, False, False, False
    while isinstance(node.parent, exp.Paren | exp.Not | exp.And | exp.Or):
        node = node.parent
        turned |= joined and isinstance(node, exp.Not)
        negated ^= isinstance(node, exp.Not)
        joined |= isinstance(node, exp.And | exp.Or)
    if _is_asked(node):
        return None
    if turned or isinstance(node.parent, exp.EQ | exp.NEQ):  # Spark may make NOT IN of it, or not
        raise refuse("IN under NOT or =, as a value", test)
    return negated


def _is_asked(condition: exp.Expr) -> bool:
    """Whether NULL means the same as FALSE."""
    above = condition.parent
    if isinstance(above, exp.If):
        compared = isinstance(above.parent, exp.Case) and above.parent.this is not None
        return above.this is condition and not compared
    return isinstance(above, exp.Where)


def with_mark(
    layer: Layer, known: Known, test: exp.Expr, unknown: bool | None
) -> tuple[Layer, exp.Expr]:
    """All rows, with the truth of such a test as a column; what stands for it."""
    name = layer.building.fresh("mark")
    sides: list[tuple[Node, bool | None]]
    if isinstance(test, exp.Exists):
        node, given = _existing(layer, known, test)
        sides = [
            (join_on(layer.building, "semi", layer.node, node, given), True),
            (join_on(layer.building, "anti", layer.node, node, given), False),
        ]
    else:
        assert isinstance(test, exp.In)
        found = _Values(layer, known, test).by_truth()
        sides = [(node, unknown if truth is None else truth) for node, truth in found]
    columns = [(column, BoundColumn(column, type_)) for column, type_ in layer.node.columns]
    parts = [
        ProjectNode(node, (*columns, (name, BoundConstant(truth, BOOLEAN))))
        for node, truth in sides
    ]
    return layer.over(UnionNode(tuple(parts))), stand_in(name, BOOLEAN)


class _Values:
    """`a IN (SELECT b …)`: the rows of b, and what ties them to the row of a."""

    def __init__(self, layer: Layer, known: Known, test: exp.In) -> None:
        check_arguments(test, "this query")
        if has_query(test.this):
            raise refuse("IN of a subquery", test)
        self._layer, query = layer, unwrapped(test.args["query"])
        self._tested, self._ties = layer.bound(test.this), list[Bound]()
        if self._tested.type == NULL:
            raise refuse("IN of a NULL that has no type", test)
        if isinstance(query, exp.Select) and is_correlated(layer.building, known, query):
            self._read_tied(known, query)
        else:
            built = layer.building.query(test.args["query"], known)
            if len(built.shown) != 1:
                raise refuse("IN with several columns", test)
            self._node = built.node
            self._value: Bound = BoundColumn(built.shown[0].name, built.shown[0].type)
        self._same = equal(self._tested, self._value)

    def _read_tied(self, known: Known, select: exp.Select) -> None:
        check_arguments(select, "expressions from_ joins where")
        if len(select.expressions) != 1 or is_grouped(select, select.expressions):
            raise refuse("a grouping that depends on rows outside, in IN", select)
        inner, item = correlated(self._layer.building, known, select), select.expressions[0]
        own = Expressions(inner.names, self._layer.building.terms)
        value = own.bound(item.this if isinstance(item, exp.Alias) else item)
        self._node, (name,) = with_columns(self._layer.building, inner.node, [value])
        self._value = BoundColumn(name, value.type)
        self._ties = _tied(self._layer, inner)

    def joined(self, kind: JoinKind, left: Node) -> Node:
        """The rows that have an equal value, or those that have none."""
        return self._join(kind, left, self._node, [self._same])

    def without(self) -> Node:
        """The rows for which a is surely none of the values."""
        sides = [node for node, truth in self._by_truth() if truth is False]
        columns = tuple((n, BoundColumn(n, t)) for n, t in self._layer.node.columns)
        return UnionNode(tuple(ProjectNode(node, columns) for node in sides))

    def by_truth(self) -> list[tuple[Node, bool | None]]:
        """All rows, apart by whether a is one of the values."""
        return [(self.joined("semi", self._layer.node), True), *self._by_truth(unknown=True)]

    def _by_truth(self, unknown: bool = False) -> list[tuple[Node, bool | None]]:
        """The rows that have no equal value; those for which it is not known only if asked for."""
        rows, values = self._layer.node, self._node
        nulls = FilterNode(values, _asked("is null", self._value))
        known = FilterNode(rows, _asked("not", _asked("is null", self._tested)))
        absent = FilterNode(rows, _asked("is null", self._tested))
        alone = self.joined("anti", known)
        found: list[tuple[Node, bool | None]] = [
            (self._join("anti", alone, nulls), False),
            (self._join("anti", absent, values), False),
        ]
        if unknown:
            found.append((self._join("semi", alone, nulls), None))
            found.append((self._join("semi", absent, values), None))
        return found

    def _join(self, kind: JoinKind, left: Node, values: Node, also: Sequence[Bound] = ()) -> Node:
        return join_on(self._layer.building, kind, left, values, [*also, *self._ties])


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


def _existing(layer: Layer, known: Known, test: exp.Exists) -> tuple[Node, list[Bound]]:
    """The rows that EXISTS asks for, and the conditions that tie them to the row outside."""
    select = unwrapped(test.this)
    if not isinstance(select, exp.Select):
        is_set = isinstance(select, exp.SetOperation)
        raise refuse(
            "EXISTS over a set operation" if is_set else "exists is evaluated by Spark", test
        )
    check_arguments(select, "expressions from_ joins where")
    if is_grouped(select, select.expressions):
        raise refuse("EXISTS over an aggregate, which has a row in any case", test)
    if any(item.find(*GENERATORS) is not None for item in select.expressions):
        raise refuse("EXISTS over a generator", test)
    inner = correlated(layer.building, known, select)
    seen = Expressions(inner.with_outside(layer.expressions.names), layer.building.terms)
    for item in [one for one in select.expressions if not one.is_star]:
        for column in item.find_all(exp.Column):
            seen.bound(column)  # Spark looks for it, too
    return inner.node, _tied(layer, inner)


def _tied(layer: Layer, inner: Correlated) -> list[Bound]:
    seen = inner.with_outside(layer.expressions.names)
    expressions = Expressions(seen, layer.building.terms)
    found = [expressions.bound(tie) for tie in inner.ties]
    there = inner.names.all.union(name for name, _ in layer.node.columns)
    for bound, tie in zip(found, inner.ties, strict=True):
        if not columns_of(bound) <= there:
            raise refuse("a subquery above a grouping that depends on its rows", tie)
    return found
