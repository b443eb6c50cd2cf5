"""Reads of one snapshot of a streaming table: which blocks, which rows, in which order.

Temporal bounds go to the interval index, the rest of the predicate to value indexes; tail and
blocks not yet indexed are searched all the same (Table VI: delay 0). The answer is always in the
order (T, _seq), ascending or descending.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import acero

from headwater.errors import StorageError
from headwater.expression.predicate import (
    Predicate,
    Range,
    Ranges,
    columns_of,
    common,
    hull,
    ranges_of,
)
from headwater.storage.footer import check_footers
from headwater.storage.interval_index import Intervals
from headwater.storage.scan import CHECKED_PARQUET, split_for_files
from headwater.storage.sidecar import Sidecar
from headwater.storage.streaming.blocks import ROW_GROUP_ROWS, Block
from headwater.storage.streaming.definition import SEQUENCE, Definition
from headwater.storage.streaming.tail import TailPiece

ORDER_ROWS = 256 << 10  # whose order is looked at together
Numbers = np.ndarray[Any, Any]
RowFinder = Callable[[Block, Predicate], "np.ndarray[Any, Any] | None"]


@dataclass(frozen=True)
class StreamSnapshot:
    """A streaming table at one moment."""

    definition: Definition
    folder: Path
    version: int
    blocks: Intervals[Block]
    tail: tuple[TailPiece, ...]
    clock: int | None
    closed: int | None
    memory: Mapping[str, pa.Table]
    find_rows: RowFinder | None = None
    sidecar: Sidecar | None = None
    horizon: int | None = None
    next_sequence: int = 0
    generation: int = 0

    @property
    def oldest_visible(self) -> int | None:
        """The smallest tick that RANGE lets a reader see now (Definition 1); None for all."""
        limit = self.definition.range_ticks
        oldest = None if limit is None or self.clock is None else self.clock - limit
        bounds = [bound for bound in (oldest, self.horizon) if bound is not None]
        return max(bounds, default=None)


@dataclass(frozen=True)
class Wanted:
    """What a reader asks for."""

    columns: tuple[str, ...]
    predicate: Predicate | None = None
    low: int | None = None
    high: int | None = None
    descending: bool = False
    limit: int | None = None


@dataclass
class ScanCounts:
    """What a read touched, for EXPLAIN and for tests."""

    blocks_in_interval: int = 0
    row_groups_in_interval: int = 0
    blocks_after_values: int = 0
    row_groups_after_values: int = 0
    row_groups_read: int = 0
    blocks_in_memory: int = 0
    tail_rows: int = 0


@dataclass(frozen=True)
class Selected:
    """The rows (asked columns, T and _seq) and what it took to find them."""

    rows: pa.Table
    counts: ScanCounts = field(default_factory=ScanCounts)


class Selection:
    """What a reader asks for, made ready: it holds for as long as the table has this definition."""

    def __init__(self, definition: Definition, wanted: Wanted) -> None:
        self.definition, self.wanted = definition, wanted
        said = ranges_of(wanted.predicate, definition.time, definition.tick)
        self._ranges = common((Range(wanted.low, wanted.high),), said)
        self._pushed, kept = split_for_files(wanted.predicate)
        # Only rows can tell: compared after they are read.
        self._kept = None if kept is None else kept.arrow()
        named = wanted.columns if kept is None else (*wanted.columns, *columns_of(kept))
        self._columns = _with_order(named, definition)
        looked = () if self._pushed is None else columns_of(self._pushed)
        self._looked_at = _with_order((*self._columns, *looked), definition)
        self._visible = self._within(None)

    def _within(self, oldest: int | None) -> tuple[int | None, Ranges, pc.Expression | None]:
        """From which tick on rows are visible, the time that the answer can lie in, and the condition."""
        ranges = self._ranges if oldest is None else common((Range(oldest),), self._ranges)
        return oldest, ranges, _condition(self.definition, self._pushed, hull(ranges))

    def of(self, snapshot: StreamSnapshot) -> Selected:
        """The rows that are asked for, in order."""
        oldest, visible = snapshot.oldest_visible, self._visible
        if visible[0] != oldest:
            visible = self._visible = self._within(oldest)
        _, ranges, condition = visible
        definition, wanted, counts = self.definition, self.wanted, ScanCounts()
        read_columns = self._columns if condition is None else self._looked_at
        parts: list[pa.Table] = []
        found = 0
        for edge, read in _pieces(snapshot, ranges, wanted, counts):
            if (
                wanted.limit is not None
                and found >= wanted.limit
                and _settled(definition, parts, edge, wanted)
            ):
                break
            rows = read(self._columns, read_columns, condition)
            rows = rows if self._kept is None else rows.filter(self._kept)
            if rows.num_rows:
                parts.append(rows)
                found += rows.num_rows
        rows = _joined(parts) if parts else _empty(definition, self._columns)
        rows = in_order(rows, definition, descending=wanted.descending)
        if wanted.limit is not None and rows.num_rows > wanted.limit:
            rows = rows.slice(0, wanted.limit)
        return Selected(rows, counts)


def select(snapshot: StreamSnapshot, wanted: Wanted) -> Selected:
    """The rows that a reader asks for once, in order."""
    return Selection(snapshot.definition, wanted).of(snapshot)


def _joined(parts: list[pa.Table]) -> pa.Table:
    return parts[0] if len(parts) == 1 else pa.concat_tables(parts)


def _empty(definition: Definition, columns: Sequence[str]) -> pa.Table:
    schema = definition.stored_schema
    return pa.schema([schema.field(name) for name in columns]).empty_table()


def _with_order(columns: Iterable[str], definition: Definition) -> list[str]:
    names = {*columns, definition.time, SEQUENCE}
    return [name for name in definition.stored_schema.names if name in names]


def blocks_within(blocks: Intervals[Block], ranges: Ranges) -> list[Block]:
    """The blocks that share a tick with any of the ranges, each once, by their low."""
    if len(ranges) == 1:
        return blocks.overlapping(ranges[0].low, ranges[0].high)
    return list(dict.fromkeys(b for r in ranges for b in blocks.overlapping(r.low, r.high)))


def _condition(
    definition: Definition, predicate: Predicate | None, within: Range | None
) -> pc.Expression | None:
    if within is None:
        return pc.scalar(False)
    low, high = within.low, within.high
    parts = [] if predicate is None else [predicate.arrow()]
    column = pc.field(definition.time)
    lowest, highest = _type_bounds(definition)
    if low is not None and low > lowest:
        parts.append(pc.scalar(False) if low > highest else column >= _ceiling(definition, low))
    if high is not None and high < highest:
        parts.append(pc.scalar(False) if high < lowest else column <= definition.scalar(high))
    whole = None
    for part in parts:
        whole = part if whole is None else whole & part
    return whole


def _type_bounds(definition: Definition) -> tuple[int, int]:
    """Ticks that the time column's type can hold."""
    bits = definition.time_type.bit_width if pa.types.is_integer(definition.time_type) else 64
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def _ceiling(definition: Definition, tick: int) -> pa.Scalar:
    """The smallest value of the column's type that is not before the tick."""
    scalar = definition.scalar(tick)
    if pa.types.is_date(definition.time_type) and definition.tick(scalar.as_py()) < tick:
        return definition.scalar(tick + 86_400_000_000)
    return scalar


