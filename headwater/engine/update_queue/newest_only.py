"""Rows that come after a newer one of their key are passed over.

Owns: the newest time of each key. A union of update streams delivers the youngest row that is
there, keeps one row per key and time, and drops older ones that come later (UpStream §3.2, US1).
Must never: be used where every row counts.
"""

from __future__ import annotations

import numpy as np

from headwater.engine.update_queue.vectors import NONE, grown
from headwater.fold.columns import Slots, Vector


class NewestOnly:
    """The largest time of each key so far."""

    def __init__(self) -> None:
        self._newest: Slots = np.empty(0, np.int64)

    def admit(self, slots: Slots, stamps: Slots, key_count: int) -> Vector:
        """Which rows are newer than all rows of their key before them."""
        self._newest = grown(self._newest, key_count, NONE)
        order = np.argsort(slots, kind="stable")
        own, times = slots[order], stamps[order]
        ranks = np.unique(times, return_inverse=True)[1]
        keys = np.cumsum(np.r_[False, own[1:] != own[:-1]])
        # a running maximum within each key: the key's number counts for more than any rank
        steps = keys * len(own) + ranks
        reached = np.maximum.accumulate(steps)
        newer = (steps > np.r_[-1, reached[:-1]]) & (times > self._newest[own])
        admitted = np.empty(len(own), np.bool_)
        admitted[order] = newer
        return admitted

    def note(self, slots: Slots, stamps: Slots) -> None:
        """Rows that were admitted have been taken in."""
        self._newest[slots] = stamps  # they rise with each key, so the last is the newest

    def raise_to(self, slots: Slots, stamps: Slots, key_count: int) -> None:
        """Results of these times are there already; a key may come several times."""
        self._newest = grown(self._newest, key_count, NONE)
        np.maximum.at(self._newest, slots, stamps)

    def state(self) -> Slots:
        """What a snapshot needs."""
        return self._newest.copy()

    def restore(self, state: Slots) -> None:
        """Go back to a snapshot."""
        self._newest = state.copy()
