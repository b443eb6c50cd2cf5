"""Sliding windows: panes in, the groups of the window out, at a cost that no pane count changes.

Owns: the choice of the merge structure (EXPLAIN shows its name), the change to another one when a
window turns out larger than thought, and the clean-up of keys that have left. The old structure
only loses panes from then on and the new one only gains them, so a change costs nothing. Must
never: see a row twice, or keep one (DataCell §3, "discarding input").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.fold.aggregation import Aggregation, Partial, take
from headwater.fold.chunk import Grouper
from headwater.fold.columns import Column, Slots, Vector
from headwater.fold.dense import DenseTwoStack
from headwater.fold.distinct import DistinctValues
from headwater.fold.families import Vectors
from headwater.fold.lookup import Lookup
from headwater.fold.merges import SlidingMerge
from headwater.fold.subtract import SubtractOnEvict
from headwater.fold.two_level import TwoLevel
from headwater.fold.undo_log import UndoLogTwoStack

DENSE_BYTES = 64 << 20  # panes × slots × vectors that may stand in full
STEADY_PANES = 16
FLAT_PANES = 512  # beyond, the flip of a whole window is too long a pause
CHANGE_FACTOR = 2  # a window must be so much larger than thought before it changes its structure
WORTH_CLEANING = 4096  # fewer slots than this are never worth a clean-up


def worth_cleaning(lookup: Lookup, groups: int) -> bool:
    """Whether most keys of a lookup are of groups that are gone."""
    return len(lookup) > 2 * groups + WORTH_CLEANING


def choose(aggregation: Aggregation, panes: int, groups: int, steady: bool = False) -> SlidingMerge:
    """The structure for a window of so many panes and groups; `steady` prefers short pauses."""
    if aggregation.invertible:
        return SubtractOnEvict(aggregation)
    if panes > (STEADY_PANES if steady else FLAT_PANES):
        return TwoLevel(aggregation, panes)
    if panes * groups * aggregation.vector_count * 8 <= DENSE_BYTES:
        return DenseTwoStack(aggregation)
    return UndoLogTwoStack(aggregation)


class SlidingWindow:
    """One window of one query: keys, a merge structure, distinct values.

    Several windows may share a lookup and their partials; only a window with a lookup of its own
    cleans it up, for the others whoever owns it does.
    """

    def __init__(
        self,
        aggregation: Aggregation,
        panes: int,
        groups: int = 1024,
        lookup: Lookup | None = None,
        steady: bool = False,
    ) -> None:
        self.aggregation = aggregation
        self._owns_lookup = lookup is None
        self.lookup = Lookup(aggregation.key_types) if lookup is None else lookup
        self._panes, self._steady = panes, steady
        self._merges = [choose(aggregation, panes, groups, steady)]
        self._distinct = [DistinctValues(type_) for type_ in aggregation.distinct_types]
        self._grouper = Grouper()
        self._newest: int | None = None
        self._up_to: int | None = None

    @property
    def structure(self) -> str:
        """The name of the structure that takes new panes."""
        return self._merges[-1].name

    @property
    def pane_count(self) -> int:
        """How many partials are held."""
        return sum(merge.pane_count for merge in self._merges)

    def fold(
        self,
        keys: Sequence[Column | pa.Array],
        columns: Sequence[Column],
        order: tuple[Vector, Vector] | None = None,
        row_count: int | None = None,
    ) -> Partial:
        """The partial of a chunk that lies in one pane."""
        if row_count is None:
            row_count = len(keys[0]) if keys else len(columns[0])
        slots = self.lookup.slots(keys, row_count)
        return self.aggregation.fold(slots, len(self.lookup), columns, self._grouper, order)

    def push(self, pane: int, partial: Partial) -> None:
        """Add a pane's partial. Panes come in order; one may come in several parts."""
        if self._newest is not None and pane < self._newest:
            raise ValueError(f"pane {pane} comes after pane {self._newest}")
        if self._up_to is not None and pane < self._up_to:
            raise ValueError(f"pane {pane} was evicted before it came")
        self._newest = pane
        if not partial.size:
            return  # an empty pane costs nothing
        self._change_structure()
        self._merges[-1].push(pane, partial, len(self.lookup))
        for values, pairs in zip(self._distinct, partial.pairs, strict=True):
            values.push(pane, pairs)

    def _change_structure(self) -> None:
        current = self._merges[-1]
        panes = max(self._panes, current.pane_count // CHANGE_FACTOR)
        if isinstance(current, TwoLevel):
            if panes <= (CHANGE_FACTOR * current.block_size) ** 2:
                return
        elif not isinstance(current, DenseTwoStack | UndoLogTwoStack):
            return
        better = choose(self.aggregation, panes, len(self.lookup), self._steady)
        if better.name != current.name and not isinstance(better, DenseTwoStack):
            self._merges.append(better)

    def evict(self, up_to: int) -> None:
        """Drop all panes before `up_to`."""
        self._up_to = up_to if self._up_to is None else max(up_to, self._up_to)
        for merge in self._merges:
            merge.evict(up_to)
        while len(self._merges) > 1 and not self._merges[0].pane_count:
            self._merges.pop(0)
        for values in self._distinct:
            values.evict(up_to)

    def result(self) -> pa.Table:
        """The groups of the window; those without rows are absent."""
        vectors = self._vectors()
        present = self.aggregation.present(vectors)
        whole = len(present) == len(self.lookup)
        if self._owns_lookup and worth_cleaning(self.lookup, len(present)):
            before = len(self.lookup)
            self.lookup.keep(present)
            self.remap(present, before)
            vectors, present, whole = take(vectors, present), np.arange(len(present)), True
        distinct = [values.counts(present) for values in self._distinct]
        wanted = vectors if whole else take(vectors, present)
        columns = self.aggregation.finish(wanted, distinct)
        return self.aggregation.table(self.lookup.keys(None if whole else present), columns)

    def _vectors(self) -> Sequence[Vectors]:
        vectors = self._merges[0].vectors(len(self.lookup))
        for merge in self._merges[1:]:
            self.aggregation.merge(vectors, merge.vectors(len(self.lookup)))
        return vectors

    @property
    def present(self) -> Slots:
        """The slots of the groups that the window holds."""
        return self.aggregation.present(self._vectors())

    def remap(self, live: Slots, slot_count: int) -> None:
        """Slots were renumbered: `live` are the old ones in the order of the new."""
        for merge in self._merges:
            merge.remap(live, slot_count)
        for values in self._distinct:
            values.remap(live, slot_count)

    def state(self) -> dict[str, Any]:
        """What a snapshot needs; the lookup only if it is this window's own."""
        return {
            "lookup": self.lookup.state() if self._owns_lookup else None,
            "merges": [[m.name, m.state()] for m in self._merges],
            "distinct": [values.state() for values in self._distinct],
            "newest": self._newest,
            "up_to": self._up_to,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot of a window of the same query."""
        if state["lookup"] is not None:
            self.lookup.restore(state["lookup"])
        self._merges = []
        for name, inner in state["merges"]:
            merge = _named(name, self.aggregation, self._panes)
            merge.restore(inner)
            self._merges.append(merge)
        for values, inner in zip(self._distinct, state["distinct"], strict=True):
            values.restore(inner)
        self._newest, self._up_to = state["newest"], state["up_to"]


def _named(name: str, aggregation: Aggregation, panes: int) -> SlidingMerge:
    for kind in (SubtractOnEvict, DenseTwoStack, UndoLogTwoStack):
        if kind.name == name:
            return kind(aggregation)
    merge = TwoLevel(aggregation, panes)
    merge.name = name
    return merge
