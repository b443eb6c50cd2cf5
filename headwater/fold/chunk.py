"""One chunk on its way into the fold: rows, their groups and their argument columns.

Owns: the numbering of the groups that occur in the chunk, found without sorting. Must never:
keep anything beyond the chunk, but for the scratch array that `Grouper` reuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from headwater.fold.columns import Column, Slots, Vector

DENSE_FACTOR = 2  # groups are addressed by slot while there are at most so many times the rows


@dataclass(frozen=True)
class Groups:
    """Rows → groups of the chunk: `ids` per row, `slots` and `row_counts` per group."""

    ids: Slots
    slots: Slots
    row_counts: Slots
    dense: bool  # ids are slots, and some groups may have no rows

    @property
    def size(self) -> int:
        """How many groups the ids run over."""
        return len(self.row_counts)


class Grouper:
    """Numbers the groups of chunk after chunk."""

    def __init__(self) -> None:
        self._claims: npt.NDArray[np.int32] = np.empty(0, np.int32)

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        return self._claims.nbytes

    def claims(self, slot_count: int) -> npt.NDArray[np.int32]:
        """The scratch array, one place per slot."""
        if slot_count > len(self._claims):
            size = max(slot_count, 2 * len(self._claims), 1024)
            self._claims = np.zeros(size, np.int32)
        return self._claims

    def group(self, slots: Slots, slot_count: int) -> Groups:
        """The groups of a chunk's rows."""
        if slot_count <= DENSE_FACTOR * len(slots) + 256:
            counts = np.bincount(slots, minlength=slot_count)
            return Groups(slots, np.arange(slot_count), counts, True)
        claims = self.claims(slot_count)
        distinct = self.distinct(slots, slot_count)
        claims[distinct] = np.arange(len(distinct), dtype=np.int32)
        ids = claims[slots].astype(np.int64)
        return Groups(ids, distinct, np.bincount(ids, minlength=len(distinct)), False)

    def distinct(self, slots: Slots, slot_count: int) -> Slots:
        """The distinct slots among rows: each row claims its slot, the last one holds it."""
        claims = self.claims(slot_count)
        rows = np.arange(len(slots), dtype=np.int32)
        claims[slots] = rows
        return slots[claims[slots] == rows]


@dataclass(frozen=True)
class Chunk:
    """What the partial columns are folded from."""

    groups: Groups
    columns: Sequence[Column]
    order: tuple[Vector, Vector] | None = None  # T and _seq of each row
    _there: dict[int, tuple[Slots, Vector | None]] = field(default_factory=dict)

    def ids(self, argument: int) -> Slots:
        """The groups of the rows where an argument is not NULL."""
        return self._rows(argument)[0]

    def values(self, argument: int) -> Vector:
        """The argument where it is not NULL."""
        rows, values = self._rows(argument)[1], self.columns[argument].values
        return values if rows is None else values[rows]

    def there(self, argument: int) -> Vector | None:
        """The rows where an argument is not NULL; None if all."""
        return self._rows(argument)[1]

    def complete(self, argument: int) -> bool:
        """Whether an argument has no NULLs."""
        return self.columns[argument].valid is None

    def _rows(self, argument: int) -> tuple[Slots, Vector | None]:
        if argument not in self._there:
            valid = self.columns[argument].valid
            if valid is None:
                self._there[argument] = self.groups.ids, None
            else:
                rows = np.flatnonzero(valid)
                self._there[argument] = self.groups.ids[rows], rows
        return self._there[argument]

    def ordered_rows(self) -> Slots:
        """Row numbers by (T, _seq); normally the rows come that way."""
        if self.order is None:
            raise ValueError("first and last need the order of the rows")
        times, sequence = self.order
        rising = (times[1:] > times[:-1]) | (
            (times[1:] == times[:-1]) & (sequence[1:] > sequence[:-1])
        )
        return np.arange(len(times)) if rising.all() else np.lexsort((sequence, times))
