"""One windowed table of one query: its place in the table's rows, and the rows of its windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.engine.chunks import Chunks
from headwater.engine.feed import (
    END_OF_TICK,
    SLAB_ROWS,
    Feed,
    FeedCursor,
    Stretch,
    last_until,
    stored_pieces,
    stored_until,
)
from headwater.engine.merges import by_key, with_previous
from headwater.plan.folds import NEWEST, Leaf
from headwater.storage.streaming.definition import SEQUENCE
from headwater.storage.streaming.read import StreamSnapshot
from headwater.storage.streaming.table import StreamingTable
from headwater.storage.streaming.windows import last_per_key

Ticks = npt.NDArray[np.int64]


class PlacedRows(NamedTuple):
    """Rows of one table that a firing takes; where each stands for panes and windows, and its T."""

    rows: pa.Table
    places: Ticks
    ticks: Ticks


class LeafReader:
    """Takes the rows of one leaf as instants come."""

    def __init__(
        self,
        leaf: Leaf,
        feed: Feed,
        cursor: FeedCursor | None,
        before_only: bool,
        joined: bool = False,
    ) -> None:
        """`joined`: other tables of the query have rows of their own, and say when instants come."""
        self._joined = joined
        self.leaf, self.feed = leaf, feed
        if cursor is not None and cursor.sequence == END_OF_TICK:
            cursor = FeedCursor(cursor.tick, feed.pulled)
        self.cursor = cursor
        self._before_only = before_only
        self.latest: int | None = self._newest_stored()  # T of the newest row taken
        self._taken: Ticks = np.empty(0, np.int64)  # T of the rows of the last take
        self.early = 0  # where positions decide: rows taken before their instant
        self.turns: list[FeedCursor] = []  # there: where each evaluation of the last take ends
        self.chunks: Chunks | None = None  # of a cut by values
        definition = feed.table.definition
        self.window_ticks: int | None = None
        if leaf.window.duration is not None:
            self.window_ticks = definition.duration_ticks(leaf.window.duration.microseconds)
        keys = {name.casefold(): name for name in definition.stored_schema.names}
        self.keys = [keys[key.casefold()] for key in leaf.window.keys]

    @property
    def table(self) -> StreamingTable:
        """The table."""
        return self.feed.table

    @property
    def columns(self) -> tuple[str, ...]:
        """The stored columns that the query needs of a row."""
        return tuple(dict.fromkeys([*self.leaf.needed, *self.keys]))

    def _newest_stored(self) -> int | None:
        """T of the newest stored row up to the cursor: a window may still hold it."""
        if self.cursor is None:
            return None
        definition = self.table.definition
        with self.table.reading() as snapshot:
            rows = last_until(snapshot, 1, self.cursor, None, (definition.time,))
        return int(definition.ticks(rows.column(definition.time))[0]) if rows.num_rows else None

    # What sampling asks

    @property
    def reached(self) -> int | None:
        """Up to which tick instants are complete here."""
        closed = self.closed
        if not self._before_only or self.feed.clock is None or closed is None:
            return self.feed.clock if self._before_only else closed
        return max(self.feed.clock, closed)

    @property
    def closed(self) -> int | None:
        """Up to which tick no row can come any more.

        Between two instants of a view that is sampled by time there is none that a join with other
        tables would have to wait for.
        """
        closed, step = self.feed.closed, self.table.definition.step_ticks
        if self._joined and step is not None and closed is not None:
            return (closed // step + 1) * step - 1
        return closed

    def next_tick(self, count: int = 1) -> int | None:
        """T of the count-th row after the last instant."""
        if count <= self.early:
            return self.newest  # taken early, all of them
        return self.feed.basket.last_tick(count - self.early)

    def waiting(self) -> int:
        """Released rows after the last instant, those taken early too."""
        return self.untaken + self.early

    @property
    def untaken(self) -> int:
        """Released rows not yet taken."""
        return self.feed.basket.waiting

    def count_until(self, tick: int) -> int:
        """Rows up to a tick that are not yet taken."""
        return self.feed.basket.count_until(tick)

    def distinct_ticks(self, tick: int) -> Ticks:
        """Distinct T of the rows up to a tick that are not yet taken."""
        return self.feed.basket.distinct_ticks(tick)

    def ends(self, step: int, most: int) -> Sequence[int]:
        """How many rows after the last instant each of the next evaluations ends."""
        if self.chunks is None:
            return range(step, self.waiting() + 1, step)[:most]
        return [end + self.early for end in self._ends(self.chunks, most)]

    def _ends(self, chunks: Chunks, most: int) -> list[int]:
        basket = self.feed.basket
        chunks.look(basket.rows_since(chunks.seen))
        return chunks.ends(basket.position, most)

    def answered(self, count: int) -> None:
        """So many evaluations have their results."""
        self.early = 0
        if self.chunks is not None:
            self.chunks.answered(count)

    @property
    def finished(self) -> int:
        """Of a cut by values: chunks that were seen to end and have no result yet."""
        return 0 if self.chunks is None else self.chunks.finished

    @property
    def open_rows(self) -> int:
        """Rows of the current chunk that are there, those taken early too."""
        assert self.chunks is not None
        first = self._ends(self.chunks, 1)
        return self.early + (first[0] if first else self.untaken)

    # Rows

    def take_until(self, tick: int) -> tuple[pa.Table, Ticks]:
        """The next rows up to a tick, with their ticks."""
        rows = self.feed.basket.take_until(tick)
        ticks = self._seen(rows)
        reached = FeedCursor(tick, self.feed.pulled)  # rows of an open tick may still come
        self.cursor = reached if self.cursor is None else max(self.cursor, reached)
        return rows, ticks

    def take_rows(self, count: int) -> tuple[pa.Table, Ticks]:
        """The rows up to so many after the last instant, with their ticks."""
        rows = self.feed.basket.take_rows(count - self.early)
        ticks = self._seen(rows)
        if rows.num_rows:
            self.cursor = FeedCursor(int(ticks[-1]), rows.column(SEQUENCE)[-1].as_py())
        return rows, ticks

    def _seen(self, rows: pa.Table) -> Ticks:
        if self._taken.size:
            self.latest = int(self._taken[-1])
        definition = self.table.definition
        self._taken = (
            definition.ticks(rows.column(definition.time))
            if rows.num_rows
            else np.empty(0, np.int64)
        )
        return self._taken

    @property
    def newest(self) -> int | None:
        """T of the newest row taken so far."""
        return int(self._taken[-1]) if self._taken.size else self.latest

    def between(self, start: FeedCursor, latest: int | None, early: int) -> tuple[pa.Table, Ticks]:
        """The rows from a snapshot's place to the reader's; a reader that is behind it moves there."""
        self.latest = latest
        definition = self.table.definition
        empty = definition.stored_schema.empty_table(), np.empty(0, np.int64)
        if self.cursor is None or start >= self.cursor:
            if self.cursor is not None and start > self.cursor:
                self._skip_early(start, early)
            return empty
        with self.table.reading() as snapshot:
            rows = self._between(snapshot, Stretch(start, self.cursor))
        ticks = definition.ticks(rows.column(definition.time))
        if len(ticks):
            self.latest = int(ticks[-1])
        return rows, ticks

    def _skip_early(self, start: FeedCursor, early: int) -> None:
        """Rows that a snapshot holds already, folded before their instant."""
        if early:
            self.take_rows(early)
            self.early = early
        else:
            self.take_until(start.tick)

    def look_back(self, place: int) -> None:
        """Learns the newest row before its place, as windows of instants from a place on may hold it."""
        if self.cursor is None or self.window_ticks is None:
            return
        definition = self.table.definition
        with self.table.reading() as snapshot:
            low = place - self.window_ticks
            rows = last_until(snapshot, 1, self.cursor, low, (definition.time,))
        if rows.num_rows:
            self.latest = int(definition.ticks(rows.column(definition.time))[-1])

    def is_empty(self, tick: int) -> bool:
        """Whether the window at an instant surely holds no row."""
        if self.window_ticks is None:
            return self.latest is None and not self._until(tick).size
        high = tick - self.leaf.window.before
        seen = self._until(high)
        newest = int(seen[-1]) if seen.size else self.latest
        return newest is None or newest < tick - self.window_ticks

    def _until(self, tick: int) -> Ticks:
        return self._taken[: np.searchsorted(self._taken, tick, side="right")]

    def next_seen(self, tick: int) -> int | None:
        """The first tick at which an instant after this one would see another row."""
        high = tick - (self.leaf.window.before and self.window_ticks is not None)
        place = int(np.searchsorted(self._taken, high, side="right"))
        later = int(self._taken[place]) if place < len(self._taken) else self.next_tick()
        return None if later is None else later + self.leaf.window.before

    # Rows of windows, from the store

    def stretch(self, tick: int, landmark: FeedCursor | None, turn: int | None = None) -> Stretch:
        """Where the rows of the window at an instant lie; a window of last rows holds the last of it.

        `turn`: where positions decide, which evaluation of the last take.
        """
        window, limit = self.leaf.window, self.table.definition.range_ticks
        oldest = None if limit is None else tick - limit
        until = FeedCursor(tick) if turn is None else self.turns[turn]
        if window.kind == "interval":
            assert self.window_ticks is not None
            low = tick - self.window_ticks
            until = min(until, FeedCursor(tick - 1)) if window.before else until
            return Stretch(None, until, low if oldest is None else max(low, oldest))
        if window.kind == "landmark":
            return Stretch(landmark, until)
        if self.chunks is not None:
            assert turn is not None
            return Stretch(self.chunks.start(turn), until, oldest)
        return Stretch(None, until, oldest)

    def window_rows(
        self, snapshot: StreamSnapshot, stretch: Stretch, tick: int, turn: int | None = None
    ) -> pa.Table:
        """All rows of the window at an instant, the oldest first, with PREV columns."""
        window = self.leaf.window
        if not self.leaf.in_ring:
            rows = self._between(snapshot, stretch)
        elif not self.keys:
            assert window.rows is not None
            last = (window.rows, stretch.until, stretch.oldest)
            rows = last_until(snapshot, *last, self.columns)
        else:
            rows = self._last_per_key(self._pieces(snapshot, stretch))
        if self.leaf.previous:
            rows = with_previous(by_key(rows, self.keys), self.keys, self.leaf.previous)
        if self.leaf.newest:
            rows = rows.append_column(NEWEST, pa.array(self._in_newest(rows, tick, turn)))
        return rows

    def newest_first(self, snapshot: StreamSnapshot, stretch: Stretch) -> Iterator[pa.Table]:
        """The rows of a stretch in pieces, the newest first, so that no more than one need be in memory."""
        definition = snapshot.definition
        for rows in self._pieces(snapshot, stretch, newest_first=True):
            yield ordered_down(rows, definition.ticks(rows.column(definition.time)))

    def before_last(self, snapshot: StreamSnapshot, stretch: Stretch, count: int) -> FeedCursor:
        """The place before the last rows of a stretch."""
        definition = snapshot.definition
        last = (count, stretch.until, stretch.oldest)
        rows = last_until(snapshot, *last, (definition.time,))
        if not rows.num_rows:
            return stretch.until
        first = rows.slice(0, 1)
        tick = int(definition.ticks(first.column(definition.time))[0])
        return FeedCursor(tick, first.column(SEQUENCE)[0].as_py() - 1)

    def _in_newest(self, rows: pa.Table, tick: int, turn: int | None) -> np.ndarray:
        """Which rows are of the newest chunk; rows come the oldest first."""
        cut = self.leaf.cut
        assert cut is not None
        if cut.rows is not None:
            return np.arange(rows.num_rows) >= rows.num_rows - cut.rows
        ticks = self.table.definition.ticks(rows.column(self.table.definition.time))
        if self.chunks is not None:
            assert turn is not None
            return _later(rows, ticks, self.chunks.newest_start(turn))
        assert self.window_ticks is not None
        return ticks >= tick - self.window_ticks // cut.keep

    def _between(self, snapshot: StreamSnapshot, stretch: Stretch) -> pa.Table:
        """The rows of a stretch, in order."""
        rows = stored_until(snapshot, stretch.low, stretch.until, self.columns)
        return _after(snapshot, rows, stretch)

    def _pieces(
        self, snapshot: StreamSnapshot, stretch: Stretch, *, newest_first: bool = False
    ) -> Iterator[pa.Table]:
        """The same in pieces that follow one another."""
        asked = (snapshot, stretch.low, stretch.until, self.columns)
        for rows in stored_pieces(*asked, newest_first=newest_first):
            yield _after(snapshot, rows, stretch)

    def rows_between(
        self, snapshot: StreamSnapshot, after: FeedCursor, until: FeedCursor
    ) -> pa.Table:
        """The stored rows after one place up to another, in order."""
        return self._between(snapshot, Stretch(after, until))

    def _last_per_key(self, pieces: Iterator[pa.Table]) -> pa.Table:
        """The last rows of each key, of rows in pieces; what the next ones replace is let go."""
        held = [self._last_of(next(pieces))]
        waiting = 0
        for rows in pieces:
            held.append(rows)
            waiting += rows.num_rows
            if waiting >= max(SLAB_ROWS, held[0].num_rows):  # each row is looked at a few times
                held, waiting = [self._last_of(pa.concat_tables(held))], 0
        return held[0] if len(held) == 1 else self._last_of(pa.concat_tables(held))

    def _last_of(self, rows: pa.Table) -> pa.Table:
        assert self.leaf.window.rows is not None
        backwards = rows.take(pa.array(np.arange(rows.num_rows - 1, -1, -1)))
        kept = last_per_key(backwards, self.keys, self.leaf.window.rows)
        return kept.take(pa.array(np.arange(kept.num_rows - 1, -1, -1)))

    def stored(
        self,
        snapshot: StreamSnapshot,
        tick: int,
        landmark: FeedCursor | None,
        until: FeedCursor | None = None,
    ) -> tuple[pa.Table, Ticks]:
        """What a fold needs of the rows before a place, the cursor, so that it can go on; with ticks."""
        until = until or self.cursor
        if until is None:
            return snapshot.definition.stored_schema.empty_table(), np.empty(0, np.int64)
        if self.leaf.window.kind == "landmark":
            rows = self._between(snapshot, Stretch(landmark, until))
        elif self.chunks is not None:
            rows = self._between(snapshot, Stretch(self.chunks.bounds[0], until))
        elif self.window_ticks is not None:
            rows = stored_until(snapshot, tick - self.window_ticks, until, self.columns)
        elif self.keys:
            rows = self._last_per_key(self._pieces(snapshot, Stretch(None, until)))
        else:
            assert self.leaf.window.rows is not None
            rows = last_until(snapshot, self.leaf.window.rows, until, None, self.columns)
        ticks = snapshot.definition.ticks(rows.column(snapshot.definition.time))
        if len(ticks):
            self.latest = int(ticks[-1])
        return rows, ticks


def read_columns(leaf: Leaf, folded: bool) -> tuple[str, ...]:
    """What a query must know of new rows, beside T and `_seq`; a window is read from the store."""
    if folded:
        return leaf.needed
    cut = None if leaf.cut is None or leaf.cut.column is None else leaf.cut.column.casefold()
    return tuple(name for name in leaf.needed if name.casefold() == cut)


def _after(snapshot: StreamSnapshot, rows: pa.Table, stretch: Stretch) -> pa.Table:
    """The rows that come after the place where a stretch begins."""
    if stretch.after is None or not rows.num_rows:
        return rows
    ticks = snapshot.definition.ticks(rows.column(snapshot.definition.time))
    return rows.filter(pa.array(_later(rows, ticks, stretch.after)))


def _later(rows: pa.Table, ticks: Ticks, place: FeedCursor | None) -> np.ndarray:
    """Which rows come after a place."""
    if place is None:
        return np.ones(rows.num_rows, np.bool_)
    sequence = rows.column(SEQUENCE).to_numpy()
    return (ticks > place.tick) | ((ticks == place.tick) & (sequence > place.sequence))


def ordered_down(rows: pa.Table, definition_time: Ticks) -> pa.Table:
    """The rows by (T, _seq), the newest first."""
    order = np.lexsort((rows.column(SEQUENCE).to_numpy(), definition_time))[::-1]
    return rows.take(pa.array(order))
