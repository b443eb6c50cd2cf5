"""Rows by number, kept as Arrow pieces; some of them dead.

Owns: the pieces and which rows live. Rows get the numbers 0, 1, 2, … in the order they come; small pieces are
put together as they gather, so that a store of n rows has few. A dead row stays where it is until `compact`.
Must never: change a row, or a number except in `compact`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.fold.columns import Slots, Vector
from headwater.operators.vectors import Growing

PIECE_ROWS = 1 << 16  # pieces are not put together beyond it
MOST_SHORT = 1 << 16  # so many pieces are numbered by 16 bits


class RowStore:
    """Rows of one schema."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._pieces: list[pa.Table] = []
        self._starts: list[int] = []
        self._live: list[pa.Table | None] = []  # by piece: its live rows, if they are known
        self._alive = Growing(np.bool_)
        self._dead = 0

    def __len__(self) -> int:
        """How many rows live."""
        return len(self._alive) - self._dead

    @property
    def next(self) -> int:
        """The number that the next row gets."""
        return len(self._alive)

    @property
    def dead_count(self) -> int:
        """How many rows are dead and still there."""
        return self._dead

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        return sum(piece.nbytes for piece in self._pieces) + self._alive.nbytes

    @property
    def alive(self) -> Vector:
        """By number: whether the row lives; not to be written to."""
        return self._alive.values

    def append(self, rows: pa.Table) -> Slots:
        """Adds rows; gives their numbers."""
        first = self.next
        if rows.num_rows:
            self._alive.append(np.ones(rows.num_rows, np.bool_))
            self._pieces.append(rows)
            self._starts.append(first)
            self._live.append(None)
            self._put_together()
        return np.arange(first, self.next)

    def _put_together(self) -> None:
        """The last pieces become one while the last is no smaller than half of the one before."""
        count = 1
        size = self._pieces[-1].num_rows
        while count < len(self._pieces):
            before = self._pieces[-1 - count].num_rows
            if before > 2 * size or before + size > PIECE_ROWS:
                break
            size, count = size + before, count + 1
        if count > 1 or self._pieces[-1].column(0).num_chunks > 1:
            merged = pa.concat_tables(self._pieces[-count:]).combine_chunks()
            self._starts[-count:] = [self._starts[-count]]
            self._pieces[-count:] = [merged]
            self._live[-count:] = [None]

    def take(self, numbers: Slots, names: Sequence[str] | None = None) -> pa.Table:
        """The rows of numbers, or some of their columns, in that order; dead ones while they are there."""
        if not len(numbers):
            rows = self.schema.empty_table()
            return rows if names is None else rows.select(names)
        pieces = self._pieces_of(numbers)
        if (pieces[1:] >= pieces[:-1]).all():
            return self._take_in_turn(numbers, pieces, names)
        order = np.argsort(pieces, kind="stable")
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        taken = self._take_in_turn(numbers[order], pieces[order], names)
        return taken.take(pa.array(back))

    def order_of(self, numbers: Slots) -> Slots:
        """An order in which these rows are taken with the least work."""
        return np.argsort(self._pieces_of(numbers), kind="stable")

    def _pieces_of(self, numbers: Slots) -> Vector:
        """In which pieces rows stand, as integers so short that sorting them takes linear time."""
        pieces = np.searchsorted(np.array(self._starts), numbers, side="right") - 1
        return pieces.astype(np.uint16) if len(self._starts) < MOST_SHORT else pieces

    def _take_in_turn(
        self, numbers: Slots, pieces: Vector, names: Sequence[str] | None
    ) -> pa.Table:
        """Rows that stand one piece after the other."""
        bounds = [0, *(np.flatnonzero(pieces[1:] != pieces[:-1]) + 1).tolist(), len(numbers)]
        parts = []
        for low, high in pairwise(bounds):
            number = int(pieces[low])
            inside = pa.array(numbers[low:high] - self._starts[number])
            piece = self._pieces[number] if names is None else self._pieces[number].select(names)
            parts.append(piece.take(inside))
        return parts[0] if len(parts) == 1 else pa.concat_tables(parts).combine_chunks()

    def kill(self, numbers: Slots) -> None:
        """Rows die."""
        if not len(numbers):
            return
        assert self._alive.values[numbers].all(), "a row dies twice"
        self._alive.values[numbers] = False
        self._dead += len(numbers)
        for piece in np.unique(np.searchsorted(self._starts, numbers, side="right") - 1):
            self._live[int(piece)] = None

    def table(self) -> pa.Table:
        """The live rows, in the order they came."""
        bounds = [*self._starts, self.next]
        found = []
        for number, piece in enumerate(self._pieces):
            live = self._live[number]
            if live is None:
                alive = self._alive.values[bounds[number] : bounds[number + 1]]
                live = piece if alive.all() else piece.filter(pa.array(alive))
                self._live[number] = live
            found.append(live)
        return pa.concat_tables(found) if found else self.schema.empty_table()

    def compact(self) -> Slots:
        """Dead rows go; by old number, the new one, −1 for the dead."""
        alive = self._alive.values
        new = np.where(alive, np.cumsum(alive) - 1, -1)
        rows = self.table()
        self.__init__(self.schema)  # type: ignore[misc]
        for start in range(0, rows.num_rows, PIECE_ROWS):
            self.append(rows.slice(start, PIECE_ROWS))
        return new

    def state(self) -> dict[str, Any]:
        """What a snapshot needs: the live rows."""
        return {"columns": [column.combine_chunks() for column in self.table().columns]}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot; rows are numbered anew."""
        self.__init__(self.schema)  # type: ignore[misc]
        rows = pa.Table.from_arrays(state["columns"], schema=self.schema)
        for start in range(0, rows.num_rows, PIECE_ROWS):
            self.append(rows.slice(start, PIECE_ROWS))
