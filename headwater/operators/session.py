"""Sessions: the start and the end of the session of each row, appended to it.

Owns: which rows of a partition are one session. As Spark's session_window: a row at time t stands for t to
t + gap, and rows whose intervals meet, if only at an end, are one session, which begins with its first row
and ends a gap after its last. Rows without a time are in no session and leave nothing. A change makes those
sessions be computed anew that it meets. Must never: give a row anew whose session has not changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.errors import NotSupportedError
from headwater.fold.columns import Column, Slots, Vector, decode
from headwater.operators.arrangement import Arrangement
from headwater.operators.changes import Changes, come, go, nothing, together
from headwater.operators.flat import whole
from headwater.operators.grouped_rows import Partitions
from headwater.operators.operator import Operator
from headwater.operators.timed_index import TimedIndex

EARLIEST, LATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class SessionRows(Operator):
    """Rows with their session; `gap` is in the unit of the time column."""

    name = "session"
    takes_back = True

    def __init__(
        self,
        schema: pa.Schema,
        partition: Sequence[str],
        time: str,
        gap: int,
        start: str,
        end: str,
        takes_back: bool,
    ) -> None:
        self.input_schema, self.partition, self.time, self.gap = schema, tuple(partition), time, gap
        self._type = schema.field(time).type
        if not pa.types.is_timestamp(self._type) or gap <= 0:
            raise NotSupportedError(f"a session of {self._type} with a gap of {gap}")
        self.schema = pa.schema([*schema, pa.field(start, self._type), pa.field(end, self._type)])
        self._taken_back = takes_back
        self._rows = Arrangement(schema, self.partition, spills=False)
        self._times = self._rows.beside(np.int64)
        self._given = self._rows.beside(np.bool_)
        self._starts, self._ends = self._rows.beside(np.int64), self._rows.beside(np.int64)
        self._index = TimedIndex()

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        return self._rows.nbytes + self._index.nbytes

    def apply(self, *inputs: Changes) -> Changes:
        """− for rows that went or are in another session now, + for those that came or are."""
        (changes,) = inputs
        assert changes.only_come or self._taken_back, "rows were said never to be taken back"
        there = changes.rows.column(self.time).is_valid().to_numpy()
        changes = changes.filtered(there)
        if not len(changes):
            return nothing(self.schema)
        self._make_room()
        done = self._rows.apply(changes)
        came = self._rows.rows.take(done.came, [self.time])
        self._times.values[done.came] = Column(came.column(self.time)).values
        self._enter(done.came)
        went = done.went[self._given.values[done.went]]
        numbers = self._met(done.touched, np.concatenate([done.came, went]))
        minus, plus = self._regrouped(numbers)
        return together([go(self._given_rows(went)), go(minus), come(plus)], self.schema)

    def _make_room(self) -> None:
        """Dead rows and keys without rows go if they are the most; rows have other numbers then."""
        generation = self._rows.generation
        forgot = self._rows.forget() is not None
        self._rows.make_room()
        if forgot or self._rows.generation != generation:
            self._index = TimedIndex()
            self._enter(np.flatnonzero(self._rows.rows.alive))

    def _enter(self, numbers: Slots) -> None:
        slots, times = self._rows.slot_of(numbers), self._times.values[numbers]
        self._index.add(slots, times, numbers, self._rows.rows.alive)

    def _met(self, touched: Slots, changed: Slots) -> Slots:
        """The rows of all sessions that changed rows belong to or have belonged to.

        Whoever shares a session with a changed row has, or is, a neighbour of it no farther than a gap.
        """
        slots = self._rows.slot_of(changed)
        times = self._times.values[changed]
        lows, highs = _reach(touched, slots, times - self.gap, times + self.gap)
        near = self._index.between(touched, lows, highs + 1, self._rows.rows.alive)
        near = near[self._given.values[near]]
        starts, ends = self._starts.values[near], self._ends.values[near]
        slots, starts = np.append(slots, self._rows.slot_of(near)), np.append(times, starts)
        lows, highs = _reach(touched, slots, starts, np.append(times, ends))
        return self._index.between(touched, lows, highs + 1, self._rows.rows.alive)

    def _regrouped(self, numbers: Slots) -> tuple[pa.Table, pa.Table]:
        """The sessions of rows; what they gave and give, where that differs."""
        times = self._times.values[numbers]
        partitions = Partitions(self._rows.slot_of(numbers), [times])
        numbers, times = numbers[partitions.order], times[partitions.order]
        starts, ends = self._sessions(times, partitions)
        given = self._given.values[numbers]
        same = (self._starts.values[numbers] == starts) & (self._ends.values[numbers] == ends)
        moved = ~(given & same)
        minus = self._given_rows(numbers[moved & given])
        chosen = numbers[moved]
        self._given.values[chosen] = True
        self._starts.values[chosen], self._ends.values[chosen] = starts[moved], ends[moved]
        return minus, self._given_rows(chosen)

    def _sessions(self, times: Vector, partitions: Partitions) -> tuple[Vector, Vector]:
        """The start and end of each row's session, rows being sorted by time in each partition."""
        first = partitions.places == partitions.starts
        first[1:] |= np.diff(times) > self.gap
        begins = np.flatnonzero(first)
        lengths = np.diff(np.append(begins, len(times)))
        last = times[begins + lengths - 1] + self.gap
        return np.repeat(times[begins], lengths), np.repeat(last, lengths)

    def _given_rows(self, numbers: Slots) -> pa.Table:
        arrays = [whole(column) for column in self._rows.rows.take(numbers).columns]
        for vector in (self._starts, self._ends):
            arrays.append(decode(vector.values[numbers], None, self._type))
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def state(self) -> dict[str, Any]:
        """What a snapshot needs."""
        return self._rows.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self._rows.restore(state)
        self._index = TimedIndex()
        self._enter(np.arange(len(self._rows)))


def _reach(touched: Slots, slots: Slots, lows: Slots, highs: Slots) -> tuple[Slots, Slots]:
    """The least of some times and the greatest of others, by slot."""
    places = np.searchsorted(touched, slots)
    first, last = np.full(len(touched), LATEST), np.full(len(touched), EARLIEST)
    np.minimum.at(first, places, lows)
    np.maximum.at(last, places, highs)
    return first, last
