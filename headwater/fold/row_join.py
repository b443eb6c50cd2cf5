"""The equi-join of two windowed streams as rows: each new pair once, in pieces.

Owns: the keys that both sides share, each side's live rows, and the walk of new rows through the
other side. A push is ordered by key, so its rows of one key are a run: one node holds where the run
begins and how long it is, and a hot key costs as many steps as there were pushes, not rows. Rows
with a NULL in their key match nothing and are dropped. Must never: promise an order of the pairs,
or make more than a piece of them at once. Follows DataCell §3, "multi-stream queries".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.fold.aggregation import Aggregation
from headwater.fold.columns import Column, Slots
from headwater.fold.join import LEFT, Aging, clean_keys, pair_expiries, without_nulls
from headwater.fold.join_nodes import Nodes
from headwater.fold.lookup import Lookup

PIECE = 1 << 16  # joined rows made at once


@dataclass(frozen=True)
class Joined:
    """Joined rows, the left columns first, and when each of them expires."""

    rows: pa.Table
    expiries: Slots


@dataclass(frozen=True)
class _Runs:
    """Rows of one push by key: which keys, and where the rows of each begin and how many they are."""

    keys: Slots
    starts: Slots
    counts: Slots


class RowJoin:
    """left ⋈ right on equal keys; columns of the two sides have different names."""

    def __init__(
        self, key_types: Sequence[pa.DataType], aging: Aging | None = None, piece: int = PIECE
    ) -> None:
        """`aging`: see `pair_expiries`; `piece`: the most joined rows made at once."""
        self._keys = Lookup(key_types)
        self._aging, self._piece = aging, piece
        counted = Aggregation((), ())
        self._nodes = (Nodes(counted), Nodes(counted))  # a node's group is its run's first row
        self._rows = (Rows(), Rows())

    @property
    def row_count(self) -> int:
        """Live rows of both sides."""
        return len(self._rows[0]) + len(self._rows[1])

    def push(
        self, side: int, expiry: int, keys: Sequence[Column], rows: pa.Table
    ) -> Iterator[Joined]:
        """Add rows that are in their window until just before the instant `expiry`; the new pairs.

        A side's rows come in the order of their expiry. The pairs are found as they are asked for:
        all of them before the next call.
        """
        there = without_nulls(keys)
        if there is not None:
            taken = pa.array(there)
            keys, rows = [Column(key.array.take(taken)) for key in keys], rows.take(taken)
        if not rows.num_rows:
            return iter(())
        slots = self._keys.slots(keys, rows.num_rows)
        if (slots[1:] < slots[:-1]).any():
            order = np.argsort(slots, kind="stable")
            slots, rows = slots[order], rows.take(pa.array(order))
        starts = np.flatnonzero(np.concatenate([[True], slots[1:] != slots[:-1]]))
        runs = _Runs(slots[starts], starts, np.diff(starts, append=len(slots)))
        first = self._rows[side].add(rows, expiry)
        self._nodes[side].add(runs.keys, starts + first, expiry, ((runs.counts,),), len(self._keys))
        return self._pairs(side, expiry, rows, runs)

    def _pairs(self, side: int, expiry: int, rows: pa.Table, runs: _Runs) -> Iterator[Joined]:
        """Rounds of matching runs, gathered until they make a piece."""
        other, rounds, count = self._nodes[1 - side], [], 0
        for asking, places in other.matches(runs.keys):
            rounds.append((asking, places))
            count += int(runs.counts[asking] @ other.vectors(places)[0][0])
            if count >= self._piece:
                yield from self._pieces(side, expiry, rows, runs, rounds)
                rounds, count = [], 0
        if rounds:
            yield from self._pieces(side, expiry, rows, runs, rounds)

    def _pieces(
        self,
        side: int,
        expiry: int,
        rows: pa.Table,
        runs: _Runs,
        rounds: Sequence[tuple[Slots, Slots]],
    ) -> Iterator[Joined]:
        """Every row of a run with every row of the run that it matches."""
        asking, places = (np.concatenate(part) for part in zip(*rounds, strict=True))
        other = self._nodes[1 - side]
        lengths, firsts = other.vectors(places)[0][0], other.groups(places)
        expiries = pair_expiries(side, expiry, other.expiries(places), self._aging)
        sizes = runs.counts[asking] * lengths
        ends = np.cumsum(sizes)
        for low in range(0, int(ends[-1]), self._piece):
            high = min(low + self._piece, int(ends[-1]))
            pair = _owners(ends, sizes, low, high)
            nth = np.arange(low, high) - (ends[pair] - sizes[pair])
            mine, theirs = np.divmod(nth, lengths[pair])
            mine, theirs = mine + runs.starts[asking[pair]], theirs + firsts[pair]
            order, found = self._rows[1 - side].take(theirs)
            own = rows.take(pa.array(mine if order is None else mine[order]))
            left, right = (own, found) if side == LEFT else (found, own)
            until = expiries[pair] if order is None else expiries[pair][order]
            names = [*left.column_names, *right.column_names]
            yield Joined(pa.table([*left.columns, *right.columns], names=names), until)

    def expire(self, instant: int) -> None:
        """The window moves to an instant: rows that expire then or before are gone."""
        for nodes, rows in zip(self._nodes, self._rows, strict=True):
            nodes.expire(instant)
            rows.expire(instant)
        clean_keys(self._keys, self._nodes)


def _owners(ends: Slots, sizes: Slots, low: int, high: int) -> Slots:
    """Which pair of runs each of the joined rows low … high - 1 belongs to."""
    first = int(np.searchsorted(ends, low, side="right"))
    last = int(np.searchsorted(ends, high - 1, side="right"))
    counts = sizes[first : last + 1].copy()
    counts[0] = ends[first] - low
    counts[-1] -= ends[last] - high
    return np.repeat(np.arange(first, last + 1), counts)


class Rows:
    """The rows of one side, numbered as they came.

    They stand in few tables, a newer one at most half as long as the one before it, so that adding
    rows copies little and taking them looks into few tables.
    """

    def __init__(self) -> None:
        self._tables: list[pa.Table] = []
        self._firsts: list[int] = []  # the number of each table's first row
        self._next = 0
        self._oldest = 0  # the oldest live row
        self._ends: deque[tuple[int, int]] = deque()  # expiry, and where the rows that have it end

    def __len__(self) -> int:
        return self._next - self._oldest

    def add(self, rows: pa.Table, expiry: int) -> int:
        """Add rows; the number of the first of them."""
        first, self._next = self._next, self._next + rows.num_rows
        if self._ends and self._ends[-1][0] == expiry:
            self._ends.pop()
        self._ends.append((expiry, self._next))
        self._tables.append(rows.combine_chunks())
        self._firsts.append(first)
        while len(self._tables) > 1 and 2 * len(self._tables[-1]) > len(self._tables[-2]):
            newest, _ = self._tables.pop(), self._firsts.pop()
            self._tables[-1] = pa.concat_tables([self._tables[-1], newest]).combine_chunks()
        return first

    def expire(self, instant: int) -> None:
        """Rows that expire at or before an instant are gone."""
        while self._ends and self._ends[0][0] <= instant:
            self._oldest = self._ends.popleft()[1]
        while self._tables and self._firsts[0] + len(self._tables[0]) <= self._oldest:
            self._tables.pop(0)
            self._firsts.pop(0)
        if self._tables and 2 * (self._oldest - self._firsts[0]) > len(self._tables[0]):
            live = np.arange(self._oldest - self._firsts[0], len(self._tables[0]))
            self._tables[0] = self._tables[0].take(pa.array(live))  # a slice would keep the dead
            self._firsts[0] = self._oldest

    def take(self, numbers: Slots) -> tuple[Slots | None, pa.Table]:
        """Some live rows, in the order of these places of `numbers`; None: as they are given."""
        which = np.searchsorted(self._firsts, numbers, side="right") - 1
        if (which == which[0]).all():
            place = int(which[0])
            return None, self._tables[place].take(pa.array(numbers - self._firsts[place]))
        order = np.argsort(which, kind="stable")
        places, starts = np.unique(which[order], return_index=True)
        parts = [
            self._tables[place].take(pa.array(some - self._firsts[place]))
            for place, some in zip(
                places.tolist(), np.split(numbers[order], starts[1:]), strict=True
            )
        ]
        return order, pa.concat_tables(parts)
