"""What every sliding merge can do.

Owns: the contract. Panes come in order, a pane may come in several parts, and `evict` drops the
oldest; `vectors` is the merge of what is left, one entry per slot. Must never: keep rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from headwater.fold.aggregation import Aggregation, Partial
from headwater.fold.columns import Slots
from headwater.fold.families import Vectors


class SlidingMerge(ABC):
    """Partials of panes, merged over a window that slides."""

    name: str

    def __init__(self, aggregation: Aggregation) -> None:
        self.aggregation = aggregation

    @abstractmethod
    def push(self, pane: int, partial: Partial, slot_count: int) -> None:
        """Add a pane's partial; no pane may be older than one that came before."""

    @abstractmethod
    def evict(self, up_to: int) -> None:
        """Drop all panes before `up_to`."""

    @abstractmethod
    def vectors(self, slot_count: int) -> Sequence[Vectors]:
        """The merge of all panes; the caller may write to it."""

    @property
    @abstractmethod
    def pane_count(self) -> int:
        """How many partials are held."""

    @abstractmethod
    def remap(self, live: Slots, slot_count: int) -> None:
        """Slots were renumbered: `live` are the old ones in the order of the new."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """What a snapshot needs; restoring it continues bit by bit."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a snapshot."""


def renumbering(live: Slots, slot_count: int) -> Slots:
    """Old slot → new slot."""
    new = np.full(slot_count, -1, np.int64)
    new[live] = np.arange(len(live))
    return new
