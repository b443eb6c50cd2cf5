"""A result as changes against the one before: found, encoded, decoded, applied.

Owns: what changes are. A row that is gone repeats the one that was added, bit for bit, and applying
changes gives back the same rows in the same order. Changes of a bag have no places: of rows that are equal
the first goes, and what is added stands last, so that the order is the same however many are applied at once.
(What readers are *told* has changed is a coarser question, `emit.py`: it looks at these rows only.) `_t`, the
last column, is left out where every row of the result has its instant. Pure: must never read a clock or a
disk, or keep anything from call to call. DESIGN §8, "Output is changes".
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.engine.sequence_diff import Places, differing
from headwater.operators.bags import left_of

TIME_ROWS = 64 << 10  # a longer column of one time is the same array again and again
SPLICED_ROWS = 64  # so few changes are applied without copies …
MOST_CHUNKS = 256  # … while a result is not in more pieces
COMPRESSED_FROM_BYTES = 4096
LAYOUT, BAG_LAYOUT = 1, 2
HEAD = struct.Struct("<B??xiqq")  # layout, one time, a stream, 0, rows gone, rows of the result
PLACE = pa.field("place", pa.int64(), nullable=False)


@dataclass(frozen=True, eq=False)
class PlacedChanges:
    """What makes a result of the one before it."""

    gone: pa.Table  # rows of the result before
    gone_at: Places  # where they were
    added: pa.Table
    added_at: Places  # where they are in the new result
    row_count: int  # of the new result
    one_time: bool  # all rows have the instant of the result as `_t`

    @property
    def nbytes(self) -> int:
        """What they hold in memory."""
        return int(self.gone.nbytes + self.added.nbytes) + 8 * len(self)

    def __len__(self) -> int:
        return len(self.gone_at) + len(self.added_at)


@dataclass(frozen=True, eq=False)
class BagChanges:
    """What makes a result of the one before it where rows have no order; no row is among both."""

    gone: pa.Table  # rows of the result before
    added: pa.Table
    row_count: int  # of the new result

    one_time: ClassVar[bool] = True

    @property
    def nbytes(self) -> int:
        """What they hold in memory."""
        return int(self.gone.nbytes + self.added.nbytes)

    def __len__(self) -> int:
        return self.gone.num_rows + self.added.num_rows


KnownChanges = PlacedChanges | BagChanges


# Finding


def find_changes(before: pa.Table, after: pa.Table, time: pa.Scalar) -> PlacedChanges | None:
    """What changed between two results of one schema; None where most of it did.

    `time`: the instant of the new result, as a value of `_t`.
    """
    one_time = _is_all(after.column(after.num_columns - 1), time)
    names = range(after.num_columns - 1) if one_time else range(after.num_columns)
    found = differing(before.select(names), after.select(names))
    if 2 * sum(map(len, found)) > before.num_rows + after.num_rows:
        return None
    gone, added = _rows_at(before, found[0]), _rows_at(after, found[1])
    gone = _timed(gone, time) if one_time else gone
    return PlacedChanges(gone, found[0], added, found[1], after.num_rows, one_time)


def _is_all(times: pa.ChunkedArray, time: pa.Scalar) -> bool:
    """Whether every row has this time."""
    seen = set[tuple[int, int, int]]()
    for chunk in times.chunks:
        place = (chunk.buffers()[1].address, chunk.offset, len(chunk)) if len(chunk) else (0, 0, 0)
        if len(chunk) and place not in seen:
            seen.add(place)
            edges = pc.min_max(chunk)
            if chunk.null_count or edges["min"] != time or edges["max"] != time:
                return False
    return True


def _rows_at(rows: pa.Table, places: Places) -> pa.Table:
    """Some rows; what lies in other chunks is not touched, as `take` would."""
    columns = [_values_at(column, places) for column in rows.columns]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _values_at(column: pa.ChunkedArray, places: Places) -> pa.ChunkedArray:
    parts, start, done = [], 0, 0
    for chunk in column.iterchunks():
        if done == len(places):
            break
        end = bisect_left(places, start + len(chunk), done)
        if end > done:
            parts.append(chunk.take(pa.array(places[done:end] - start)))
        start, done = start + len(chunk), end
    return pa.chunked_array(parts, column.type)


def _timed(rows: pa.Table, time: pa.Scalar) -> pa.Table:
    """The rows with one time."""
    columns = [*rows.columns[: rows.num_columns - 1], repeated(time, rows.num_rows)]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def repeated(value: pa.Scalar, row_count: int) -> pa.ChunkedArray:
    """A column of one value."""
    block = pa.repeat(value, min(row_count, TIME_ROWS))
    whole, rest = divmod(row_count, TIME_ROWS)
    return pa.chunked_array([block] * whole + [block.slice(0, rest)] * (rest > 0), value.type)


# Applying


def applied(before: pa.Table, steps: Sequence[KnownChanges], time: pa.Scalar) -> pa.Table:
    """The result after some changes, one after the other; `time`: its instant."""
    for kind, some in groupby(steps, type):
        if kind is BagChanges:
            before = _bag_applied(before, cast(list[BagChanges], list(some)), time)
        else:
            before = _placed_applied(before, cast(list[PlacedChanges], list(some)), time)
    return before


def _bag_applied(before: pa.Table, steps: Sequence[BagChanges], time: pa.Scalar) -> pa.Table:
    own = range(before.num_columns - 1)
    pool = pa.concat_tables([before, *(step.added for step in steps)]).select(own)
    gone = pa.concat_tables([step.gone for step in steps]).select(own)
    if gone.num_rows:
        pool = pool.combine_chunks().take(pa.array(left_of(pool, gone)))
    if pool.num_rows != steps[-1].row_count:
        raise ValueError("changes that are not of this result")
    columns = [*pool.columns, repeated(time, pool.num_rows)]
    return pa.Table.from_arrays(columns, schema=before.schema)


def _placed_applied(before: pa.Table, steps: Sequence[PlacedChanges], time: pa.Scalar) -> pa.Table:
    places: Places = np.arange(before.num_rows)
    count, parts = before.num_rows, [before]
    for step in steps:
        numbers = np.arange(count, count + len(step.added_at))
        places = _placed(places, step, numbers)
        parts.append(step.added)
        count += len(numbers)
    pool = pa.concat_tables(parts)
    if steps[-1].one_time:
        own = pool.select(range(pool.num_columns - 1)).combine_chunks().take(pa.array(places))
        columns = [*own.columns, repeated(time, len(places))]
        return pa.Table.from_arrays(columns, schema=before.schema)
    return pool.combine_chunks().take(pa.array(places))


def spliced(before: pa.Table, step: PlacedChanges, time: pa.Scalar) -> pa.Table:
    """As `applied`, for few changes: rows that stay are those of the result before, not copies."""
    if len(step) > SPLICED_ROWS:
        return applied(before, [step], time)
    pieces, gone, added = list[pa.Table](), step.gone_at.tolist(), step.added_at.tolist()
    i = j = taken = 0  # places in both results, and rows added so far
    while gone or taken < len(added):
        to_gone = gone[0] - i if gone else step.row_count
        same = min(to_gone, added[taken] - j if taken < len(added) else step.row_count)
        pieces.append(before.slice(i, same))
        i, j, first = i + same, j + same, taken
        while gone and gone[0] == i:
            i += 1
            del gone[0]
        while taken < len(added) and added[taken] == j:
            j, taken = j + 1, taken + 1
        pieces.append(step.added.slice(first, taken - first))
    rows = pa.concat_tables([*pieces, before.slice(i)])
    rows = rows.combine_chunks() if rows.column(0).num_chunks > MOST_CHUNKS else rows
    return _timed(rows, time) if step.one_time else rows


def _placed(places: Places, step: PlacedChanges, numbers: Places) -> Places:
    """The numbers of rows in the order of the new result; the old ones are not needed any more."""
    if np.array_equal(step.gone_at, step.added_at):
        places[step.added_at] = numbers
        return places
    kept, free = np.ones(len(places), np.bool_), np.ones(step.row_count, np.bool_)
    kept[step.gone_at] = False
    free[step.added_at] = False
    placed: Places = np.empty(step.row_count, np.int64)
    placed[free], placed[step.added_at] = places[kept], numbers
    return placed


# As bytes


def encode_changes(changes: KnownChanges) -> bytes:
    """A head, then the rows that are gone and those added, with their places if any, as one Arrow batch."""
    rows = pa.concat_tables([changes.gone, changes.added])
    if changes.one_time:
        rows = rows.select(range(rows.num_columns - 1))
    layout = BAG_LAYOUT
    if isinstance(changes, PlacedChanges):
        places = pa.array(np.concatenate([changes.gone_at, changes.added_at]))
        layout, rows = LAYOUT, rows.append_column(PLACE, places)
    large = rows.nbytes > COMPRESSED_FROM_BYTES
    gone = changes.gone.num_rows
    head = HEAD.pack(layout, changes.one_time, large, 0, gone, changes.row_count)
    if large:
        return head + encode_rows(rows)
    batch = pa.RecordBatch.from_arrays(
        [_whole(column) for column in rows.columns], schema=rows.schema
    )
    return head + batch.serialize().to_pybytes()


def decode_changes(data: bytes | pa.Buffer, schema: pa.Schema, time: pa.Scalar) -> KnownChanges:
    """The changes of a result of a schema; `time`: its instant."""
    buffer = pa.py_buffer(data)
    layout, one_time, large, _, gone, row_count = HEAD.unpack_from(buffer)
    if layout not in (LAYOUT, BAG_LAYOUT):
        raise ValueError(f"changes of layout {layout}; this version knows {LAYOUT}, {BAG_LAYOUT}")
    body = buffer.slice(HEAD.size)
    placed = [PLACE] if layout == LAYOUT else []
    stored = pa.schema([*list(schema)[: len(schema) - one_time], *placed])
    rows = (
        decode_rows(body)
        if large
        else pa.Table.from_batches([pa.ipc.read_record_batch(body, stored)])
    )
    own = rows.select(range(rows.num_columns - len(placed)))
    if one_time:
        own = pa.Table.from_arrays([*own.columns, repeated(time, own.num_rows)], schema=schema)
    parts = own.slice(0, gone), own.slice(gone)
    if layout == BAG_LAYOUT:
        return BagChanges(*parts, row_count)
    places = rows.column(rows.num_columns - 1).to_numpy()
    return PlacedChanges(parts[0], places[:gone], parts[1], places[gone:], row_count, one_time)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def encode_rows(rows: pa.Table) -> bytes:
    """Rows as an Arrow stream, compressed where that pays."""
    compression = "lz4" if rows.nbytes > COMPRESSED_FROM_BYTES else None
    target = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(target, rows.schema, options=options) as writer:
        writer.write_table(rows)
    data: bytes = target.getvalue().to_pybytes()
    return data


def decode_rows(data: bytes | pa.Buffer) -> pa.Table:
    """The rows of an Arrow stream."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()
