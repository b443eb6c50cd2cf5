"""Undo-log two-stack: sparse panes, one dense front, one dense back.

Owns: the panes of the back as they came, the merge of the back, the merge of the front, and for
each pane of the front what it overwrote there. A flip merges the back's panes into the front from
the newest to the oldest and logs the old values; dropping a pane writes them back. Memory is the
sum of the panes' groups plus two vectors per slot, not panes × slots. Must never: hold a dense pane.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from headwater.fold.aggregation import Aggregation, Partial, copied, frozen, take
from headwater.fold.columns import Slots
from headwater.fold.families import Vectors
from headwater.fold.merges import SlidingMerge, renumbering

SparsePane = tuple[int, Slots, Sequence[Vectors]]


def sparse_panes(entries: Sequence[Sequence[Any]]) -> list[SparsePane]:
    """Panes out of a snapshot."""
    return [(pane, slots, frozen(vectors)) for pane, slots, vectors in entries]


class Front:
    """Panes merged from the newest to the oldest, so that the oldest can be taken off again."""

    def __init__(self, aggregation: Aggregation, slot_count: int) -> None:
        self.aggregation = aggregation
        self.merged = aggregation.empty(slot_count)
        self.log: list[SparsePane] = []  # pane, its slots, what stood there; the oldest last

    def grow(self, slot_count: int) -> None:
        """Make room for so many slots."""
        self.merged = self.aggregation.grow(self.merged, slot_count)

    def add(self, pane: int, slots: Slots, values: Sequence[Vectors]) -> None:
        """Put a pane under those that are there: it is older than all of them."""
        old = take(self.merged, slots)
        new = copied(values)
        self.aggregation.merge(new, old)
        self._write(slots, new)
        self.log.append((pane, slots, frozen(old)))

    def drop(self, up_to: int) -> int:
        """Take off panes before `up_to`; how many there were."""
        before = len(self.log)
        while self.log and self.log[-1][0] < up_to:
            _, slots, old = self.log.pop()
            self._write(slots, old)
        return before - len(self.log)

    def _write(self, slots: Slots, values: Sequence[Vectors]) -> None:
        for mine, theirs in zip(self.merged, values, strict=True):
            for vector, value in zip(mine, theirs, strict=True):
                vector[slots] = value

    def remap(self, live: Slots, slot_count: int) -> None:
        """Slots were renumbered."""
        self.grow(slot_count)
        self.merged = take(self.merged, live)
        new = renumbering(live, slot_count)
        self.log = [(pane, new[slots], old) for pane, slots, old in self.log]

    def state(self) -> dict[str, Any]:
        """What a snapshot needs."""
        return {"merged": copied(self.merged), "log": [list(entry) for entry in self.log]}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self.merged = state["merged"]
        self.log = sparse_panes(state["log"])


class UndoLogTwoStack(SlidingMerge):
    """Two dense merges and a log."""

    name = "undo-log two-stack"

    def __init__(self, aggregation: Aggregation) -> None:
        super().__init__(aggregation)
        self._front = Front(aggregation, 0)
        self._back: deque[SparsePane] = deque()
        self._merged = aggregation.empty(0)  # of the back

    @property
    def pane_count(self) -> int:
        return len(self._front.log) + len(self._back)

    def push(self, pane: int, partial: Partial, slot_count: int) -> None:
        self._grow(slot_count)
        self.aggregation.merge_at(self._merged, partial.slots, partial.vectors)
        self._back.append((pane, partial.slots, partial.vectors))

    def evict(self, up_to: int) -> None:
        self._front.drop(up_to)
        if not self._front.log and self._back and self._back[0][0] < up_to:
            self._flip(entry for entry in reversed(self._back) if entry[0] >= up_to)

    def _flip(self, panes: Iterable[SparsePane]) -> None:
        size = len(self._merged[0][0])
        self._front = Front(self.aggregation, size)
        for pane, slots, values in panes:
            self._front.add(pane, slots, values)
        self._back, self._merged = deque(), self.aggregation.empty(size)

    def vectors(self, slot_count: int) -> Sequence[Vectors]:
        self._grow(slot_count)
        whole = [[vector[:slot_count].copy() for vector in f] for f in self._front.merged]
        back = [[vector[:slot_count] for vector in family] for family in self._merged]
        self.aggregation.merge(whole, back)
        return whole

    def _grow(self, slot_count: int) -> None:
        size = len(self._merged[0][0])
        if slot_count > size:
            self._merged = self.aggregation.grow(self._merged, max(slot_count, 2 * size))
            self._front.grow(len(self._merged[0][0]))

    def remap(self, live: Slots, slot_count: int) -> None:
        self._grow(slot_count)
        self._front.remap(live, slot_count)
        new = renumbering(live, slot_count)
        self._merged = take(self._merged, live)
        self._back = deque((pane, new[slots], values) for pane, slots, values in self._back)

    def state(self) -> dict[str, Any]:
        back = [list(entry) for entry in self._back]
        return {"front": self._front.state(), "back": back, "merged": copied(self._merged)}

    def restore(self, state: dict[str, Any]) -> None:
        self._front.restore(state["front"])
        self._back = deque(sparse_panes(state["back"]))
        self._merged = state["merged"]
