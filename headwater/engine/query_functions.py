"""The functions with state of one continuous query: when each row is called, and what is kept (EQ8).

Owns: for each leaf how far its rows have been called, the snapshot of state that lives for the query, and
which rows must stay stored so that calls can be made again. A call is made when the first window asks for
its row: rows between the place of the last call and the window's end are read from the table, in order.
So a restart and an error are one case: state goes back to the snapshot, and rows since are called again.
Chunk-lived state has no snapshot: it is made again from the rows of the chunks that windows hold.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.engine.feed import FeedCursor, last_until
from headwater.engine.reader import LeafReader
from headwater.engine.sampling import Instant, Sampling
from headwater.engine.snapshots import SnapshotFile, SnapshotInMemory
from headwater.engine.stateful import (
    Remembered,
    StatefulCall,
    Ticks,
    chunk_numbers,
    chunk_start,
    make_call,
    scanned,
)
from headwater.errors import StorageError
from headwater.expression.terms import Terms
from headwater.plan.folds import Leaf, StateCall
from headwater.storage.streaming.definition import SEQUENCE
from headwater.storage.streaming.read import StreamSnapshot


@dataclass(frozen=True)
class _Window:
    """The rows of a leaf's window at an instant."""

    instant: Instant
    ticks: Ticks
    sequences: Ticks
    turn: int | None = None  # where positions decide

    @property
    def first(self) -> tuple[int, int] | None:
        """(T, _seq) of its oldest row."""
        if not len(self.ticks):
            return None
        place = np.lexsort((self.sequences, self.ticks))[0]
        return int(self.ticks[place]), int(self.sequences[place])


@dataclass
class _Kept:
    """The calls of one leaf with one life span, and up to where they have been made."""

    leaf: Leaf
    calls: Remembered
    cursor: FeedCursor | None = None

    def forget(self) -> None:
        """State and place are to be found again."""
        self.cursor = None
        self.calls.forget()


@dataclass
class _LeafCalls:
    """All calls of one leaf."""

    scan: list[StatefulCall]
    chunk: _Kept | None
    query: _Kept | None

    @property
    def kept(self) -> list[_Kept]:
        return [one for one in (self.query, self.chunk) if one is not None]


_NONE = _LeafCalls([], None, None)


