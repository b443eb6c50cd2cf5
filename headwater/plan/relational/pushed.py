"""What storage can leave out of the rows of a table that a tree reads.

Owns: which conditions above a scan hold for every row of it that counts, as predicates over the table's own
columns. The tree keeps its filters; storage reads less. Must never: give a condition for a scan that
something else reads too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from headwater.expression.nodes import Bound, BoundCall, BoundColumn
from headwater.expression.predicate import And, Comparison, IsNull, Not, Or, Predicate, predicate_of
from headwater.plan.relational.nodes import FilterNode, Node, ProjectNode, ScanNode, inputs_of

Names = Mapping[
    str, str
]  # of columns that are handed up unchanged: the table's names by the tree's


def pushed_predicates(root: Node) -> dict[str, Predicate]:
    """By the tables of the scans, what each row that counts fulfils."""
    readers: Counter[int] = Counter()
    nodes, waiting = dict[int, Node](), [root]
    while waiting:
        node = waiting.pop()
        if id(node) not in nodes:
            nodes[id(node)] = node
            below = inputs_of(node)
            readers.update(map(id, below))
            waiting += below
    found: dict[str, list[Predicate]] = {}
    for node in nodes.values():
        if isinstance(node, FilterNode):
            scan = _only_scan(node.below, readers)
            if scan is not None:
                found.setdefault(scan[0].table, []).extend(_parts(node.condition, scan[1]))
    return {table: And(tuple(parts)) for table, parts in found.items() if parts}


def _only_scan(node: Node, readers: Counter[int]) -> tuple[ScanNode, Names] | None:
    """The scan whose rows a node hands up, if nobody else reads it or what stands between."""
    if readers[id(node)] != 1:
        return None
    if isinstance(node, ScanNode):
        columns = zip(node.columns, node.stored, strict=True)
        return node, {name: stored for (name, _), stored in columns}
    if not isinstance(node, FilterNode | ProjectNode):
        return None
    below = _only_scan(node.below, readers)
    if below is None or isinstance(node, FilterNode):
        return below
    scan, names = below
    handed = {
        name: names[bound.name]
        for name, bound in node.outputs
        if isinstance(bound, BoundColumn) and bound.name in names
    }
    return scan, handed


def _parts(condition: Bound, names: Names) -> list[Predicate]:
    """The parts of a condition, joined by AND, that storage understands."""
    if isinstance(condition, BoundCall) and condition.function == "and":
        return [part for one in condition.arguments for part in _parts(one, names)]
    predicate = predicate_of(condition)
    stored = None if predicate is None else _stored(predicate, names)
    return [] if stored is None else [stored]


def _stored(predicate: Predicate, names: Names) -> Predicate | None:
    """The same over the table's own names; None if it looks at what is computed."""
    if isinstance(predicate, Comparison | IsNull):
        name = names.get(predicate.column)
        return None if name is None else replace(predicate, column=name)
    if isinstance(predicate, Not):
        part = _stored(predicate.part, names)
        return None if part is None else Not(part)
    if isinstance(predicate, And | Or):
        parts = [_stored(part, names) for part in predicate.parts]
        known = tuple(part for part in parts if part is not None)
        return type(predicate)(known) if len(known) == len(parts) else None
    return predicate
