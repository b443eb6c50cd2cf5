"""When rows arrived, and when the clock closed times: what staleness is measured from.

Owns: for one table the times of its newest commits. Must never: keep more than a bounded number of
them; rows of older commits, and times closed by them, count from the oldest one that is known.
"""

from __future__ import annotations

import threading

import numpy as np

from headwater.fold.columns import Slots

MOST_COMMITS = 1 << 16


class _Noted:
    """A mark that goes up, and when: in vectors, so that a look at them takes no time that grows."""

    def __init__(self) -> None:
        self._noted: Slots = np.empty((2, 64), np.int64)  # the mark after each commit, its time
        self._first = self._end = 0  # which of the places are in use

    def note(self, mark: int, now: int) -> None:
        """The mark has come here by now."""
        marks, times = self.known()
        if len(marks) and mark <= marks[-1]:
            return
        if len(times):
            now = max(now, int(times[-1]))
        if self._end == self._noted.shape[1]:
            self._make_room()
        self._noted[:, self._end] = mark, now
        self._end += 1
        self._first = max(self._first, self._end - MOST_COMMITS)

    def known(self) -> Slots:
        """The marks, and their times."""
        return self._noted[:, self._first : self._end]

    def _make_room(self) -> None:
        """What is remembered goes to the front of a vector of twice its size."""
        known = self.known()
        self._first, self._end = 0, known.shape[1]
        self._noted = np.empty((2, 2 * self._end), np.int64)
        self._noted[:, : self._end] = known


class Arrivals:
    """The commits of one table."""

    def __init__(self, *, by_wall: bool = False) -> None:
        """`by_wall`: ticks are µs of the wall clock, which goes on between two commits."""
        self._lock = threading.Lock()
        self._by_wall = by_wall
        self._ends, self._closed = _Noted(), _Noted()

    def note(self, end: int, closed: int | None, now: int) -> None:
        """Rows before a sequence number have come by now, and no row up to a tick can come any more."""
        with self._lock:
            self._ends.note(end, now)
            if closed is not None:
                self._closed.note(closed, now)

    def times(self, sequences: Slots, now: int) -> Slots:
        """When rows arrived; those that no commit is known of, now."""
        with self._lock:
            ends, times = self._ends.known()
            places = np.searchsorted(ends, sequences, side="right")
            known = places < len(ends)
            found = np.full(len(sequences), now, np.int64)
            found[known] = np.minimum(times[places[known]], now)
        return found

    def closed_at(self, tick: int, now: int) -> int:
        """Since when no row up to a tick can come any more; now, if no commit is known that said so."""
        with self._lock:
            marks, times = self._closed.known()
            place = int(np.searchsorted(marks, tick))
            if place == len(marks):
                return now
            found = int(times[place])
            if self._by_wall and place:
                found = max(found - (int(marks[place]) - tick), int(times[place - 1]))
        return min(found, now)
