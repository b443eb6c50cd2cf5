"""One SELECT → nodes, clause by clause in SQL's order: FROM to LIMIT.

Each step adds nodes and says what expressions of the steps above see in the
place of what it computed (`expressions`).
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headwater.expression.nodes import Bound
from headwater.plan.relational.aliases import columns_first, items_first, lateral
from headwater.plan.relational.building import Building, Built, Known
from headwater.plan.relational.explode import has_generator, with_generator, with_laterals
from headwater.plan.relational.expressions import Expressions, refuse, stand_in
from headwater.plan.relational.group_keys import GroupKeys, aggregates_in
from headwater.plan.relational.grouping import Grouping, is_grouped
from headwater.plan.relational.layer import Layer
from headwater.plan.relational.members import is_member_test, with_member
from headwater.plan.relational.names import KnownColumn, Names
from headwater.plan.relational.natural import natural_order
from headwater.plan.relational.nodes import (
    DistinctNode,
    Node,
    ProjectNode,
    SortColumn,
    TopNode,
)
from headwater.plan.relational.opaque_columns import arguments_in, with_opaque
from headwater.plan.relational.scalars import with_scalars
from headwater.plan.relational.sources import JoinedSources, conjuncts_of, has_query
from headwater.plan.relational.time_windows import TimeWindow, time_window_of
from headwater.plan.relational.trees import (
    check_arguments,
    check_no_maps,
    limits_of,
    ordered_items,
    ordinal,
    sort_column,
)
from headwater.plan.relational.windows import OverClauses

CLAUSES = (
    "expressions from_ joins laterals where group having order limit offset distinct qualify with_"
)


class SelectBuilder:
    """Builds one SELECT."""

    def __init__(self, building: Building, known: Known) -> None:
        self._building, self._known = building, known

    def built(self, select: exp.Select) -> Built:
        """The whole SELECT."""
        check_arguments(select, CLAUSES)
        if select.args.get("from_") is None:
            raise refuse("a SELECT without FROM", select)
        where = select.args.get("where")
        sources = JoinedSources(self._building, self._known)
        conditions = [] if where is None else conjuncts_of(where.this)
        laterals = select.args.get("laterals") or []
        plain = [] if laterals else [one for one in conditions if not has_query(one)]
        node, names = sources.joined(select, plain)
        node, names = with_laterals(self._building, node, names, laterals)
        items = self._items(select, names)
        layer = Layer(self._building, node, Expressions(names, self._building.terms))
        layer = self._left(layer, sources.left)
        for condition in [one for one in conditions if one not in plain]:
            asked = has_query(condition)
            layer = self._asked(layer, condition) if asked else self._left(layer, [condition])
        if any(has_generator(item) for item in items):
            layer, items = with_opaque(layer, items)
        layer, items = with_generator(layer, items)
        layer, window = time_window_of(layer, select, items)
        if window is not None:
            select, items = window.without(select), [window.named(item) for item in items]
        layer, select, items = self._below_grouping(layer, select, items)
        layer = self._grouped(layer, select, items, window)
        order, qualify = ordered_items(select), select.args.get("qualify")
        if qualify is not None and not any(p.find(exp.Window) for p in (*items, qualify)):
            raise refuse("QUALIFY without a window function", qualify)
        if qualify is not None and any(aggregates_in(qualify.this)):
            raise refuse("an aggregate in QUALIFY", qualify)
        if any(item.find(exp.Window) for item in order):
            raise refuse("ORDER BY a window function", select)
        kept = [] if qualify is None else [columns_first(qualify.this, items, names)]
        layer, items, order, kept = _with_opaque_of(layer, items, order, kept)
        over = OverClauses(layer, [*items, *(item.this for item in order), *kept])
        if over.are_there:
            layer = layer.above(over.node, over.replace)
            layer, items, order, kept = _with_opaque_of(layer, items, order, kept)
        for condition in kept:
            layer = layer.filtered(condition)
        return self._finished(select, items, order, layer)

    def _left(self, layer: Layer, conditions: Sequence[exp.Expr]) -> Layer:
        """The rows for which conditions hold, some of which Spark may have to evaluate."""
        layer, conditions = with_opaque(layer, conditions)
        for condition in conditions:
            layer = layer.filtered(condition)
        return layer

    def _below_grouping(
        self, layer: Layer, select: exp.Select, items: list[exp.Expr]
    ) -> tuple[Layer, exp.Select, list[exp.Expr]]:
        """What Spark must evaluate for a grouping as columns: of its keys, and of what it aggregates."""
        clauses = {
            n: c for n in ("group", "having", "order", "qualify") if (c := select.args.get(n))
        }
        if self._building.opaque is None or not is_grouped(select, [*items, *clauses.values()]):
            return layer, select, items
        keys, _ = GroupKeys(layer.expressions.names, items).of(clauses.get("group"))
        parts = [*items, *clauses.values()]
        layer, parts = with_opaque(layer, parts, [*keys, *arguments_in(parts)])
        made = exp.Select()
        made.args = {**select.args, **dict(zip(clauses, parts[len(items) :], strict=True))}
        made.meta.update(select.meta)
        return layer, made, parts[: len(items)]

    def _asked(self, layer: Layer, condition: exp.Expr) -> Layer:
        """The rows for which a condition with a subquery holds."""
        if is_member_test(condition):
            return with_member(layer, self._known, condition)
        return with_scalars(layer, self._known, [condition]).filtered(condition)

    def _grouped(
        self,
        layer: Layer,
        select: exp.Select,
        items: Sequence[exp.Expr],
        window: TimeWindow | None,
    ) -> Layer:
        having = select.args.get("having")
        if not is_grouped(select, [*items, *([] if having is None else [having.this])]):
            if having is not None:
                raise refuse("HAVING without a grouping", having)
            layer = layer if window is None else layer.over(window.rows(layer, ()))
            return with_scalars(layer, self._known, items)
        if window is not None:
            keys, sets = GroupKeys(layer.expressions.names, items).of(select.args.get("group"))
            layer = layer.over(window.rows(layer, keys if sets is None else None))
        grouping = Grouping(layer, select, items)
        layer = layer.above(grouping.node, grouping.replace)
        kept = (
            [] if having is None else [columns_first(having.this, items, layer.expressions.names)]
        )
        layer = with_scalars(layer, self._known, [*items, *kept])
        layer, kept = with_opaque(layer, kept)
        for condition in kept:
            layer = layer.filtered(condition)
        return layer

    def _items(self, select: exp.Select, names: Names) -> list[exp.Expr]:
        """The select list with `*` written out."""
        found: list[exp.Expr] = []
        for item in select.expressions:
            star = item.this if isinstance(item, exp.Column) else item
            if not isinstance(star, exp.Star):
                found.append(item)
                continue
            check_arguments(star, "except_")
            of = item.table or None if isinstance(item, exp.Column) else None
            for column in _without(names.star(of), star):
                reference = stand_in(column.name, column.type)
                found.append(exp.Alias(this=reference, alias=exp.to_identifier(column.shown)))
        return lateral(found, names)

    def _finished(
        self,
        select: exp.Select,
        items: Sequence[exp.Expr],
        order: Sequence[exp.Ordered],
        layer: Layer,
    ) -> Built:
        shown: list[KnownColumn] = []
        outputs: list[tuple[str, Bound]] = []
        for item in items:
            bound = layer.bound(item.this if isinstance(item, exp.Alias) else item)
            called = layer.expressions.shown(item) or ""
            name = self._building.fresh(called)
            outputs.append((name, bound))
            shown.append(KnownColumn(called, name, bound.type))
        distinct = select.args.get("distinct")
        if distinct is not None:
            check_arguments(distinct, "")
            check_no_maps((column.type for column in shown), select)
        sorts: list[SortColumn] = []
        for one in order:
            name = self._sorted_by(one, items, shown, outputs, layer, distinct is not None)
            sorts.append(sort_column(name, one))
        limit, offset = limits_of(select)
        natural = not sorts and distinct is None
        if natural:
            sorts = self._natural_order(layer.node, outputs)
        node: Node = ProjectNode(layer.node, tuple(outputs))
        if distinct is not None:
            node = DistinctNode(node)
        if limit is not None or offset:
            if not sorts:
                raise refuse("LIMIT without ORDER BY over more than one table's rows", select)
            node = TopNode(node, (), tuple(sorts), limit, offset)
        return Built(node, tuple(shown), tuple(sorts), natural)

    def _sorted_by(
        self,
        item: exp.Ordered,
        items: Sequence[exp.Expr],
        shown: Sequence[KnownColumn],
        outputs: list[tuple[str, Bound]],
        layer: Layer,
        distinct: bool,
    ) -> str:
        """The column that an item of ORDER BY means: of the select list, or one that is added."""
        place = ordinal(item.this)
        if place is not None:
            if not 0 <= place < len(shown):
                raise refuse("ORDER BY a number that no item has", item)
            return shown[place].name
        if isinstance(item.this, exp.Column) and not item.this.table:
            wanted = item.this.name.casefold()
            named = [column for column in shown if column.shown.casefold() == wanted]
            if len(named) == 1:
                return named[0].name
        bound = layer.bound(items_first(item.this, items))
        for place, (name, known) in enumerate(outputs):
            if known != bound:
                continue
            shown_as = items[place].alias if place < len(items) else ""
            if distinct and shown_as and shown_as.casefold() != item.this.name.casefold():
                raise refuse("ORDER BY what DISTINCT shows under another name", item)
            return name
        if distinct:
            raise refuse("ORDER BY what DISTINCT does not show", item)
        name = self._building.fresh("order")
        outputs.append((name, bound))
        return name

    def _natural_order(self, node: Node, outputs: list[tuple[str, Bound]]) -> list[SortColumn]:
        """The order of filters and projections over one streaming table: by time, then as rows came."""
        found = []
        for bound in natural_order(self._building, node):
            name = self._building.fresh("order")
            outputs.append((name, bound))
            found.append(SortColumn(name))
        return found


def _with_opaque_of(
    layer: Layer,
    items: Sequence[exp.Expr],
    order: Sequence[exp.Ordered],
    kept: Sequence[exp.Expr],
) -> tuple[Layer, list[exp.Expr], list[exp.Ordered], list[exp.Expr]]:
    """What Spark must evaluate for the select list, ORDER BY and QUALIFY as columns."""
    sorted_by = [one for one in order if ordinal(one.this) is None and not _is_named(one, items)]
    layer, parts = with_opaque(layer, [*items, *order, *kept], [*items, *sorted_by, *kept])
    first, second = len(items), len(items) + len(order)
    return layer, parts[:first], parts[first:second], parts[second:]  # type: ignore[return-value]


def _is_named(item: exp.Ordered, items: Sequence[exp.Expr]) -> bool:
    """Whether an item of ORDER BY is the name of one of the select list."""
    names = {one.alias.casefold() for one in items if isinstance(one, exp.Alias)}
    return isinstance(item.this, exp.Column) and item.this.name.casefold() in names


def _without(columns: Sequence[KnownColumn], star: exp.Expr) -> list[KnownColumn]:
    """The columns of `*` that EXCEPT leaves."""
    found = list(columns)
    for left_out in star.args.get("except_") or ():
        plain = isinstance(left_out, exp.Column) and not left_out.table
        kept = [c for c in found if c.shown.casefold() != left_out.name.casefold()]
        if not plain or len(kept) != len(found) - 1:
            raise refuse("* EXCEPT what is not one column of it", star)
        found = kept
    return found
