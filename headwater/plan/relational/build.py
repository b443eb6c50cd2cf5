"""sqlglot's tree of a query → relational nodes, or the reason why there are none.

Owns: WITH, set operations, subqueries in FROM, and what a whole query gives: a node, its columns in order,
and the order in which they are read. Everything is Spark's unless it is understood: a clause, an argument
of a node or a name that is not known here refuses the query. Must never: guess.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from headwater.expression.coercion import common_type, convert
from headwater.expression.nodes import NULL, Bound, BoundColumn
from headwater.expression.terms import Terms
from headwater.plan.folds import StreamColumns
from headwater.plan.relational.building import AggregateType, Building, Built, Known, Schemas
from headwater.plan.relational.expressions import refuse
from headwater.plan.relational.names import KnownColumn, KnownRelation, NotKept
from headwater.plan.relational.nodes import (
    DistinctNode,
    Node,
    ProjectNode,
    ScanNode,
    SetNode,
    TopNode,
    UnionNode,
)
from headwater.plan.relational.opaque import Opaque
from headwater.plan.relational.opaque_query import OpaqueBlock
from headwater.plan.relational.pivots import pivoted
from headwater.plan.relational.select import SelectBuilder
from headwater.plan.relational.trees import (
    check_arguments,
    check_no_maps,
    limits_of,
    ordered_items,
    ordinal,
    sort_column,
)
from headwater.sql.dialect import relation_of


class QueryBuilder:
    """Builds the nodes of one query."""

    def __init__(
        self,
        tables: Schemas,
        terms: Terms,
        aggregate_type: AggregateType,
        opaque: Opaque | None = None,
    ) -> None:
        """`opaque`: cuts out of the query's text what has no operator; None: then there are no nodes."""
        self._building = Building(tables, terms, aggregate_type, self.query, self.relation, opaque)
        self._scans: dict[str, Built] = {}
        self._written: dict[int, exp.Expr] = {}  # the parts of the user's own tree
        self._done: dict[int, Built] = {}  # of these

    def whole(self, tree: exp.Expr) -> Built:
        """A query as the user has written it."""
        self._written = {id(node): node for node in tree.walk()}
        return self.query(tree)

    @property
    def fresh(self) -> Callable[[str], str]:
        """Gives a name that no other column has."""
        return self._building.fresh

    def query(self, tree: exp.Expr, known: Known | None = None) -> Built:
        """A query, with the queries of WITH that it may read; one node if Spark must evaluate it."""
        known, opaque = known or {}, self._building.opaque
        if opaque is None or id(tree) not in self._written:
            return self._built(tree, known)
        if id(tree) not in self._done:
            try:
                self._done[id(tree)] = self._built(tree, known)
            except NotKept as refused:
                self._done[id(tree)] = self._left(tree, known, opaque, refused)
        return self._done[id(tree)]

    def _left(self, tree: exp.Expr, known: Known, opaque: Opaque, refused: NotKept) -> Built:
        """A query that is left to Spark; the reason why it is, if it cannot stand by itself."""
        try:
            found = OpaqueBlock(self._building, opaque, known, self.query, self._scan)
            built = found.built(tree, refused.reason)
            order = [(_by_name(built, item.this), item) for item in ordered_items(tree)]
        except NotKept:
            raise refused from None
        return replace(built, order=tuple(sort_column(c.name, item) for c, item in order))

    def _built(self, tree: exp.Expr, known: Known) -> Built:
        known = self._with(tree, known)
        if isinstance(tree, exp.Subquery):
            check_arguments(tree, "this with_")
            return self.query(tree.this, known)
        if isinstance(tree, exp.Select):
            return SelectBuilder(self._building, known).built(tree)
        if isinstance(tree, exp.SetOperation):
            return self._ordered(tree, self._set_operation(tree, known))
        raise refuse(f"{tree.key} is evaluated by Spark", tree)

    def _with(self, tree: exp.Expr, known: Known) -> Known:
        clause = tree.args.get("with_")
        if clause is None:
            return known
        if clause.args.get("recursive"):
            raise refuse("WITH RECURSIVE", clause)
        found = dict(known)
        for cte in clause.expressions:
            built = self.query(cte.this, found)
            alias = cte.args["alias"]
            found[alias.name.casefold()] = _renamed(built, alias)
        return found

    # Relations

    def relation(self, node: exp.Expr, known: Known) -> tuple[Node, KnownRelation]:
        """A table or subquery of FROM."""
        pivots = node.args.get("pivots") or []
        if pivots:
            return self._pivoted(node, pivots, known)
        if isinstance(node, exp.Table):
            return self._table(node, known)
        if isinstance(node, exp.Subquery):
            check_arguments(node, "this alias with_")
            alias = node.args.get("alias")
            built = self.query(node.this, self._with(node, known))
            built = self._alone(built if alias is None else _renamed(built, alias))
            return built.node, KnownRelation(node.alias or None, built.shown)
        raise refuse("a function in FROM", node)

    def _pivoted(
        self, node: exp.Expr, pivots: Sequence[exp.Expr], known: Known
    ) -> tuple[Node, KnownRelation]:
        """A table or subquery with PIVOT behind it."""
        if len(pivots) != 1:
            raise refuse("several PIVOTs", node)
        plain = node.copy()
        plain.set("pivots", None)
        below, relation = self.relation(plain, known)
        rows = self.fresh("rows")
        made = pivoted(pivots[0], rows, relation.columns)
        built = self._alone(self.query(made, {**known, rows: Built(below, relation.columns)}))
        return built.node, KnownRelation(pivots[0].alias or None, built.shown)

    def _table(self, node: exp.Table, known: Known) -> tuple[Node, KnownRelation]:
        check_arguments(node, "this alias")
        relation, name = relation_of(node), node.name
        if relation is None or relation.window or relation.cut or relation.version:
            raise refuse(f"{name} is read through a clause", node)
        alias = node.args.get("alias")
        built = known.get(name.casefold())
        if built is None:
            built = self._scan(name, node)
        if alias is not None:
            built = _renamed(built, alias)
        built = self._alone(built)
        return built.node, KnownRelation(node.alias or name, built.shown)

    def _alone(self, built: Built) -> Built:
        """A relation with names of its own, so that a table may stand twice in a FROM."""
        outputs, shown = [], []
        for column in built.shown:
            name = self.fresh(column.shown)
            outputs.append((name, BoundColumn(column.name, column.type)))
            shown.append(replace(column, name=name))
        return Built(ProjectNode(built.node, tuple(outputs)), tuple(shown))

    def _scan(self, name: str, node: exp.Expr) -> Built:
        key = name.casefold()
        if key not in self._scans:
            stream = self._building.tables.stream(name)
            if stream is not None:
                self._scans[key] = self._stream(key, stream)
            else:
                schema = self._building.tables.standard(name)
                if schema is None:
                    raise refuse(f"{name} is no table", node)
                self._scans[key] = self._standard(key, schema)
        return self._scans[key]

    def _stream(self, key: str, stream: StreamColumns) -> Built:
        visible = set(stream.visible)
        shown = tuple(
            KnownColumn(f.name, self.fresh(f.name), f.type, f.name not in visible)
            for f in stream.schema
        )
        return Built(_scan_of(key, shown, False), shown)

    def _standard(self, key: str, schema: pa.Schema) -> Built:
        shown = tuple(KnownColumn(f.name, self.fresh(f.name), f.type) for f in schema)
        return Built(_scan_of(key, shown, True), shown)

    # Set operations

    def _set_operation(self, tree: exp.SetOperation, known: Known) -> Built:
        check_arguments(tree, "this expression distinct order limit offset with_")
        left, right = (self._side(side, known) for side in (tree.this, tree.expression))
        if len(left.shown) != len(right.shown):
            raise refuse("sides with different numbers of columns", tree)
        types = [self._common(a, b, tree) for a, b in zip(left.shown, right.shown, strict=True)]
        names = [self.fresh(column.shown) for column in left.shown]
        sides = [self._converted(side, names, types) for side in (left, right)]
        distinct = bool(tree.args.get("distinct"))
        if distinct or not isinstance(tree, exp.Union):
            check_no_maps(types, tree)
        node: Node
        if isinstance(tree, exp.Union):
            node = UnionNode(tuple(sides))
            node = DistinctNode(node) if distinct else node
        else:
            kind = "intersect" if isinstance(tree, exp.Intersect) else "except"
            node = SetNode(kind, not distinct, sides[0], sides[1])  # type: ignore[arg-type]
        shown = zip(left.shown, names, types, strict=True)
        return Built(node, tuple(KnownColumn(c.shown, n, t) for c, n, t in shown))

    def _side(self, tree: exp.Expr, known: Known) -> Built:
        built = self.query(tree, known)
        if built.order and not built.natural:
            raise refuse("ORDER BY within a set operation", tree)
        return built

    def _common(self, left: KnownColumn, right: KnownColumn, tree: exp.Expr) -> pa.DataType:
        sides = [BoundColumn(left.name, left.type), BoundColumn(right.name, right.type)]
        found = left.type if left.type == right.type else common_type(sides)
        if found is None or found == NULL:
            raise refuse(f"{left.type} and {right.type} meet in a set operation", tree)
        return found

    def _converted(
        self, side: Built, names: Sequence[str], types: Sequence[pa.DataType]
    ) -> ProjectNode:
        given: list[Bound] = [BoundColumn(c.name, c.type) for c in side.shown]
        bound = [convert(one, type_) for one, type_ in zip(given, types, strict=True)]
        return ProjectNode(side.node, tuple(zip(names, bound, strict=True)))

    def _ordered(self, tree: exp.Expr, built: Built) -> Built:
        """ORDER BY and LIMIT over a set operation: its columns by name or number."""
        order = []
        for item in ordered_items(tree):
            column = _by_name(built, item.this)
            order.append(sort_column(column.name, item))
        limit, offset = limits_of(tree)
        if limit is None and not offset:
            return replace(built, order=tuple(order))
        if not order:
            raise refuse("LIMIT without ORDER BY over a set operation", tree)
        top = TopNode(built.node, (), tuple(order), limit, offset)
        return Built(top, built.shown, tuple(order))


def _scan_of(key: str, shown: Sequence[KnownColumn], changes: bool) -> ScanNode:
    stored = tuple(column.shown for column in shown)
    return ScanNode(key, stored, tuple((c.name, c.type) for c in shown), changes)


def _renamed(built: Built, alias: exp.TableAlias) -> Built:
    names = alias.args.get("columns") or []
    if not names:
        return built
    seen = [column for column in built.shown if not column.hidden]
    if len(names) != len(seen):
        raise refuse("column names after an alias", alias)
    shown = tuple(replace(c, shown=n.name) for c, n in zip(seen, names, strict=True))
    return replace(built, shown=shown)


def _by_name(built: Built, node: exp.Expr) -> KnownColumn:
    place = ordinal(node)
    if place is not None and 0 <= place < len(built.shown):
        return built.shown[place]
    if isinstance(node, exp.Column) and not node.table:
        found = [c for c in built.shown if c.shown.casefold() == node.name.casefold()]
        if len(found) == 1:
            return found[0]
    raise refuse("ORDER BY an expression over a set operation", node)
