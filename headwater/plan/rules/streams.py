"""Rule: a block is folded by itself, over one stream or two; what its windows keep must be known below."""

from __future__ import annotations

from headwater.plan.blocks import BoundBlock, Unfit
from headwater.plan.view_rules import R3


def check_streams(one: BoundBlock) -> None:
    """Unfit if the block reads rows outside it, more than two streams, or the newest chunk alone."""
    one.query.check_independent(one.block, one.scope)
    if len(one.direct) > 2:
        raise Unfit("three or more streams are joined in one SELECT", R3)
    if len(one.direct) < 2 and any(leaf.newest for _, leaf in one.direct):
        raise Unfit("PAIR NEWEST of one stream is asked of the chunks at hand")
