"""Rule: a window of the last rows is a ring; the block is evaluated over the ring's rows, whatever it is.

The window is taken before WHERE, so nothing can be dropped earlier (Definition 2 of streaming tables).
"""

from __future__ import annotations

from headwater.plan.continuous.blocks import Bound
from headwater.plan.continuous.folds import FoldPlan
from headwater.plan.continuous.scope import Scope
from headwater.plan.continuous.shape import Block


def fold_ring(bound: Bound, block: Block, scope: Scope, number: int) -> FoldPlan:
    """The ring of a block's one windowed table."""
    bound.check_subqueries(block)
    direct = bound.direct(scope)
    return FoldPlan(
        number=number,
        kind="ring",
        block=block,
        leaves=tuple(leaf for _, leaf in direct),
        leaf_sources=tuple(place for place, _ in direct),
        statics=bound.statics(scope),
        from_text="",
        where=(),
        join_on=(),
        keys=(),
        aggregates=(),
        columns=(),
        finish=None,
        in_order=False,
        transformation="last rows",
    )
