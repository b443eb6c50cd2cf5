"""The order that rows of one streaming table have by themselves: by time, then as they came."""

from __future__ import annotations

from headwater.expression.nodes import Bound, BoundColumn
from headwater.plan.relational.building import Building
from headwater.plan.relational.nodes import (
    FilterNode,
    Node,
    OpaqueColumnsNode,
    ProjectNode,
    ScanNode,
    is_linear,
    scans_of,
)

SEQUENCE = "_seq"


def natural_order(building: Building, node: Node) -> list[Bound]:
    """The columns of that order over filters and projections of one streaming table; else none."""
    if not is_linear(node):
        return []
    scan = scans_of(node)[0]
    stream = building.tables.stream(scan.table)
    time = None if stream is None else stream.time
    found = [_traced(node, scan, stored) for stored in (time, SEQUENCE) if stored is not None]
    whole = len(found) == 2 and None not in found
    return [one for one in found if one is not None] if whole else []


def _traced(node: Node, scan: ScanNode, stored: str) -> Bound | None:
    """A column of a table as it is called at a node above it."""
    if stored not in scan.stored:
        return None
    if isinstance(node, ScanNode):
        return BoundColumn(*scan.columns[scan.stored.index(stored)])
    if isinstance(node, FilterNode | OpaqueColumnsNode):
        return _traced(node.below, scan, stored)
    assert isinstance(node, ProjectNode)
    below = _traced(node.below, scan, stored)
    names = [name for name, bound in node.outputs if bound == below]
    return BoundColumn(names[0], below.type) if names and below is not None else None
