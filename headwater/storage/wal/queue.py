"""Appends on their way to the log: the ticket a caller holds, and the bounded queue.

Owns: back-pressure, and the waiting of callers.
Must never: write, assign LSNs, or let more bytes wait than its bound (one append alone may be
larger than the bound, and is let in when nothing else waits).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from headwater.errors import ClosedError, Error, OverloadError
from headwater.settings import Live, current
from headwater.storage.wal.record import HEADER_BYTES, Record, payload_bytes

Hook = Callable[[int], None]


class Ticket:
    """One append: all of its records become durable together, or none does."""

    __slots__ = ("_done", "_error", "_help", "bytes", "lengths", "lsn", "on_assigned",
                 "on_durable", "on_refused", "records")  # fmt: skip

    def __init__(
        self,
        records: Sequence[Record],
        on_assigned: Hook | None,
        on_durable: Hook | None,
        on_refused: Hook | None = None,
    ) -> None:
        self.records = records
        self.on_assigned = on_assigned
        self.on_durable = on_durable
        self.on_refused = on_refused
        self.lengths = [payload_bytes(record.payload) for record in records]
        self.bytes = sum(self.lengths) + HEADER_BYTES * len(records)
        self.lsn = 0
        self._error: BaseException | None = None
        self._help: Callable[[], None] | None = None
        self._done = threading.Lock()
        self._done.acquire()

    def wait(self, timeout_s: float | None = None) -> int:
        """Wait until the append is durable; the LSN of its first record.

        Raises what refused it. After a timeout, or an interrupt, the outcome is open: the
        append goes on, and wait() may be called again.
        """
        if self._help is not None and self._done.locked():
            self._help()
        if not self._done.acquire(timeout=-1 if timeout_s is None else timeout_s):
            raise OverloadError(
                "the write-ahead log did not answer in time",
                detail=f"waited {timeout_s} s",
                hint="the rows may still be stored; repeat with the same batch id",
            )
        self._done.release()
        if self._error is not None:
            raise fresh(self._error)
        return self.lsn

    @property
    def done(self) -> bool:
        """Whether wait() answers at once."""
        return not self._done.locked()

    def release(self) -> None:
        """Tell whoever waits that the append is durable."""
        self._done.release()

    def refuse(self, error: BaseException) -> None:
        """Tell whoever waits that the append failed."""
        self._error = error
        self._done.release()


def fresh(error: BaseException) -> BaseException:
    """A copy to raise: one exception object must not be raised in several threads."""
    if not isinstance(error, Error):
        return error
    copy = type(error)(error.message, sqlstate=error.sqlstate, detail=error.detail, hint=error.hint)
    copy.__cause__ = error
    return copy


class AppendQueue:
    """Tickets in commit order, bounded by bytes; the bytes count until they are settled."""

    def __init__(self, bound_bytes: int, timeout_s: Live[float]) -> None:
        self._bound_bytes = bound_bytes
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._arrived = threading.Lock()  # held by the writer while it has nothing to do
        self._arrived.acquire()
        self._left = threading.Condition(self._lock)
        self._waiting: list[Ticket] = []
        self._bytes = 0
        self._taken_bytes = 0
        self._blocked = 0
        self._idle = False
        self._stop: BaseException | None = None

    def put(self, ticket: Ticket, help_out: Callable[[], None] | None) -> None:
        """Join the queue; at the bound, wait for room (or make room with `help_out`)."""
        with self._lock:
            if self._bytes and self._bytes + ticket.bytes > self._bound_bytes:
                self._wait_for_room(ticket, help_out)
            if self._stop is not None:
                raise fresh(self._stop)
            ticket._help = help_out
            self._bytes += ticket.bytes
            self._waiting.append(ticket)
            self._wake_writer()

    def _wake_writer(self) -> None:
        if self._idle:
            self._idle = False
            self._arrived.release()

    def _wait_for_room(self, ticket: Ticket, help_out: Callable[[], None] | None) -> None:
        timeout_s = current(self._timeout_s)
        until = time.monotonic() + timeout_s
        while self._stop is None and self._bytes and self._bytes + ticket.bytes > self._bound_bytes:
            if help_out is not None:
                self._lock.release()
                try:
                    help_out()
                finally:
                    self._lock.acquire()
                continue
            self._blocked += 1
            try:
                in_time = self._left.wait(until - time.monotonic())
            finally:
                self._blocked -= 1
            if not in_time and time.monotonic() >= until:
                raise OverloadError(
                    "the write-ahead log cannot keep up",
                    detail=f"{self._bytes} bytes wait, and the bound is {self._bound_bytes}; "
                    f"waited {timeout_s:g} s",
                    hint="insert more slowly, or in larger batches",
                )

    def take(self, limit_bytes: int, *, block: bool) -> list[Ticket]:
        """What waits, up to the limit but at least one; empty when stopped, or without `block`.

        It also says that the tickets taken before are answered: their bytes no longer count.
        """
        while True:
            with self._lock:
                self._settle()
                if self._waiting or not block or self._stop is not None:
                    return self._taken(limit_bytes)
                self._idle = True
            self._arrived.acquire()

    def _settle(self) -> None:
        self._bytes -= self._taken_bytes
        self._taken_bytes = 0
        if self._blocked:
            self._left.notify_all()

    def _taken(self, limit_bytes: int) -> list[Ticket]:
        taken, self._waiting = self._waiting, []
        if self._bytes <= limit_bytes:
            self._taken_bytes = self._bytes
            return taken
        total = 0
        for place, ticket in enumerate(taken):
            if total + ticket.bytes > limit_bytes and place:
                taken, self._waiting = taken[:place], taken[place:]
                break
            total += ticket.bytes
        self._taken_bytes = total
        return taken

    def stop(self, error: BaseException) -> None:
        """Let nobody in any more; what waits can still be taken."""
        with self._lock:
            if self._stop is None or isinstance(self._stop, ClosedError):
                self._stop = error
            self._wake_writer()
            self._left.notify_all()

    @property
    def stopped(self) -> BaseException | None:
        """Why nobody is let in, if so."""
        return self._stop

    @property
    def bytes(self) -> int:
        """Bytes that wait or are being written."""
        return self._bytes
