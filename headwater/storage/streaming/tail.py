"""The tail: recent rows in memory, in commit order, not yet in a block.

Every batch knows the log record it came from. Small neighbours are joined when somebody reads, so
that thousands of single-row inserts do not make thousands of pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.storage.streaming.definition import ARRIVAL, Definition
from headwater.storage.streaming.records import Stamp

SMALL_ROWS = 4096
MANY_PIECES = 32


@dataclass(frozen=True)
class TailBatch:
    """Rows with their hidden columns; `first_lsn` and `last_lsn` are the records they came from."""

    first_lsn: int
    last_lsn: int
    rows: pa.Table
    low: int  # smallest and largest tick
    high: int
    batch_ids: tuple[str, ...]

    @property
    def bytes(self) -> int:
        """Memory that the rows take."""
        return int(self.rows.nbytes)


def tail_batch(
    definition: Definition, lsn: int, stamp: Stamp, batch: pa.RecordBatch, batch_id: str | None
) -> TailBatch:
    """The rows of one log record, with their hidden columns; late ones left out if so decided."""
    count = batch.num_rows
    arrays: list[Any] = list(batch.columns)
    if definition.by_arrival:
        arrival = np.full(count, stamp.arrival_us, dtype=np.int64)
        arrays.append(pa.array(arrival).cast(definition.stored_schema.field(ARRIVAL).type))
    arrays.append(pa.array(np.arange(stamp.base_sequence, stamp.base_sequence + count)))
    arrays.append(pa.array(np.arange(count) < stamp.time.late_count))
    rows = pa.Table.from_arrays(arrays, schema=definition.stored_schema)
    if stamp.late_dropped:
        rows = rows.slice(stamp.time.late_count)
    low, high = bounds(definition, rows)
    ids = (batch_id,) if batch_id is not None else ()
    return TailBatch(lsn, lsn, rows, low, high, ids)


def bounds(definition: Definition, rows: pa.Table) -> tuple[int, int]:
    """The smallest and largest tick; rows of one batch are sorted by T."""
    if not rows.num_rows:
        return 0, -1
    column = rows.column(definition.time)
    ends = definition.ticks(pa.chunked_array([column.slice(0, 1).chunk(0), _last(column)]))
    return int(ends[0]), int(ends[1])


def _last(column: pa.ChunkedArray) -> pa.Array:
    return column.slice(len(column) - 1, 1).chunk(0)


def joined(batches: Sequence[TailBatch]) -> list[TailBatch]:
    """The batches with runs of small neighbours joined; each piece is in (T, _seq) order no more."""
    if len(batches) <= MANY_PIECES:
        return list(batches)
    pieces: list[TailBatch] = []
    run: list[TailBatch] = []
    for batch in batches:
        if batch.rows.num_rows >= SMALL_ROWS:
            pieces += _join(run)
            run = []
            pieces.append(batch)
        else:
            run.append(batch)
    return pieces + _join(run)


def _join(run: list[TailBatch]) -> list[TailBatch]:
    if len(run) < 2:
        return run
    filled = [b for b in run if b.rows.num_rows]
    rows = pa.concat_tables([b.rows for b in run]).combine_chunks()
    low = min((b.low for b in filled), default=0)
    high = max((b.high for b in filled), default=-1)
    ids = tuple(name for b in run for name in b.batch_ids)
    return [TailBatch(run[0].first_lsn, run[-1].last_lsn, rows, low, high, ids)]
