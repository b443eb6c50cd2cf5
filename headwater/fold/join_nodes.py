"""The rows of one side of a stream join, as one node per (key, group, pane).

Owns: nodes in the order they came, each with its partial, its expiry and the next older node of
the same key; the newest node of each key. Node numbers only grow, so a node is alive iff its
number is not below the oldest live one. Must never: hold rows, or walk a chain row by row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from headwater.fold.aggregation import Aggregation, copied, take
from headwater.fold.columns import Slots, Vector
from headwater.fold.families import Vectors

NONE = -1
SMALLEST = 1024


class Nodes:
    """One side's nodes, chained by key, the newest first."""

    def __init__(self, aggregation: Aggregation) -> None:
        self.aggregation = aggregation
        self._base = 0  # the number of the first node still stored
        self._count = 0  # nodes stored
        self._oldest = 0  # the oldest live number
        self._fields = np.empty((4, 0), np.int64)  # key, group, expiry, next
        self._vectors = aggregation.empty(0)
        self._newest: Vector = np.empty(0, np.int64)  # key → number

    def __len__(self) -> int:
        return self._base + self._count - self._oldest

    def add(
        self, keys: Slots, groups: Slots, expiry: int, vectors: Sequence[Vectors], key_count: int
    ) -> None:
        """Add the nodes of a pane; a key may have several, one per group."""
        self._grow(len(keys), key_count)
        numbers = np.arange(len(keys)) + self._base + self._count
        if (keys[1:] < keys[:-1]).any():
            order = np.argsort(keys, kind="stable")
            keys, groups, vectors = keys[order], groups[order], take(vectors, order)
        older = self._newest[keys]
        same = np.flatnonzero(keys[1:] == keys[:-1]) + 1
        older[same] = numbers[same] - 1
        place = slice(self._count, self._count + len(keys))
        self._fields[:2, place] = keys, groups
        self._fields[2, place], self._fields[3, place] = expiry, older
        self._newest[keys] = numbers  # the last write is the newest
        for mine, theirs in zip(self._vectors, vectors, strict=True):
            for vector, values in zip(mine, theirs, strict=True):
                vector[place] = values
        self._count += len(keys)

    def _grow(self, more: int, key_count: int) -> None:
        size = self._fields.shape[1]
        if self._count + more > size:
            wanted = max(self._count + more, 2 * size, SMALLEST)
            fields = np.empty((4, wanted), np.int64)
            fields[:, : self._count] = self._fields[:, : self._count]
            self._fields = fields
            self._vectors = self.aggregation.grow(self._vectors, wanted)
        if key_count > len(self._newest):
            newest = np.full(max(key_count, 2 * len(self._newest), SMALLEST), NONE, np.int64)
            newest[: len(self._newest)] = self._newest
            self._newest = newest

    def expire(self, instant: int) -> None:
        """Nodes that expire at or before an instant are gone."""
        alive = np.searchsorted(self._fields[2, : self._count], instant, side="right")
        self._oldest = max(self._oldest, self._base + int(alive))
        dead = self._oldest - self._base
        if dead > SMALLEST and 2 * dead > self._count:
            self._forget(dead)

    def _forget(self, dead: int) -> None:
        """Move the live nodes to the front; the room behind them is kept for the next ones."""
        count = self._count - dead
        for vector in (*self._fields, *(v for family in self._vectors for v in family)):
            vector[:count] = vector[dead : self._count]
        self._base, self._count = self._oldest, count

    def matches(self, keys: Slots) -> Iterator[tuple[Slots, Slots]]:
        """Rounds of (which key asked, place of a node), one node per key and round."""
        asking = np.flatnonzero(keys < len(self._newest))
        numbers = self._newest[keys[asking]]
        while True:
            alive = numbers >= self._oldest
            asking, numbers = asking[alive], numbers[alive]
            if not len(asking):
                return
            places = numbers - self._base
            yield asking, places
            numbers = self._fields[3, places]

    def groups(self, places: Slots) -> Slots:
        """The groups of nodes."""
        return self._fields[1, places]

    def expiries(self, places: Slots) -> Slots:
        """When nodes expire."""
        return self._fields[2, places]

    def vectors(self, places: Slots) -> Sequence[Vectors]:
        """The partials of nodes."""
        return take(self._vectors, places)

    def mark_keys(self, marks: Vector) -> None:
        """Mark the keys that have live nodes."""
        marks[self._fields[0, self._oldest - self._base : self._count]] = True

    def remap(self, new: Slots) -> None:
        """Keys were renumbered: `new` gives each old one's new number, -1 for none."""
        self._forget(self._oldest - self._base)
        keys = self._fields[0, : self._count] = new[self._fields[0, : self._count]]
        newest = np.full(int(new.max(initial=-1)) + 1, NONE, np.int64)
        newest[keys] = np.arange(self._count) + self._base  # the last write is the newest
        self._newest = newest

    def state(self) -> dict[str, Any]:
        """What a snapshot needs."""
        places = np.arange(self._count)
        return {
            "numbers": [self._base, self._count, self._oldest],
            "fields": self._fields[:, : self._count],
            "vectors": self.vectors(places),
            "newest": self._newest,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self._base, self._count, self._oldest = state["numbers"]
        self._fields, self._newest = state["fields"].copy(), state["newest"].copy()
        self._vectors = copied(state["vectors"])
