"""Conditions → a join's keys: expressions of either side become columns that the join compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from headwater.expression.coercion import BOOLEAN
from headwater.expression.nodes import Bound, BoundCall, BoundColumn, columns_of
from headwater.expression.table import call, called
from headwater.plan.relational.building import Building
from headwater.plan.relational.names import NotKept
from headwater.plan.relational.nodes import JoinKind, JoinNode, Node, ProjectNode

EQUALITIES = {"=": "=", "<=>": "<=>"}


def equal(left: Bound, right: Bound) -> Bound:
    """left = right, in a common type."""
    return compared("=", left, right)


def compared(comparison: str, left: Bound, right: Bound) -> Bound:
    """A comparison, in a common type."""
    found = call(comparison, left, right)
    if found is None:
        raise NotKept(f"{left.type} is compared with {right.type}")
    return found


def with_columns(building: Building, node: Node, added: Sequence[Bound]) -> tuple[Node, list[str]]:
    """A node with expressions as columns; the names of these columns."""
    names = [
        bound.name if isinstance(bound, BoundColumn) else building.fresh("key") for bound in added
    ]
    new = [
        (name, bound)
        for name, bound in zip(names, added, strict=True)
        if not isinstance(bound, BoundColumn)
    ]
    if not new:
        return node, names
    kept = [(name, BoundColumn(name, type_)) for name, type_ in node.columns]
    return ProjectNode(node, (*kept, *new)), names


def join_on(
    building: Building, kind: JoinKind, left: Node, right: Node, conditions: Sequence[Bound]
) -> Node:
    """A join on conditions: equalities of both sides are keys, the others are asked of each pair."""
    keys: list[tuple[Bound, Bound, str]] = []
    rest: list[Bound] = []
    for one in conditions:
        pair = sides_of(one, left, right, EQUALITIES)
        if pair is None:
            rest.append(one)
        else:
            keys.append(pair)
    left, left_keys = with_columns(building, left, [a for a, _, _ in keys])
    right, right_keys = with_columns(building, right, [b for _, b, _ in keys])
    residual = reduce(_and, rest) if rest else None
    safe = tuple(way == "<=>" for _, _, way in keys)
    return JoinNode(kind, left, right, tuple(left_keys), tuple(right_keys), safe, residual)


def _and(left: Bound, right: Bound) -> Bound:
    return called("and", (left, right), BOOLEAN)


def sides_of(
    one: Bound, left: Node, right: Node, comparisons: Mapping[str, str]
) -> tuple[Bound, Bound, str] | None:
    """A comparison of the left rows with the right ones: its sides, and how they compare in that order.

    `comparisons`: those that are meant, each with what it is when its sides change places.
    """
    if not isinstance(one, BoundCall) or one.function not in comparisons:
        return None
    first, second = one.arguments
    if first.type != second.type:
        return None
    mine, theirs = ({name for name, _ in node.columns} for node in (left, right))
    mirrored = comparisons[one.function]
    for a, b, name in ((first, second, one.function), (second, first, mirrored)):
        here, there = columns_of(a), columns_of(b)
        if here and there and here <= mine and there <= theirs:
            return a, b, name
    return None
