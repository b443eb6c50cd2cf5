"""Slots → row numbers, as a few runs sorted by slot.

Owns: the runs. New rows are a run of their own; runs of like size are put together, so that n rows are in
about log n of them and each row is sorted log n times. Must never: look at a row, or know which are dead.
"""

from __future__ import annotations

import numpy as np

from headwater.fold.columns import Slots


class Index:
    """Which rows have a slot."""

    def __init__(self) -> None:
        self._runs: list[tuple[Slots, Slots]] = []  # (slots in order, numbers)

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        return sum(slots.nbytes + numbers.nbytes for slots, numbers in self._runs)

    def add(self, slots: Slots, numbers: Slots) -> None:
        """Rows with their slots; numbers rise from call to call."""
        if not len(slots):
            return
        self._runs.append(_sorted(slots, numbers))
        while len(self._runs) > 1 and len(self._runs[-2][0]) <= 2 * len(self._runs[-1][0]):
            (low, first), (high, second) = self._runs[-2:]
            merged = _sorted(np.concatenate([low, high]), np.concatenate([first, second]))
            self._runs[-2:] = [merged]

    def find(self, slots: Slots) -> tuple[Slots, Slots]:
        """Pairs of a place among the given slots and the number of a row that has that slot."""
        places: list[Slots] = []
        numbers: list[Slots] = []
        for run_slots, run_numbers in self._runs:
            left = np.searchsorted(run_slots, slots, side="left")
            counts = np.searchsorted(run_slots, slots, side="right") - left
            total = int(counts.sum())
            if not total:
                continue
            places.append(np.repeat(np.arange(len(slots)), counts))
            ends = np.cumsum(counts)
            inside = np.arange(total) - np.repeat(ends - counts, counts)
            numbers.append(run_numbers[np.repeat(left, counts) + inside])
        if not places:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        return np.concatenate(places), np.concatenate(numbers)

    def renumber(self, new: Slots) -> None:
        """Rows have other numbers now, −1 for those that are gone."""
        runs = []
        for slots, numbers in self._runs:
            changed = new[numbers]
            there = changed >= 0
            if there.any():
                runs.append((slots[there], changed[there]))
        self._runs = runs


def _sorted(slots: Slots, numbers: Slots) -> tuple[Slots, Slots]:
    order = np.argsort(slots, kind="stable")
    return slots[order], numbers[order]
