"""The tail: recent rows in memory, in commit order, not yet in a block.

The log's writer only puts a batch on a list: hidden columns are made, for many batches at once, when
somebody reads or seals. What has been made for a reader is kept as a *piece* for the next one, so a
read after a small insert costs little however long the tail is.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.storage.delta import DataFile
from headwater.storage.streaming.definition import ARRIVAL, Definition
from headwater.storage.streaming.records import RecordStamp

SMALL_ROWS = 16_384
MANY_PIECES = 16


@dataclass(frozen=True, slots=True)
class TailBatch:
    """The rows of one record of the log, as the user gave them; None where it holds none."""

    lsn: int
    stamp: RecordStamp
    batch: pa.RecordBatch | None
    batch_id: str | None
    low: int  # smallest and largest tick
    high: int
    bytes: int
    files: tuple[DataFile, ...] = ()  # blocks of a source that no commit holds yet


@dataclass(frozen=True, slots=True)
class TailPiece:
    """Rows of some neighbouring batches with their hidden columns, ready to be read."""

    rows: pa.Table
    low: int
    high: int


@dataclass
class Tail:
    """The batches of one table that are in no block yet; the table's lock guards it."""

    definition: Definition
    batches: list[TailBatch] = field(default_factory=list)
    bytes: int = 0
    since: float = 0.0
    _pieces: list[TailPiece] = field(default_factory=list)
    _covered: int = 0  # so many batches are in pieces

    def append(self, batch: TailBatch) -> None:
        """Adds the newest batch."""
        if not self.batches:
            self.since = time.monotonic()
        self.batches.append(batch)
        self.bytes += batch.bytes

    def pieces(self) -> tuple[TailPiece, ...]:
        """All rows, in a bounded number of pieces."""
        fresh = [b for b in self.batches[self._covered :] if b.batch is not None]
        if fresh:
            self._pieces.append(piece_of(self.definition, fresh))
            if len(self._pieces) > MANY_PIECES:
                self._pieces = _joined(self._pieces)
        self._covered = len(self.batches)
        return tuple(self._pieces)

    def drop(self, count: int) -> None:
        """Forgets the oldest batches, which are in blocks now."""
        self.batches = self.batches[count:]
        self.bytes = sum(batch.bytes for batch in self.batches)
        self.since = time.monotonic()
        self._pieces, self._covered = [], 0


def piece_of(definition: Definition, batches: Sequence[TailBatch]) -> TailPiece:
    """The rows of batches with their hidden columns."""
    low = min((b.low for b in batches if b.low <= b.high), default=0)
    high = max((b.high for b in batches if b.low <= b.high), default=-1)
    return TailPiece(stored_rows(definition, batches), low, high)


def stored_rows(definition: Definition, batches: Sequence[TailBatch]) -> pa.Table:
    """The rows of batches as blocks store them; late ones left out where that was decided."""
    filled = [b for b in batches if b.batch is not None and b.batch.num_rows]
    if not filled:
        return definition.stored_schema.empty_table()
    table = pa.Table.from_batches([b.batch for b in filled]).combine_chunks()
    counts = np.array([b.stamp.row_count for b in filled])
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    place = np.arange(len(starts)) - starts  # of each row in its batch
    arrays: list[Any] = list(table.columns)
    if definition.by_arrival:
        arrival = np.repeat([b.stamp.arrival_us for b in filled], counts)
        arrays.append(pa.array(arrival).cast(definition.stored_schema.field(ARRIVAL).type))
    arrays.append(pa.array(np.repeat([b.stamp.base_sequence for b in filled], counts) + place))
    late = place < np.repeat([b.stamp.time.late_count for b in filled], counts)
    arrays.append(pa.array(late))
    rows = pa.Table.from_arrays(arrays, schema=definition.stored_schema)
    if any(b.stamp.late_dropped for b in filled):
        dropped = late & np.repeat([b.stamp.late_dropped for b in filled], counts)
        rows = rows.filter(pa.array(~dropped))
    return rows


def _joined(pieces: list[TailPiece]) -> list[TailPiece]:
    """The pieces with runs of small neighbours joined."""
    found: list[TailPiece] = []
    run: list[TailPiece] = []
    for piece in pieces:
        if piece.rows.num_rows >= SMALL_ROWS:
            found += _join(run)
            run = []
            found.append(piece)
        else:
            run.append(piece)
    return found + _join(run)


def _join(run: list[TailPiece]) -> list[TailPiece]:
    if len(run) < 2:
        return run
    rows = pa.concat_tables([piece.rows for piece in run]).combine_chunks()
    filled = [piece for piece in run if piece.low <= piece.high]
    low = min((piece.low for piece in filled), default=0)
    return [TailPiece(rows, low, max((piece.high for piece in filled), default=-1))]
