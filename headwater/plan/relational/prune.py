"""Columns that nobody reads go, as low as possible: a join keeps what stands below it."""

from __future__ import annotations

from dataclasses import replace

from headwater.expression.nodes import BoundColumn, columns_of
from headwater.plan.relational.nodes import (
    AsOfNode,
    DistinctNode,
    ExplodeNode,
    FilterNode,
    GroupNode,
    JoinNode,
    Node,
    OpaqueColumnsNode,
    OpaqueQueryNode,
    OverNode,
    ProjectNode,
    ScanNode,
    SessionNode,
    SetNode,
    ShareNode,
    TimeWindowsNode,
    TopNode,
    UnionNode,
)

Needed = frozenset[str]


class Pruner:
    """Prunes one tree; a node that is read twice stays one node, with what both readers need."""

    def __init__(self, root: Node, needed: Needed) -> None:
        self._needed: dict[int, set[str]] = {}
        self._made: dict[int, Node] = {}
        self._order: list[Node] = []
        self._visit(root)
        self._needed[id(root)] |= needed
        for node in reversed(self._order):  # readers before what they read
            for below, columns in _reads(node, frozenset(self._needed[id(node)])):
                self._needed[id(below)] |= columns
        self.root = self._pruned(root)

    def _visit(self, node: Node) -> None:
        """Notes nodes, each after all that it stands on."""
        if id(node) in self._needed:
            return
        self._needed[id(node)] = set()
        for below, _ in _reads(node, frozenset()):
            self._visit(below)
        self._order.append(node)

    def _pruned(self, node: Node) -> Node:
        if id(node) not in self._made:
            self._made[id(node)] = self._make(node, frozenset(self._needed[id(node)]))
        return self._made[id(node)]

    def _make(self, node: Node, needed: Needed) -> Node:
        if isinstance(node, ScanNode):
            kept = [n for n, (name, _) in enumerate(node.columns) if name in needed]
            kept = kept or [0]  # how many rows there are is told by any column
            return replace(
                node,
                stored=tuple(node.stored[n] for n in kept),
                columns=tuple(node.columns[n] for n in kept),
            )
        if isinstance(node, ProjectNode):
            outputs = tuple(one for one in node.outputs if one[0] in needed) or node.outputs[:1]
            return replace(node, below=self._pruned(node.below), outputs=outputs)
        if isinstance(node, UnionNode):
            shown = _of_union(node, needed)
            return replace(node, parts=tuple(self._only(part, shown) for part in node.parts))
        if isinstance(node, OpaqueQueryNode):  # its texts name all columns of its inputs
            return replace(node, parts=tuple(self._only(p, _all(p)) for p in node.parts))
        if isinstance(node, JoinNode | AsOfNode | SetNode):
            left, right = self._pruned(node.left), self._pruned(node.right)
            return replace(node, left=left, right=right)
        if isinstance(node, GroupNode):
            calls = tuple(call for call in node.calls if call.name in needed)
            return replace(node, below=self._pruned(node.below), calls=calls)
        return replace(node, below=self._pruned(node.below))

    def _only(self, part: Node, needed: Needed) -> Node:
        """The columns that a union needs of a part, in the order that all parts have."""
        made = self._pruned(part)
        wanted = [(name, type_) for name, type_ in part.columns if name in needed]
        if [name for name, _ in made.columns] == [name for name, _ in wanted]:
            return made
        return ProjectNode(made, tuple((name, BoundColumn(name, type_)) for name, type_ in wanted))


def _reads(node: Node, needed: Needed) -> list[tuple[Node, Needed]]:
    """What a node reads of those below it, where so much is needed of itself."""
    if isinstance(node, ScanNode):
        return []
    if isinstance(node, UnionNode):
        return [(part, _of_union(node, needed)) for part in node.parts]
    if isinstance(node, OpaqueQueryNode):
        return [(part, _all(part)) for part in node.parts]
    if isinstance(node, SetNode):
        return [(node.left, _all(node.left)), (node.right, _all(node.right))]
    if isinstance(node, JoinNode):
        asked = needed if node.residual is None else needed | columns_of(node.residual)
        left, right = _all(node.left) & asked, _all(node.right) & asked
        return [(node.left, left | {*node.left_keys}), (node.right, right | {*node.right_keys})]
    if isinstance(node, AsOfNode):
        left, right = _all(node.left) & needed, _all(node.right) & needed
        own, other = node.times
        return [
            (node.left, left | {*node.left_keys, own}),
            (node.right, right | {*node.right_keys, other, *node.ties}),
        ]
    below = node.below
    if isinstance(node, ProjectNode):
        kept = [one for one in node.outputs if one[0] in needed] or node.outputs[:1]
        found = frozenset[str]().union(*(columns_of(bound) for _, bound in kept))
        return [(below, found)]
    if isinstance(node, FilterNode):
        return [(below, needed | columns_of(node.condition))]
    if isinstance(node, GroupNode):
        calls = [call for call in node.calls if call.name in needed]
        arguments = {name for call in calls for name in call.arguments}
        arguments |= {sort.name for call in calls for sort in call.order}
        return [(below, frozenset(node.keys) | arguments)]
    if isinstance(node, DistinctNode):
        return [(below, _all(below))]
    if isinstance(node, ShareNode):
        return [(below, needed | {*node.hashed})]
    if isinstance(node, OpaqueColumnsNode):
        return [(below, (needed & _all(below)) | {*node.reads})]
    if isinstance(node, ExplodeNode):
        return [(below, (needed & _all(below)) | {node.column})]
    if isinstance(node, TimeWindowsNode):
        return [(below, (needed & _all(below)) | {node.time})]
    if isinstance(node, SessionNode):
        return [(below, (needed & _all(below)) | {node.time, *node.partition})]
    kept_columns = (needed & _all(below)) | {*node.partition, *(sort.name for sort in node.order)}
    if isinstance(node, OverNode):
        kept_columns |= {name for call in node.calls for name in call.arguments}
    assert isinstance(node, OverNode | TopNode)
    return [(below, kept_columns)]


def _of_union(node: UnionNode, needed: Needed) -> Needed:
    """The columns that all parts give; how many rows there are is told by any column."""
    return needed or frozenset(name for name, _ in node.columns[:1])


def _all(node: Node) -> Needed:
    return frozenset(name for name, _ in node.columns)
