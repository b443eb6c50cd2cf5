"""GROUP BY → one group node (or one per grouping set, united), over a projection of keys and arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pyarrow as pa
from sqlglot import exp

from headwater.expression.nodes import Bound, BoundColumn, BoundConstant
from headwater.plan.relational.aggregates import (
    BY_ORDER,
    OF_EDGES,
    AggregateTree,
    aggregate_of,
    is_aggregate,
)
from headwater.plan.relational.expressions import refuse, stand_in
from headwater.plan.relational.group_keys import GroupKeys, aggregates_in
from headwater.plan.relational.layer import Layer
from headwater.plan.relational.names import NotKept
from headwater.plan.relational.natural import natural_order
from headwater.plan.relational.nodes import (
    GroupCall,
    GroupNode,
    Node,
    ProjectNode,
    SortColumn,
    UnionNode,
)
from headwater.plan.relational.trees import check_arguments, sort_column
from headwater.sql.types import SIMPLE

INT = SIMPLE["INT"]


def is_grouped(select: exp.Select, parts: Iterable[exp.Expr]) -> bool:
    """Whether a SELECT groups its rows."""
    if select.args.get("group") is not None:
        return True
    return any(
        is_aggregate(node)
        for part in parts
        for node in part.walk(prune=lambda n: isinstance(n, exp.Query))
    )


class Grouping:
    """The grouping of one SELECT, and what stands for keys and aggregates above it."""

    def __init__(
        self,
        layer: Layer,
        select: exp.Select,
        items: Sequence[exp.Expr],
        keys: Sequence[exp.Expr] = (),
    ) -> None:
        """`keys`: beside those of GROUP BY, which has no grouping sets then."""
        self._building, self._below = layer.building, layer.node
        self._taken = layer.building.terms.functions
        self._expressions = expressions = layer.expressions
        named, sets = GroupKeys(layer.expressions.names, items).of(select.args.get("group"))
        self._keys = [expressions.bound(key) for key in [*named, *keys]]
        self._names = [self._building.fresh_for(key, "key") for key in self._keys]
        self._calls: list[tuple[AggregateTree, tuple[Bound, ...], GroupCall]] = []
        self._ordered: list[tuple[str, Bound]] = []  # columns that aggregates go by
        having, order = select.args.get("having"), select.args.get("order")
        qualify = select.args.get("qualify")
        for part in [*items, having, qualify, order]:
            for node in () if part is None else aggregates_in(part):
                self._call(node)
        self.node = self._grouped(sets)

    # Aggregates

    def _call(self, node: exp.Expr) -> GroupCall:
        if isinstance(node, exp.Anonymous) and node.name.casefold() in self._taken:
            raise refuse(f"{node.name} is a user's function", node)
        tree = aggregate_of(node)
        bound = tuple(self._expressions.bound(argument) for argument in tree.arguments)
        for known, arguments, call in self._calls:
            if replace(known, arguments=()) == replace(tree, arguments=()) and arguments == bound:
                return call
        ordered = tree.order and tree.function in OF_EDGES
        name = f"{tree.function} by order" if ordered else tree.function
        types = [one.type for one in bound]
        if tree.distinct and any(map(pa.types.is_nested, types)):
            raise refuse("DISTINCT of nested values", node)
        type_ = self._building.aggregate_type(name, types)
        if type_ is None:
            raise refuse(f"aggregate {tree.function} of these types has no operator", node)
        type_ = pa.list_(type_) if isinstance(tree.percentages, tuple) else type_
        names = tuple(self._building.fresh_for(one, "argument") for one in bound)
        call = GroupCall(
            tree.function,
            names,
            self._building.fresh(tree.function),
            type_,
            tree.distinct,
            self._order(tree),
            tree.delimiter,
            tree.percentages,
            tree.descending,
            tree.accuracy,
            tree.error,
        )
        self._calls.append((tree, bound, call))
        return call

    def _order(self, tree: AggregateTree) -> tuple[SortColumn, ...]:
        """The order that an aggregate goes by: its own, or that of the rows."""
        if tree.function not in BY_ORDER:
            return ()
        for item in tree.order:
            check_arguments(item, "this desc nulls_first")
        own = [self._expressions.bound(item.this) for item in tree.order]
        bound = own or natural_order(self._building, self._below)
        if any(pa.types.is_nested(one.type) for one in bound):
            raise NotKept("an order of nested values")
        names = [self._building.fresh_for(one, "order") for one in bound]
        self._ordered += zip(names, bound, strict=True)
        if not own:
            return tuple(SortColumn(name) for name in names)
        return tuple(sort_column(n, item) for n, item in zip(names, tree.order, strict=True))

    # Nodes

    def _grouped(self, sets: list[tuple[int, ...]] | None) -> Node:
        outputs: list[tuple[str, Bound]] = list(zip(self._names, self._keys, strict=True))
        for _, bound, call in self._calls:
            outputs += zip(call.arguments, bound, strict=True)
        outputs += self._ordered
        calls = tuple(call for _, _, call in self._calls)
        if sets is None:
            below = ProjectNode(self._below, tuple(outputs)) if outputs else self._below
            return GroupNode(below, tuple(self._names), calls)
        if not any(sets):
            raise NotKept("grouping sets without a key")  # one alone has a row for no rows
        always = self._building.fresh("always")  # no key at all would give a row for no rows
        outputs.append((always, BoundConstant(0, INT)))
        united = ProjectNode(self._below, tuple(outputs))
        return UnionNode(tuple(self._set(united, one, always, calls) for one in sets))

    def _set(
        self, below: Node, numbers: tuple[int, ...], always: str, calls: tuple[GroupCall, ...]
    ) -> Node:
        """One grouping set: keys that it leaves out are NULL."""
        kept = [name for number, name in enumerate(self._names) if number in numbers]
        group = GroupNode(below, (*kept, always), calls)
        outputs: list[tuple[str, Bound]] = []
        for name, key in zip(self._names, self._keys, strict=True):
            there = name in kept
            outputs.append(
                (name, BoundColumn(name, key.type) if there else BoundConstant(None, key.type))
            )
        outputs += [(call.name, BoundColumn(call.name, call.type)) for call in calls]
        return ProjectNode(group, tuple(outputs))

    def replace(self, node: exp.Expr) -> exp.Expr | None:
        """What stands for an aggregate or a key above the grouping."""
        if is_aggregate(node):
            call = self._call(node)
            return stand_in(call.name, call.type)
        if isinstance(node, exp.Query | exp.Identifier | exp.Window):
            return None
        bound = self._expressions.tried(node)
        if bound is not None and bound in self._keys and not isinstance(bound, BoundConstant):
            name = self._names[self._keys.index(bound)]
            return stand_in(name, bound.type)
        return None