@dataclass
class QueryFunctions:
    """The calls with state of a query; false if there are none."""

    leaves: Mapping[int, _LeafCalls] = field(default_factory=dict)
    find: Callable[[StateCall], Any] = lambda _call: None  # the function as it is registered now
    sampling: Sampling | None = None
    file: SnapshotFile | SnapshotInMemory = field(default_factory=SnapshotInMemory)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _windows: dict[int, _Window] = field(default_factory=dict)  # the last one of each leaf
    _needed: dict[int, int] = field(default_factory=dict)
    _saved: dict[int, FeedCursor] = field(
        default_factory=dict
    )  # by leaf: the place of the snapshot

    def __bool__(self) -> bool:
        return bool(self.leaves)

    # Values

    def with_values(
        self,
        reader: LeafReader,
        snapshot: StreamSnapshot,
        rows: pa.Table,
        instant: Instant,
        turn: int | None,
    ) -> pa.Table:
        """The rows of a window with the values of the leaf's calls, each row called first if need be.

        `turn`: where positions decide, which evaluation of the reader's last take.
        """
        if not self.leaves:
            return rows
        definition = snapshot.definition
        ticks = definition.ticks(rows.column(definition.time))
        sequences = rows.column(SEQUENCE).to_numpy()
        window = _Window(instant, ticks, sequences, turn)
        with self._lock:
            self._windows[reader.leaf.number] = window
            calls = self.leaves.get(reader.leaf.number)
            if calls is None:
                return rows
            for kept in calls.kept:
                try:
                    self._advance(kept, reader, snapshot, window)
                except BaseException:
                    kept.forget()  # state may be half changed
                    raise
                rows = kept.calls.add_to(rows, sequences)
            self._look_up(calls.scan)
            return scanned(rows, calls.scan, ticks, sequences, definition.time)

    def _advance(
        self,
        kept: _Kept,
        reader: LeafReader,
        snapshot: StreamSnapshot,
        window: _Window,
    ) -> None:
        """Makes the calls up to a window's end."""
        assert self.sampling is not None
        instant, before, turn = window.instant, kept.leaf.window.before, window.turn
        target = FeedCursor(instant.tick - 1 if before else instant.tick)
        if turn is not None:
            target = reader.turns[turn]
        if kept.cursor is None:
            kept.cursor = self._beginning(kept, reader, snapshot, window, target)
        if kept.cursor >= target:
            return
        rows = reader.rows_between(snapshot, kept.cursor, target)
        definition = snapshot.definition
        ticks = definition.ticks(rows.column(definition.time))
        sequences = rows.column(SEQUENCE).to_numpy()
        if reader.chunks is not None:
            chunks = reader.chunks.ordinals(ticks, sequences, turn or 0)
        else:
            chunks = chunk_numbers(self.sampling, before, ticks, instant.place)
        kept.calls.take(rows, definition.time, ticks, sequences, chunks)
        kept.cursor = target

    # Beginnings

    def _beginning(
        self,
        kept: _Kept,
        reader: LeafReader,
        snapshot: StreamSnapshot,
        window: _Window,
        target: FeedCursor,
    ) -> FeedCursor:
        """After which row calls are made, with the state that belongs there."""
        assert self.sampling is not None
        self._look_up(kept.calls.calls)
        is_chunk = kept is self.leaves[kept.leaf.number].chunk
        first = window.first or _first_after(reader, snapshot, window.instant, target)
        if not is_chunk:
            found = self._restored(kept)
            if found is not None:
                return found
        if first is None:
            begin = target
        elif is_chunk and reader.chunks is not None:
            start = reader.chunks.start(window.turn or 0)
            begin = FeedCursor(first[0], first[1] - 1) if start is None else start
        elif is_chunk and self.sampling.kind == "rows":
            begin = _chunk_of_rows(reader, snapshot, first, target, window.instant, self.sampling)
        elif is_chunk:
            begin = FeedCursor(chunk_start(self.sampling, kept.leaf.window.before, first[0]) - 1)
        else:
            begin = FeedCursor(first[0], first[1] - 1)
        if not is_chunk:
            kept.cursor = begin
            self._write()  # before any result: the calls of later lives begin here too
        return begin

    def _look_up(self, calls: Iterable[StatefulCall]) -> None:
        """State that begins or is found again goes with the function as it is registered now."""
        for call in calls:
            call.function = self.find(call.plan) or call.function

    def _restored(self, kept: _Kept) -> FeedCursor | None:
        """The place of the snapshot, with its state; None if the query has not begun."""
        assert self.sampling is not None
        number, saved = kept.leaf.number, _Lived([])
        if self.file.exists:
            position = self.file.read(saved)
            if position is not None and position["calls"] == self._signature():
                part = saved.parts.get(str(number))
                if part is None:
                    return None
                kept.calls.restore(part["calls"])
                self._saved[number] = FeedCursor(*part["cursor"])
                return self._saved[number]
        elif self.sampling.count == 0:
            return None
        names = sorted({call.plan.name for call in kept.calls.calls})
        raise StorageError(
            f"the state of function {', '.join(names)} is lost or damaged",
            sqlstate="XX001",
            hint="CREATE the query again: results cannot go on as they were",
        )

    # Keeping

    def delivered(self, last: Instant) -> None:
        """Results up to an instant are durable: what only the windows before it show is let go."""
        with self._lock:
            for number, window in self._windows.items():
                if window.instant.place <= last.place:
                    self._let_go(number, window)

    def _let_go(self, number: int, window: _Window) -> None:
        tick = window.instant.tick
        needs = [int(window.ticks.min()) if len(window.ticks) else tick]
        calls = self.leaves.get(number, _NONE)
        for kept in calls.kept:
            kept.calls.trim(window.sequences, tick)
        if calls.query is not None and number in self._saved:
            needs.append(self._saved[number].tick)
        if calls.chunk is not None and calls.chunk.calls.first_tick is not None:
            needs.append(calls.chunk.calls.first_tick)
        self._needed[number] = min(needs)

    def needed_from(self, leaf: int) -> int | None:
        """The oldest tick of a leaf's table that may be read again; None for all of it."""
        return self._needed.get(leaf)

    def put_away(self) -> None:
        """Writes a snapshot of the state that lives for the query, if all of it is at hand."""
        with self._lock:
            lived = [calls.query for calls in self.leaves.values() if calls.query is not None]
            if lived and all(kept.cursor is not None for kept in lived):
                self._write()

    def _write(self) -> None:
        lived = [calls.query for calls in self.leaves.values() if calls.query is not None]
        begun = {k.leaf.number: k.cursor for k in lived if k.cursor is not None}
        self.file.write(_Lived(lived), {"calls": self._signature()})
        self._saved.update(begun)

    def _signature(self) -> list[list[str]]:
        """What a snapshot must have in common with the query that takes it up."""
        return [
            [call.plan.name, *map(str, call.plan.arguments), call.plan.column, str(call.plan.type)]
            for _, calls in sorted(self.leaves.items())
            if calls.query is not None
            for call in calls.query.calls.calls
        ]


