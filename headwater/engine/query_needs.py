"""What a query still needs of its tables: rows that it may read again, and whether it can read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.engine.query import ContinuousQuery

BOUNDED = ("interval", "chunks")


def forgets(query: ContinuousQuery) -> bool:
    """Whether state stands for rows that a stream lets go."""
    counted = query.sampling.kind == "rows"
    return any(
        table.definition.kind == "stream" and (counted or leaf.window.kind not in BOUNDED)
        for table, leaf in zip(query.tables, query.plan.leaves, strict=True)
    )


def needed_from(query: ContinuousQuery, number: int, kept_from: Sequence[int | None]) -> int | None:
    """The oldest tick of a table that a query may read again; None for all of it.

    `kept_from`: by leaf, the tick up to which its snapshot holds the rows.
    """
    oldest: list[int | None] = []
    readers = query.readers
    if len(readers) < len(query.plan.leaves):
        return None
    for reader in readers:
        if reader.table.definition.id != number:
            continue
        if query.sampling.after is None:
            return None
        if reader.chunks is not None:
            bound = reader.chunks.bounds[0]
            oldest.append(None if bound is None else bound.tick)
        elif reader.window_ticks is not None and query.sampling.kind != "rows":
            oldest.append(query.sampling.after - reader.window_ticks)
        elif kept_from and query.specs and not query.plan.stream_tables:
            oldest.append(kept_from[reader.leaf.number])
        elif not query.functions:
            return None
        if query.functions:
            oldest.append(query.functions.needed_from(reader.leaf.number))
    return None if None in oldest else min(o for o in oldest if o is not None)
