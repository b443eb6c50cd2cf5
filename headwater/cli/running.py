"""Runs statements in a worker thread while the main thread waits for Ctrl-C.

The first Ctrl-C cancels what is running, a second one within two seconds leaves the shell if
nothing has reacted. Signals are counted, never raised, while a statement runs: an exception in
the middle of drawing or cleaning up would leave things half done.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from headwater.cli.interface import DatabaseLike
from headwater.cli.progress import TICK_S, ShellProgress

LEAVE_WITHIN_S = 2.0
CANCEL_AGAIN_S = 0.5
"""A cancel that came before the statement had begun finds nothing to do, so it is repeated."""
CANCEL_WAIT_S = 1.0


class Leave(Exception):
    """The user pressed Ctrl-C twice: leave now, without waiting for the statement."""


class Interrupted(Exception):
    """The user cancelled the statement, whatever it raised because of that."""

    def __init__(self, cause: BaseException | None) -> None:
        super().__init__("cancelled")
        self.cause = cause


@dataclass
class Job:
    """One call under way in a worker thread."""

    call: Callable[[], Any]
    done: threading.Event = field(default_factory=threading.Event)
    value: Any = None
    error: BaseException | None = None

    def run(self) -> None:
        """Makes the call and keeps what came of it."""
        try:
            self.value = self.call()
        except BaseException as error:
            self.error = error
        finally:
            self.done.set()


class StatementRunner:
    """Runs one call at a time against a database."""

    def __init__(
        self,
        database: DatabaseLike,
        progress: ShellProgress,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._progress = progress
        self._clock = clock
        self._presses: list[float] = []
        self._canceller: threading.Thread | None = None
        self._cancelled_at = 0.0
        self.press_count = 0  # of all calls, those included that ended well all the same

    def run(self, call: Callable[[], Any]) -> Any:
        """The call's value; raises what it raised, Interrupted after Ctrl-C, Leave after two."""
        job = Job(call)
        self._presses.clear()
        with interrupts(self.press):
            threading.Thread(target=job.run, name="headwater-statement", daemon=True).start()
            try:
                self._wait(job)
            finally:
                self._progress.clear()
                if self._canceller is not None:
                    self._canceller.join(CANCEL_WAIT_S)
        if job.error is not None:
            raise Interrupted(job.error) if self._presses else job.error
        return job.value

    def press(self) -> None:
        """Ctrl-C was pressed."""
        self.press_count += 1
        self._presses.append(self._clock())

    def _wait(self, job: Job) -> None:
        started = self._clock()
        while not job.done.wait(TICK_S):
            if self._presses:
                self._cancel()
            self._progress.tick(
                self._clock() - started, self._database.spark_ready, bool(self._presses)
            )

    def _cancel(self) -> None:
        if len(self._presses) > 1 and self._presses[-1] - self._presses[-2] <= LEAVE_WITHIN_S:
            raise Leave
        busy = self._canceller is not None and self._canceller.is_alive()
        if busy or self._clock() - self._cancelled_at < CANCEL_AGAIN_S:
            return
        self._cancelled_at = self._clock()
        self._canceller = threading.Thread(
            target=self._database.cancel, name="headwater-cancel", daemon=True
        )
        self._canceller.start()


@contextmanager
def interrupts(pressed: Callable[[], None]) -> Iterator[None]:
    """Hands SIGINT to a function; does nothing outside of the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(_number: int, _frame: FrameType | None) -> None:
        pressed()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
