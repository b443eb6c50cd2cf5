"""DISTINCT inside a group: how often each (group, value) pair is there, and when it comes and goes.

Owns: the multiplicities. Out of rows that come and go it makes pairs that come and go, which fold like rows.
Rows in which an argument is NULL have no say. Must never: keep more pairs that are gone than pairs that are
there, but for a few.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.fold.chunk import Grouper
from headwater.fold.columns import Column, Slots
from headwater.fold.lookup import Lookup
from headwater.operators.changes import Signs
from headwater.operators.vectors import Growing

LEAST_GONE = 1 << 12  # so many pairs that are gone are left in any case


class DistinctPairs:
    """The distinct values of one or several arguments, by group."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self.types = tuple(types)
        self._lookup = Lookup([pa.int64(), *types])
        self._times = Growing(np.int64)  # by pair
        self._live = 0
        self._grouper = Grouper()

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        return self._lookup.nbytes + self._times.nbytes + self._grouper.nbytes

    def apply(
        self, slots: Slots, columns: Sequence[Column], signs: Signs
    ) -> tuple[Slots, list[Column], Signs]:
        """Takes in rows by the slots of their groups; gives the pairs that came and went."""
        self._make_room()
        there = np.ones(len(slots), np.bool_)
        for column in columns:
            if column.valid is not None:
                there &= column.valid
        rows = pa.array(np.flatnonzero(there))
        taken = columns if there.all() else [Column(c.array.take(rows)) for c in columns]
        slots, signs = slots[there], signs[there]
        pairs = self._lookup.slots([Column(pa.array(slots)), *taken], len(slots))
        known = len(self._times)
        self._times.grow(len(self._lookup))
        self._times.values[known:] = 0
        groups = self._grouper.group(pairs, len(self._lookup))
        net = np.zeros(groups.size, np.int64)
        np.add.at(net, groups.ids, signs.astype(np.int64))
        return self._changed(groups.slots, net)

    def _changed(self, pairs: Slots, net: Slots) -> tuple[Slots, list[Column], Signs]:
        before = self._times.values[pairs]
        after = before + net
        assert (after >= 0).all(), "a value is taken back that is not there"
        self._times.values[pairs] = after
        changed = np.flatnonzero((before > 0) != (after > 0))
        signs = np.where(after[changed] > 0, 1, -1).astype(np.int8)
        self._live += int(signs.sum(dtype=np.int64))
        owners, *values = self._lookup.keys(pairs[changed])
        return Column(owners).values, [Column(value) for value in values], signs

    def _make_room(self) -> None:
        """Pairs that are gone are forgotten once they are the most."""
        if len(self._lookup) > 2 * self._live + LEAST_GONE:
            live = np.flatnonzero(self._times.values)
            self._load(self._lookup.keys(live), self._times.values[live])

    def __len__(self) -> int:
        """How many pairs are there."""
        return self._live

    def _load(self, keys: Sequence[pa.Array], times: Slots) -> None:
        self._lookup.load(keys)
        kept = times.copy()
        self._times = Growing(np.int64)
        self._times.append(kept)

    def remap(self, new: Slots) -> None:
        """Groups have other slots now; those that are gone have no pairs."""
        live = np.flatnonzero(self._times.values)
        owners, *values = self._lookup.keys(live)
        self._load([pa.array(new[Column(owners).values]), *values], self._times.values[live])

    def columns(self) -> tuple[Slots, list[pa.Array]]:
        """All pairs: the slots of their groups; their values, and how often each is there."""
        live = np.flatnonzero(self._times.values)
        owners, *values = self._lookup.keys(live)
        return Column(owners).values, [*values, pa.array(self._times.values[live])]

    def put(self, slots: Slots, columns: Sequence[pa.Array]) -> None:
        """Pairs of groups that have none come, as `columns` gave them."""
        keys = [Column(pa.array(slots)), *(Column(value) for value in columns[:-1])]
        pairs = self._lookup.slots(keys, len(slots))
        self._times.filled(len(self._lookup), 0)[pairs] = columns[-1].to_numpy()
        self._live += len(slots)

    def state(self) -> dict[str, Any]:
        """What a snapshot needs."""
        live = np.flatnonzero(self._times.values)
        return {"keys": self._lookup.keys(live), "times": self._times.values[live]}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self._load(state["keys"], state["times"])
        self._live = len(state["times"])
