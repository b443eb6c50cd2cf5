"""When rows arrived: what staleness is measured from.

Owns: for one table the times of its newest commits. Must never: keep more than a bounded number of
them; rows of older commits count from the oldest one that is known.
"""

from __future__ import annotations

import threading
from collections import deque

import numpy as np

from headwater.fold.columns import Slots

MOST_COMMITS = 1 << 16


class Arrivals:
    """The commits of one table."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: deque[int] = deque(maxlen=MOST_COMMITS)  # the sequence number after each
        self._times: deque[int] = deque(maxlen=MOST_COMMITS)

    def note(self, end: int, now: int) -> None:
        """Rows before a sequence number have come by now."""
        with self._lock:
            if self._ends and end <= self._ends[-1]:
                return
            self._ends.append(end)
            self._times.append(max(now, self._times[-1]) if self._times else now)

    def times(self, sequences: Slots, now: int) -> Slots:
        """When rows arrived; those that no commit is known of, now."""
        with self._lock:
            ends, times = np.array(self._ends, np.int64), np.array([*self._times, now], np.int64)
        return np.minimum(times[np.searchsorted(ends, sequences, side="right")], now)
