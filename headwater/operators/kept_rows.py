"""The result of a circuit as it is now, to be read at any time.

Owns: its rows, and their order on read if one is asked for. A read hands out the pieces that are kept; only
those in which rows died since the last read are written anew. Rows that came in order are not sorted; new
ones alone are looked at. Must never: copy what did not change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.fold.columns import Column, Slots, Vector
from headwater.fold.order import ranks_of
from headwater.operators.arrangement import Arrangement
from headwater.operators.changes import Changes
from headwater.operators.spilled_keys import SpilledKeys

Order = Sequence[tuple[str, bool, bool]]  # column, descending, NULLs first


class KeptRows:
    """Rows of one schema."""

    def __init__(
        self, schema: pa.Schema, takes_back: bool, keys: Sequence[str] = (), order: Order = ()
    ) -> None:
        """`keys`: columns that tell most rows apart, if any are known: rows that go are found by them."""
        self.schema, self._order, self._count = schema, tuple(order), 0
        found_by = keys if takes_back else ()
        hashed = takes_back and not keys
        self._kept = Arrangement(schema, found_by, forgets_keys=True, hashed=hashed)
        self._forget_order()

    def _forget_order(self) -> None:
        self._checked = 0  # rows of lower numbers have been looked at
        self._sorted: Slots | None = None  # their numbers in order, unless they came in order
        self._read: pa.Table | None = None  # what the last read gave, if it had to be sorted

    def __len__(self) -> int:
        return self._count

    @property
    def spilled(self) -> Sequence[SpilledKeys]:
        """What of it may go to disk."""
        assert self._kept.spilled is not None
        return [self._kept.spilled]

    def spill(self) -> None:
        """All rows go to disk."""
        self._kept.spill()
        self._forget_order()

    def find(self, keys: pa.Table) -> pa.Table:
        """The rows of some keys, in order if there is one."""
        slots = self._kept.find(keys.columns, keys.num_rows)
        return self._sorted_rows(self._kept.rows.take(self._kept.of_slots(slots)))

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        read = 0 if self._read is None else self._read.nbytes
        return self._kept.nbytes + read + (0 if self._sorted is None else self._sorted.nbytes)

    def apply(self, changes: Changes) -> None:
        """Takes in changes of the result."""
        if not len(changes):
            return
        generation = self._kept.generation
        self._kept.apply(changes)
        self._count += int(changes.signs.sum(dtype=np.int64))
        self._read = None
        if self._kept.generation != generation:
            self._forget_order()

    def table(self) -> pa.Table:
        """The rows as they are now, in order if there is one, else in any."""
        if self._read is not None:
            return self._read
        if self._kept.spilled:
            return self._with_disk()
        if not self._order or (self._sorted is None and self._came_in_order()):
            return self._kept.rows.table()
        self._read = self._in_order()
        return self._read

    def _with_disk(self) -> pa.Table:
        rows = self._sorted_rows(self._kept.every_row())
        self._read = rows if self._order else None
        return rows

    def _sorted_rows(self, rows: pa.Table) -> pa.Table:
        if not self._order:
            return rows
        rows = rows.combine_chunks()
        return rows.take(pa.array(np.lexsort(tuple(reversed(self._ranks(rows))))))

    def _came_in_order(self) -> bool:
        """Whether the new rows go on where those before them end."""
        alive = self._kept.rows.alive
        new = self._checked + np.flatnonzero(alive[self._checked :])
        if not len(new):
            return True
        rows = self._kept.rows.take(np.concatenate([_last(alive[: self._checked]), new]))
        if _is_sorted(self._ranks(rows)):
            self._checked = len(alive)
            return True
        self._sorted = np.flatnonzero(alive[: self._checked])
        return False

    def _in_order(self) -> pa.Table:
        """The rows sorted: what was in order before is handed to the sort in that order."""
        alive = self._kept.rows.alive
        assert self._sorted is not None
        new = self._checked + np.flatnonzero(alive[self._checked :])
        numbers = np.concatenate([self._sorted[alive[self._sorted]], new])
        rows = self._kept.rows.table().combine_chunks()
        places = (np.cumsum(alive) - 1)[numbers]
        ranks = [rank[places] for rank in self._ranks(rows)]
        order = np.lexsort(tuple(reversed(ranks)))
        self._checked, self._sorted = len(alive), numbers[order]
        return rows.take(pa.array(places[order]))

    def _ranks(self, rows: pa.Table) -> list[Vector]:
        """Integers in the order of the rows, the most important first."""
        found: list[Vector] = []
        for name, descending, nulls_first in self._order:
            found += ranks_of(Column(rows.column(name)), descending, nulls_first)
        return found

    def state(self) -> dict[str, Any]:
        """What a snapshot needs."""
        return {**self._kept.state(), "count": self._count}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self._kept.restore(state)
        self._count = state["count"]
        self._forget_order()


def _last(alive: Vector) -> Slots:
    """The number of the last live row, if there is one."""
    place = int(np.argmax(alive[::-1])) if len(alive) else 0
    last = len(alive) - 1 - place
    return np.arange(last, last + 1) if len(alive) and alive[last] else np.empty(0, np.int64)


def _is_sorted(ranks: Sequence[Vector]) -> bool:
    """Whether no row comes after a later one."""
    equal: Vector = np.ones(max(len(ranks[0]) - 1, 0), np.bool_)
    for rank in ranks:
        before, after = rank[:-1], rank[1:]
        if (equal & (before > after)).any():
            return False
        equal &= before == after
    return True
