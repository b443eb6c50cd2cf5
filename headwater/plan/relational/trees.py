"""Small questions to sqlglot's trees; a clause or argument that is not understood refuses the query."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from sqlglot import exp

from headwater.plan.relational.expressions import refuse
from headwater.plan.relational.names import NotKept
from headwater.plan.relational.nodes import SortColumn

MOST_ROWS = (1 << 31) - 1  # of LIMIT and OFFSET


def check_arguments(node: exp.Expr, known: str) -> None:
    """Refuses a node with an argument that is not understood."""
    for name, value in node.args.items():
        if value not in (None, False, []) and name not in known.split():
            raise refuse(f"{name.strip('_')} of {node.key}", node)


def ordinal(node: exp.Expr) -> int | None:
    """The place that a number in ORDER BY or GROUP BY means; below 0 for one that is no place."""
    while isinstance(node, exp.Paren):
        node = node.this
    sign, number = (-1, node.this) if isinstance(node, exp.Neg) else (1, node)
    if isinstance(number, exp.Literal) and not number.is_string and number.name.isdigit():
        return sign * int(number.name) - 1
    return None


def row_count_of(clause: exp.Expr) -> int | None:
    """How many rows LIMIT or OFFSET means; None if that is no plain INT."""
    place = ordinal(clause.expression)
    return None if place is None or not 0 <= place + 1 <= MOST_ROWS else place + 1


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
        count = row_count_of(clause)
        if count is None:
            raise NotKept(f"{name.upper()} of an expression")
        found[name] = count
    return found["limit"], found["offset"] or 0


def check_no_maps(types: Iterable[pa.DataType], tree: exp.Expr) -> None:
    """Refuses whole rows that are compared if a map is among their values: Spark has an error for it."""
    if any(_has_map(type_) for type_ in types):
        raise refuse("maps among rows that are compared", tree)


def _has_map(type_: pa.DataType) -> bool:
    inner = [type_.field(n).type for n in range(type_.num_fields)]
    return bool(pa.types.is_map(type_)) or any(map(_has_map, inner))
