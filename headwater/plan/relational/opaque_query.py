"""A query inside another that has no operators → one node: Spark evaluates it over all rows of its inputs.

Its inputs are tables, queries of WITH around it, and those queries inside it that operators make smaller:
they are kept, and Spark reads what they give in their place. Everything else stays the user's text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sqlglot import exp

from headwater.expression.nodes import BoundColumn
from headwater.plan.relational.building import Building, Built, Known
from headwater.plan.relational.expressions import refuse
from headwater.plan.relational.names import KnownColumn, NotKept
from headwater.plan.relational.nodes import (
    DistinctNode,
    GroupNode,
    Node,
    OpaqueQueryNode,
    ProjectNode,
    SetNode,
    TopNode,
    input_rows,
    inputs_of,
)
from headwater.plan.relational.opaque import BY_ORDER, FRESH, Opaque
from headwater.plan.relational.top import with_tops
from headwater.sql.dialect import relation_of
from headwater.sql.identifiers import identifiers
from headwater.sql.spans import has_span
from headwater.sql.types import quoted

REFUSED = FRESH | BY_ORDER
Query = Callable[[exp.Expr, Known], Built]
Scan = Callable[[str, exp.Expr], Built]


class OpaqueBlock:
    """One query that is left to Spark, with what it reads."""

    def __init__(
        self, building: Building, opaque: Opaque, known: Known, query: Query, scan: Scan
    ) -> None:
        self._building, self._opaque, self._known = building, opaque, known
        self._query, self._scan = query, scan
        self._inputs: list[tuple[Built, tuple[KnownColumn, ...]]] = []
        self._stands: list[tuple[exp.Expr, str]] = []

    def built(self, tree: exp.Expr, reason: str) -> Built:
        """The query as a node; NotKept if it cannot stand by itself."""
        if tree.args.get("limit") and not tree.args.get("order"):
            raise refuse("LIMIT without ORDER BY", tree)
        self._all = any(_shows_all(star) for star in tree.find_all(exp.Star))
        self._named = identifiers(self._opaque.cut(tree, (), frozenset()))
        own = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
        kept = list(self._kept(tree))
        for table in tree.find_all(exp.Table):
            if not any(table is part or _is_in(table, part) for part in kept):
                self._read(table, own)
        if not self._inputs:
            raise refuse("it reads nothing", tree)
        text = self._opaque.cut(tree, self._stands, REFUSED)
        names = tuple(tuple(c.shown for c in seen) for _, seen in self._inputs)
        parts = tuple(self._part(built, seen) for built, seen in self._inputs)
        types = [part.columns for part in parts]
        inputs = [
            [(name, type_) for name, (_, type_) in zip(own_names, columns, strict=True)]
            for own_names, columns in zip(names, types, strict=True)
        ]
        found = self._opaque.columns(text, inputs)
        shown = tuple(KnownColumn(n, self._building.fresh(n), t) for n, t in found)
        node = OpaqueQueryNode(parts, names, text, tuple((c.name, c.type) for c in shown), reason)
        return Built(node, shown)

    def _kept(self, tree: exp.Expr) -> Iterable[exp.Expr]:
        """The queries of its WITH and FROM that operators make smaller: Spark reads what these give."""
        known, clause = dict(self._known), tree.args.get("with_")
        ctes = [] if clause is None or clause.args.get("recursive") else clause.expressions
        for cte in ctes:
            alias = cte.args["alias"]
            if alias.args.get("columns"):
                continue
            built = self._tried(cte.this, known)
            if built is not None:
                known[cte.alias.casefold()] = built
                if self._stand(cte.this, built):
                    yield cte.this
            else:
                known.pop(cte.alias.casefold(), None)
        if not isinstance(tree, exp.Select) or tree.args.get("from_") is None:
            return
        for part in [tree.args["from_"].this, *(j.this for j in tree.args.get("joins") or ())]:
            if isinstance(part, exp.Subquery) and not part.args.get("with_"):
                built = self._tried(part.this, known)
                if built is not None and self._stand(part.this, built):
                    yield part.this

    def _tried(self, tree: exp.Expr, known: Known) -> Built | None:
        try:
            return self._query(tree, known)
        except NotKept:
            return None

    def _stand(self, tree: exp.Expr, built: Built) -> bool:
        """What operators give stands for a query, if they make it smaller."""
        if not _is_smaller(with_tops(built.node)) or not has_span(tree):
            return False
        self._stands.append((tree, f"SELECT * FROM {self._input(built)}"))
        return True

    def _read(self, table: exp.Table, own: set[str]) -> None:
        """A table, or a query of a WITH around this one."""
        relation, name = relation_of(table), table.name.casefold()
        if relation is None or relation.window or relation.cut or relation.version:
            raise refuse(f"{table.name} is read through a clause", table)
        built = self._known.get(name)
        if name in own:
            if built is not None:
                raise refuse(f"{table.name} is a name of two queries", table)
            return
        built = self._scan(table.name, table) if built is None else built
        alias = "" if table.alias else f" AS {quoted(table.name)}"
        self._stands.append((table.this, f"{self._input(built)}{alias}"))

    def _input(self, built: Built) -> str:
        """The name under which Spark reads rows; of their columns those that the text names."""
        hidden = {c.shown.casefold() for c in built.shown if c.hidden}
        if hidden & self._named:
            raise NotKept("it reads a hidden column")
        seen = tuple(c for c in built.shown if not c.hidden)
        if len({c.shown.casefold() for c in seen}) < len(seen) or not all(c.shown for c in seen):
            raise NotKept("columns without names of their own")
        if not self._all:
            seen = tuple(c for c in seen if c.shown.casefold() in self._named) or seen[:1]
        for number, (known, _) in enumerate(self._inputs):
            if known is built:
                return input_rows(number)
        self._inputs.append((built, seen))
        return input_rows(len(self._inputs) - 1)

    def _part(self, built: Built, seen: Sequence[KnownColumn]) -> Node:
        outputs = tuple((self._building.fresh(c.shown), BoundColumn(c.name, c.type)) for c in seen)
        return ProjectNode(built.node, outputs)


def _shows_all(star: exp.Expr) -> bool:
    """Whether a star shows columns, and does not only count rows."""
    return not isinstance(star.parent, exp.Count)


def _is_in(node: exp.Expr, outer: exp.Expr) -> bool:
    parent = node.parent
    while parent is not None and parent is not outer:
        parent = parent.parent
    return parent is outer


def _is_smaller(node: Node) -> bool:
    """Whether operators give less than they read: groups, first rows, what differs."""
    if isinstance(node, GroupNode | TopNode | DistinctNode | SetNode):
        return True
    return any(_is_smaller(below) for below in inputs_of(node))
