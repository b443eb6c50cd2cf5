"""The rules for continuous views, and which of them a query breaks (split maintenance §3.2, §3.3; CV3)."""

from __future__ import annotations

from headwater.plan.blocks import Tables
from headwater.plan.leaves import view_leaves
from headwater.plan.shape import blocks_of
from headwater.sql.statements.query import Query

R1 = "R1: a stream must be grouped before anything else needs all of its rows"
R2 = "R2: a subquery depends on the rows outside it, and is no grouped join with them"
R3 = "R3: a join of two streams needs both of them grouped"
R4 = "R4: ORDER BY with LIMIT may not stand below a grouping"
R5 = "R5: an outer, semi or anti join keeps the rows of its stream, not those of its table"
TIME = "functions of time have no fixed meaning in the part of a view that runs at each insert"

_BY_REASON = (
    ("a landmark window keeps every row", R1),
    ("a join with a landmark window", R3),
    ("a stream is joined with a subquery over streams", R3),
    ("three or more streams", R3),
    ("a subquery depends on", R2),
)

_FOR_VIEWS = {
    "a landmark window keeps every row": "without a grouping every row is needed",
    "a join with a landmark window keeps every row": "a join before the grouping needs every row",
}


def reason_of_view(reason: str) -> str:
    """The planner's reason in the words of views, which have no windows."""
    return _FOR_VIEWS.get(reason, reason)


def broken_rule(query: Query, tables: Tables, reason: str) -> str | None:
    """The rule behind the planner's reason; None if it breaks none and only has no fold."""
    if " join keeps rows of a table " in reason:
        return R5
    if "instant" in reason:
        return TIME
    rule = next((rule for start, rule in _BY_REASON if reason.startswith(start)), None)
    return R4 if rule == R1 and _sorts_below(query, tables) else rule


def _sorts_below(query: Query, tables: Tables) -> bool:
    """Whether a block inside another sorts and cuts the rows of a stream."""
    leaves = view_leaves(query, tables)
    blocks = blocks_of(query)
    return any(
        block.order and block.limit is not None and len(blocks) > 1
        for block in blocks
        if any(leaf.name.span.within(block.span) for leaf in leaves) and not block.group
    )
