"""What a fold keeps between instants: one class per kind of window and block.

Owns: the rows and partials of one window, from the chunk that brought them to the instant that drops
them. Chunks come in the order of T; `advance` moves to an instant, `result` is the merged relation
there (columns _k0 … _a0 …, or _c0 …, or the ring's own). Must never: read a table or ask Spark.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.fold.absorb import absorb
from headwater.fold.aggregation import Aggregation, Pairs, Partial
from headwater.fold.columns import Column
from headwater.fold.last_k import LastRows, LastRowsPerKey
from headwater.fold.lookup import Lookup
from headwater.fold.pane import Window
from headwater.fold.sliding import WORTH_CLEANING, SlidingWindow
from headwater.fold.state import GroupState
from headwater.plan.folds import previous_column

Ticks = npt.NDArray[np.int64]
TIME, SEQUENCE = "headwater_tick", "_seq"
LAST_PLACE = (1 << 63) - 1


@dataclass(frozen=True)
class PaneChunk:
    """Rows that went through the stream pipeline, in the order (T, _seq): places rise.

    A place is a tick, or a position where the query samples by rows.
    """

    places: Ticks
    keys: Sequence[pa.Array]
    arguments: Sequence[pa.Array]
    order: tuple[Ticks, Ticks] | None = None  # ticks and sequence numbers, for first and last

    def part(self, start: int, stop: int) -> PaneChunk:
        """Some neighbouring rows."""
        order = (
            None if self.order is None else (self.order[0][start:stop], self.order[1][start:stop])
        )
        return PaneChunk(
            self.places[start:stop],
            [key.slice(start, stop - start) for key in self.keys],
            [argument.slice(start, stop - start) for argument in self.arguments],
            order,
        )

    def filtered(self, wanted: npt.NDArray[np.bool_]) -> PaneChunk:
        """Some of the rows."""
        mask = pa.array(wanted)
        order = None if self.order is None else (self.order[0][wanted], self.order[1][wanted])
        keys, arguments = (
            [array.filter(mask) for array in arrays] for arrays in (self.keys, self.arguments)
        )
        return PaneChunk(self.places[wanted], keys, arguments, order)


@dataclass(frozen=True)
class SparkPartials:
    """Partials that Spark made of a chunk: one row per pane and group, and distinct values."""

    panes: Ticks
    table: pa.Table
    distinct: Sequence[tuple[Ticks, pa.Table]] = ()


class FoldMerge(ABC):
    """The kept part of one fold."""

    structure: str

    @abstractmethod
    def advance(self, place: int, tick: int) -> None:
        """Move to an instant: what it sees is in, what it does not see any more is out.

        `place` is the instant in the unit of the chunks' places, `tick` its time.
        """

    @abstractmethod
    def result(self) -> pa.Table:
        """The merged relation at the instant."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """What a snapshot needs; taken between instants."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""

    def push_early(self) -> None:  # noqa: B027
        """Fold what waits although its instant has not come: nothing before it is still to be asked."""

    def settle(self, place: int) -> None:  # noqa: B027
        """An instant was answered and the next is at `place` or later: what it cannot see may go."""

    @property
    def size(self) -> int:
        """How many rows, partials or groups are held, for SHOW QUERIES."""
        return 0


def absorbed(
    aggregation: Aggregation,
    sliding: SlidingWindow | GroupState,
    table: pa.Table,
    values: list[pa.Table],
) -> Partial:
    """A partial from Spark's tables."""
    keys = len(aggregation.keys)
    plain = Aggregation(aggregation.keys, aggregation.aggregates)
    plain.distinct = []
    partial = absorb(plain, sliding.lookup, table)
    pairs = []
    for found in values:
        columns = [Column(found.column(place)) for place in range(keys)]
        slots = sliding.lookup.slots(columns, found.num_rows)
        pairs.append(Pairs(slots, Column(found.column(found.num_columns - 1)).array))
    return Partial(partial.slots, partial.vectors, tuple(pairs))


