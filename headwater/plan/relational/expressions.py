"""Expressions of a SELECT, bound: over the columns of its FROM, or with parts that were computed below.

An aggregate, a window function, a key of the grouping or a subquery inside an expression is computed by a
node below and is a column here: a *stand-in* takes its place in the tree before it is bound.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from sqlglot import exp

from headwater.expression.bind import Refusal, bind
from headwater.expression.nodes import Bound, BoundColumn
from headwater.expression.terms import Terms
from headwater.plan.relational.names import Names, NotKept
from headwater.sql.spans import has_span, span_of

STAND_IN = "\x00"  # begins the names of stand-ins; no text of a user has it
Replace = Callable[[exp.Expr], exp.Expr | None]


def stand_in(name: str, type_: pa.DataType) -> exp.Column:
    """A reference to a column that was computed below."""
    node = exp.Column(this=exp.Identifier(this=STAND_IN + name, quoted=True))
    node.meta["stands for"] = (name, type_)
    return node


def stands_for(node: exp.Expr) -> tuple[str, pa.DataType] | None:
    """The column that a stand-in means."""
    found: tuple[str, pa.DataType] | None = node.meta.get("stands for")
    return found


def replaced(node: exp.Expr, replace: Replace) -> exp.Expr:
    """A copy of a tree with some parts replaced, the outermost first; subqueries are not looked into."""
    new = replace(node)
    if new is not None:
        return new
    if isinstance(node, exp.Query):
        return node
    made = node.copy() if not list(node.iter_expressions()) else _shell(node)
    for key, value in node.args.items():
        if isinstance(value, exp.Expr):
            made.set(key, replaced(value, replace))
        elif isinstance(value, list):
            made.set(key, [replaced(v, replace) if isinstance(v, exp.Expr) else v for v in value])
    return made


def _shell(node: exp.Expr) -> exp.Expr:
    made = type(node)(**{k: v for k, v in node.args.items() if not isinstance(v, exp.Expr | list)})
    made.meta.update(node.meta)
    return made


class Expressions:
    """Binds expressions over the columns of some relations."""

    def __init__(self, names: Names, terms: Terms) -> None:
        self.names, self._terms = names, terms

    def resolve(self, node: exp.Column) -> tuple[str, pa.DataType] | None:
        """The column that a reference means."""
        known = stands_for(node)
        if known is not None:
            return known
        found = self.names.find(node)
        return None if found is None else (found.name, found.type)

    def bound(self, node: exp.Expr) -> Bound:
        """A bound expression; NotKept if Spark must evaluate it."""
        known = self.resolve(node) if isinstance(node, exp.Column) else None
        if known is not None:
            return BoundColumn(*known)
        found = bind(node, self.resolve, self._terms)
        if isinstance(found, Refusal):
            raise NotKept(found.reason, found.span)
        return found

    def tried(self, node: exp.Expr) -> Bound | None:
        """The same, or None."""
        try:
            return self.bound(node)
        except NotKept:
            return None

    def shown(self, item: exp.Expr) -> str | None:
        """What an item of a select list is called, where that is clear."""
        if isinstance(item, exp.Alias):
            return str(item.alias)
        return item.name if isinstance(item, exp.Column) else None


def refuse(reason: str, node: exp.Expr) -> NotKept:
    """Why a part of a query is Spark's."""
    return NotKept(reason, span_of(node) if has_span(node) else None)
