"""The tables of an update query: released rows in order, with when they arrived, and how far they are read.

Owns: one feed per branch, and from where rows must be read again after a restart. Rows are numbered as
they are handed on: 0, 1, 2, … over all branches. Results of another update query come as they were stored,
for their times go up for each key only (US9). Must never: drop a row; the queue does, and counts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.engine.arrivals import Arrivals
from headwater.engine.feed import END_OF_TICK, Feed, FeedCursor
from headwater.engine.update_spec import TICK, UpdateSpec
from headwater.engine.world import World
from headwater.fold.columns import Slots
from headwater.storage.streaming.definition import SEQUENCE

PIECE_ROWS = 200_000  # that are handed on at once

Cursors = tuple[FeedCursor | None, ...]
IsNew = Callable[[int, pa.Table, Slots], np.ndarray]  # which rows of a branch have no result yet


@dataclass(frozen=True)
class UpdateRows:
    """Rows on their way into the queue, in the order of their arrival."""

    rows: pa.Table  # as they wait
    times: Slots  # of arrival
    numbers: Slots

    @property
    def ticks(self) -> Slots:
        """T of the rows."""
        ticks: Slots = self.rows.column(TICK).to_numpy()
        return ticks


@dataclass(frozen=True)
class _Piece:
    """Rows that were handed on together: the first number, where the tables stood, the least T."""

    first: int
    before: Cursors
    low: int


class UpdateSource:
    """Reads the tables of one query."""

    def __init__(
        self,
        spec: UpdateSpec,
        world: World,
        cursors: Sequence[FeedCursor | None],
        arrivals: Sequence[Arrivals],
        is_new: IsNew | None,
    ) -> None:
        """`is_new`: of rows that were there already, which ones have no result yet; None: all."""
        self._spec, self._arrivals, self._is_new = spec, arrivals, is_new
        self._ends = [branch.table.state.next_sequence for branch in spec.branches]
        self._feeds = [
            Feed(world, branch.table, cursor, branch.read, as_stored=branch.table.definition.by_key)
            for branch, cursor in zip(spec.branches, cursors, strict=True)
        ]
        self._cursors: list[FeedCursor | None] = list(cursors)
        self._next = 0
        self._pieces: deque[_Piece] = deque()
        self._cleared: list[int | None] = [None] * len(self._feeds)
        self._clear()

    @property
    def cursors(self) -> Cursors:
        """The places up to which rows were handed on."""
        return tuple(self._cursors)

    @property
    def handed_on(self) -> int:
        """How many rows were handed on."""
        return self._next

    @property
    def closed(self) -> int | None:
        """The tick up to which no row can be handed on any more."""
        marks = [self._closed(number) for number in range(len(self._feeds))]
        return None if any(m is None for m in marks) else min(m for m in marks if m is not None)

    @property
    def complete(self) -> int | None:
        """The tick up to which no row can come any more, whether handed on or not."""
        marks = [feed.closed for feed in self._feeds]
        return None if any(m is None for m in marks) else min(m for m in marks if m is not None)

    def _closed(self, number: int) -> int | None:
        """The same of one branch: rows that wait to be handed on are still to come."""
        feed, cursor = self._feeds[number], self._cursors[number]
        if feed.table.definition.by_key:
            return self._cleared[number]
        if feed.closed is None or not feed.basket.waiting:
            return feed.closed
        return None if cursor is None else min(feed.closed, cursor.tick - 1)

    def pull(self) -> bool:
        """Takes over what the tables got; False if stored rows were changed meanwhile."""
        same = all(feed.pull() for feed in self._feeds)
        self._clear()
        return same

    def _clear(self) -> None:
        """Where rows come as they are stored, those up to the closed mark are done when none is left.

        From there on rows can be read again; results tell which of them are known.
        """
        for number, feed in enumerate(self._feeds):
            if feed.table.definition.by_key and not feed.basket.waiting and feed.closed is not None:
                self._cleared[number] = feed.closed
                place, cursor = FeedCursor(feed.closed), self._cursors[number]
                self._cursors[number] = place if cursor is None else max(place, cursor)

    def waiting(self) -> int:
        """Released rows that were not handed on."""
        return sum(feed.basket.waiting for feed in self._feeds)

    def take(self, most: int, now: int) -> UpdateRows | None:
        """The next rows, so many of each branch at most; None if there are none."""
        before, parts, times = self.cursors, [], []
        for number, feed in enumerate(self._feeds):
            rows = feed.basket.take_rows(min(most, PIECE_ROWS))
            if not rows.num_rows:
                continue
            definition = feed.table.definition
            ticks = definition.ticks(rows.column(definition.time))
            sequences = rows.column(SEQUENCE).to_numpy()
            if not definition.by_key:
                self._cursors[number] = FeedCursor(int(ticks[-1]), int(sequences[-1]))
            came = np.maximum.accumulate(self._arrivals[number].times(sequences, now))
            queued, kept = self._unseen(number, self._spec.queued(number, rows, ticks), sequences)
            parts.append(queued)
            times.append(came[kept])
        if not parts:
            return None
        self._clear()
        rows, came = pa.concat_tables(parts), np.concatenate(times)
        if len(parts) > 1:
            order = np.argsort(came, kind="stable")
            rows, came = rows.take(pa.array(order)), came[order]
        numbers = np.arange(self._next, self._next + len(came))
        if self._spec.window is None:  # windows know themselves from where they need rows
            low = int(rows.column(TICK).to_numpy().min(initial=END_OF_TICK))
            self._pieces.append(_Piece(self._next, before, low))
        self._next += len(came)
        return UpdateRows(rows, came, numbers)

    def _unseen(
        self, number: int, rows: pa.Table, sequences: Slots
    ) -> tuple[pa.Table, np.ndarray | slice]:
        """The rows that have no result yet; only rows that were there at the start may have one."""
        if self._is_new is None or int(sequences.min()) >= self._ends[number]:
            return rows, slice(None)
        new = self._is_new(number, rows, sequences) | (sequences >= self._ends[number])
        return rows.filter(pa.array(new)), new

    def before(self, number: int | None) -> Cursors:
        """The places from which a row, and all after it, can be read again; None: nothing is left."""
        pieces = self._pieces_of(number)
        return pieces[0].before if pieces else self.cursors

    def _pieces_of(self, number: int | None) -> Sequence[_Piece]:
        """What a row, and all after it, came in."""
        if number is None:
            return ()
        while len(self._pieces) > 1 and self._pieces[1].first <= number:
            self._pieces.popleft()
        return self._pieces

    def oldest_to_come(self, number: int | None) -> int | None:
        """No row with this number, a later one, or none yet is older than this tick; None: not known."""
        closed = self.closed
        if closed is None:
            return None
        return min([closed + 1, *(piece.low for piece in self._pieces_of(number))])
