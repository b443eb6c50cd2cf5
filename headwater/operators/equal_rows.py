"""Rows that are equal as SQL groups them: how many of them each input has, and which one is shown.

Owns: the slots of rows (NULL equals NULL, NaN equals NaN, −0.0 equals 0.0), counts by slot and input, and for
each slot the row of the first input that came first, until its last equal has gone. Slots that nobody counts
are forgotten once they are the most. Slots may go to disk: whoever asks for slots has them back first. Must
never: be asked about slots of an earlier batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.fold.columns import Column, Slots
from headwater.fold.hashing import hashes_of
from headwater.fold.lookup import Lookup
from headwater.operators.changes import Changes, Signs
from headwater.operators.flat import elements, flat, flat_type, positions, whole
from headwater.operators.operator import Operator
from headwater.operators.row_store import RowStore
from headwater.operators.spilled_keys import SpilledKeys
from headwater.operators.vectors import Growing

LEAST_EMPTY = 1 << 12  # so many slots that nobody counts are left in any case


@dataclass(frozen=True)
class Touched:
    """The slots that a batch of one input touched, each once."""

    slots: Slots
    places: Slots  # of the first row of each in the batch
    before: Slots  # how many the input had
    after: Slots


class EqualRows:
    """Counts of equal rows; columns go by their place."""

    def __init__(self, schema: pa.Schema, input_count: int, shows: bool) -> None:
        """`shows`: whether rows are kept to be shown."""
        self.schema, self._shows = schema, shows
        self._input_count = input_count
        self.spilled = SpilledKeys()
        self._clear()

    def _clear(self) -> None:
        self.lookup = Lookup([flat_type(field.type) for field in self.schema])
        self._counts = [Growing(np.int64) for _ in range(self._input_count)]  # by slot
        self._shown = RowStore(self.schema)
        self._numbers = Growing(np.int64)  # by slot: the row that is shown, −1 if none is
        self._due = LEAST_EMPTY

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        counts = sum(count.nbytes for count in self._counts)
        shown = self._shown.nbytes + self._numbers.nbytes
        return self.lookup.nbytes + counts + shown + self.spilled.nbytes

    def make_room(self) -> None:
        """To be called before a batch: slots may be numbered anew."""
        if self._shown.dead_count >= max(len(self._shown), LEAST_EMPTY):
            new = self._shown.compact()
            numbers = self._numbers.values
            self._numbers = Growing(np.int64, np.where(numbers < 0, -1, new[numbers]))
        if len(self.lookup) < self._due or not len(self.schema):
            return
        size = len(self.lookup)
        counts = [count.filled(size, 0) for count in self._counts]
        kept = np.flatnonzero(np.logical_or.reduce([count > 0 for count in counts]))
        if 2 * len(kept) <= size:
            self.lookup.keep(kept)
            self._counts = [Growing(np.int64, count[kept]) for count in counts]
            if self._shows:
                numbers = self._numbers.filled(size, -1)
                self._numbers = Growing(np.int64, numbers[kept])
        self._due = 2 * len(kept) + LEAST_EMPTY

    def counts(self, number: int, slots: Slots) -> Slots:
        """How many rows an input has of slots, 0 for those below 0."""
        counts = self._counts[number].filled(len(self.lookup), 0)
        return np.where(slots < 0, 0, counts[slots]) if len(counts) else np.zeros_like(slots)

    def find(self, columns: Sequence[pa.Array | pa.ChunkedArray], row_count: int) -> Slots:
        """The slots of rows, −1 for those that never came."""
        return self.lookup.find(self._brought(columns, row_count, False), row_count)

    def slots(self, columns: Sequence[pa.Array | pa.ChunkedArray], row_count: int) -> Slots:
        """The slots of rows; those that never came get the next ones."""
        return self.lookup.slots(self._brought(columns, row_count, True), row_count)

    def bring(self, columns: Sequence[pa.Array | pa.ChunkedArray], row_count: int) -> None:
        """What is on disk of some rows has its slots."""
        self._brought(columns, row_count, False)

    def _brought(
        self, columns: Sequence[pa.Array | pa.ChunkedArray], row_count: int, change: bool
    ) -> list[Column]:
        """Columns as the lookup takes them, once what is on disk of these rows is in memory."""
        keys = [flat(column, exact=False) for column in columns]
        if self.spilled:
            hashes = hashes_of([key.array for key in keys], row_count)
            stored = self.spilled.missing(hashes)
            if stored is not None:
                self._take_in([whole(column) for column in stored.columns], stored.num_rows)
            if change:
                self.spilled.touch(hashes)
        return keys

    def _take_in(self, columns: Sequence[pa.Array], row_count: int) -> None:
        """Slots come back from disk."""
        width, inputs = len(self.schema), self._input_count
        slots = self.lookup.slots([Column(key) for key in columns[:width]], row_count)
        for count, given in zip(self._counts, columns[width:], strict=False):
            count.filled(len(self.lookup), 0)[slots] = given.to_numpy()
        if self._shows:
            there, *shown = columns[width + inputs : width + inputs + 1 + width]
            numbers = self._numbers.filled(len(self.lookup), -1)
            rows = pa.Table.from_arrays(shown, schema=self.schema).filter(there)
            numbers[slots[there.to_numpy(zero_copy_only=False)]] = self._shown.append(rows)

    def spill(self) -> None:
        """All slots go to disk."""
        size = len(self.lookup)
        counts = [count.filled(size, 0) for count in self._counts]
        slots = np.arange(size)
        if counts:
            slots = np.flatnonzero(np.logical_or.reduce([count > 0 for count in counts]))
        columns = self.lookup.keys(slots)
        hashes = hashes_of(columns, len(slots))
        columns += [pa.array(count[slots]) for count in counts]
        if self._shows:
            numbers = self._numbers.filled(size, -1)[slots]
            there = numbers >= 0
            places = pa.array(np.cumsum(there) - 1, mask=~there)
            columns += [pa.array(there), *self._shown.take(numbers[there]).take(places).columns]
        self.spilled.put(hashes, columns)
        self._clear()

    def change(
        self, number: int, columns: Sequence[pa.Array | pa.ChunkedArray], signs: Signs
    ) -> Touched:
        """Takes in changes of an input."""
        every = self.slots(columns, len(signs))
        slots, places, which = np.unique(every, return_index=True, return_inverse=True)
        counts = self._counts[number].filled(len(self.lookup), 0)
        before = counts[slots]
        after = before + np.bincount(which, weights=signs, minlength=len(slots)).astype(np.int64)
        assert (after >= 0).all(), "a row is taken back that is not there"
        counts[slots] = after
        return Touched(slots, places, before, after)

    def show(self, touched: Touched, changes: Changes) -> None:
        """Slots of the first input that had no row show one that came."""
        numbers = self._numbers.filled(len(self.lookup), -1)
        fresh = (touched.before == 0) & (touched.after > 0)
        rows = changes.rows.take(pa.array(touched.places[fresh]))
        numbers[touched.slots[fresh]] = self._shown.append(rows)

    def hide(self, touched: Touched) -> None:
        """Slots of the first input that have no row any more show none."""
        numbers = self._numbers.values
        gone = touched.slots[(touched.before > 0) & (touched.after == 0)]
        self._shown.kill(numbers[gone])
        numbers[gone] = -1

    def shown(self, slots: Slots) -> pa.Table:
        """The rows that slots show, or showed until `hide`."""
        return self._shown.take(self._numbers.values[slots])

    def state(self) -> dict[str, Any]:
        """What a snapshot needs."""
        new = np.cumsum(self._shown.alive) - 1
        numbers = self._numbers.values
        shown = np.where(numbers < 0, -1, new[numbers]) if len(new) else numbers
        return {
            "keys": self.lookup.state(),
            "counts": [count.filled(len(self.lookup), 0) for count in self._counts],
            "shown": self._shown.state(),
            "numbers": shown,
            "spilled": self.spilled.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self.spilled.restore(state["spilled"])
        self.lookup.restore(state["keys"])
        self._counts = [Growing(np.int64, count) for count in state["counts"]]
        self._shown.restore(state["shown"])
        self._numbers = Growing(np.int64, state["numbers"])


class EqualRowsOperator(Operator):
    """An operator whose whole state is rows that are equal."""

    _equal: EqualRows

    @property
    def nbytes(self) -> int:
        return self._equal.nbytes

    @property
    def spilled(self) -> Sequence[SpilledKeys]:
        return [self._equal.spilled] if len(self.schema) else []

    def spill(self) -> None:
        self._equal.spill()

    def state(self) -> dict[str, Any]:
        return self._equal.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._equal.restore(state)


def with_one_zero(changes: Changes) -> Changes:
    """The rows with 0.0 for −0.0, as Spark shows what it has grouped, also within structs and lists."""
    rows = changes.rows
    for place, field in enumerate(rows.schema):
        if _has_floats(field.type):
            rows = rows.set_column(place, field, _one_zero(whole(rows.column(place))))
    return changes if rows is changes.rows else changes.with_rows(rows)


def _has_floats(type_: pa.DataType) -> bool:
    if pa.types.is_struct(type_):
        return any(_has_floats(field.type) for field in type_)
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return _has_floats(type_.value_type)
    return bool(pa.types.is_floating(type_))


def _one_zero(array: pa.Array) -> pa.Array:
    """A value in which there may be floats."""
    type_ = array.type
    if not _has_floats(type_):
        return array
    if pa.types.is_floating(type_):
        return pc.add(array, pa.scalar(0.0, type_))
    missing = array.is_null()
    if pa.types.is_struct(type_):
        parts = [_one_zero(part) for part in array.flatten()]
        return pa.StructArray.from_arrays(parts, fields=list(type_), mask=missing)
    starts, lengths = elements(array)
    inner = _one_zero(array.values.take(pa.array(positions(starts, lengths)[0])))
    large = pa.types.is_large_list(type_)
    ends = pa.array([0, *np.cumsum(lengths)], pa.int64() if large else pa.int32())
    lists = pa.LargeListArray if large else pa.ListArray
    return lists.from_arrays(ends, inner, type=type_, mask=missing)
