"""The rows that a firing takes from each table, with their places: ticks, positions, or chunks.

A place is what panes and windows count in. Under SAMPLE n ROWS and CUT BY n ROWS it is the row's
position since the query began, under a cut by values the number of its chunk, else its tick.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.engine.chunks import saved_bounds
from headwater.engine.feed import FeedCursor
from headwater.engine.merges import Ticks
from headwater.engine.reader import LeafReader, PlacedRows
from headwater.engine.sampling import MOST_INSTANTS, Instant, Sampling
from headwater.storage.streaming.definition import SEQUENCE


def fitting(
    readers: Sequence[LeafReader],
    sampling: Sampling,
    instants: list[Instant],
    most: int,
    careful: bool,
) -> list[Instant]:
    """As many of the instants as make one chunk of `most` rows; at least one, all where that is 0.

    `careful`: one only. Of an interval only the first and the last are told, as `Sampling.due` does.
    """
    step = sampling.step
    if careful:
        return [instants[0]] if sampling.kind != "interval" else [instants[0]] * 2
    if sampling.kind == "rows":
        return instants[: max(most // step, 1)] if most else instants
    first, last = instants[0], instants[-1]
    if sampling.kind in ("realtime", "chunks"):
        while most and len(instants) > 1 and _rows_of(readers, sampling, instants) > most:
            instants = instants[: len(instants) // 2]
        return instants
    end = min(last.tick, first.tick + (MOST_INSTANTS - 1) * step)
    while most and end > first.tick and _rows_until(readers, end) > most:
        end = first.tick + (end - first.tick) // step // 2 * step
    return [first, Instant(end, end)]


def _rows_of(readers: Sequence[LeafReader], sampling: Sampling, instants: Sequence[Instant]) -> int:
    """How many rows some evaluations take."""
    if sampling.counted:
        return sum(reader.ends(1, len(instants))[-1] for reader in readers)
    return _rows_until(readers, instants[-1].tick)


def _rows_until(readers: Sequence[LeafReader], tick: int) -> int:
    return sum(reader.count_until(tick) for reader in readers)


def closed_until(readers: Sequence[LeafReader]) -> int | None:
    """Up to where no row can come any more, in any table."""
    closed = [reader.closed for reader in readers]
    return None if None in closed else min(mark for mark in closed if mark is not None)


def early_rows(readers: Sequence[LeafReader], sampling: Sampling) -> int:
    """How many rows of the next evaluation are there, not taken, and can be."""
    if sampling.kind == "rows":
        return min(reader.untaken for reader in readers)
    if sampling.kind == "chunks":
        return sum(reader.open_rows - reader.early for reader in readers)
    limit = closed_until(readers)
    return 0 if limit is None else _rows_until(readers, limit)


def overfull(readers: Sequence[LeafReader], early: int) -> bool:
    """Whether a basket is too full to wait, and most of what waits can be taken early."""
    waiting = sum(reader.untaken for reader in readers)
    return early > 0 and 2 * early >= waiting and any(r.feed.is_full for r in readers)


def take_until(readers: Sequence[LeafReader], tick: int) -> list[PlacedRows]:
    """The rows of every table up to a tick."""
    found = []
    for reader in readers:
        rows, ticks = reader.take_until(tick)
        found.append(PlacedRows(rows, ticks, ticks))
    return found


def take_turns(readers: Sequence[LeafReader], sampling: Sampling, turns: int) -> list[PlacedRows]:
    """The rows of the next evaluations of every table; each reader knows where each one ends."""
    found = []
    for reader in readers:
        ends = np.array(reader.ends(sampling.step, turns)) - reader.early
        before = reader.cursor
        rows, ticks = reader.take_rows(int(ends[-1]) + reader.early)
        sequence = rows.column(SEQUENCE).to_numpy() if rows.num_rows else ticks
        reader.turns = [
            FeedCursor(int(ticks[end - 1]), int(sequence[end - 1])) if end else _known(before)
            for end in ends.tolist()
        ]
        if reader.chunks is not None:
            reader.chunks.turns = reader.turns
        found.append(PlacedRows(rows, _places(reader, sampling, ends), ticks))
    return found


def take_open(readers: Sequence[LeafReader], sampling: Sampling) -> list[PlacedRows]:
    """The rows of the next evaluation that are there, before it is complete."""
    if not sampling.counted:
        limit = closed_until(readers)
        assert limit is not None
        return take_until(readers, limit)
    found = []
    least = min(reader.waiting() for reader in readers)
    for reader in readers:
        count = least if reader.chunks is None else reader.open_rows
        rows, ticks = reader.take_rows(count)
        end = np.array([rows.num_rows])
        found.append(PlacedRows(rows, _places(reader, sampling, end), ticks))
        reader.early += rows.num_rows
    return found


def turn_note(readers: Sequence[LeafReader], turn: int) -> dict[str, Any]:
    """Where every table was when an evaluation of the last take ended, for its note."""
    cursors = [reader.turns[turn] for reader in readers]
    note: dict[str, Any] = {"cursors": [[c.tick, c.sequence] for c in cursors]}
    chunks = [reader.chunks for reader in readers if reader.chunks is not None]
    if chunks:
        note["bounds"] = [saved_bounds(own.bounds_after(turn + 1)) for own in chunks]
    return note


def _known(cursor: FeedCursor | None) -> FeedCursor:
    assert cursor is not None  # rows were taken before
    return cursor


def _places(reader: LeafReader, sampling: Sampling, ends: np.ndarray) -> Ticks:
    """Places of the rows just taken, which the ends divide among the evaluations."""
    if reader.chunks is None:
        start = sampling.count * sampling.step + reader.early
        return np.arange(start + 1, start + 1 + int(ends[-1]))
    sizes = np.diff(ends, prepend=0)
    return np.repeat(np.arange(sampling.count + 1, sampling.count + 1 + len(ends)), sizes)


def stored_places(reader: LeafReader, sampling: Sampling, rows: pa.Table, ticks: Ticks) -> Ticks:
    """Places of the stored rows up to a reader's place."""
    if reader.chunks is not None:
        return reader.chunks.ordinals(ticks, rows.column(SEQUENCE).to_numpy())
    if sampling.kind != "rows":
        return ticks
    end = sampling.count * sampling.step + reader.early
    return np.arange(end - rows.num_rows + 1, end + 1)
