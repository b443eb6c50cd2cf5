"""ASOF JOIN → an as-of node: equal keys, and one comparison of times.

Of right rows with one time it takes the last as a streaming table has them, by its time and as they came;
where the right side is no such table, one of them. Must never: take a condition that is neither.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.expression.nodes import Bound, BoundColumn
from headwater.plan.relational.building import Building
from headwater.plan.relational.joining import EQUALITIES, sides_of, with_columns
from headwater.plan.relational.names import NotKept
from headwater.plan.relational.natural import natural_order
from headwater.plan.relational.nodes import AsOfNode, Node

CONDITIONS = "ON of an as-of join takes equalities of both sides and one comparison of their times"
COMPARISONS = {">=": "<=", ">": "<", "<=": ">=", "<": ">"}


def as_of(
    building: Building, outer: bool, left: Node, right: Node, conditions: Sequence[Bound]
) -> Node:
    """An as-of join on equalities and one comparison."""
    pairs = [sides_of(one, left, right, {**EQUALITIES, **COMPARISONS}) for one in conditions]
    known = [pair for pair in pairs if pair is not None]
    times = [pair for pair in known if pair[2] in COMPARISONS]
    keys = [pair for pair in known if pair[2] in EQUALITIES]
    if len(known) < len(pairs) or len(times) != 1:
        raise NotKept(CONDITIONS)
    (own, other, comparison) = times[0]
    ties = [one.name for one in natural_order(building, right) if isinstance(one, BoundColumn)]
    left, left_names = with_columns(building, left, [*(a for a, _, _ in keys), own])
    right, right_names = with_columns(building, right, [*(b for _, b, _ in keys), other])
    return AsOfNode(
        outer,
        left,
        right,
        tuple(left_names[:-1]),
        tuple(right_names[:-1]),
        tuple(way == "<=>" for _, _, way in keys),
        (left_names[-1], right_names[-1]),
        comparison,  # type: ignore[arg-type]
        tuple(ties),
    )
