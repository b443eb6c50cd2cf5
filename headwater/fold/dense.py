"""Dense two-stack: every pane a full set of vectors, one entry per slot.

Owns: the back, panes as they came with their running merge, and the front, panes that each hold
the merge of themselves and all newer ones of the front. When the front runs out it is made anew
from the back (a flip). A slide costs one merge into the back, one of front and back, and its
share of the flip. Must never: be used where panes × slots is large; `undo_log` is for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.fold.aggregation import Aggregation, Partial, copied, frozen, take
from headwater.fold.columns import Slots
from headwater.fold.families import Vectors
from headwater.fold.merges import SlidingMerge


class DenseTwoStack(SlidingMerge):
    """Vectors per pane; suffixes are computed in place."""

    name = "dense two-stack"

    def __init__(self, aggregation: Aggregation) -> None:
        super().__init__(aggregation)
        self._front: list[tuple[int, Sequence[Vectors]]] = []  # the oldest pane last
        self._back: list[tuple[int, Sequence[Vectors]]] = []  # the newest pane last
        self._merged = aggregation.empty(0)  # of the back

    @property
    def pane_count(self) -> int:
        return len(self._front) + len(self._back)

    def push(self, pane: int, partial: Partial, slot_count: int) -> None:
        vectors = self._dense(partial, slot_count)
        self._merged = self.aggregation.grow(self._merged, slot_count)
        if len(vectors[0][0]) == len(self._merged[0][0]):
            self.aggregation.merge(self._merged, vectors)
        else:
            self.aggregation.merge_at(self._merged, partial.slots, partial.vectors)
        if self._back and self._back[-1][0] == pane:
            held = copied(self.aggregation.grow(self._back[-1][1], slot_count))
            self.aggregation.merge(held, vectors)
            self._back[-1] = (pane, frozen(held))
        else:
            self._back.append((pane, frozen(vectors)))

    def _dense(self, partial: Partial, slot_count: int) -> Sequence[Vectors]:
        slots = partial.slots
        if partial.size == slot_count and (slots[1:] > slots[:-1]).all():
            return partial.vectors
        vectors = self.aggregation.empty(slot_count)
        for wide, values in zip(vectors, partial.vectors, strict=True):
            for vector, value in zip(wide, values, strict=True):
                vector[slots] = value
        return vectors

    def evict(self, up_to: int) -> None:
        while self._front and self._front[-1][0] < up_to:
            self._front.pop()
        if not self._front and self._back and self._back[0][0] < up_to:
            self._flip([entry for entry in self._back if entry[0] >= up_to])

    def _flip(self, panes: list[tuple[int, Sequence[Vectors]]]) -> None:
        size = len(self._merged[0][0])
        self._back, self._merged = [], self.aggregation.empty(size)
        while panes:
            pane, vectors = panes.pop()
            vectors = self.aggregation.grow(vectors, size)
            if self._front:
                # a partial that was pushed belongs to its maker: others may hold it
                vectors = copied(vectors)
                self.aggregation.merge(vectors, self._front[-1][1])
            self._front.append((pane, frozen(vectors)))

    def vectors(self, slot_count: int) -> Sequence[Vectors]:
        size = max(slot_count, len(self._merged[0][0]))
        self._merged = self.aggregation.grow(self._merged, size)
        if not self._front:
            whole = copied(self._merged)
        else:
            front = self.aggregation.grow(self._front[-1][1], size)
            whole = copied(front) if front is self._front[-1][1] else front
            self.aggregation.merge(whole, self._merged)
        return [[vector[:slot_count] for vector in family] for family in whole]

    def remap(self, live: Slots, slot_count: int) -> None:
        def renumbered(vectors: Sequence[Vectors]) -> Sequence[Vectors]:
            return take(self.aggregation.grow(vectors, slot_count), live)

        self._merged = renumbered(self._merged)
        self._front = [(pane, renumbered(vectors)) for pane, vectors in self._front]
        self._back = [(pane, renumbered(vectors)) for pane, vectors in self._back]

    def state(self) -> dict[str, Any]:
        return {
            "front": [[pane, vectors] for pane, vectors in self._front],
            "back": [[pane, vectors] for pane, vectors in self._back],
            "merged": copied(self._merged),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._front = [(pane, frozen(vectors)) for pane, vectors in state["front"]]
        self._back = [(pane, frozen(vectors)) for pane, vectors in state["back"]]
        self._merged = state["merged"]
