"""Blocks: sealed rows of a streaming table, one Parquet file each, under the table's Delta log.

A block's rows are in the order (T, _seq). What the scan must know of a block before it opens it
(compartment, bounds in exact ticks, sequence range, rows) is its name, so that the log alone says
it; the Delta statistics carry the same for other readers. The table's own state goes into the same
commit as `txn` actions: recovery reads these and infers nothing.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headwater.storage.clock import DIRECT, NO_TICKS, ClockState, Mark, Ticks
from headwater.storage.delta import STATISTICS_COLUMNS, DataFile, DeltaLog
from headwater.storage.disk import storage_error
from headwater.storage.footer import check_footers, damaged_file, with_sum
from headwater.storage.interval_index import IntervalIndex
from headwater.storage.modes import make_folder, make_private
from headwater.storage.statistics import null_count
from headwater.storage.streaming.definition import LATE, SEQUENCE, Definition
from headwater.storage.streaming.records import Delivery, RecordStamp

ROW_GROUP_ROWS = 100_000
GONE = -1
_NAME = re.compile(
    r"blocks/(-?\d+)/(-?\d+)_(-?\d+)_(\d+)_(\d+)_(\d+)_(\d+)_([0-9a-f]+)\.[0-9a-f]{8}\.parquet"
)


@dataclass(frozen=True)
class Block:
    """One sealed block, as its name says."""

    path: str  # under the table's folder
    compartment: int
    low: int
    high: int
    low_sequence: int
    high_sequence: int
    row_count: int
    late_count: int
    size: int = 0

    @cached_property
    def row_groups(self) -> int:
        """How many row groups the file has."""
        return -(-self.row_count // ROW_GROUP_ROWS)

    @property
    def id(self) -> str:
        """A name that is never given twice."""
        return Path(self.path).name.rpartition("_")[2].partition(".")[0]


def block_of(file: DataFile) -> Block | None:
    """The block that a file of the log is; None for files that others added."""
    found = _NAME.fullmatch(file.path)
    if found is None:
        return None
    compartment, low, high, first, last, rows, late = (int(g) for g in found.groups()[:7])
    return Block(file.path, compartment, low, high, first, last, rows, late, file.size)


def known_block(file: DataFile) -> Block:
    """The block that a file of ours is."""
    block = block_of(file)
    assert block is not None, file.path
    return block


def ticks_beyond(
    folder: Path, definition: Definition, blocks: Iterable[Block], clock: int | None
) -> Ticks:
    """Sorted ticks of rows in blocks that came in time and lie beyond the clock."""
    found = [NO_TICKS]
    for block in blocks:
        if clock is None or block.high > clock:
            rows = _checked(folder / block.path, [definition.time, LATE])
            rows = rows.filter(pc.invert(rows.column(LATE)))
            ticks = definition.ticks(rows.column(definition.time))
            found.append(ticks if clock is None else ticks[ticks > clock])
    return np.sort(np.concatenate(found))


def _checked(path: Path, columns: list[str]) -> pa.Table:
    check_footers([str(path)])
    try:
        return pq.read_table(path, columns=columns, page_checksum_verification=True)
    except (OSError, pa.ArrowException) as error:
        raise damaged_file(str(path), str(error).splitlines()[0]) from error


def ordered(rows: pa.Table, definition: Definition) -> pa.Table:
    """The rows in the order (T, _seq)."""
    if rows.num_rows < 2:
        return rows
    t = definition.ticks(rows.column(definition.time))
    sequence = rows.column(SEQUENCE).to_numpy()
    later = t[1:] > t[:-1]
    if bool(np.all(later | ((t[1:] == t[:-1]) & (sequence[1:] > sequence[:-1])))):
        return rows
    return rows.take(pa.array(np.lexsort((sequence, t))))


def split(
    rows: pa.Table, definition: Definition, block_rows: int
) -> Iterator[tuple[int, pa.Table]]:
    """Ordered rows as (compartment, rows of one block)."""
    t = definition.ticks(rows.column(definition.time))
    width = definition.compartment_ticks
    parts = np.zeros(len(t), np.int64) if width is None else t // width
    edges = [0, *(np.flatnonzero(np.diff(parts)) + 1).tolist(), len(t)]
    for start, end in pairwise(edges):
        for first in range(start, end, block_rows):
            count = min(block_rows, end - first)
            yield int(parts[start]), rows.slice(first, count)


def write(
    folder: Path, definition: Definition, compartment: int, rows: pa.Table
) -> tuple[Block, DataFile]:
    """Writes one block's file; it is not part of the table until it is committed."""
    t = definition.ticks(rows.column(definition.time))
    sequence = rows.column(SEQUENCE).to_numpy()
    late = int(rows.column(LATE).to_numpy(zero_copy_only=False).sum())
    name = (
        f"blocks/{compartment}/{t[0]}_{t[-1]}_{sequence.min()}_{sequence.max()}"
        f"_{rows.num_rows}_{late}_{uuid.uuid4().hex[:16]}.parquet"
    )
    path = folder / name
    try:
        make_folder(path.parent)
        pq.write_table(
            rows,
            path,
            compression="zstd",
            row_group_size=ROW_GROUP_ROWS,
            write_page_checksum=True,
        )
        make_private(path)
        path = with_sum(path)
        size = path.stat().st_size
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise storage_error("write", str(path), error) from error
        raise
    name = str(path.relative_to(folder))
    file = DataFile(name, size, rows.num_rows, _statistics(definition, rows))
    block = block_of(file)
    assert block is not None
    return block, file


