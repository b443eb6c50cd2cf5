"""EAGER windows: commit to the newest window that has started (UpStream §6.2.2).

Owns: when a key has an update: when a row starts a window. Rows not yet committed to are then
dropped. Rows of the committed window are processed as they come; where one is missing the key is
idle until the next one comes, or the window closes.
"""

from __future__ import annotations

from collections.abc import Callable

from headwater.engine.update_queue.key_windows import ClosedAt, KeyWindows, WindowStep
from headwater.engine.update_queue.ledger import Ledger
from headwater.engine.update_queue.window_buffer import Blocks, WindowBuffer
from headwater.engine.update_queue.window_spec import WindowSpec
from headwater.fold.columns import Slots


class EagerKey(KeyWindows):
    """Overwritten on window starts."""

    def __init__(
        self, spec: WindowSpec, blocks: Blocks, ledger: Ledger, closed_at: ClosedAt
    ) -> None:
        super().__init__(spec, blocks, ledger, closed_at)
        self.front = WindowBuffer(blocks)  # rows of the committed window, to be handed out
        self._started: int | None = None

    def arrive(self, t: int, at: int, counted: bool = False) -> WindowStep:
        starts = self._starts_window(t)
        places = (*self._to_committed(t), *self._to_newest(t, counted))
        if not places and not counted:
            self.ledger.drop(1)  # between two windows
        _, closed = self._move_mark(self.spec.mark_of(t), at, (t, self.newest))
        self.newest = t
        promoted = self._finish() or len(self.front) > 0
        return WindowStep(places, at if starts else None, closed, promoted)

    def _starts_window(self, t: int) -> bool:
        start = self.spec.started(t)
        if start is None or not self.spec.holds(start, t):
            return False
        if self._started is not None and start <= self._started:
            return False
        if self.delivered is not None and start <= self.delivered:
            return False
        self._drop(len(self.buffer))
        self._started = self.candidate = start
        return True

    def _to_committed(self, t: int) -> tuple[int, ...]:
        if self.complete or not self.spec.holds(self.committed, t):
            return ()
        self.ledger.take(1)
        self.taken += 1
        return (self.front.append(t),)

    def _to_newest(self, t: int, counted: bool) -> tuple[int, ...]:
        if not self.spec.holds(self.candidate, t):
            return ()
        self.counted += counted or (not self.complete and self.spec.holds(self.committed, t))
        return (self.buffer.append(t),)

    def _finish(self) -> bool:
        """Whether the committed window has closed now."""
        if self.committed is None or self.complete or self.mark is None:
            return False
        self.complete = self.spec.last_tick(self.committed) <= self.mark
        return self.complete

    def advance(self, mark: int, at: int) -> WindowStep:
        _, closed = self._move_mark(mark, at, (self.newest,))
        return WindowStep(closed_at=closed, promoted=self._finish())

    def commit(self) -> None:
        self._begin(self.counted, len(self.buffer) - self.counted)
        self.front, self.buffer = self.buffer, self.front
        self.counted = 0
        self._finish()

    def hand_out(self, read: Callable[[Slots], None]) -> int:
        count = len(self.front)
        read(self.front.places(count))
        self.front.drop(count)
        return count

    @property
    def waiting_rows(self) -> int:
        return len(self.buffer) - self.counted

    @property
    def is_available(self) -> bool:
        return len(self.front) > 0 or self.complete
