"""Subtract-on-evict: for counts and exact sums only.

Owns: one running total and the panes that it is made of. A pane that leaves is taken out again:
no flip, no slide that costs more than another. Must never: hold floats, which would drift, or
extremes, which cannot be taken out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from headwater.fold.aggregation import Aggregation, Partial, copied, frozen, take
from headwater.fold.columns import Slots
from headwater.fold.families import Vectors
from headwater.fold.merges import SlidingMerge, renumbering


class SubtractOnEvict(SlidingMerge):
    """A running total of invertible aggregates."""

    name = "subtract-on-evict"

    def __init__(self, aggregation: Aggregation) -> None:
        super().__init__(aggregation)
        if not aggregation.invertible:
            raise ValueError("only counts and exact sums can be subtracted")
        self._total = aggregation.empty(0)
        self._panes: deque[tuple[int, Slots, Sequence[Vectors]]] = deque()

    @property
    def pane_count(self) -> int:
        return len(self._panes)

    def push(self, pane: int, partial: Partial, slot_count: int) -> None:
        self._grow(slot_count)
        self.aggregation.merge_at(self._total, partial.slots, partial.vectors)
        self._panes.append((pane, partial.slots, partial.vectors))

    def evict(self, up_to: int) -> None:
        while self._panes and self._panes[0][0] < up_to:
            _, slots, vectors = self._panes.popleft()
            self.aggregation.subtract_at(self._total, slots, vectors)

    def vectors(self, slot_count: int) -> Sequence[Vectors]:
        self._grow(slot_count)
        return [[vector[:slot_count].copy() for vector in family] for family in self._total]

    def _grow(self, slot_count: int) -> None:
        size = len(self._total[0][0])
        if slot_count > size:
            self._total = self.aggregation.grow(self._total, max(slot_count, 2 * size))

    def remap(self, live: Slots, slot_count: int) -> None:
        self._grow(slot_count)
        new = renumbering(live, slot_count)
        self._total = take(self._total, live)
        self._panes = deque((pane, new[slots], vectors) for pane, slots, vectors in self._panes)

    def state(self) -> dict[str, Any]:
        return {"total": copied(self._total), "panes": [list(pane) for pane in self._panes]}

    def restore(self, state: dict[str, Any]) -> None:
        self._total = state["total"]
        self._panes = deque((pane, slots, frozen(values)) for pane, slots, values in state["panes"])
