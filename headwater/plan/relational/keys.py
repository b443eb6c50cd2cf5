"""By which columns a row of a node is found: those that tell it from all others but a few.

Must never: name columns that many rows may share; a result is arranged by them, and a row that goes is looked
for among those of its key.
"""

from __future__ import annotations

from headwater.expression.nodes import BoundColumn
from headwater.plan.relational.nodes import (
    AsOfNode,
    FilterNode,
    GroupNode,
    JoinNode,
    Node,
    OpaqueColumnsNode,
    OverNode,
    ProjectNode,
    ShareNode,
    TopNode,
)

FEW = 100  # rows of a partition that a top may leave


def key_of(node: Node) -> tuple[str, ...] | None:
    """The columns, None if none are known; a node of one row has none."""
    if isinstance(node, GroupNode):
        return node.keys or None
    if isinstance(node, TopNode):
        few = node.limit is not None and node.limit <= FEW and node.ties == "row_number"
        return (node.partition if few else None) or key_of(node.below)
    if isinstance(node, FilterNode | OverNode | OpaqueColumnsNode | ShareNode):
        return key_of(node.below)
    if isinstance(node, ProjectNode):
        return _projected(node)
    if isinstance(node, AsOfNode):
        return key_of(node.left)
    return _of_join(node) if isinstance(node, JoinNode) else None


def _projected(node: ProjectNode) -> tuple[str, ...] | None:
    below = key_of(node.below)
    columns = [(name, bound) for name, bound in node.outputs if isinstance(bound, BoundColumn)]
    names = {bound.name: name for name, bound in reversed(columns)}
    if below is None or not set(below) <= set(names):
        return None
    return tuple(names[name] for name in below)


def _of_join(node: JoinNode) -> tuple[str, ...] | None:
    """The left side's, where each of its rows has a few partners at most."""
    if node.kind in ("semi", "anti"):
        return key_of(node.left)
    right = key_of(node.right)
    few = right is not None and set(right) <= set(node.right_keys)
    return key_of(node.left) if few and node.kind in ("inner", "left") else None
