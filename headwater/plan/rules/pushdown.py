"""Rule: conditions that do not depend on the instant go into the stream pipeline, the others stay above."""

from __future__ import annotations

from headwater.plan.blocks import Bound
from headwater.plan.shape import Block
from headwater.sql.text import Span


def split_conditions(bound: Bound, block: Block) -> tuple[list[Span], list[Span]]:
    """The conjuncts of WHERE below the fold and above it."""
    below = [span for span in block.conjuncts if bound.is_pushable(span)]
    above = [span for span in block.conjuncts if not bound.is_pushable(span)]
    return below, above
