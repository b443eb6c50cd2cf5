"""The results of a stream join, binned by when they expire: n cells per group, not n².

Owns: one row of vectors per live expiry, one column per result group. A pair of panes goes into
the bin of the one that expires first; when its time comes the bin is dropped whole. Must never:
undo a merge. Follows DataCell §3, "multi-stream queries", with the diagonal kept instead of the matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.fold.columns import Slots, Vector
from headwater.fold.families import Family, Vectors, quiet

SMALLEST = 8


class Cells:
    """(expiry, group) → merged partials."""

    def __init__(self, families: Sequence[Family]) -> None:
        self.families = families
        self._bins: Vector = np.empty(0, np.int64)  # live expiries, rising
        self._rows: Vector = np.empty(0, np.int64)  # where each of them stands
        self._matrices = [[v.reshape(0, 0) for v in family.empty(0)] for family in families]

    @quiet
    def add(
        self, expiries: Slots, groups: Slots, values: Sequence[Vectors], group_count: int
    ) -> None:
        """Merge the partials of pairs into their bins."""
        self._grow(0, group_count)
        bins = np.searchsorted(self._bins, expiries)
        known = bins < len(self._bins)
        known[known] = self._bins[bins[known]] == expiries[known]
        if not known.all():
            fresh = np.unique(expiries[~known])
            self._grow(len(self._bins) + len(fresh), group_count)
            self._open(fresh)
            bins = np.searchsorted(self._bins, expiries)
        places = self._rows[bins] * self._shape[1] + groups
        for family, matrices, mine in zip(self.families, self._matrices, values, strict=True):
            family.merge_many([matrix.reshape(-1) for matrix in matrices], places, mine)

    @property
    def _shape(self) -> tuple[int, int]:
        rows, columns = self._matrices[0][0].shape
        return rows, columns

    def _grow(self, bins: int, groups: int) -> None:
        rows, columns = self._shape
        if bins <= rows and groups <= columns:
            return
        shape = (
            rows if bins <= rows else max(bins, 2 * rows, SMALLEST),
            columns if groups <= columns else max(groups, 2 * columns),
        )
        for number, (family, matrices) in enumerate(
            zip(self.families, self._matrices, strict=True)
        ):
            wide = [vector.reshape(shape) for vector in family.empty(shape[0] * shape[1])]
            for new, old in zip(wide, matrices, strict=True):
                new[:rows, :columns] = old
            self._matrices[number] = wide

    def _open(self, expiries: Slots) -> None:
        taken = np.zeros(self._shape[0], np.bool_)
        taken[self._rows] = True
        free = np.flatnonzero(~taken)[: len(expiries)]
        bins = np.concatenate([self._bins, expiries])
        order = np.argsort(bins)
        self._bins, self._rows = bins[order], np.concatenate([self._rows, free])[order]

    def expire(self, instant: int) -> None:
        """Drop the bins that expire at or before an instant."""
        gone = int(np.searchsorted(self._bins, instant, side="right"))
        if not gone:
            return
        for family, matrices in zip(self.families, self._matrices, strict=True):
            for matrix, identity in zip(matrices, family.identities, strict=True):
                matrix[self._rows[:gone]] = identity
        self._bins, self._rows = self._bins[gone:], self._rows[gone:]

    @quiet
    def merged(self, group_count: int) -> Sequence[Vectors]:
        """All live bins merged, the first to expire first."""
        self._grow(0, group_count)
        result = []
        for family, matrices in zip(self.families, self._matrices, strict=True):
            live = [matrix[self._rows, :group_count] for matrix in matrices]
            result.append(family.merge_rows(live))
        return result

    def remap(self, live: Slots) -> None:
        """Groups were renumbered: `live` are the old ones in the order of the new."""
        self._matrices = [
            [np.ascontiguousarray(matrix[:, live]) for matrix in family]
            for family in self._matrices
        ]

    def state(self) -> dict[str, Any]:
        """What a snapshot needs."""
        return {"bins": self._bins, "rows": self._rows, "matrices": self._matrices}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self._bins, self._rows = state["bins"], state["rows"]
        self._matrices = state["matrices"]
