"""Windows over a snapshot at an instant τ, exactly Definition 2 of the streaming tables paper (ST4).

    [INTERVAL i]         τ − i ≤ T ≤ τ        [INTERVAL i BEFORE]  τ − i ≤ T < τ
    [ROWS k]             the last k rows with T ≤ τ
    [A ROWS k]           the last k rows with T ≤ τ of each value of A

Rows come in the order (T, _seq), descending. None reaches beyond RANGE.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.sql.extensions import WindowClause
from headwater.storage.streaming.read import StreamSnapshot, Wanted, select


def window_rows(
    snapshot: StreamSnapshot, window: WindowClause, instant: int | None, columns: Sequence[str]
) -> pa.Table:
    """The rows of a window at an instant; none before the table has a clock."""
    definition = snapshot.definition
    names = tuple(columns)
    if instant is None:
        return select(snapshot, Wanted(names, limit=0)).rows
    if window.kind == "interval":
        assert window.duration is not None
        size = definition.duration_ticks(window.duration.microseconds)
        high = instant - 1 if window.before else instant
        return select(snapshot, Wanted(names, low=instant - size, high=high, descending=True)).rows
    assert window.rows is not None
    if not window.keys:
        wanted = Wanted(names, high=instant, descending=True, limit=window.rows)
        return select(snapshot, wanted).rows
    keys = [_exact(snapshot, str(key)) for key in window.keys]
    rows = select(snapshot, Wanted((*names, *keys), high=instant, descending=True)).rows
    return last_per_key(rows, keys, window.rows)


def _exact(snapshot: StreamSnapshot, name: str) -> str:
    for field in snapshot.definition.stored_schema:
        if field.name.casefold() == name.casefold():
            return field.name
    return name


def last_per_key(rows: pa.Table, keys: Sequence[str], count: int) -> pa.Table:
    """The first `count` rows of each key, in the order they come; NULL is a key like any other."""
    if not rows.num_rows:
        return rows
    codes = np.zeros(rows.num_rows, dtype=np.int64)
    for key in keys:
        encoded = pc.dictionary_encode(rows.column(key), null_encoding="encode").combine_chunks()
        indices = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        codes = codes * (int(indices.max(initial=0)) + 1) + indices
        codes = np.unique(codes, return_inverse=True)[1]
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(codes[order]) != 0])
    place = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    kept = np.sort(order[place < count])
    return rows.take(pa.array(kept))
