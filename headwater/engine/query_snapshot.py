"""What a query keeps of itself in a snapshot, and how it takes it up again.

The place that a snapshot belongs to is in it. Rows between that place and where the results say the query
stands are folded from the tables, so that a snapshot may be of any age.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headwater.engine.feed import FeedCursor
from headwater.engine.fold_run import FoldRun
from headwater.engine.joins import InlinePairsMerge, PairsMerge
from headwater.engine.snapshots import SnapshotFile
from headwater.errors import DataError
from headwater.kernel.relation import HeldTables

if TYPE_CHECKING:
    from headwater.engine.query import ContinuousQuery


class _Folds:
    """The folds of a query as one structure."""

    def __init__(self, folds: Sequence[FoldRun]) -> None:
        self._folds = folds

    def state(self) -> dict[str, Any]:
        return {"folds": [fold.merge.state() for fold in self._folds]}

    def restore(self, state: dict[str, Any]) -> None:
        for fold, inner in zip(self._folds, state["folds"], strict=True):
            fold.merge.restore(inner)


def _signature(query: ContinuousQuery) -> dict[str, Any]:
    """What a snapshot must have in common with the query that takes it up."""
    return {
        "statement": query.statement,
        "merges": [type(fold.merge).__name__ for fold in query.folds],
        "landmark": query.beginning.as_json()["landmark"],
    }


def put_away(
    query: ContinuousQuery, file: SnapshotFile, beside: bool = False
) -> list[int | None] | None:
    """Writes a snapshot; by leaf the tick up to which it holds the rows, None if nothing was written.

    `beside`: it is only begun, and there once the file is not being written any more.
    """
    paired = any(isinstance(fold.merge, (InlinePairsMerge, PairsMerge)) for fold in query.folds)
    if query.sampling.kind == "chunks":
        return None  # the kept chunks are read again
    if not query.folds or paired or query.sampling.after is None or not query.restorable:
        return None
    cursors = [reader.cursor for reader in query.readers]
    if any(cursor is None for cursor in cursors):
        return None
    position = {
        **_signature(query),
        "count": query.sampling.count,
        "after": query.sampling.after,
        "cursors": [[c.tick, c.sequence] for c in cursors if c is not None],
        "early": [reader.early for reader in query.readers],
        "latest": [reader.newest for reader in query.readers],
        "versions": query.version_numbers,
    }
    try:
        write = file.write_beside if beside else file.write
        write(_Folds(query.folds), position)
    except DataError:  # a row that waits to be joined cannot be; its instant will say what follows
        return None
    return [cursor.tick for cursor in cursors if cursor is not None]


def take_up(
    query: ContinuousQuery, file: SnapshotFile, held: HeldTables
) -> list[int | None] | None:
    """Brings the folds to the readers' place by the snapshot; None if there is none that fits."""
    if not query.restorable or query.sampling.after is None:
        return None
    position = file.read(_Folds(query.folds))
    if position is None or any(position.get(k) != v for k, v in _signature(query).items()):
        return None
    versions = {name: held.versions.get(name) for name in query.plan.stream_tables}
    if position["versions"] != versions or position["after"] > query.sampling.after:
        return None
    cursors = [FeedCursor(*cursor) for cursor in position["cursors"]]
    chunks = []
    kept = zip(query.readers, cursors, position["latest"], position["early"], strict=True)
    for reader, cursor, latest, early in kept:
        rows, ticks = reader.between(cursor, latest, early)
        places = ticks
        if query.sampling.kind == "rows":
            start = position["count"] * query.sampling.step + early
            places = np.arange(start + 1, start + 1 + rows.num_rows)
        chunks.append((rows, places, ticks))
    query.give(chunks, held)
    return [cursor.tick for cursor in cursors]
