"""Rule: a function with state is called on the rows in their order, so they are evaluated again."""

from __future__ import annotations

from headwater.plan.blocks import BoundBlock, Unfit


def check_state(one: BoundBlock) -> None:
    """Unfit if a function with state reads a stream of the block."""
    for call in [call for _, leaf in one.direct for call in leaf.calls]:
        raise Unfit(f"function {call.name} keeps state for the {call.life}")
