"""Expressions that no closure computes → columns below: Spark evaluates them, for rows that come or go alone.

The largest part of an expression that Spark can evaluate by itself is one column, so that CASE and AND guard
what they did; parts with an aggregate, a window function or a subquery in them are looked into. Rows that go
are evaluated again: a text that is cut out gives the same for the same row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
from sqlglot import exp

from headwater.plan.relational.expressions import replaced, stand_in
from headwater.plan.relational.group_keys import aggregates_in
from headwater.plan.relational.layer import Layer
from headwater.plan.relational.names import NotKept
from headwater.plan.relational.nodes import (
    ROW,
    OpaqueColumnsNode,
    input_column,
    opaque_columns,
)
from headwater.plan.relational.opaque import FRESH, GENERATORS, Opaque
from headwater.plan.relational.sources import has_query
from headwater.sql.spans import SPAN

REFUSED = FRESH | GENERATORS
# What they give depends on several rows, or is several.
OF_ROWS = (exp.AggFunc, exp.Window, exp.WithinGroup, exp.Explode, exp.Posexplode)
# They are no values of a row: what they hold is looked into.
LOOKED_INTO = (exp.Alias, exp.Ordered, exp.Star, exp.Distinct, exp.Order, exp.Lambda)


def with_opaque(
    layer: Layer, parts: Sequence[exp.Expr], looked_at: Iterable[exp.Expr] | None = None
) -> tuple[Layer, list[exp.Expr]]:
    """A layer in which what Spark must evaluate is a column, and expressions with these columns in them.

    `looked_at`: where such parts are looked for, if not in all of the expressions.
    """
    opaque = layer.building.opaque
    if opaque is None:
        return layer, list(parts)
    found = _Found(layer, opaque)
    for part in parts if looked_at is None else looked_at:
        found.look(part)
    if not found.trees:
        return layer, list(parts)
    layer = layer.over(found.node())
    return layer, [replaced(part, found.replace) for part in parts]


def arguments_in(parts: Iterable[exp.Expr]) -> Iterable[exp.Expr]:
    """What the aggregates of expressions are made of."""
    for part in parts:
        for node in aggregates_in(part):
            yield from node.iter_expressions()


class _Found:
    """What expressions over a layer leave to Spark."""

    def __init__(self, layer: Layer, opaque: Opaque) -> None:
        self._layer, self._opaque = layer, opaque
        self.trees: list[exp.Expr] = []
        self._texts: list[str] = []
        self._reads: list[str] = []
        self._reasons: list[str] = []
        self._columns: list[exp.Column] = []

    def look(self, node: exp.Expr) -> None:
        """Notes the largest parts of an expression that Spark must evaluate."""
        if isinstance(node, exp.Query | exp.Identifier) or node in self.trees:
            return
        try:
            self._layer.bound(node)
        except NotKept as refused:
            if _is_value(node):
                self._take(node, refused)
            else:
                for part in _parts(node):
                    self.look(part)

    def _take(self, node: exp.Expr, refused: NotKept) -> None:
        """Spark evaluates a part, if it is made of columns that are there."""
        stands: list[tuple[exp.Expr, str]] = []
        self._stand(node, stands)
        if stands:  # else it is of no row: a name that we do not know
            self._texts.append(self._opaque.cut(node, stands, REFUSED))
            self.trees.append(node)
            self._reasons.append(refused.reason)

    def _stand(self, node: exp.Expr, stands: list[tuple[exp.Expr, str]]) -> None:
        """The columns of a part, and what the text calls them."""
        column = self._layer.column(node)
        if column is not None:
            if column not in self._reads:
                self._reads.append(column)
            stands.append((node, input_column(self._reads.index(column))))
            return
        if isinstance(node, exp.Column):
            raise NotKept(f"column {node.name} is not known")
        for part in node.iter_expressions():
            self._stand(part, stands)

    def node(self) -> OpaqueColumnsNode:
        """The node that computes them; NotKept if Spark does not know a type of them."""
        building, below = self._layer.building, self._layer.node
        known = dict(below.columns)
        seen = [(input_column(n), known[name]) for n, name in enumerate(self._reads)]
        rows = [(ROW, pa.int64()), *seen]
        types = self._opaque.columns(opaque_columns(self._texts), [rows])[1:]
        added = tuple((building.fresh("opaque"), type_) for _, type_ in types)
        for tree, (name, type_) in zip(self.trees, added, strict=True):
            self._columns.append(stand_in(name, type_))
            self._columns[-1].meta[SPAN] = tree.meta[SPAN]
        reason = "; ".join(dict.fromkeys(self._reasons))
        written = tuple(self._opaque.cut(tree, (), frozenset()) for tree in self.trees)
        reads, texts = tuple(self._reads), tuple(self._texts)
        return OpaqueColumnsNode(below, reads, texts, written, added, reason)

    def replace(self, node: exp.Expr) -> exp.Expr | None:
        """The column that stands for a part."""
        if node not in self.trees:
            return None
        return self._columns[self.trees.index(node)].copy()


def _is_value(node: exp.Expr) -> bool:
    """Whether a part is a value of one row, as it stands."""
    return not isinstance(node, LOOKED_INTO) and not has_query(node) and node.find(*OF_ROWS) is None


def _parts(node: exp.Expr) -> Iterable[exp.Expr]:
    """What stands in a part that is no value; of a window function its arguments."""
    for part in node.iter_expressions():
        if isinstance(node, exp.Window) and part is node.this:
            yield from part.iter_expressions()
        else:
            yield part
