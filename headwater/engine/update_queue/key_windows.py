"""What LAZY and EAGER have in common: the windows of one key.

Owns: the interface, and the counting of a key's rows. A row may lie in several windows; it is
counted once: superseded if it is dropped before a window that holds it was committed, in process
from the first commit, processed with its delivery. Must never: order keys.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from headwater.engine.update_queue.ledger import Ledger
from headwater.engine.update_queue.vectors import NONE
from headwater.engine.update_queue.window_buffer import Blocks, WindowBuffer
from headwater.engine.update_queue.window_spec import WindowSpec
from headwater.fold.columns import Slots

ClosedAt = Callable[[int, int], int]  # when a tick was closed, as is known at a time


@dataclass(frozen=True)
class WindowStep:
    """What one arrival meant."""

    places: tuple[int, ...] = ()  # where the row is to be written
    waits_since: int | None = None  # the key has a newer window to commit to, since then
    closed_at: int | None = None  # the first window closed that results lag behind now
    promoted: bool = False  # the committed window can go on


class KeyWindows(ABC):
    """The rows of one key that a window may still need."""

    def __init__(
        self, spec: WindowSpec, blocks: Blocks, ledger: Ledger, closed_at: ClosedAt
    ) -> None:
        self.spec = spec
        self.ledger = ledger
        self._closed_at = closed_at
        self.buffer = WindowBuffer(blocks)  # rows of windows that are not committed
        self.counted = 0  # so many rows at its front belong to a committed window
        self.newest: int | None = None  # time of the newest row
        self.mark: int | None = None  # no row up to it can come any more
        self.candidate: int | None = None  # the window to commit to next
        self.committed: int | None = None  # the window that is being processed
        self.complete = False  # whether all its rows have come
        self.taken = 0  # how many rows were first counted with it
        self.invalidated_at = NONE  # when the first window after it closed
        self.delivered: int | None = None  # the last window that was
        self.process_seqs: list[int] = []  # rows of the committed window that were handed out
        self.process_counted = 0  # … so many of them were processed with an older window

    @abstractmethod
    def arrive(self, t: int, at: int, counted: bool = False) -> WindowStep:
        """A row has come. `counted`: it was processed with an older window already."""

    @abstractmethod
    def advance(self, mark: int, at: int) -> WindowStep:
        """The clock says that no row up to `mark` can come any more."""

    @abstractmethod
    def commit(self) -> None:
        """Begin to process the newest window."""

    @abstractmethod
    def hand_out(self, read: Callable[[Slots], None]) -> int:
        """Read the committed window's rows that are there and free them; gives their number."""

    @property
    @abstractmethod
    def waiting_rows(self) -> int:
        """Rows that wait and belong to no committed window."""

    @property
    @abstractmethod
    def is_available(self) -> bool:
        """Whether the committed window can go on: rows are there, or it is to be finished."""

    def deliver(self) -> int:
        """The committed window's result is delivered; gives since when a newer one is pending."""
        self.ledger.deliver(self.taken)
        self.delivered, self.committed = self.committed, None
        self.complete, self.taken = False, 0
        self.process_seqs, self.process_counted = [], 0
        pending, self.invalidated_at = self.invalidated_at, NONE
        return pending

    def _move_mark(
        self, mark: int, at: int, rows: tuple[int | None, ...]
    ) -> tuple[int | None, int | None]:
        """The newest window that closes as the mark moves on, and when the first one of them did."""
        before = self.mark
        if before is not None and mark <= before:
            return None, None
        start = self.spec.closing(before, mark, rows)
        self.mark = mark
        if start is None:
            return None, None
        committed = self.committed
        if committed is not None and start > committed and self.invalidated_at == NONE:
            first = self.spec.first_closing(before, committed, rows)
            self.invalidated_at = self._closed_at(self.spec.last_tick(first), at)
        first = self.spec.first_closing(before, None, rows)
        return start, self._closed_at(self.spec.last_tick(first), at)

    def _begin(self, counted: int, new: int) -> None:
        """The candidate is committed to; `counted` of its rows were counted before, `new` not."""
        self.committed, self.candidate = self.candidate, None
        self.process_counted, self.taken = counted, new
        self.ledger.take(new)

    def _drop(self, count: int) -> None:
        """Forget rows at the front of the buffer."""
        counted = min(count, self.counted)
        self.ledger.drop(count - counted)
        self.counted -= counted
        self.buffer.drop(count)
