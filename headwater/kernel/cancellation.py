"""Stopping statements: the flag that a caller may raise, and what of one database is under way.

Owns which statements run now and how long each may take. Must never: know what a statement does.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator

from headwater.errors import CancelledError


class Cancellation:
    """A flag that a caller may raise from another thread while a run is under way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._actions: list[Callable[[], None]] = []
        self._ends: list[Callable[[], None]] = []
        self._finishes = False
        self.requested = False
        self.reason = "the statement was cancelled"

    def cancel(self, reason: str | None = None) -> None:
        """Asks the run to stop."""
        with self._lock:
            self.requested = True
            self.reason = reason or self.reason
            actions = list(self._actions)
        for action in actions:
            action()

    def finish(self) -> None:
        """Asks a run without an end, a reader of results, to end in order; others go on."""
        with self._lock:
            self._finishes = True
            ends = list(self._ends)
        for end in ends:
            end()

    @contextlib.contextmanager
    def on_finish(self, end: Callable[[], None]) -> Iterator[None]:
        """While inside, `end` is called when the run is asked to end in order."""
        with self._lock:
            self._ends.append(end)
            finishes = self._finishes
        try:
            if finishes:
                end()
            yield
        finally:
            with self._lock:
                self._ends.remove(end)

    def check(self) -> None:
        """CancelledError if the run was asked to stop."""
        if self.requested:
            raise CancelledError(self.reason)

    @contextlib.contextmanager
    def on_cancel(self, action: Callable[[], None]) -> Iterator[None]:
        """While inside, `action` is called when the run is asked to stop."""
        with self._lock:
            self._actions.append(action)
        try:
            self.check()
            yield
        finally:
            with self._lock:
                self._actions.remove(action)


class UnderWay:
    """The statements under way. One thread cancels those that take too long, while there is a limit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended = threading.Condition(self._lock)  # told whenever a statement has ended
        self._sooner = threading.Condition(self._lock)  # told if the watcher must wake earlier
        self._limits: dict[Cancellation, tuple[float, str] | None] = {}  # when, and what to say
        self._watcher: threading.Thread | None = None
        self._wakes_at = math.inf
        self._closed = False

    def __len__(self) -> int:
        return len(self._limits)

    def begin(self, cancellation: Cancellation, limit_s: float = 0.0, reason: str = "") -> None:
        """A statement begins; after `limit_s` seconds, unless they are 0, it is cancelled."""
        with self._lock:
            if not limit_s or self._closed:  # who comes now is told that the database is closed
                self._limits[cancellation] = None
                return
            limit = time.monotonic() + limit_s, reason
            self._limits[cancellation] = limit
            if self._watcher is None:
                name = "headwater-statement-limits"
                self._watcher = threading.Thread(target=self._watch, name=name, daemon=True)
                self._watcher.start()
            elif limit[0] < self._wakes_at:
                self._sooner.notify()

    def end(self, cancellation: Cancellation) -> None:
        """A statement has ended."""
        with self._lock:
            self._limits.pop(cancellation, None)
            self._ended.notify_all()

    def cancel(self) -> None:
        """Cancels all of them."""
        with self._lock:
            running = list(self._limits)
        for cancellation in running:
            cancellation.cancel()

    def close(self, patience_s: float) -> None:
        """Cancels all of them, and waits so long until they have ended."""
        self.cancel()
        with self._lock:
            self._closed = True
            self._ended.wait_for(lambda: not self._limits, patience_s)
            self._sooner.notify()
            watcher = self._watcher
        if watcher is not None and watcher is not threading.current_thread():
            watcher.join(patience_s)

    def _watch(self) -> None:
        while True:
            with self._lock:
                limits = {c: limit for c, limit in self._limits.items() if limit is not None}
                now = time.monotonic()
                late = {c: reason for c, (at, reason) in limits.items() if at <= now}
                self._limits.update(dict.fromkeys(late))
                if not limits:
                    self._watcher = None
                    return
                if not late:
                    self._wakes_at = min(at for at, _ in limits.values())
                    self._sooner.wait(self._wakes_at - now)
            for cancellation, reason in late.items():
                cancellation.cancel(reason)
