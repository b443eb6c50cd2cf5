"""Rule: a window of the last rows is a ring; the block is evaluated over the ring's rows, whatever it is.

The window is taken before WHERE, so nothing can be dropped earlier (Definition 2 of streaming tables). Where
WHERE asks for the rows of the instant alone (`T = CURRENT_INSTANT()`), only keys that got rows are looked at.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from headwater.plan.blocks import Bound, BoundBlock, Unfit
from headwater.plan.folds import FoldPlan
from headwater.plan.scope import Scope
from headwater.plan.shape import SelectBlock
from headwater.sql.spans import span_of
from headwater.sql.text import Span


def fold_ring(one: BoundBlock) -> FoldPlan | None:
    """The ring of a block's one windowed table; under SAMPLE n ROWS one without keys is made of panes."""
    bound, block, scope, direct = one.query, one.block, one.scope, one.direct
    rings = [leaf for _, leaf in direct if leaf.in_ring]
    keyed = any(leaf.window.keys or leaf.columns.ranged for leaf in rings)
    if not rings or (bound.sampling == "rows" and not keyed):
        return None
    if len(direct) > 1:
        raise Unfit("a window of last rows is joined with another stream")
    one.check_subqueries()
    counted = bound.sampling in ("rows", "chunks")  # then a tick may have several instants
    fresh = not counted and any(_asks_for_now(bound, block, scope, s) for s in block.conjuncts)
    return replace(one.kept("ring", "last rows"), fresh=fresh)


def _asks_for_now(bound: Bound, block: SelectBlock, scope: Scope, span: Span) -> bool:
    """Whether a condition is `T = CURRENT_INSTANT()`, T of a window per key."""
    node = bound.rendering.node(span)
    if not isinstance(node, exp.EQ):
        return False
    sides = {span_of(node.this), span_of(node.expression)}
    uses = bound.own_uses(block, span)
    column = scope.resolve(uses[0]) if len(uses) == 1 else None
    leaf = None if column is None else scope.sources[column.source].leaf
    now = sides & {call.span for call in bound.query.instants}
    if column is None or leaf is None or not now or uses[0].span not in sides - now:
        return False
    return bool(leaf.window.keys) and column.name == leaf.columns.time
