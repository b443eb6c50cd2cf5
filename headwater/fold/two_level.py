"""Two levels: blocks of about √panes, so that no slide pays for a flip of the whole window.

Owns: the head, the oldest block as a front that panes are taken off from; the front of the next
block, prepared by one pane for each pane that leaves the head; the middle, an undo-log two-stack
over the totals of full blocks; and the tail, the block being filled. The costliest slide
merges √panes block totals. Must never: merge more than a constant number of panes otherwise.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import isqrt
from typing import Any

import numpy as np

from headwater.fold.aggregation import Aggregation, Partial, copied, take
from headwater.fold.columns import Slots
from headwater.fold.families import Vectors
from headwater.fold.merges import SlidingMerge, renumbering
from headwater.fold.undo_log import Front, SparsePane, UndoLogTwoStack, sparse_panes

Block = list[SparsePane]


class TwoLevel(SlidingMerge):
    """A two-stack over blocks of panes."""

    def __init__(self, aggregation: Aggregation, panes: int) -> None:
        super().__init__(aggregation)
        self.block_size = max(2, isqrt(panes))
        self.name = f"two-level (blocks of {self.block_size})"
        self._size = 0
        self._head = Front(aggregation, 0)
        self._next = Front(aggregation, 0)
        self._blocks: deque[Block] = deque()
        self._first_block = 0
        self._middle = UndoLogTwoStack(aggregation)
        self._tail: Block = []
        self._tail_merged = aggregation.empty(0)

    @property
    def pane_count(self) -> int:
        blocks = sum(len(block) for block in self._blocks)
        return len(self._head.log) + blocks + len(self._tail)

    def push(self, pane: int, partial: Partial, slot_count: int) -> None:
        self._grow(slot_count)
        self._tail.append((pane, partial.slots, partial.vectors))
        self.aggregation.merge_at(self._tail_merged, partial.slots, partial.vectors)
        if len(self._tail) == self.block_size:
            there = np.flatnonzero(self._tail_merged[0][0])
            total = Partial(there, take(self._tail_merged, there))
            self._middle.push(self._first_block + len(self._blocks), total, self._size)
            self._blocks.append(self._tail)
            self._clear_tail()

    def _clear_tail(self) -> None:
        self._tail, self._tail_merged = [], self.aggregation.empty(self._size)

    def evict(self, up_to: int) -> None:
        self._prepare(self._head.drop(up_to))
        while not self._head.log:
            if self._blocks:
                self._promote()
            elif self._tail and self._tail[0][0] < up_to:
                self._head = Front(self.aggregation, self._size)
                for entry in reversed(self._tail):
                    self._head.add(*entry)
                self._clear_tail()
            else:
                return
            self._prepare(self._head.drop(up_to))

    def _prepare(self, steps: int) -> None:
        """Add so many panes of the next block to its front, from the newest on."""
        if self._blocks:
            block = self._blocks[0]
            done = len(self._next.log)
            for entry in block[len(block) - done - 1 :: -1][:steps] if done < len(block) else []:
                self._next.add(*entry)

    def _promote(self) -> None:
        """The next block becomes the head."""
        self._prepare(self.block_size)
        self._head, self._next = self._next, Front(self.aggregation, self._size)
        self._blocks.popleft()
        self._first_block += 1
        self._middle.evict(self._first_block)

    def vectors(self, slot_count: int) -> Sequence[Vectors]:
        self._grow(slot_count)
        whole = [[vector[:slot_count].copy() for vector in f] for f in self._head.merged]
        self.aggregation.merge(whole, self._middle.vectors(slot_count))
        tail = [[vector[:slot_count] for vector in family] for family in self._tail_merged]
        self.aggregation.merge(whole, tail)
        return whole

    def _grow(self, slot_count: int) -> None:
        if slot_count > self._size:
            self._size = max(slot_count, 2 * self._size)
            self._tail_merged = self.aggregation.grow(self._tail_merged, self._size)
        self._head.grow(self._size)
        self._next.grow(self._size)

    def remap(self, live: Slots, slot_count: int) -> None:
        self._grow(slot_count)
        new = renumbering(live, slot_count)
        self._head.remap(live, slot_count)
        self._next.remap(live, slot_count)
        self._middle.remap(live, slot_count)
        self._blocks = deque([(p, new[s], v) for p, s, v in block] for block in self._blocks)
        self._tail = [(pane, new[slots], values) for pane, slots, values in self._tail]
        self._tail_merged = take(self._tail_merged, live)
        self._size = len(live)

    def state(self) -> dict[str, Any]:
        return {
            "size": self._size,
            "head": self._head.state(),
            "next": self._next.state(),
            "blocks": [[list(entry) for entry in block] for block in self._blocks],
            "first_block": self._first_block,
            "middle": self._middle.state(),
            "tail": [list(entry) for entry in self._tail],
            "tail_merged": copied(self._tail_merged),
            "block_size": self.block_size,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self._size, self._first_block = state["size"], state["first_block"]
        self.block_size = state["block_size"]
        self._head.restore(state["head"])
        self._next.restore(state["next"])
        self._middle.restore(state["middle"])
        self._blocks = deque(sparse_panes(block) for block in state["blocks"])
        self._tail = sparse_panes(state["tail"])
        self._tail_merged = state["tail_merged"]
