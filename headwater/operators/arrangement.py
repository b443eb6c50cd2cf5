"""An arrangement: the rows of a bag, by key; the state behind joins, groups, top-n and windows.

Owns: the rows, the slot of each key, and which live rows have it. A row that is taken back is found by a hash
of all its columns and compared bit for bit. Keys are equal as Spark groups them: NULL equals NULL, NaN equals
NaN, −0.0 equals 0.0; an operator that means otherwise leaves such rows out. Must never: promise an order of
the rows of a key other than that in which they came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.errors import NotSupportedError
from headwater.fold.columns import Column, Slots, kind_of, size_of
from headwater.fold.hashing import hashes_of
from headwater.fold.lookup import Lookup
from headwater.operators.changes import Changes
from headwater.operators.equality import same_rows
from headwater.operators.index import Index
from headwater.operators.row_store import RowStore
from headwater.operators.vectors import Growing

LEAST_DEAD = 1 << 12  # so many dead rows are left in any case


@dataclass(frozen=True)
class Arranged:
    """What a batch of changes did to an arrangement."""

    came: Slots  # numbers of the rows that came
    went: (
        Slots  # numbers of the rows that were taken back; they are dead now, and can still be taken
    )
    touched: Slots  # the slots of the keys of both, each once


class Arrangement:
    """Rows of one schema by key."""

    def __init__(self, schema: pa.Schema, keys: Sequence[str]) -> None:
        self.schema, self.keys = schema, tuple(keys)
        self.rows = RowStore(schema)
        self.lookup = Lookup([schema.field(name).type for name in keys])
        self._slots = Growing(np.int64)  # by row number
        self._by_key = Index()
        self._by_hash: Index | None = None  # made when the first row is taken back
        self._beside: list[Growing] = []

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        hashed = 0 if self._by_hash is None else self._by_hash.nbytes
        index = self._by_key.nbytes + hashed + self._slots.nbytes
        beside = sum(size_of(vector.values) for vector in self._beside)
        return self.rows.nbytes + self.lookup.nbytes + index + beside

    def beside(self, dtype: Any) -> Growing:
        """A vector of one value per row number, for its owner to set; a row begins with 0."""
        vector = Growing(dtype)
        vector.append(np.zeros(self.rows.next, dtype))
        self._beside.append(vector)
        return vector

    def slot_of(self, numbers: Slots) -> Slots:
        """The slots of rows."""
        return self._slots.values[numbers]

    def apply(self, changes: Changes) -> Arranged:
        """Takes in a batch of changes; raises if a row is taken back that is not there."""
        self._make_room()
        came = self._add(changes.coming)
        went = self._remove(changes.going) if not changes.only_come else _NONE
        slots = np.concatenate([self.slot_of(came), self.slot_of(went)])
        return Arranged(came[self.rows.alive[came]] if len(went) else came, went, np.unique(slots))

    def _add(self, rows: pa.Table) -> Slots:
        slots = self.lookup.slots(_columns(rows, self.keys), rows.num_rows)
        numbers = self.rows.append(rows)
        self._slots.append(slots)
        for vector in self._beside:
            vector.append(np.zeros(len(numbers), vector.values.dtype))
        self._by_key.add(slots, numbers)
        if self._by_hash is not None:
            self._by_hash.add(_hashes(rows), numbers)
        return numbers

    def _remove(self, rows: pa.Table) -> Slots:
        if self._by_hash is None:
            self._by_hash = Index()
            everything = np.flatnonzero(self.rows.alive)
            self._by_hash.add(_hashes(self.rows.take(everything)), everything)
        places, numbers = self._by_hash.find(_hashes(rows))
        alive = self.rows.alive[numbers]
        places, numbers = places[alive], numbers[alive]
        same = same_rows(rows.take(pa.array(places)), self.rows.take(numbers))
        found = _paired(places[same], numbers[same], rows.num_rows)
        self.rows.kill(found)
        return found

    def _make_room(self) -> None:
        """Dead rows go once they are the most."""
        if self.rows.dead_count < max(len(self.rows), LEAST_DEAD):
            return
        alive = self.rows.alive.copy()
        new = self.rows.compact()
        for vector in (self._slots, *self._beside):
            vector.keep(alive)
        self._by_key.renumber(new)
        if self._by_hash is not None:
            self._by_hash.renumber(new)

    def forget(self) -> Slots | None:
        """Keys without rows go once they are the most; by old slot the new one, −1 if it is gone."""
        if len(self.lookup) <= 2 * len(self.rows) + LEAST_DEAD:
            return None
        live = np.unique(self._slots.values[self.rows.alive])
        new = np.full(len(self.lookup), -1, np.int64)
        new[live] = np.arange(len(live))
        self.lookup.keep(live)
        slots = new[self._slots.values]
        self._slots.values[:] = slots
        self._by_key = Index()
        numbers = np.flatnonzero(self.rows.alive)
        self._by_key.add(slots[numbers], numbers)
        return new

    def find(self, keys: Sequence[pa.Array | pa.ChunkedArray], row_count: int) -> Slots:
        """The slots of keys, −1 for those that never came."""
        return self.lookup.find([Column(key) for key in keys], row_count)

    def matches(self, slots: Slots) -> tuple[Slots, Slots]:
        """Pairs of a place among the given slots and the number of a live row that has that key."""
        places, numbers = self._by_key.find(slots)
        alive = self.rows.alive[numbers]
        return (places, numbers) if alive.all() else (places[alive], numbers[alive])

    def of_slots(self, slots: Slots) -> Slots:
        """The numbers of the live rows that have one of these keys, in the order they came."""
        return np.sort(self.matches(slots)[1])

    def state(self) -> dict[str, Any]:
        """What a snapshot needs."""
        alive = self.rows.alive
        return {
            "rows": self.rows.state(),
            "beside": [vector.values[alive] for vector in self._beside],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot; rows and slots are numbered anew."""
        beside = self._beside
        self.__init__(self.schema, self.keys)  # type: ignore[misc]
        store = RowStore(self.schema)
        store.restore(state["rows"])
        self._add(store.table())
        self._beside = beside
        for vector, values in zip(beside, state["beside"], strict=True):
            vector.keep(slice(0, 0))
            vector.append(values)


