"""Rule: a join of one stream with tables is done row by row, if the stream is the side that is kept.

The join of a chunk with the tables is then the chunk's part of the whole join (R2, R5 of continuous
views; concatenation in DataCell's words).
"""

from __future__ import annotations

from headwater.plan.blocks import BoundBlock, Unfit
from headwater.plan.view_rules import R3, R5

_WITH_TABLE = frozenset({",", "inner", "cross", "left", "semi", "anti"})
_TABLE_WITH = frozenset({",", "inner", "cross", "right"})


def check_joins(one: BoundBlock) -> None:
    """Unfit unless every join, and every subquery, is one with each row of the block's streams."""
    seen = False
    for number, info in enumerate(one.scope.sources):
        if info.streaming and info.leaf is None:
            raise Unfit("a stream is joined with a subquery over streams", R3)
        if number:
            if info.leaf is None:
                allowed = _WITH_TABLE if seen else None
            else:
                allowed = frozenset({",", "inner", "cross"}) if seen else _TABLE_WITH
            if allowed is not None and info.source.join not in allowed:
                kind = f"a{'n' if info.source.join == 'anti' else ''} {info.source.join}"
                raise Unfit(f"{kind} join keeps rows of a table that match no row yet", R5)
        seen = seen or info.leaf is not None
    one.check_subqueries()
