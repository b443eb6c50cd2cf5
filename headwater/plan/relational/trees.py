"""Small questions to sqlglot's trees; a clause or argument that is not understood refuses the query."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from sqlglot import exp

from headwater.plan.relational.expressions import refuse
from headwater.plan.relational.names import NotKept
from headwater.plan.relational.nodes import SortColumn


def check_arguments(node: exp.Expr, known: str) -> None:
    """Refuses a node with an argument that is not understood."""
    for name, value in node.args.items():
        if value not in (None, False, []) and name not in known.split():
            raise refuse(f"{name.strip('_')} of {node.key}", node)


def ordinal(node: exp.Expr) -> int | None:
    """The place that a number in ORDER BY or GROUP BY means."""
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        return int(node.name) - 1
    return None


def ordered_items(tree: exp.Expr) -> list[exp.Ordered]:
    """The items of ORDER BY."""
    order = tree.args.get("order")
    if order is None:
        return []
    check_arguments(order, "expressions")
    for item in order.expressions:
        check_arguments(item, "this desc nulls_first")
    return list(order.expressions)


def sort_column(name: str, item: exp.Ordered) -> SortColumn:
    """How an item orders."""
    return SortColumn(name, bool(item.args.get("desc")), bool(item.args.get("nulls_first")))


def limits_of(tree: exp.Expr) -> tuple[int | None, int]:
    """LIMIT and OFFSET, as numbers."""
    found: dict[str, int | None] = {"limit": None, "offset": 0}
    for name in found:
        clause = tree.args.get(name)
        if clause is None:
            continue
        check_arguments(clause, "expression")
        place = ordinal(clause.expression)
        if place is None:
            raise NotKept(f"{name.upper()} of an expression")
        found[name] = place + 1
    return found["limit"], found["offset"] or 0


def check_no_maps(types: Iterable[pa.DataType], tree: exp.Expr) -> None:
    """Refuses whole rows that are compared if a map is among their values: Spark has an error for it."""
    if any(_has_map(type_) for type_ in types):
        raise refuse("maps among rows that are compared", tree)


def _has_map(type_: pa.DataType) -> bool:
    inner = [type_.field(n).type for n in range(type_.num_fields)]
    return bool(pa.types.is_map(type_)) or any(map(_has_map, inner))
