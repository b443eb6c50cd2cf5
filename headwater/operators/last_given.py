"""The row that each group gave last, for columns that cannot be made again from a partial.

Owns: those rows, by slot. Rows that were replaced are dropped once they are the most, in number or in bytes.
Must never: change a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from headwater.fold.columns import Slots, Vector
from headwater.operators.flat import whole
from headwater.operators.row_store import RowStore
from headwater.operators.vectors import Growing

NONE = -1
LEAST_DEAD = 1 << 12  # so many rows that were replaced are left in any case …
LEAST_BYTES = 1 << 22  # … while all together take no more than this


class LastGiven:
    """Rows by slot, at most one each."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._rows = RowStore(schema)
        self._numbers = Growing(np.int64)
        self._bytes = self._bytes_then = 0  # given out since, and held after, the last clean-up

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        return self._rows.nbytes + self._numbers.nbytes

    def has(self, slots: Slots) -> Vector:
        """Which of some slots have a row."""
        self._grow(int(slots.max()) + 1 if len(slots) else 0)
        return self._numbers.values[slots] != NONE

    def take(self, slots: Slots) -> pa.Table:
        """The rows of slots that have one."""
        return self._rows.take(self._numbers.values[slots])

    def put(self, slots: Slots, there: Slots, rows: pa.Table) -> None:
        """Slots lose their rows; some of them, `there`, have new ones."""
        self._grow(int(slots.max()) + 1 if len(slots) else 0)
        old = self._numbers.values[slots]
        self._rows.kill(old[old != NONE])
        self._numbers.values[slots] = NONE
        self._numbers.values[there] = self._rows.append(rows)
        self._bytes += rows.nbytes
        self._make_room()

    def _grow(self, count: int) -> None:
        known = len(self._numbers)
        self._numbers.grow(count)
        self._numbers.values[known:] = NONE

    def _make_room(self) -> None:
        crowded = self._rows.dead_count > max(len(self._rows), LEAST_DEAD)
        heavy = self._bytes > max(self._bytes_then, LEAST_BYTES)
        if not crowded and not heavy:
            return
        new, numbers = self._rows.compact(), self._numbers.values
        there = numbers != NONE
        numbers[there] = new[numbers[there]]
        self._bytes, self._bytes_then = 0, self._rows.nbytes

    def keep(self, slots: Slots) -> None:
        """Forget all slots but these, which become 0, 1, 2, …"""
        self._grow(int(slots.max()) + 1 if len(slots) else 0)
        self._numbers.keep(slots)

    def state(self, slots: Slots) -> dict[str, Any]:
        """What a snapshot needs of some slots."""
        self._grow(int(slots.max()) + 1 if len(slots) else 0)
        there = self._numbers.values[slots] != NONE
        rows = self.take(slots[there])
        return {"there": there, "columns": [whole(column) for column in rows.columns]}

    def restore(self, slots: Slots, state: dict[str, Any]) -> None:
        """Slots have the rows of a snapshot, all others none."""
        self.__init__(self.schema)  # type: ignore[misc]
        rows = pa.Table.from_arrays(state["columns"], schema=self.schema)
        self.put(slots, slots[state["there"]], rows)
