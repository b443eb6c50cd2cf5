"""Rule: rows by number up to a bound are the first rows of each partition.

`WHERE n <= k` (or `n = 1`, `n < k`) over `row_number()`, `rank()` or `dense_rank()` needs no row beyond the
k-th: the window function becomes a top-n that gives the number too. The condition stays above it.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.expression.coercion import without_widening
from headwater.expression.nodes import Bound, BoundCall, BoundColumn, BoundConstant
from headwater.plan.relational.nodes import (
    AsOfNode,
    FilterNode,
    JoinNode,
    Node,
    OpaqueQueryNode,
    OverNode,
    ProjectNode,
    ScanNode,
    SetNode,
    TopNode,
    UnionNode,
)

NUMBERS = ("row_number", "rank", "dense_rank")
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def with_tops(node: Node, known: dict[int, Node] | None = None) -> Node:
    """The tree with top-n nodes where window functions number rows up to a bound."""
    known = {} if known is None else known
    if id(node) not in known:
        known[id(node)] = _changed(node, known)
    return known[id(node)]


def _changed(node: Node, known: dict[int, Node]) -> Node:
    if isinstance(node, ScanNode):
        return node
    if isinstance(node, UnionNode | OpaqueQueryNode):
        return replace(node, parts=tuple(with_tops(part, known) for part in node.parts))
    if isinstance(node, JoinNode | AsOfNode | SetNode):
        left, right = with_tops(node.left, known), with_tops(node.right, known)
        return replace(node, left=left, right=right)
    below = with_tops(node.below, known)
    if isinstance(node, FilterNode):
        below = _bounded(below, [node.condition])
    return replace(node, below=below)


def _bounded(node: Node, conditions: list[Bound]) -> Node:
    """A node whose rows pass conditions, numbered no further than these allow."""
    if isinstance(node, FilterNode):
        return replace(node, below=_bounded(node.below, [*conditions, node.condition]))
    if isinstance(node, ProjectNode):
        names = {name: bound for name, bound in node.outputs if isinstance(bound, BoundColumn)}
        below = [_renamed(one, names) for one in conditions]
        return replace(node, below=_bounded(node.below, [one for one in below if one is not None]))
    if not isinstance(node, OverNode) or len(node.calls) != 1:
        return node
    call = node.calls[0]
    if call.function not in NUMBERS:
        return node
    limits = [_limit(one, call.name) for one in conditions]
    least = min((limit for limit in limits if limit is not None), default=None)
    if least is None or least < 1:
        return node
    ties = call.function
    return TopNode(node.below, node.partition, node.order, least, 0, ties, call.name)  # type: ignore[arg-type]


def _renamed(condition: Bound, names: dict[str, BoundColumn]) -> Bound | None:
    """A comparison with a constant, over the column below."""
    if not isinstance(condition, BoundCall) or condition.function not in MIRRORED:
        return None
    sides = []
    for side in condition.arguments:
        column = without_widening(side)
        if isinstance(column, BoundColumn):
            if column.name not in names:
                return None
            side = names[column.name]
        sides.append(side)
    return replace(condition, arguments=tuple(sides))


def _limit(condition: Bound, number: str) -> int | None:
    """The largest number that a condition allows."""
    if not isinstance(condition, BoundCall) or condition.function not in MIRRORED:
        return None
    first, second = (without_widening(side) for side in condition.arguments)
    function = condition.function
    if isinstance(first, BoundConstant):
        first, second, function = second, first, MIRRORED[function]
    if not isinstance(first, BoundColumn) or first.name != number:
        return None
    if not isinstance(second, BoundConstant) or not isinstance(second.value, int):
        return None
    return {"=": second.value, "<=": second.value, "<": second.value - 1}.get(function)