_NONE: Slots = np.empty(0, np.int64)


def _columns(rows: pa.Table, names: Sequence[str]) -> list[Column]:
    return [Column(rows.column(name)) for name in names]


def is_hashed(type_: pa.DataType) -> bool:
    """Whether a column of a type has its say in the hash of a row."""
    try:
        kind_of(type_)
    except NotSupportedError:
        return False
    return True


def _hashes(rows: pa.Table) -> Slots:
    hashed = [column for column in rows.columns if is_hashed(column.type)]
    return hashes_of([_array(column) for column in hashed], rows.num_rows).view(np.int64)


def _array(column: pa.ChunkedArray) -> pa.Array:
    return Column(column).array


def _paired(places: Slots, numbers: Slots, count: int) -> Slots:
    """One row for each place, none twice: equal rows get their candidates in turn."""
    order = np.lexsort((numbers, places))
    places, numbers = places[order], numbers[order]
    counts = np.bincount(places, minlength=count)
    assert counts.all(), "a row is taken back that is not there"
    starts = np.cumsum(counts) - counts
    classes = numbers[starts]  # equal rows have the same candidates, so the same first one
    by_class = np.argsort(classes, kind="stable")
    sorted_classes = classes[by_class]
    first = np.concatenate([[True], sorted_classes[1:] != sorted_classes[:-1]])
    begins = np.maximum.accumulate(np.where(first, np.arange(count), 0))
    turns = np.empty(count, np.int64)
    turns[by_class] = np.arange(count) - begins
    assert (turns < counts).all(), "a row is taken back that is not there"
    return numbers[starts + turns]
