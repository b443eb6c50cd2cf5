"""Subqueries that read rows outside them: what is their own, and what ties them to the rows outside.

A column of a subquery is its own if one of its relations has it: inner names come first. A conjunct of its
WHERE with another column ties it to the outside; anything else that does is Spark's.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from headwater.plan.relational.building import Building, Known
from headwater.plan.relational.expressions import refuse
from headwater.plan.relational.names import KnownRelation, Names
from headwater.plan.relational.nodes import Node
from headwater.plan.relational.sources import JoinedSources, conjuncts_of, has_query


@dataclass(frozen=True)
class Correlated:
    """The rows of a subquery's FROM and its own conditions, and the conditions that tie it."""

    node: Node
    names: Names
    ties: tuple[exp.Expr, ...]

    def with_outside(self, outside: Names) -> Names:
        """The names that a tie sees: the subquery's own before those outside.

        A column of its own that is called as a relation outside hides that one: `b.k` is its field.
        """
        taken = frozenset(c.shown.casefold() for r in self.names.relations for c in r.columns)
        aliases = {(r.alias or "").casefold() for r in self.names.relations} | taken
        seen = [
            KnownRelation(r.alias, r.columns, r.only_by_alias | taken)
            for r in outside.relations
            if (r.alias or "").casefold() not in aliases
        ]
        return self.names.beside(seen)


def correlated(building: Building, known: Known, select: exp.Select) -> Correlated:
    """A subquery split into its own rows and what ties it to the rows outside."""
    if select.args.get("from_") is None:
        raise refuse("a subquery without FROM", select)
    where = select.args.get("where")
    conditions = [] if where is None else conjuncts_of(where.this)
    _, inside = JoinedSources(building, known).joined(select, [])
    own = [one for one in conditions if _is_own(one, inside)]
    ties = tuple(one for one in conditions if one not in own)
    for tie in ties:
        if has_query(tie):
            raise refuse("a subquery in a condition about rows outside", tie)
    if any(has_query(one) for one in own):
        raise refuse("a subquery in a subquery", select)
    node, names = JoinedSources(building, known).joined(select, own)
    return Correlated(node, names, ties)


def is_correlated(building: Building, known: Known, select: exp.Select) -> bool:
    """Whether a condition of a subquery's WHERE reads rows outside it."""
    where = select.args.get("where")
    if where is None or select.args.get("from_") is None:
        return False
    _, inside = JoinedSources(building, known).joined(select, [])
    return not all(_is_own(one, inside) for one in conjuncts_of(where.this))


def _is_own(condition: exp.Expr, inside: Names) -> bool:
    if has_query(condition):
        return True
    return all(inside.find(column) is not None for column in condition.find_all(exp.Column))


def unwrapped(node: exp.Expr) -> exp.Expr:
    """The query in parentheses."""
    while isinstance(node, exp.Subquery):
        node = node.this
    return node
