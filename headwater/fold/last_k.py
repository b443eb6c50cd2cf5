"""`[A ROWS k]`, the last k rows of each key, and `[ROWS k]`, the last k rows.

Owns: a ring of k places per key and column, and which keys changed. A chunk is placed in at most
k rounds, the newest rows first: each round takes one row of every key that has one left, so a hot
key costs no more than k rounds. Must never: sort, or visit rows one by one. Rows come by (T, _seq).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.fold.chunk import Grouper
from headwater.fold.columns import Column, Slots, Vector, decode, storage_dtype, vector_dtype
from headwater.fold.lookup import Lookup
from headwater.fold.state import ChangedSlots

SMALLEST = 256


class LastRowsPerKey:
    """The last k rows of each key."""

    def __init__(self, keys: Sequence[str], schema: pa.Schema, k: int) -> None:
        if k < 1:
            raise ValueError("at least one row per key")
        self.k, self.schema = k, schema
        self._key_places = [schema.get_field_index(name) for name in keys]
        self.lookup = Lookup([schema.field(name).type for name in keys])
        self._grouper = Grouper()
        self._changed = ChangedSlots()
        self._counts: Slots = np.zeros(0, np.int64)  # rows ever seen, by slot
        self._values = [np.zeros(0, _ring_dtype(field.type)) for field in schema]
        self._valid: list[Vector | None] = [None] * len(schema)  # None until a NULL comes

    def __len__(self) -> int:
        return len(self.lookup)

    def fold(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Take in rows; they follow all that came before."""
        columns = [Column(rows.column(place)) for place in range(len(self.schema))]
        slots = self.lookup.slots([columns[place] for place in self._key_places], rows.num_rows)
        self._grow(len(self.lookup))
        np.add.at(self._counts, slots, np.int64(1))
        kept, places, touched = self._place(slots)
        self._changed.add(touched, len(self.lookup))
        for number, column in enumerate(columns):
            self._values[number][places] = column.values[kept]
            self._write_valid(number, column, kept, places)

    def _place(self, slots: Slots) -> tuple[Slots, Slots, Slots]:
        """Rows to keep, their places in the ring, and the slots touched."""
        rows = np.arange(len(slots), dtype=np.int32)
        claims = self._grouper.claims(len(self.lookup))
        kept, places, left = [], [], rows
        for age in range(self.k):
            owners = slots[left]
            claims[owners] = left  # the last write is the newest row
            newest = claims[owners] == left
            chosen = left[newest]
            keys = slots[chosen]
            kept.append(chosen)
            places.append(keys * self.k + (self._counts[keys] - 1 - age) % self.k)
            left = left[~newest]
            if not len(left):
                break
        return np.concatenate(kept), np.concatenate(places), slots[kept[0]]

    def _write_valid(self, number: int, column: Column, kept: Slots, places: Slots) -> None:
        valid = self._valid[number]
        if valid is None and column.valid is not None:
            valid = self._valid[number] = np.ones(len(self._values[number]), np.bool_)
        if valid is not None:
            valid[places] = True if column.valid is None else column.valid[kept]

    def _grow(self, slot_count: int) -> None:
        if slot_count <= len(self._counts):
            return
        size = max(slot_count, 2 * len(self._counts), SMALLEST)
        self._counts = np.concatenate([self._counts, np.zeros(size - len(self._counts), np.int64)])
        for number, values in enumerate(self._values):
            wide = np.zeros(size * self.k, values.dtype)
            if values.dtype == object:
                wide[len(values) :] = None
            wide[: len(values)] = values
            self._values[number] = wide
            valid = self._valid[number]
            if valid is not None:
                self._valid[number] = np.ones(size * self.k, np.bool_)
                self._valid[number][: len(valid)] = valid  # type: ignore[index]

    def result(self) -> pa.Table:
        """All rows held, key by key, each key's oldest first."""
        return self._rows_of(np.arange(len(self.lookup)))

    def changed(self) -> pa.Table:
        """The rows of the keys that got rows since the last call."""
        return self._rows_of(self._changed.take())

    def fresh(
        self, time: str, now: int, previous: Sequence[tuple[str, int]], oldest: int | None = None
    ) -> pa.Table:
        """Of the keys that got rows since the last call, those rows whose time is now.

        Behind the columns stand those of `previous`: x of the n-th earlier row of the same key, NULL
        if it is not held, or older than `oldest`. Times never fall within a key.
        """
        slots = self._changed.take()
        times = self._values[self.schema.get_field_index(time)]
        found: list[tuple[Slots, Slots]] = []
        for age in range(self.k):
            slots = slots[self._counts[slots] > age]
            slots = slots[times[self._places(slots, age)] == now]
            if not len(slots):
                break
            found.append((slots, np.full(len(slots), age)))
        owners, ages = (
            np.concatenate([np.empty(0, np.int64), *part])
            for part in (zip(*found, strict=True) if found else ((), ()))
        )
        now_places = self._places(owners, ages)
        arrays = [self._gathered(n, now_places) for n in range(len(self.schema))]
        earlier = {
            steps: self._earlier(owners, ages + steps, times, oldest) for _, steps in previous
        }
        for name, steps in previous:
            arrays.append(self._gathered(self.schema.get_field_index(name), *earlier[steps]))
        added = [str(number) for number in range(len(previous))]
        return pa.Table.from_arrays(arrays, names=[*self.schema.names, *added])

    def _earlier(
        self, owners: Slots, ages: Slots, times: Vector, oldest: int | None
    ) -> tuple[Slots, Vector]:
        """Where earlier rows of some keys lie, and which of them are held and not too old."""
        places = self._places(owners, ages)
        there = ages < np.minimum(self._counts[owners], self.k)
        if oldest is not None:
            there &= times[places] >= oldest
        return places, there

    def _places(self, slots: Slots, ages: Slots | int) -> Slots:
        """Where the rows of some keys lie that came so many rows before their newest."""
        return slots * self.k + (self._counts[slots] - 1 - ages) % self.k

    def _gathered(self, number: int, places: Slots, there: Vector | None = None) -> pa.Array:
        valid = self._valid[number]
        known = None if valid is None else valid[places]
        if there is not None:
            known = there if known is None else known & there
        return decode(self._values[number][places], known, self.schema.field(number).type)

    def get(self, keys: Sequence[Column | pa.Array]) -> pa.Table:
        """The rows of the given keys."""
        slots = self.lookup.find(keys)
        return self._rows_of(slots[slots >= 0])

    def _rows_of(self, slots: Slots) -> pa.Table:
        counts = self._counts[slots]
        held = np.minimum(counts, self.k)
        owners = np.repeat(slots, held)
        ends = np.cumsum(held)
        nth = np.arange(len(owners)) - np.repeat(ends - held, held)
        places = owners * self.k + (np.repeat(counts - held, held) + nth) % self.k
        arrays = [self._gathered(number, places) for number in range(len(self.schema))]
        return pa.Table.from_arrays(arrays, names=self.schema.names)

    def state(self) -> dict[str, Any]:
        """What a snapshot needs."""
        used = len(self.lookup)
        return {
            "lookup": self.lookup.state(),
            "counts": self._counts[:used],
            "values": [values[: used * self.k] for values in self._values],
            "valid": [None if valid is None else valid[: used * self.k] for valid in self._valid],
            "changed": self._changed.peek(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self.lookup.restore(state["lookup"])
        dtypes = [values.dtype for values in self._values]
        kept = zip(state["values"], dtypes, strict=True)
        self._counts = state["counts"]
        self._values = [values.astype(dtype, copy=False) for values, dtype in kept]
        self._valid = state["valid"]
        self._changed = ChangedSlots()
        self._changed.add(state["changed"], len(self.lookup))


def _ring_dtype(type_: pa.DataType) -> np.dtype[Any]:
    """How wide a ring's places are: as Arrow stores plain numbers, else as the vectors of chunks."""
    return storage_dtype(type_) if _is_plain(type_) else vector_dtype(type_)


def _is_plain(type_: pa.DataType) -> bool:
    return pa.types.is_signed_integer(type_) or pa.types.is_floating(type_)


class LastRows:
    """The last k rows: the newest chunks, cut when asked for."""

    def __init__(self, schema: pa.Schema, k: int) -> None:
        if k < 1:
            raise ValueError("at least one row")
        self.k, self.schema = k, schema
        self._chunks: deque[pa.Table] = deque()
        self._held = 0

    def fold(self, rows: pa.Table) -> None:
        """Take in rows; they follow all that came before."""
        if rows.num_rows:
            self._chunks.append(rows.slice(max(0, rows.num_rows - self.k)))
            self._held += self._chunks[-1].num_rows
        while self._chunks and self._held - self._chunks[0].num_rows >= self.k:
            self._held -= self._chunks.popleft().num_rows
        if len(self._chunks) > SMALLEST:
            whole = pa.concat_tables(self._chunks).combine_chunks()
            self._chunks = deque([whole])

    def result(self) -> pa.Table:
        """The last k rows, the oldest first."""
        whole = pa.concat_tables([self.schema.empty_table(), *self._chunks])
        return whole.slice(max(0, self._held - self.k))

    def state(self) -> dict[str, Any]:
        """What a snapshot needs."""
        return {"columns": [Column(column).array for column in self.result().columns]}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        rows = pa.Table.from_arrays(state["columns"], schema=self.schema)
        self._chunks, self._held = deque([rows] if rows.num_rows else []), rows.num_rows