class LandmarkMerge(FoldMerge):
    """Aggregates over all rows since the query began or was reset."""

    structure = "cumulative"

    def __init__(self, aggregation: Aggregation) -> None:
        self._aggregation = aggregation
        self._groups = GroupState(aggregation, tracked=False)
        self._waiting: deque[PaneChunk] = deque()
        self._partials: deque[tuple[int, pa.Table, list[pa.Table]]] = deque()

    @property
    def size(self) -> int:
        """Groups held."""
        return len(self._groups)

    @property
    def groups(self) -> GroupState:
        """The groups held."""
        return self._groups

    def renew(self) -> None:
        """Groups that were put elsewhere are let go, with their keys."""
        self._groups = GroupState(self._aggregation, tracked=False)

    def add(self, chunk: PaneChunk) -> None:
        """Rows to be folded when an instant at or after them comes."""
        self._waiting.append(chunk)

    def add_partials(self, partials: SparkPartials) -> None:
        """Partials that Spark made; a pane is the instant that first sees them."""
        for pane in np.unique(partials.panes).tolist():
            table = partials.table.filter(pa.array(partials.panes == pane))
            values = [t.filter(pa.array(places == pane)) for places, t in partials.distinct]
            self._partials.append((pane, table, values))

    def advance(self, place: int, tick: int) -> None:  # noqa: ARG002
        """Fold every row up to the instant."""
        while self._partials and self._partials[0][0] <= place:
            _, table, values = self._partials.popleft()
            self._groups.merge(absorbed(self._aggregation, self._groups, table, values))
        while self._waiting:
            chunk = self._waiting[0]
            count = int(np.searchsorted(chunk.places, place, side="right"))
            if count:
                part = chunk.part(0, count)
                arguments = [Column(argument) for argument in part.arguments]
                self._groups.fold(part.keys, arguments, part.order, count)
            if count < len(chunk.places):
                self._waiting[0] = chunk.part(count, len(chunk.places))
                return
            self._waiting.popleft()

    def push_early(self) -> None:
        """Fold what waits: it belongs to the next instant."""
        self.advance(LAST_PLACE, LAST_PLACE)

    def result(self) -> pa.Table:
        """All groups."""
        return self._groups.result()

    def some(self, wanted: Sequence[int]) -> pa.Table:
        """All groups with some of the aggregates."""
        return self._groups.some(wanted)

    def state(self) -> dict[str, Any]:
        """The groups'."""
        return {"groups": self._groups.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self._groups.restore(state["groups"])


class SomeGroupsMerge(LandmarkMerge):
    """The same of rows of some groups; partials that Spark makes are of all."""

    def __init__(self, aggregation: Aggregation, keys: Lookup) -> None:
        super().__init__(aggregation)
        self._keys = keys

    def add(self, chunk: PaneChunk) -> None:
        """Rows of other groups are passed over."""
        wanted = self._keys.find(chunk.keys, len(chunk.places)) >= 0
        if wanted.any():
            super().add(chunk if wanted.all() else chunk.filtered(wanted))


class KeyWindowsMerge(FoldMerge):
    """Aggregates of windows that end one by one: a place is the number of a window, never used again."""

    structure = "groups by window"

    def __init__(self, aggregation: Aggregation) -> None:
        keys = [pa.field("window", pa.int64()), *aggregation.keys]
        self._aggregation = aggregation
        self._groups = GroupState(Aggregation(keys, aggregation.aggregates), tracked=False)
        self._slots: dict[int, list[int]] = {}  # of the groups of each open window
        self._size = 0
        self._closed: Sequence[int] = ()

    @property
    def size(self) -> int:
        """Groups held."""
        return self._size

    def add(self, chunk: PaneChunk) -> None:
        """Rows to be folded at once."""
        before = len(self._groups.lookup)
        arguments = [Column(argument) for argument in chunk.arguments]
        keys = [pa.array(chunk.places), *chunk.keys]
        self._groups.fold(keys, arguments, chunk.order, len(chunk.places))
        self._note(before)

    def add_partials(self, partials: SparkPartials) -> None:
        """Partials that Spark made; a pane is a window."""
        before = len(self._groups.lookup)
        table, *values = (
            rows.add_column(0, "window", pa.array(panes))
            for panes, rows in ((partials.panes, partials.table), *partials.distinct)
        )
        self._groups.merge(absorbed(self._groups.aggregation, self._groups, table, values))
        self._note(before)

    def _note(self, before: int) -> None:
        """Groups that are new since there were so many."""
        new = np.arange(before, len(self._groups.lookup))
        windows = self._groups.lookup.keys(new)[0].to_pylist() if len(new) else []
        for slot, window in zip(new.tolist(), windows, strict=True):
            self._slots.setdefault(window, []).append(slot)
        self._size += len(new)

    def advance(self, place: int, tick: int) -> None:
        """Windows end one by one: `close` says which."""

    def close(self, windows: Sequence[int]) -> None:
        """The windows that `result` is asked for."""
        self._closed = windows

    def result(self) -> pa.Table:
        """The groups of the windows that were closed, which are let go."""
        if not self._aggregation.keys:  # without GROUP BY there is always one row
            before = len(self._groups.lookup)
            self._groups.lookup.slots([pa.array(self._closed, pa.int64())])
            self._note(before)
        slots = [slot for window in self._closed for slot in self._slots.pop(window, ())]
        rows = self._groups.rows(np.array(slots, np.int64)).drop_columns("window")
        self._closed, self._size = (), self._size - len(slots)
        if len(self._groups.lookup) > 2 * self._size + WORTH_CLEANING:
            self._clean()
        return rows

    def _clean(self) -> None:
        """Forget the groups of windows that have ended."""
        live = [slot for own in self._slots.values() for slot in own]
        self._groups.keep(np.array(live, np.int64))
        new = iter(range(len(live)))
        self._slots = {window: [next(new) for _ in own] for window, own in self._slots.items()}

    def state(self) -> dict[str, Any]:
        """The groups of open windows."""
        self._clean()
        return {"groups": self._groups.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self._groups.restore(state["groups"])
        self._slots, self._size = {}, 0
        self._note(0)


class RowsMerge(FoldMerge):
    """The rows of a window of time (or positions), the newest first."""

    structure = "rows by pane"

    def __init__(self, schema: pa.Schema, window: Window) -> None:
        self._schema, self._window = schema, window
        self._held: deque[tuple[Ticks, pa.Table]] = deque()
        self._low, self._high = 0, 0

    @property
    def size(self) -> int:
        """Rows held."""
        return sum(len(places) for places, _ in self._held)

    def add(self, places: Ticks, rows: pa.Table) -> None:
        """Rows that passed, in order."""
        if rows.num_rows:
            self._held.append((places, rows))

    def advance(self, place: int, tick: int) -> None:  # noqa: ARG002
        """The bounds of the instant's window."""
        self._low = self._window.first_tick(place)
        self._high = self._window.last_tick(place)
        while self._held and self._held[0][0][-1] < self._low:
            self._held.popleft()

    def result(self) -> pa.Table:
        """The rows, the newest first."""
        parts = [self._schema.empty_table()]
        for places, rows in reversed(self._held):
            start = int(np.searchsorted(places, self._low, side="left"))
            stop = int(np.searchsorted(places, self._high, side="right"))
            if start < stop:
                parts.append(rows.take(pa.array(np.arange(stop - 1, start - 1, -1))))
        self._compact()
        return pa.concat_tables(parts).combine_chunks()

    def _compact(self) -> None:
        """Join many small tables, so that a long window of short chunks stays cheap."""
        if len(self._held) > 64:
            places = np.concatenate([p for p, _ in self._held])
            rows = pa.concat_tables([r for _, r in self._held]).combine_chunks()
            start = int(np.searchsorted(places, self._low, side="left"))
            self._held = deque([(places[start:], rows.slice(start))])

    def state(self) -> dict[str, Any]:
        """The rows held."""
        rows = pa.concat_tables([self._schema.empty_table(), *(r for _, r in self._held)])
        places = [np.empty(0, np.int64), *(p for p, _ in self._held)]
        return {
            "places": np.concatenate(places),
            "columns": [Column(c).array for c in rows.columns],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        rows = pa.Table.from_arrays(state["columns"], schema=self._schema)
        self._held = deque([(state["places"], rows)] if rows.num_rows else [])


class RingMerge(FoldMerge):
    """The last rows of all, or of each key."""

    def __init__(
        self,
        schema: pa.Schema,
        keys: Sequence[str],
        count: int,
        previous: Sequence[tuple[str, int]],
        range_ticks: int | None,
        fresh: bool = False,
    ) -> None:
        """`fresh`: the result is only asked for rows whose time is the instant."""
        self._schema, self._keys, self._previous = schema, list(keys), list(previous)
        self._range, self._fresh = range_ticks, fresh
        self._instant = 0
        self._ring = LastRowsPerKey(self._keys, schema, count) if keys else LastRows(schema, count)
        self.structure = f"ring of {count}" + (" per key" if keys else "")
        self._waiting: deque[tuple[Ticks, pa.Table]] = deque()

    @property
    def size(self) -> int:
        """Keys held."""
        return len(self._ring) if isinstance(self._ring, LastRowsPerKey) else 1

    def add(self, places: Ticks, rows: pa.Table) -> None:
        """Rows of the ring's columns, in order."""
        if rows.num_rows:
            self._waiting.append((places, rows))

    def advance(self, place: int, tick: int) -> None:
        """Take in the rows up to the instant."""
        self._instant = tick
        while self._waiting:
            places, rows = self._waiting[0]
            count = int(np.searchsorted(places, place, side="right"))
            if count:
                self._ring.fold(rows.slice(0, count).select(self._schema.names))
            if count < len(places):
                self._waiting[0] = (places[count:], rows.slice(count))
                return
            self._waiting.popleft()

    def push_early(self) -> None:
        """Take in what waits: it belongs to the next instant."""
        self.advance(LAST_PLACE, self._instant)

    def result(self) -> pa.Table:
        """The rows with their PREV columns, key by key or the oldest first."""
        if self._fresh and isinstance(self._ring, LastRowsPerKey):
            return self._fresh_rows(self._ring)
        rows = self._ring.result()
        if self._range is not None:
            ticks = rows.column(TIME).to_numpy()
            rows = rows.filter(pa.array(ticks >= self._instant - self._range))
        return with_previous(rows, self._keys, self._previous)

    def _fresh_rows(self, ring: LastRowsPerKey) -> pa.Table:
        oldest = None if self._range is None else self._instant - self._range
        rows = ring.fresh(TIME, self._instant, self._previous, oldest)
        added = [previous_column(column, steps) for column, steps in self._previous]
        return rows.rename_columns([*self._schema.names, *added])

    def state(self) -> dict[str, Any]:
        """The ring's."""
        return {"ring": self._ring.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self._ring.restore(state["ring"])


def by_key(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The rows with each key's together, in the order they come."""
    if not keys or not rows.num_rows:
        return rows
    lookup = Lookup([rows.schema.field(key).type for key in keys])
    slots = lookup.slots([Column(rows.column(key)) for key in keys], rows.num_rows)
    return rows.take(pa.array(np.argsort(slots, kind="stable")))


def with_previous(
    rows: pa.Table, keys: Sequence[str], previous: Sequence[tuple[str, int]]
) -> pa.Table:
    """The rows with PREV columns, x of the n-th earlier row of the same key; each key's oldest first."""
    if not previous:
        return rows
    count = rows.num_rows
    groups = np.zeros(count, np.int64)
    if keys and count:
        lookup = Lookup([rows.schema.field(key).type for key in keys])
        groups = lookup.slots([Column(rows.column(key)) for key in keys], count)
    for column, steps in previous:
        earlier = np.arange(count) - steps
        there = earlier >= 0
        there[there] = groups[earlier[there]] == groups[np.flatnonzero(there)]
        taken = rows.column(column).take(pa.array(earlier, mask=~there))
        rows = rows.append_column(previous_column(column, steps), taken)
    return rows