FEW_ROWS = 10_000
# The columns to give, those to look at for that, and the condition.
Reader = Callable[[list[str], list[str], "pc.Expression | None"], pa.Table]


def _pieces(
    snapshot: StreamSnapshot, ranges: Ranges, wanted: Wanted, counts: ScanCounts
) -> Iterator[tuple[int, Reader]]:
    """Blocks and tail batches that may hold rows, nearest to the start of the answer first.

    Each with the edge before which (after which, descending) it holds nothing.
    """
    pieces: list[tuple[int, Reader]] = []
    for batch in snapshot.tail:
        if batch.rows.num_rows and _overlaps(batch.low, batch.high, ranges):
            counts.tail_rows += batch.rows.num_rows
            edge = batch.high if wanted.descending else batch.low
            pieces.append((edge, _memory_reader(batch.rows)))
    for block in blocks_within(snapshot.blocks, ranges):
        counts.blocks_in_interval += 1
        counts.row_groups_in_interval += block.row_groups
        reader = _block_reader(snapshot, block, wanted.predicate, counts)
        if reader is not None:
            pieces.append((block.high if wanted.descending else block.low, reader))
    pieces.sort(key=lambda piece: piece[0], reverse=wanted.descending)
    yield from pieces


def _overlaps(low: int, high: int, ranges: Ranges) -> bool:
    """Whether rows between two ticks may lie in any of the ranges."""
    for within in ranges:
        begun = within.high is None or low <= within.high
        if begun and (within.low is None or high >= within.low):
            return True
    return False


def _memory_reader(rows: pa.Table) -> Reader:
    def read(columns: list[str], looked_at: list[str], condition: pc.Expression | None) -> pa.Table:
        seen = rows.select(looked_at)
        if condition is None:
            return seen
        kept = _filtered(seen, condition)
        return kept if looked_at == columns else kept.select(columns)

    return read


def _filtered(rows: pa.Table, condition: pc.Expression) -> pa.Table:
    """The rows that pass; few of them are looked at in this thread, which is sooner done."""
    if rows.num_rows > FEW_ROWS:
        return rows.filter(condition)
    steps = [
        acero.Declaration("table_source", acero.TableSourceNodeOptions(rows)),
        acero.Declaration("filter", acero.FilterNodeOptions(condition)),
    ]
    return acero.Declaration.from_sequence(steps).to_table(use_threads=False)


