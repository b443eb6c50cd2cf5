"""A table's rows on their way to the queries that read it: a basket, filled from the table.

Owns: how far the table has been read, and how much of the basket stays in memory (`basket_mb`): beyond
that, rows are set aside. Rows that were there before come from the store, in slabs of time; new ones
from the tail (`storage/streaming/fresh`). One thread at a time uses a feed: the engine sees to that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.engine.basket import Basket
from headwater.engine.world import World
from headwater.settings import MEBIBYTE
from headwater.storage.streaming.blocks import Block
from headwater.storage.streaming.definition import LATE, SEQUENCE
from headwater.storage.streaming.fresh import Marks, fresh_rows, marks_of, missed_rows
from headwater.storage.streaming.read import StreamSnapshot, Wanted, select
from headwater.storage.streaming.table import StreamingTable

END_OF_TICK = (1 << 63) - 1
SLAB_ROWS = 200_000  # of stored rows that are read at once, where their times are spread evenly


@dataclass(frozen=True, order=True)
class FeedCursor:
    """A place in the release order of a table: everything up to it has been seen."""

    tick: int
    sequence: int = END_OF_TICK


@dataclass(frozen=True)
class Stretch:
    """The rows after one place (None: from the first one) up to another, none older than a tick."""

    after: FeedCursor | None
    until: FeedCursor
    oldest: int | None = None

    @property
    def low(self) -> int | None:
        """The smallest tick that a row of it can have."""
        lows = (None if self.after is None else self.after.tick, self.oldest)
        return max((low for low in lows if low is not None), default=None)


class Feed:
    """The rows of one table after a cursor, for one reader."""

    def __init__(
        self,
        world: World,
        table: StreamingTable,
        after: FeedCursor | None,
        columns: Iterable[str] | None = None,
        *,
        hidden: bool = False,
        as_stored: bool = False,
    ) -> None:
        """All rows released after the cursor (None: all that are stored), with these columns at least.

        Those after a cursor also if RANGE hides them by now: they are stored for one who is behind.
        `hidden`: without a cursor too, for the table was empty when the reader began. `as_stored`: rows
        do not wait for the clock, and come in the order of their numbers.
        """
        self._world, self.table, self._as_stored = world, table, as_stored
        definition = table.definition
        stored = definition.stored_schema.names
        needed = {*(stored if columns is None else columns), definition.time, SEQUENCE}
        self._columns = [name for name in stored if name in needed]
        if as_stored:
            self.basket = Basket(SEQUENCE, pa.ChunkedArray.to_numpy, SEQUENCE)
        else:
            self.basket = Basket(definition.time, definition.ticks, SEQUENCE)
        self._most_bytes = 0  # what the basket holds in memory, or more
        with table.reading() as snapshot:
            self._stand(marks_of(snapshot))
            behind = hidden or after is not None
            seen = replace(snapshot, clock=None) if behind else snapshot
            for rows in stored_after(seen, after, self._columns):
                if as_stored:  # they come in the order of T
                    self.basket.hold(rows)
                else:
                    self.basket.append(rows, self.clock)
                self._make_room(rows)
            self.basket.release(self._released)

    @property
    def _released(self) -> int | None:
        """Up to where rows leave the basket, in what orders them there."""
        return END_OF_TICK if self._as_stored else self.clock

    def _stand(self, marks: Marks) -> None:
        self._sequence, self.generation = marks.next_sequence, marks.generation
        self.clock, self.closed = marks.clock, marks.closed

    @property
    def pulled(self) -> int:
        """The sequence number of the last row taken over."""
        return self._sequence - 1

    def pull(self) -> bool:
        """Takes over what the table got since; False if stored rows were changed meanwhile."""
        fresh = fresh_rows(self.table, self._sequence)
        if fresh is None:
            return self._catch_up()
        if fresh.marks.generation != self.generation:
            return False
        self._stand(fresh.marks)
        rows = fresh.rows.select(self._columns)
        self.basket.append(rows, self._released)
        self._make_room(rows)
        return True

    def _catch_up(self) -> bool:
        """The same, after a seal took rows that were not pulled yet."""
        with self.table.reading() as snapshot:
            if snapshot.generation != self.generation:
                return False
            for rows in missed_rows(snapshot, self._sequence, self._columns):
                self.basket.hold(rows)
                self._make_room(rows)
            self._stand(marks_of(snapshot))
        self.basket.release(self._released)
        return True

    # Memory

    def _make_room(self, new: pa.Table) -> None:
        """Sets rows aside if new ones are too many. What they take at most is told in no time."""
        self._most_bytes += new.get_total_buffer_size()
        if self._holds_more_than(self._bound):
            self.basket.set_aside(self._world.kernel.staging.set_aside)
            self._most_bytes = 0

    @property
    def is_full(self) -> bool:
        """Whether rows had better be folded than wait for more."""
        return self._holds_more_than(self._bound // 2) or self.basket.is_aside

    def _holds_more_than(self, size: int) -> bool:
        if self._most_bytes <= size:
            return False
        self._most_bytes = self.basket.bytes  # measured: that takes long
        return self._most_bytes > size

    @property
    def _bound(self) -> int:
        return self._world.settings.integer("basket_mb") * MEBIBYTE


def stored_after(
    snapshot: StreamSnapshot, after: FeedCursor | None, columns: Sequence[str]
) -> Iterator[pa.Table]:
    """The stored rows that came in time and are released after a cursor, waiting ones too; in order."""
    names = tuple(dict.fromkeys([*columns, LATE]))
    for low, high in _slabs(snapshot, None if after is None else after.tick):
        rows = in_time(select(snapshot, Wanted(names, low=low, high=high)).rows)
        if after is not None and rows.num_rows:
            rows = rows.filter(pa.array(~_seen(snapshot, rows, after)))
        yield rows.select(list(columns))


def _slabs(
    snapshot: StreamSnapshot, low: int | None, high: int | None = None
) -> Iterator[tuple[int | None, int | None]]:
    """Stretches of time from a tick on that hold a bounded number of stored rows each, about.

    `high`: where rows are not asked for any more; the last stretch is open.
    """
    count = 0
    ends = sorted(end for b in snapshot.blocks.overlapping(low, high) for end in _ends(b))
    for end, rows in ends:
        if high is not None and end >= high:
            break
        count += rows
        if count >= SLAB_ROWS and (low is None or end >= low):
            yield low, end
            low, count = end + 1, 0
    yield low, None


def _ends(block: Block) -> list[tuple[int, int]]:
    """A block in parts of equal time, as many as its rows ask for: where each ends, its rows."""
    parts = -(-block.row_count // SLAB_ROWS)
    length = block.high - block.low
    return [
        (block.low + length * part // parts, block.row_count // parts)
        for part in range(1, parts + 1)
    ]


def stored_until(
    snapshot: StreamSnapshot, low: int | None, until: FeedCursor, columns: tuple[str, ...]
) -> pa.Table:
    """The stored rows in time from a tick up to a cursor, in order."""
    whole = replace(snapshot, clock=None)
    names = tuple(dict.fromkeys([*columns, LATE]))
    rows = in_time(select(whole, Wanted(names, low=low, high=until.tick)).rows)
    return rows.filter(pa.array(_seen(snapshot, rows, until)))


def stored_pieces(
    snapshot: StreamSnapshot,
    low: int | None,
    until: FeedCursor,
    columns: tuple[str, ...],
    *,
    newest_first: bool = False,
) -> Iterator[pa.Table]:
    """The same in pieces that follow one another, one at least: no two of them need be held."""
    slabs = list(_slabs(snapshot, low, until.tick))
    for first, last in reversed(slabs) if newest_first else slabs:
        end = until if last is None else FeedCursor(last)
        yield stored_until(snapshot, first, end, columns)


def last_until(
    snapshot: StreamSnapshot,
    count: int,
    until: FeedCursor,
    low: int | None,
    columns: tuple[str, ...],
) -> pa.Table:
    """The last stored rows in time up to a cursor, the oldest first."""
    whole = replace(snapshot, clock=None)
    names = tuple(dict.fromkeys([*columns, LATE]))
    limit = count
    while True:  # late rows and ties beyond the cursor may stand between
        wanted = Wanted(names, low=low, high=until.tick, descending=True, limit=limit)
        found = select(whole, wanted).rows
        rows = in_time(found)
        rows = rows.filter(pa.array(_seen(snapshot, rows, until)))
        if rows.num_rows >= count or found.num_rows < limit:
            rows = rows.slice(0, count)
            return rows.take(pa.array(np.arange(rows.num_rows - 1, -1, -1)))
        limit *= 2


def _seen(snapshot: StreamSnapshot, rows: pa.Table, until: FeedCursor) -> np.ndarray:
    ticks = snapshot.definition.ticks(rows.column(snapshot.definition.time))
    sequence = rows.column(SEQUENCE).to_numpy()
    return (ticks < until.tick) | ((ticks == until.tick) & (sequence <= until.sequence))


def in_time(rows: pa.Table) -> pa.Table:
    """The rows that were not late."""
    late = rows.column(LATE)
    return rows.filter(pc.invert(late)) if pc.any(late).as_py() else rows
