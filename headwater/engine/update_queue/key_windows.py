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


@dataclass(frozen=True)
class WindowStep:
    """What one arrival meant."""

    places: tuple[int, ...] = ()  # where the row is to be written
    waits: bool = False  # the key has a newer window to commit to
    closed: bool = False  # a window has closed, and results lag behind it
    promoted: bool = False  # the committed window can go on


class KeyWindows(ABC):
    """The rows of one key that a window may still need."""

    def __init__(self, spec: WindowSpec, blocks: Blocks, ledger: Ledger) -> None:
        self.spec = spec
        self.ledger = ledger
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

    def _move_mark(self, mark: int, at: int, rows: tuple[int | None, ...]) -> int | None:
        """The newest window that closes as the mark moves on."""
        if self.mark is not None and mark <= self.mark:
            return None
        start = self.spec.closing(self.mark, mark, rows)
        self.mark = mark
        if start is not None and self.committed is not None and start > self.committed:
            self.invalidated_at = at if self.invalidated_at == NONE else self.invalidated_at
        return start

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