def _block_reader(
    snapshot: StreamSnapshot, block: Block, predicate: Predicate | None, counts: ScanCounts
) -> Reader | None:
    """How to read a block; None if the value indexes say that no row of it can match."""
    rows = None
    if predicate is not None and snapshot.find_rows is not None:
        rows = snapshot.find_rows(block, predicate)
        if rows is not None and not len(rows):
            return None
    counts.blocks_after_values += 1
    groups = block.row_groups if rows is None else _group_count(rows)
    counts.row_groups_after_values += groups
    held = snapshot.memory.get(block.path)
    if held is not None:
        counts.blocks_in_memory += 1
        return _memory_reader(held if rows is None else held.take(pa.array(rows)))
    if snapshot.sidecar is not None and snapshot.sidecar.has(block.path):
        return _sidecar_reader(snapshot, block, rows, counts)
    return _file_reader(snapshot.folder / block.path, rows, counts)


def _group_count(rows: np.ndarray[Any, Any]) -> int:
    return len(np.unique(rows // ROW_GROUP_ROWS))


def _sidecar_reader(
    snapshot: StreamSnapshot, block: Block, rows: np.ndarray[Any, Any] | None, counts: ScanCounts
) -> Reader:
    """Reads the block's Arrow file; the block itself if that file turns out damaged."""
    sidecar = snapshot.sidecar
    assert sidecar is not None

    def read(columns: list[str], looked_at: list[str], condition: pc.Expression | None) -> pa.Table:
        if rows is None:
            held = sidecar.read(block.path, looked_at)
        else:
            held = sidecar.take(block.path, rows, looked_at)
        if held is None:
            from_file = _file_reader(snapshot.folder / block.path, rows, counts)
            return from_file(columns, looked_at, condition)
        counts.row_groups_read += block.row_groups if rows is None else _group_count(rows)
        return _memory_reader(held)(columns, looked_at, condition)

    return read


def _file_reader(path: Path, rows: np.ndarray[Any, Any] | None, counts: ScanCounts) -> Reader:
    def read(columns: list[str], _: list[str], condition: pc.Expression | None) -> pa.Table:
        check_footers([str(path)])
        try:
            fragment = next(iter(ds.dataset(str(path), format=CHECKED_PARQUET).get_fragments()))
            if rows is not None:
                groups = np.unique(rows // ROW_GROUP_ROWS).tolist()
                fragment = fragment.subset(row_group_ids=groups)
            if condition is not None:
                fragment = fragment.subset(condition)
            counts.row_groups_read += len(fragment.row_groups)
            return fragment.to_table(columns=columns, filter=condition)
        except (OSError, pa.ArrowException) as error:
            raise StorageError(
                f"the block {path} cannot be read",
                sqlstate="XX001",
                detail=str(error).splitlines()[0],
                hint="restore the file from a copy",
            ) from error

    return read


def _settled(definition: Definition, parts: list[pa.Table], edge: int, wanted: Wanted) -> bool:
    """Whether the first `limit` rows cannot change by pieces that begin at the edge."""
    if not parts:  # LIMIT 0
        return True
    ticks = np.concatenate([definition.ticks(p.column(definition.time)) for p in parts])
    assert wanted.limit is not None
    before = ticks > edge if wanted.descending else ticks < edge
    return int(before.sum()) >= wanted.limit


def in_order(rows: pa.Table, definition: Definition, *, descending: bool = False) -> pa.Table:
    """The rows by (T, _seq)."""
    keys = rows.select([definition.time, SEQUENCE])
    # Part by part, each with the first row of the next: numbers for all rows cost as much as the rows.
    parts = (keys.slice(at, ORDER_ROWS + 1) for at in range(0, rows.num_rows - 1, ORDER_ROWS))
    if all(_is_in_order(*_order_keys(part, definition, descending)) for part in parts):
        return rows
    ticks, sequence = _order_keys(keys, definition, descending)
    return rows.take(pa.array(np.lexsort((sequence, ticks))))


def _order_keys(
    keys: pa.Table, definition: Definition, descending: bool
) -> tuple[Numbers, Numbers]:
    """T and _seq as numbers that grow in the order that is asked for."""
    ticks = definition.ticks(keys.column(definition.time))
    sequence = keys.column(SEQUENCE).to_numpy()
    return (-ticks, -sequence) if descending else (ticks, sequence)


def _is_in_order(ticks: Numbers, sequence: Numbers) -> bool:
    step = np.diff(ticks)
    return bool(np.all((step > 0) | ((step == 0) & (np.diff(sequence) > 0))))
