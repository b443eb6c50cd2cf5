"""When rows arrived: what staleness is measured from.

Owns: for one table the times of its newest commits. Must never: keep more than a bounded number of
them; rows of older commits count from the oldest one that is known.
"""

from __future__ import annotations

import threading

import numpy as np

from headwater.fold.columns import Slots

MOST_COMMITS = 1 << 16


class Arrivals:
    """The commits of one table: in vectors, so that a look at them takes no time that grows."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._noted: Slots = np.empty((2, 64), np.int64)  # the sequence number after each, its time
        self._first = self._end = 0  # which of the places are in use

    def note(self, end: int, now: int) -> None:
        """Rows before a sequence number have come by now."""
        with self._lock:
            ends, times = self._known()
            if len(ends) and end <= ends[-1]:
                return
            if len(times):
                now = max(now, int(times[-1]))
            if self._end == self._noted.shape[1]:
                self._make_room()
            self._noted[:, self._end] = end, now
            self._end += 1
            self._first = max(self._first, self._end - MOST_COMMITS)

    def _known(self) -> Slots:
        return self._noted[:, self._first : self._end]

    def _make_room(self) -> None:
        """What is remembered goes to the front of a vector of twice its size."""
        known = self._known()
        self._first, self._end = 0, known.shape[1]
        self._noted = np.empty((2, 2 * self._end), np.int64)
        self._noted[:, : self._end] = known

    def times(self, sequences: Slots, now: int) -> Slots:
        """When rows arrived; those that no commit is known of, now."""
        with self._lock:
            ends, times = self._known()
            places = np.searchsorted(ends, sequences, side="right")
            known = places < len(ends)
            found = np.full(len(sequences), now, np.int64)
            found[known] = np.minimum(times[places[known]], now)
        return found
