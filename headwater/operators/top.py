"""Top-n: the first rows of each partition, or of all, in an order.

Owns: which rows are given and under which number. The first rows of a partition, some more than are given,
are near; all others are far, and looked at only if too few are near because rows went. Where rows only come,
what is beyond the limit is forgotten. Rows that are equal in the order stand as they came, so answers depend
on nothing else; those of one rank are all near or all far. Must never: look at a partition that is not
touched, or give a row anew whose number has not changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from headwater.fold.columns import Column, Slots, Vector
from headwater.fold.order import ranks_of
from headwater.operators.arrangement import Arrangement
from headwater.operators.changes import Changes, come, go, nothing, together
from headwater.operators.flat import flat
from headwater.operators.grouped_rows import OrderColumn, Partitions
from headwater.operators.operator import Operator
from headwater.operators.spilled_keys import SpilledKeys
from headwater.operators.vectors import Growing, distinct

Ties = Literal["row_number", "rank", "dense_rank"]
SPARE = 16  # so many rows more than twice those that are given are near, and twice that before some go far
EVERYTHING = np.iinfo(np.int64).max


class _Rows:
    """Rows of a partition, each with when it came."""

    def __init__(self, schema: pa.Schema, partition: Sequence[str], hashed: bool) -> None:
        self.rows = Arrangement(schema, partition, hashed=hashed, spills=bool(partition))
        self.arrived = self.rows.beside(np.int64)

    def add(self, rows: pa.Table, arrived: Slots) -> Slots:
        numbers = self.rows.add(rows)
        self.arrived.values[numbers] = arrived
        return numbers

    def of_slots(self, slots: Slots) -> Slots:
        """The rows of slots in the order they came."""
        numbers = self.rows.of_slots(slots)
        return numbers[np.argsort(self.arrived.values[numbers], kind="stable")]


class TopRows(Operator):
    """Rows whose number in their partition is above `offset` and at most `offset + limit`."""

    name = "top"
    takes_back = True

    def __init__(
        self,
        schema: pa.Schema,
        partition: Sequence[str],
        order: Sequence[tuple[str, bool, bool]],
        limit: int | None,
        offset: int = 0,
        ties: Ties = "row_number",
        number: str | None = None,
        takes_back: bool = True,
    ) -> None:
        self.input_schema, self.partition = schema, tuple(partition)
        self.order = tuple(OrderColumn(*key) for key in order)
        self.limit, self.offset, self.ties, self.number = limit, offset, ties, number
        numbered = [] if number is None else [pa.field(number, pa.int32())]
        self.schema = pa.schema([*schema, *numbered])
        self._taken_back = takes_back
        self._last = EVERYTHING if limit is None else offset + limit
        more = limit is not None and takes_back
        self._kept = 2 * self._last + SPARE if more else self._last  # near after some went far …
        self._most = 2 * self._kept if more else self._last  # … and before
        self._near, self._far = (self._empty() for _ in range(2))
        self._given = self._near.rows.beside(np.int64)  # the number a row was given with, or ≤ 0
        self._beyond = Growing(np.int64)  # by slot: how many rows are far, or were forgotten …
        self._stored = self._near.rows.beside(np.int64)  # … beside each near row while on disk
        self._next = 0

    def _empty(self) -> _Rows:
        return _Rows(self.input_schema, self.partition, self._taken_back and not self.partition)

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        return self._near.rows.nbytes + self._far.rows.nbytes + self._beyond.nbytes

    def apply(self, *inputs: Changes) -> Changes:
        """− for rows that left the top or got another number, + for those that are in it now."""
        (changes,) = inputs
        assert changes.only_come or self._taken_back, "rows were said never to be taken back"
        if not len(changes) or self.limit == 0:
            return nothing(self.schema)
        self._make_room()
        self._bring(changes.rows)
        touched = [self._come(changes.coming)]
        went = np.empty(0, np.int64)
        if not changes.only_come:
            went = self._go(changes.going)
            touched.append(self._near.rows.slot_of(went))
        slots = distinct(np.concatenate(touched))
        numbers, new = self._numbered(slots)
        if self._filled_up(slots, numbers, new):
            numbers, new = self._numbered(slots)
        return self._settled(numbers, new, went)

    def _make_room(self) -> None:
        self._near.rows.make_room()
        self._far.rows.make_room()
        new = self._near.rows.forget()
        if new is not None:
            self._beyond.filled(len(new), 0)
            self._beyond.keep(np.flatnonzero(new >= 0))
        self._far.rows.forget()

    def _bring(self, rows: pa.Table) -> None:
        """The near rows of partitions are in memory, and how many are beyond them."""
        near = self._near.rows
        if near.spilled:
            numbers = near.bring(rows)
            beyond = self._beyond.filled(len(near.lookup), 0)
            beyond[near.slot_of(numbers)] = self._stored.values[numbers]
            near.spilled.touch(near.hashes_of(rows))

    def _come(self, rows: pa.Table) -> Slots:
        """Rows come, near or far; gives the slots of those that are near."""
        near = self._near.rows
        slots = near.lookup.slots(self._keys(rows), rows.num_rows)
        beyond = self._beyond.filled(len(near.lookup), 0)
        arrived = np.arange(self._next, self._next + rows.num_rows)
        self._next += rows.num_rows
        far = np.zeros(rows.num_rows, np.bool_)
        asking = np.flatnonzero(beyond[slots])
        if len(asking):
            far[asking] = self._are_far(rows.take(pa.array(asking)), slots[asking])
        if far.any():
            np.add.at(beyond, slots[far], 1)
            if self._taken_back:
                self._far.add(rows.filter(pa.array(far)), arrived[far])
            rows = rows.filter(pa.array(~far))
        self._near.add(rows, arrived[~far])
        return slots[~far]

    def _keys(self, rows: pa.Table) -> list[Column]:
        return [flat(rows.column(name), exact=False) for name in self.partition]

    def _are_far(self, rows: pa.Table, slots: Slots) -> Vector:
        """Which rows come after all that are near in their partitions."""
        numbers, names = self._near.rows.of_slots(distinct(slots)), self._order_names
        both = pa.concat_tables([self._near.rows.rows.take(numbers, names), rows.select(names)])
        every = np.concatenate([self._near.rows.slot_of(numbers), slots])
        partitions = Partitions(every, self._ranks(both))
        is_near = partitions.order < len(numbers)
        last = np.maximum.accumulate(np.where(is_near, partitions.places, -1))
        last = last[partitions.ends - 1]  # where the last near row of the partition stands
        alone = self.ties == "row_number"
        far = np.empty(len(every), np.bool_)
        far[partitions.order] = (partitions.places if alone else partitions.peer_starts) > last
        return far[len(numbers) :]

    @property
    def _order_names(self) -> list[str]:
        return [key.name for key in self.order]

    def _ranks(self, rows: pa.Table) -> list[Vector]:
        ranks: list[Vector] = []
        for key in self.order:
            ranks += ranks_of(Column(rows.column(key.name)), key.descending, key.nulls_first)
        return ranks

    def _go(self, rows: pa.Table) -> Slots:
        """Rows go; gives the numbers of those that were near."""
        found = self._near.rows.remove(rows)
        if (found < 0).any():
            rest = rows.filter(pa.array(found < 0))
            assert (self._far.rows.remove(rest) >= 0).all(), "a row is taken back that is not there"
            slots = self._near.rows.lookup.find(self._keys(rest), rest.num_rows)
            np.subtract.at(self._beyond.values, slots, 1)
        return found[found >= 0]

    def _numbered(self, slots: Slots) -> tuple[Slots, Slots]:
        """The near rows of partitions, in order, and the number of each."""
        return self._numbers_of(self._near, slots)

    def _numbers_of(self, rows: _Rows, slots: Slots) -> tuple[Slots, Slots]:
        numbers = rows.of_slots(slots)
        ranks = self._ranks(rows.rows.rows.take(numbers, self._order_names))
        partitions = Partitions(rows.rows.slot_of(numbers), ranks)
        found: Slots = getattr(partitions, self.ties)
        return numbers[partitions.order], found

    def _filled_up(self, slots: Slots, numbers: Slots, places: Slots) -> bool:
        """Rows become near where they are too few; whether any did."""
        if not self._taken_back:
            return False
        near = self._near.rows
        last = np.zeros(len(near.lookup), np.int64)
        np.maximum.at(last, near.slot_of(numbers), places)
        short = slots[(last[slots] < self._last) & (self._beyond.values[slots] > 0)]
        if not len(short):
            return False
        far = self._far.rows.find(near.lookup.keys(short), len(short))
        chosen, number = self._numbers_of(self._far, far)
        chosen = chosen[number <= self._kept]
        rows, arrived = self._far.rows.rows.take(chosen), self._far.arrived.values[chosen]
        self._far.rows.kill(chosen)
        moved = self._near.add(rows, arrived)
        np.subtract.at(self._beyond.values, near.slot_of(moved), 1)
        return True

    def _settled(self, numbers: Slots, places: Slots, went: Slots) -> Changes:
        inside = (places > self.offset) & (places <= self._last)
        new = np.where(inside, places, 0)
        given = self._given.values
        old = given[numbers]
        moved = np.flatnonzero(old != new if self.number else (old > 0) != inside)
        gone = np.concatenate([numbers[moved[old[moved] > 0]], went[given[went] > 0]])
        arrived = moved[inside[moved]]
        minus = go(self._given_rows(gone, given[gone]))
        plus = come(self._given_rows(numbers[arrived], new[arrived]))
        given[numbers] = new
        self._send_far(numbers, places)
        return together([minus, plus], self.schema)

    def _given_rows(self, numbers: Slots, places: Slots) -> pa.Table:
        rows = self._near.rows.rows.take(numbers)
        if self.number is None:
            return rows
        return rows.append_column(self.schema.field(self.number), pa.array(places, pa.int32()))

    def _send_far(self, numbers: Slots, places: Slots) -> None:
        """Rows that are beyond what is kept near leave, where they have become many."""
        near = self._near.rows
        slots = near.slot_of(numbers)
        crowded = np.zeros(len(near.lookup), np.bool_)
        crowded[slots[places > self._most]] = True
        leaving = crowded[slots] & (places > self._kept)
        if not leaving.any():
            return
        chosen = numbers[leaving]
        np.add.at(self._beyond.values, slots[leaving], 1)
        if self._taken_back:
            self._far.add(near.rows.take(chosen), self._near.arrived.values[chosen])
        near.kill(chosen)

    @property
    def spilled(self) -> Sequence[SpilledKeys]:
        return [keys for part in (self._near, self._far) if (keys := part.rows.spilled) is not None]

    def spill(self) -> None:
        near = self._near.rows
        if not self.partition:
            return
        numbers = np.flatnonzero(near.rows.alive)
        self._stored.values[numbers] = self._beyond.values[near.slot_of(numbers)]
        near.spill()
        self._far.rows.spill()
        self._beyond = Growing(np.int64)

    def state(self) -> dict[str, Any]:
        """What a snapshot needs."""
        slots = np.flatnonzero(self._beyond.values)
        return {
            "near": self._near.rows.state(),
            "far": self._far.rows.state(),
            "keys": self._near.rows.lookup.keys(slots),
            "beyond": self._beyond.values[slots],
            "next": self._next,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        near, beyond = self._near.rows, state["beyond"]
        near.restore(state["near"])
        self._far.rows.restore(state["far"])
        slots = near.lookup.slots([Column(key) for key in state["keys"]], len(beyond))
        self._beyond = Growing(np.int64)
        self._beyond.filled(len(near.lookup), 0)[slots] = beyond
        self._next = state["next"]
