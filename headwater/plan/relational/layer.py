"""What a SELECT has so far: a node, and how the expressions of the next clauses see it."""

from __future__ import annotations

from sqlglot import exp

from headwater.expression.nodes import Bound, columns_of
from headwater.plan.relational.building import Building
from headwater.plan.relational.expressions import Expressions, Replace, refuse, replaced
from headwater.plan.relational.nodes import FilterNode, Node


class Layer:
    """A node with the stand-ins for what it and those below it have computed."""

    def __init__(
        self,
        building: Building,
        node: Node,
        expressions: Expressions,
        replaces: tuple[Replace, ...] = (),
    ) -> None:
        """`replaces`: the latest first; the first one that has a stand-in for a part gives it."""
        self.building, self.node, self.expressions = building, node, expressions
        self._replaces = replaces

    def above(self, node: Node, replace: Replace) -> Layer:
        """The next layer."""
        return Layer(self.building, node, self.expressions, (replace, *self._replaces))

    def over(self, node: Node) -> Layer:
        """The same with another node, which has all columns of this one."""
        return Layer(self.building, node, self.expressions, self._replaces)

    def _stand_in(self, node: exp.Expr) -> exp.Expr | None:
        return next((new for r in self._replaces if (new := r(node)) is not None), None)

    def bound(self, node: exp.Expr) -> Bound:
        """An expression over the node's columns."""
        found = self.expressions.bound(replaced(node, self._stand_in))
        if columns_of(found) - {name for name, _ in self.node.columns}:
            raise refuse("a column that is not grouped", node)
        return found

    def column(self, node: exp.Expr) -> str | None:
        """The column that a part of an expression is, if it is one; NotKept if the node does not have it."""
        new = self._stand_in(node) or node
        found = self.expressions.resolve(new) if isinstance(new, exp.Column) else None
        if found is None and new is not node:
            raise refuse("a value that is computed of columns", node)
        if found is not None and found[0] not in dict(self.node.columns):
            raise refuse("a column that is not grouped", node)
        return None if found is None else found[0]

    def filtered(self, condition: exp.Expr) -> Layer:
        """The rows for which a condition holds."""
        return self.over(FilterNode(self.node, self.bound(condition)))