class _Lived:
    """The query-lived state of all leaves in a snapshot; `parts` is what was read, by leaf."""

    def __init__(self, lived: Sequence[_Kept]) -> None:
        self._lived = lived
        self.parts: dict[str, Any] = {}

    def state(self) -> dict[str, Any]:
        return {
            str(kept.leaf.number): {
                "cursor": [kept.cursor.tick, kept.cursor.sequence],
                "calls": kept.calls.state(),
            }
            for kept in self._lived
            if kept.cursor is not None
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.parts = state


def _first_after(
    reader: LeafReader, snapshot: StreamSnapshot, instant: Instant, target: FeedCursor
) -> tuple[int, int] | None:
    """(T, _seq) of the first row that an empty window with BEFORE leaves to later ones."""
    rows = reader.rows_between(snapshot, FeedCursor(instant.tick - 1), target)
    if not rows.num_rows:
        return None
    ticks = snapshot.definition.ticks(rows.column(snapshot.definition.time))
    return int(ticks[0]), rows.column(SEQUENCE)[0].as_py()


def _chunk_of_rows(
    reader: LeafReader,
    snapshot: StreamSnapshot,
    first: tuple[int, int],
    target: FeedCursor,
    instant: Instant,
    sampling: Sampling,
) -> FeedCursor:
    """The place before the chunk of a window's first row, where rows are counted."""
    count = reader.rows_between(snapshot, FeedCursor(first[0], first[1] - 1), target).num_rows
    more = (instant.place - count) % sampling.step
    rows = last_until(snapshot, count + more, target, None, reader.columns)
    tick = int(snapshot.definition.ticks(rows.column(snapshot.definition.time))[0])
    return FeedCursor(tick, rows.column(SEQUENCE)[0].as_py() - 1)


def query_functions(
    leaves: Sequence[Leaf],
    functions: Terms,
    find: Callable[[StateCall], Any],
    sampling: Sampling,
    file: SnapshotFile | SnapshotInMemory,
) -> QueryFunctions:
    """The calls of a query's leaves; `functions` are the names that users have taken."""
    found = {}
    for leaf in leaves:
        calls = [make_call(call, leaf, find(call), functions) for call in leaf.calls]
        lives: dict[str, list[StatefulCall]] = {"query": [], "chunk": [], "scan": []}
        for call in calls:
            lives[call.plan.life].append(call)
        if calls:
            chunk, query = lives["chunk"], lives["query"]
            found[leaf.number] = _LeafCalls(
                lives["scan"],
                _Kept(leaf, Remembered(chunk, by_chunk=True)) if chunk else None,
                _Kept(leaf, Remembered(query, by_chunk=False)) if query else None,
            )
    return QueryFunctions(found, find, sampling, file)
