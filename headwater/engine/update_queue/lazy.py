"""LAZY windows: commit to the newest window that has fully arrived (UpStream §6.2.1).

Owns: when a key has an update: when a row, or the clock, closes a window. Older windows are then
dropped. A committed window is whole, so the key never runs out of rows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

from headwater.engine.update_queue.key_windows import KeyWindows, WindowStep
from headwater.fold.columns import Slots


class LazyKey(KeyWindows):
    """Overwritten on window ends."""

    def arrive(self, t: int, at: int, counted: bool = False) -> WindowStep:
        spec = self.spec
        places: tuple[int, ...] = ()
        if spec.holds(spec.started(t), t):
            places = (self.buffer.append(t),)
            self.counted += counted
        elif not counted:
            self.ledger.drop(1)
        closed = self._move_mark(spec.mark_of(t), at, (t, self.newest))
        self.newest = t
        return self._closed(*closed, places)

    def advance(self, mark: int, at: int) -> WindowStep:
        return self._closed(*self._move_mark(mark, at, (self.newest,)))

    def _closed(
        self, start: int | None, since: int | None, places: tuple[int, ...] = ()
    ) -> WindowStep:
        if start is not None:
            self.candidate = start
        self._trim()
        return WindowStep(places, waits_since=since, closed_at=since)

    def _trim(self) -> None:
        """Drop rows that neither the candidate nor an open window needs."""
        keep = self.candidate
        if keep is None and self.mark is not None:
            keep = self.spec.open_from(self.mark)
        times = self.buffer.times
        if keep is not None and times and times[0] < keep:
            self._drop(bisect_left(times, keep))

    def commit(self) -> None:
        assert self.candidate is not None
        count = bisect_left(self.buffer.times, self.candidate + self.spec.size)
        counted = min(count, self.counted)
        self._begin(counted, count - counted)
        self.complete = True
        self.counted = count

    def hand_out(self, read: Callable[[Slots], None]) -> int:
        count = self.counted
        read(self.buffer.places(count))
        self._trim()
        return count

    @property
    def waiting_rows(self) -> int:
        return len(self.buffer) - self.counted

    @property
    def is_available(self) -> bool:
        return False
