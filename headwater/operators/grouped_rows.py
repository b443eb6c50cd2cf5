"""Rows of several groups side by side, and what is chosen from each group at once.

Owns: selections: the rows that are not NULL, the best of each group, the distinct ones, those of each group
in an order; and numbers in an order. A row is named by its place. Must never: visit them one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from headwater.fold.columns import Column, Slots, Vector
from headwater.fold.order import ordered, ranks_of
from headwater.operators.flat import whole

LEAST = np.iinfo(np.int64).min


class OrderColumn(NamedTuple):
    """One column of an order; Spark's default: ascending has NULLs first, descending last."""

    name: str
    descending: bool = False
    nulls_first: bool = True


class GroupedRows:
    """Rows with the number of their group, below `size`; the rows of a group stand as they came."""

    def __init__(self, rows: pa.Table, ids: Slots, size: int) -> None:
        self.rows, self.ids, self.size = rows, ids, size
        self._columns: dict[str, Column] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def array(self, name: str) -> pa.Array:
        """A column, of any type."""
        return whole(self.rows.column(name))

    def column(self, name: str) -> Column:
        """A column with its vector."""
        if name not in self._columns:
            self._columns[name] = Column(self.rows.column(name))
        return self._columns[name]

    @cached_property
    def everything(self) -> Slots:
        """The places of all rows."""
        return np.arange(len(self.ids))

    def there(self, name: str) -> Slots:
        """The places where a column is not NULL."""
        valid = self.array(name).is_valid().to_numpy(zero_copy_only=False)
        return np.flatnonzero(valid)

    def counts(self, places: Slots) -> Slots:
        """How many of some places each group has."""
        return np.bincount(self.ids[places], minlength=self.size)

    def best(self, places: Slots, ranks: Vector) -> Slots:
        """Of each group the place with the greatest rank, the first of equal ones; −1 if it has none."""
        ids = self.ids[places]
        most = np.full(self.size, LEAST, np.int64)
        np.maximum.at(most, ids, ranks)
        return self._first(places[ranks == most[ids]])

    def _first(self, places: Slots) -> Slots:
        first = np.full(self.size, -1, np.int64)
        first[self.ids[places[::-1]]] = places[::-1]
        return first

    def by_group(self, places: Slots, ranks: Sequence[Vector] = ()) -> Slots:
        """The places group by group, each group in the order of ranks, then as the rows came."""
        if not ranks and (np.diff(self.ids[places]) >= 0).all():
            return places
        keys = [rank[places] for rank in reversed(ranks)]
        return places[np.lexsort((*keys, self.ids[places]))]

    def ranks(self, order: Sequence[OrderColumn]) -> list[Vector]:
        """Integers in an order, the first being the most important."""
        found: list[Vector] = []
        for key in order:
            found += ranks_of(self.column(key.name), key.descending, key.nulls_first)
        return found

    def distinct(self, places: Slots, name: str) -> Slots:
        """The first place of each value in each group, in the order of the places."""
        ranks = ordered(self.column(name))
        sorted_ = self.by_group(places, [ranks])
        return np.sort(sorted_[self.run_starts(sorted_, ranks)])

    def run_starts(self, places: Slots, ranks: Vector) -> Vector:
        """Where a group or a rank begins, among places that stand in their order."""
        ids, values = self.ids[places], ranks[places]
        begins = np.ones(len(places), np.bool_)
        begins[1:] = (ids[1:] != ids[:-1]) | (values[1:] != values[:-1])
        return begins


class Partitions:
    """Rows sorted by partition and order: where each row's partition and its peers begin and end."""

    def __init__(self, slots: Slots, ranks: Sequence[Vector]) -> None:
        """Rows stand as they came; those of equal rank stay so."""
        self.order: Slots = np.lexsort((*reversed(ranks), slots))  # by place in the sort, the row
        count = len(slots)
        self.places = np.arange(count)
        first = np.ones(count, np.bool_)
        first[1:] = np.diff(slots[self.order]) != 0
        peer = first.copy()
        for rank in ranks:
            peer[1:] |= np.diff(rank[self.order].astype(np.int64, copy=False)) != 0
        self.first_peers = peer
        self.starts, self.ends = runs_of(first, count)
        self.peer_starts, self.peer_ends = runs_of(peer, count)

    @property
    def row_number(self) -> Slots:
        """From 1 in each partition."""
        return self.places - self.starts + 1

    @property
    def rank(self) -> Slots:
        """The row number of the first peer."""
        return self.peer_starts - self.starts + 1

    @property
    def dense_rank(self) -> Slots:
        """How many different ranks there are up to a row."""
        seen: Slots = np.cumsum(self.first_peers, dtype=np.int64)
        return seen - seen[self.starts] + 1 if len(seen) else seen


def runs_of(first: Vector, count: int) -> tuple[Slots, Slots]:
    """For each place, where its run begins and where the next one does."""
    begins = np.flatnonzero(first)
    lengths = np.diff(np.append(begins, count))
    return np.repeat(begins, lengths), np.repeat(begins + lengths, lengths)
