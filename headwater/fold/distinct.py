"""Exact distinct counts: the (group, value) pairs of a window, each with the last pane it was in.

Owns: one lookup of pairs per argument, the newest pane of each pair, and how many distinct values
each group has. A pair leaves when the newest pane that had it leaves, so a slide costs the pairs
of the panes that came and went, whatever the window holds. Must never: forget pairs of a live pane.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.fold.aggregation import Pairs
from headwater.fold.chunk import Grouper
from headwater.fold.columns import Column, Slots, Vector
from headwater.fold.lookup import Lookup

NEVER = np.iinfo(np.int64).min
WORTH_KEEPING = 4096  # fewer pairs than this are never worth a clean-up


class DistinctValues:
    """The distinct values of one argument, per slot; `expiring=False` for states without panes."""

    def __init__(self, type_: pa.DataType, expiring: bool = True) -> None:
        self._lookup = Lookup([pa.int64(), type_])
        self._expiring = expiring
        self._grouper = Grouper()
        self._owners: Vector = np.empty(0, np.int64)  # pair → slot
        self._newest: Vector = np.empty(0, np.int64)  # pair → pane
        self._counts: Vector = np.empty(0, np.int64)  # slot → distinct values
        self._panes: deque[tuple[int, Slots]] = deque()
        self._live = 0

    def push(self, pane: int, pairs: Pairs) -> None:
        """Fold in the pairs of a pane; panes come in order."""
        if not len(pairs.slots):
            return
        found = self._lookup.slots([Column(pa.array(pairs.slots)), Column(pairs.values)])
        self._grow(len(self._lookup), int(pairs.slots.max()) + 1)
        distinct = self._grouper.distinct(found, len(self._lookup))
        owners = pairs.slots[_row_of_each(distinct, self._grouper)]
        self._owners[distinct] = owners
        new = self._newest[distinct] == NEVER
        np.add.at(self._counts, owners[new], np.int64(1))
        self._live += int(new.sum())
        self._newest[distinct] = pane
        if self._expiring:
            distinct.flags.writeable = False
            self._panes.append((pane, distinct))

    def evict(self, up_to: int) -> None:
        """Drop panes before `up_to`."""
        while self._panes and self._panes[0][0] < up_to:
            pane, pairs = self._panes.popleft()
            gone = pairs[self._newest[pairs] == pane]
            # a pane may have come in several chunks: a pair goes once
            self._newest[gone] = NEVER
            np.subtract.at(self._counts, self._owners[gone], np.int64(1))
            self._live -= len(gone)
        if len(self._lookup) > 2 * self._live + WORTH_KEEPING:
            self._clean()

    def forget(self, slots: Slots) -> None:
        """Some slots have no values any more; of states without panes."""
        pairs = np.flatnonzero(np.isin(self.owners(), slots))
        self._newest[pairs] = NEVER
        self._counts[slots[slots < len(self._counts)]] = 0
        self._live -= len(pairs)
        self._clean()

    def counts(self, slots: Slots) -> Vector:
        """How many distinct values the given slots have."""
        known = slots < len(self._counts)
        if known.all():
            return self._counts[slots]
        out = np.zeros(len(slots), np.int64)
        out[known] = self._counts[slots[known]]
        return out

    def owners(self) -> Slots:
        """The slot of every pair, of states without panes."""
        return self._owners[: len(self._lookup)]

    def values(self, pairs: Slots) -> pa.Array:
        """The values of some pairs."""
        return self._lookup.keys(pairs)[1]

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        own = (self._owners, self._newest, self._counts)
        return self._lookup.nbytes + self._grouper.nbytes + sum(v.nbytes for v in own)

    def remap(self, live: Slots, slot_count: int) -> None:
        """Slots were renumbered: `live` are the old ones, in the order of the new; others are gone."""
        new = np.full(max(slot_count, len(self._counts)), -1, np.int64)
        new[live] = np.arange(len(live))
        size = len(self._lookup)
        self._newest[:size][new[self._owners[:size]] < 0] = NEVER
        self._live = int((self._newest[:size] != NEVER).sum())
        self._counts = self.counts(live)
        self._clean(new)

    def _clean(self, renumbered: Vector | None = None) -> None:
        """Forget pairs that are in no pane."""
        pairs = np.flatnonzero(self._newest[: len(self._lookup)] != NEVER)
        places = np.full(len(self._lookup), -1, np.int64)
        places[pairs] = np.arange(len(pairs))
        owners, values = self._owners[pairs], self._lookup.keys(pairs)[1]
        if renumbered is not None:
            owners = renumbered[owners]
        self._lookup.load([pa.array(owners), values])
        self._owners, self._newest = owners, self._newest[pairs]
        kept = ((pane, places[pane_pairs]) for pane, pane_pairs in self._panes)
        self._panes = deque((pane, pane_pairs) for pane, pane_pairs in kept)

    def _grow(self, pairs: int, slots: int) -> None:
        if pairs > len(self._newest):
            size = max(pairs, 2 * len(self._newest))
            self._newest = _grown(self._newest, size, NEVER)
            self._owners = _grown(self._owners, size, 0)
        if slots > len(self._counts):
            self._counts = _grown(self._counts, max(slots, 2 * len(self._counts)), 0)

    def state(self) -> dict[str, Any]:
        """What a snapshot needs."""
        size = len(self._lookup)
        return {
            "lookup": self._lookup.state(),
            "newest": self._newest[:size],
            "owners": self._owners[:size],
            "counts": self._counts,
            "panes": [[pane, pairs] for pane, pairs in self._panes],
            "live": self._live,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self._lookup.restore(state["lookup"])
        self._newest, self._owners = state["newest"], state["owners"]
        self._counts, self._live = state["counts"], state["live"]
        self._panes = deque((pane, pairs) for pane, pairs in state["panes"])


def _grown(vector: Vector, size: int, fill: int) -> Vector:
    wide = np.full(size, fill, np.int64)
    wide[: len(vector)] = vector
    return wide


def _row_of_each(distinct: Slots, grouper: Grouper) -> Slots:
    """For each distinct pair one row that has it: after `distinct` the claims still say which."""
    return grouper.claims(0)[distinct].astype(np.int64)
