"""Rule: conditions that do not depend on the instant go into the stream pipeline, the others stay above."""

from __future__ import annotations

from dataclasses import replace

from headwater.plan.blocks import BoundBlock


def push_down(one: BoundBlock) -> BoundBlock:
    """The block with the conjuncts of WHERE below the fold and above it."""
    below = tuple(span for span in one.block.conjuncts if one.query.is_pushable(span))
    above = tuple(span for span in one.block.conjuncts if span not in below)
    return replace(one, below=below, above=above)