def _statistics(definition: Definition, rows: pa.Table) -> Mapping[str, Any]:
    """Statistics for other Delta readers: exact bounds of T and of the sequence."""
    low, high = rows.column(definition.time)[0].as_py(), rows.column(definition.time)[-1].as_py()
    sequence = rows.column(SEQUENCE).to_numpy()
    bounds = {
        "minValues": {definition.time: _json(low), SEQUENCE: int(sequence.min())},
        "maxValues": {definition.time: _json(high), SEQUENCE: int(sequence.max())},
    }
    names = rows.column_names[:STATISTICS_COLUMNS]
    nulls = {name: null_count(rows.column(name)) for name in names}
    return {"numRecords": rows.num_rows, **bounds, "nullCount": nulls}


def _json(value: Any) -> Any:
    if isinstance(value, int):
        return value
    text = value.isoformat()
    return text.replace("+00:00", "Z") if "T" in text else text


@dataclass(frozen=True)
class BlockProgress:
    """How far a source has come: its last micro-batch, and the rows it has delivered, late ones too."""

    batch: int | None = None
    row_count: int = 0

    def after(self, row_count: int, delivery: Delivery | None) -> BlockProgress:
        """The progress after one more record of the source."""
        if delivery is None:
            return BlockProgress(self.batch, self.row_count + row_count)
        return BlockProgress(delivery.number, self.row_count + delivery.row_count)


@dataclass(frozen=True)
class TableState:
    """The table's state: what the last visible record left, or what the last commit keeps of it."""

    lsn: int = 0
    next_sequence: int = 0
    late_total: int = 0
    arrival_us: int = 0
    time: ClockState = field(default_factory=ClockState)
    progress: Mapping[str, BlockProgress] = field(default_factory=dict)

    def after(
        self, lsn: int, stamp: RecordStamp, source: str, delivery: Delivery | None = None
    ) -> TableState:
        """The state after one more record."""
        known = self.time
        if stamp.back:
            assert stamp.time.clock is not None
            known = known.back(stamp.time.clock)
        marks, progress = dict(known.marks), dict(self.progress)
        if stamp.removed:
            marks.pop(source, None)
            marks[DIRECT] = stamp.mark  # what was the source's is part of it now
            progress.pop(source, None)
        else:
            marks[source] = stamp.mark
        if source and not stamp.removed:
            before = progress.get(source, BlockProgress())
            progress[source] = before.after(stamp.row_count, delivery)
        time = ClockState(stamp.time.clock, stamp.time.closed, marks)
        return TableState(
            lsn, stamp.next_sequence, stamp.late_total, stamp.arrival_us, time, progress
        )

    def transactions(self, before: TableState) -> dict[str, int]:
        """The state as `txn` actions; sources that are gone since the commit before are ended."""
        found = {
            "headwater.wal": self.lsn,
            "headwater.sequence": self.next_sequence,
            "headwater.late": self.late_total,
            "headwater.arrival": self.arrival_us,
        }
        known = {"clock": self.time.clock, "closed": self.time.closed}
        found |= {f"headwater.{name}": tick for name, tick in known.items() if tick is not None}
        for source, mark in self.time.marks.items():
            head = f"headwater.source.{source}."
            found[head + "live"] = int(mark.live)
            marks = {"seen": mark.seen, "advanced": mark.advanced}
            found |= {head + name: tick for name, tick in marks.items() if tick is not None}
        for source in before.time.marks.keys() - self.time.marks.keys():
            found[f"headwater.source.{source}.live"] = GONE
        for source, progress in self.progress.items():
            found[f"headwater.rows.{source}"] = progress.row_count
            if progress.batch is not None:
                found[f"headwater.batch.{source}"] = progress.batch
        return found


def sealed_state(log: DeltaLog, sources: Iterable[str]) -> TableState:
    """The state that the log tells, with the marks of these sources."""

    def number(name: str) -> int | None:
        return log.transaction(f"headwater.{name}")

    marks, progress = {}, {}
    for source in ("", *sources):
        delivered = number(f"rows.{source}")
        if delivered is not None:
            progress[source] = BlockProgress(number(f"batch.{source}"), delivered)
        live = number(f"source.{source}.live")
        if live is not None and live != GONE:
            head = f"source.{source}."
            marks[source] = Mark(number(head + "seen"), number(head + "advanced"), bool(live))
    return TableState(
        lsn=number("wal") or 0,
        next_sequence=number("sequence") or 0,
        late_total=number("late") or 0,
        arrival_us=number("arrival") or 0,
        time=ClockState(number("clock"), number("closed"), marks),
        progress=progress,
    )


def read_blocks(log: DeltaLog) -> tuple[list[Block], list[DataFile]]:
    """The blocks of the newest version, and files that others added to the table."""
    blocks, foreign = [], []
    for file in log.files():
        block = block_of(file)
        if block is None:
            foreign.append(file)
        else:
            blocks.append(block)
    return sorted(blocks, key=lambda b: (b.low, b.low_sequence)), foreign


def interval_index(blocks: Iterable[Block]) -> IntervalIndex[Block]:
    """The blocks by the time that they cover (ST8)."""
    return IntervalIndex((block, block.low, block.high) for block in blocks)
