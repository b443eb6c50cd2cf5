"""FROM and WHERE → joins: each relation with its own conditions, joined by what is equal on both sides.

A condition of WHERE goes down to the first place where all of its columns are there, as long as no outer join
stands between: below one that fills its side with NULLs it would mean something else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from headwater.expression.coercion import BOOLEAN
from headwater.expression.nodes import Bound, BoundColumn, columns_of
from headwater.plan.relational.as_of import as_of
from headwater.plan.relational.building import Building, Known
from headwater.plan.relational.expressions import Expressions, refuse
from headwater.plan.relational.joining import compared, join_on
from headwater.plan.relational.names import KnownRelation, Names, NotKept
from headwater.plan.relational.nodes import FilterNode, JoinKind, JoinNode, Node, ProjectNode
from headwater.plan.relational.trees import check_arguments

INNER = ("inner", "cross")
AS_OF = ("as of", "left as of")
QUERIES = (exp.Exists, exp.Subquery, exp.Select, exp.SetOperation)


def conjuncts_of(node: exp.Expr) -> list[exp.Expr]:
    """The conditions that must all hold."""
    node = node.unnest()
    if isinstance(node, exp.And):
        return [*conjuncts_of(node.this), *conjuncts_of(node.expression)]
    return [node]


@dataclass(frozen=True)
class _Part:
    """A relation of FROM, not yet joined."""

    node: Node
    relation: KnownRelation
    kind: str
    on: tuple[exp.Expr, ...]
    using: tuple[str, ...]


class JoinedSources:
    """Joins the relations of one SELECT."""

    def __init__(self, building: Building, known: Known) -> None:
        self._building, self._known = building, known
        self.left: list[exp.Expr] = []  # conditions that are Spark's

    def joined(self, select: exp.Select, where: Sequence[exp.Expr]) -> tuple[Node, Names]:
        """The rows of FROM for which conditions without subqueries hold."""
        parts = [self._part(select.args["from_"].this, None)]
        parts += [self._part(join.this, join) for join in select.args.get("joins") or ()]
        node, names = self._all(parts, where)
        if self.left and _has_pairs_of_all(node):
            raise refuse("a join by what Spark must evaluate", select)
        return node, names

    def _part(self, node: exp.Expr, join: exp.Join | None) -> _Part:
        below, relation = self._building.relation(node, self._known)
        if join is None:
            return _Part(below, relation, "inner", (), ())
        check_arguments(join, "this on using side kind method")
        if join.this.args.get("pivots"):
            raise refuse("PIVOT behind a join: it is over all that was joined", join)
        kind = (join.args.get("kind") or "").lower()
        side = (join.args.get("side") or "").lower()
        if kind not in ("", "inner", "outer", "cross", "semi", "anti"):
            raise refuse(f"{kind.upper()} JOIN", join)
        if join.args.get("method"):
            kind = _as_of_kind(join, kind, side)
        kind = kind if kind in ("cross", "semi", "anti", *AS_OF) else side or "inner"
        on = join.args.get("on")
        using = tuple(name.name for name in join.args.get("using") or ())
        conditions = () if on is None else tuple(conjuncts_of(on))
        if any(has_query(condition) for condition in conditions):
            raise refuse("a subquery in ON", join)
        return _Part(below, relation, kind, conditions, using)

    def _all(self, parts: Sequence[_Part], where: Sequence[exp.Expr]) -> tuple[Node, Names]:
        outer = any(part.kind in ("right", "full") for part in parts)
        every = Names((parts[0].relation,))
        for part in parts[1:]:
            if part.kind not in ("semi", "anti"):
                every = _beside(every, part)
        bound = self._bound(Expressions(every, self._building.terms), where)
        joined = [p for p in parts if p.kind in ("left", *AS_OF)]  # what is asked after the join
        padded = {c.name for p in joined for c in p.relation.columns}
        late = [one for one in bound if outer or columns_of(one) & padded]
        early = [one for one in bound if one not in late]
        node, names = self._with_own(parts[0], early), Names((parts[0].relation,))
        for part in parts[1:]:
            node, names = self._join(node, names, part, early)
        for condition in [*early, *late]:
            node = FilterNode(node, condition)
        return node, names

    def _bound(self, expressions: Expressions, where: Sequence[exp.Expr]) -> list[Bound]:
        """Conditions of WHERE; those that only Spark can evaluate are left, if they may be."""
        found: list[Bound] = []
        for one in where:
            try:
                condition = expressions.bound(one)
                _check_conditions([condition], [one])
                found.append(condition)
            except NotKept:
                if self._building.opaque is None:
                    raise
                self.left.append(one)
        return found

    def _with_own(self, part: _Part, conditions: list[Bound]) -> Node:
        """A relation with the conditions that are about it alone."""
        own = {column.name for column in part.relation.columns}
        node = part.node
        for condition in [one for one in conditions if columns_of(one) <= own]:
            node = FilterNode(node, condition)
            conditions.remove(condition)
        return node

    def _join(
        self, left: Node, names: Names, part: _Part, conditions: list[Bound]
    ) -> tuple[Node, Names]:
        both = names.beside([part.relation])
        expressions = Expressions(both, self._building.terms)
        given = [expressions.bound(one) for one in part.on]
        _check_conditions(given, part.on)
        relation = part.relation
        if part.using:
            if part.kind in ("right", "full"):
                raise NotKept("USING of an outer join")
            both = _beside(names, part)
            equalities = part.using[: -1 if part.kind in AS_OF else None]
            given += [_same(names, relation, name) for name in equalities]
            if part.kind in AS_OF:
                given.append(_same(names, relation, part.using[-1], ">="))
        if part.kind in AS_OF:
            return as_of(self._building, part.kind != "as of", left, part.node, given), both
        own = {column.name for column in relation.columns}
        right = part.node
        if part.kind in INNER:
            right = self._with_own(part, conditions)
            seen = both.all
            given += [one for one in conditions if columns_of(one) <= seen]
            conditions[:] = [one for one in conditions if not columns_of(one) <= seen]
        elif part.kind in ("left", "semi", "anti"):
            for one in [c for c in given if columns_of(c) <= own]:
                right = FilterNode(right, one)
                given.remove(one)
        kind: JoinKind = "inner" if part.kind in INNER else part.kind  # type: ignore[assignment]
        node = join_on(self._building, kind, left, right, given)
        if part.kind in ("semi", "anti"):
            return node, names.keys_first(part.using) if part.using else names
        return node, both


def _has_pairs_of_all(node: Node) -> bool:
    """Whether every row of a side meets every row of the other in a join of one FROM."""
    while isinstance(node, FilterNode | ProjectNode):
        node = node.below
    if not isinstance(node, JoinNode):
        return False
    return not node.left_keys or _has_pairs_of_all(node.left)


def _beside(names: Names, part: _Part) -> Names:
    """What is seen once a relation is joined."""
    return names.using(part.relation, part.using) if part.using else names.beside([part.relation])


def _same(names: Names, relation: KnownRelation, name: str, comparison: str = "=") -> Bound:
    """What USING asks of a column."""
    left, right = names.find(exp.column(name)), Names((relation,)).find(exp.column(name))
    assert left is not None
    assert right is not None
    sides = BoundColumn(left.name, left.type), BoundColumn(right.name, right.type)
    return compared(comparison, *sides)


def _as_of_kind(join: exp.Join, kind: str, side: str) -> str:
    """What kind of as-of join it is."""
    if join.args["method"] != "ASOF":
        raise refuse(f"{join.args['method']} JOIN", join)
    if kind not in ("", "inner", "outer") or side not in ("", "left"):
        raise refuse("an as-of join that is neither inner nor left", join)
    return "left as of" if side else "as of"


def has_query(node: exp.Expr) -> bool:
    """Whether a subquery stands in an expression."""
    return node.find(*QUERIES) is not None


def _check_conditions(bound: Sequence[Bound], given: Sequence[exp.Expr]) -> None:
    for one, node in zip(bound, given, strict=True):
        if one.type != BOOLEAN:
            raise refuse("a condition that is no boolean", node)
