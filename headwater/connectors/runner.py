"""A source or sink at work: its thread, its state, and what happens after an error.

Owns how a run begins, is tried again and ends. A run is thrown away after its end: RESUME makes a new one.
Must never: end by itself after an error that may pass; it goes on after a pause that doubles up to a bound.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from headwater.errors import Error

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 30.0
RUNNING, RETRYING, PAUSED, FAILED, FINISHED = "running", "retrying", "paused", "failed", "finished"
DROPPING = "dropping"


@dataclass(frozen=True)
class Surroundings:
    """What runs need of the database; here, who waits for them."""

    changed: threading.Condition = field(default_factory=threading.Condition, kw_only=True)

    def tell_changed(self) -> None:
        """Wakes whoever waits for a state or a figure."""
        with self.changed:
            self.changed.notify_all()


class Pauses:
    """Between attempts: each twice as long as the one before."""

    def __init__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """What was tried has worked meanwhile."""
        self._next_s = FIRST_PAUSE_S

    def next_s(self) -> float:
        """The pause before the next attempt."""
        found = self._next_s
        self._next_s = min(2 * found, LONGEST_PAUSE_S)
        return found


class Runner(ABC):
    """One run."""

    what: ClassVar[str]  # source, sink

    def __init__(self, name: str, around: Surroundings) -> None:
        self.around = around
        self.state = RUNNING
        self.error: Error | None = None
        self.attempts = 0  # failed ones since it was well
        self.moved_at: float | None = None  # when rows last came or went
        self.stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._main, name=f"headwater-{self.what}-{name}", daemon=True
        )

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Ends the run as soon as it looks; does not wait."""
        self.stopping.set()

    @abstractmethod
    def stop(self) -> None:
        """Ends the run and waits until it has, with patience."""

    @abstractmethod
    def run(self) -> None:
        """Works until `stopping` is set, there is no more to do, or an error is raised."""

    @abstractmethod
    def judged(self, error: Exception) -> tuple[Error, bool]:
        """An error as users are told it, and whether another attempt can help."""

    def prepare(self) -> None:  # noqa: B027  # nothing, for most
        """Called first, in the run's thread."""

    def begin_again(self) -> None:  # noqa: B027  # nothing, for most
        """Called before each attempt after the first."""

    def ended(self) -> None:  # noqa: B027  # nothing, for most
        """Called when the run has ended by itself."""

    def _main(self) -> None:
        try:
            self.prepare()
            self.run()
            if not self.stopping.is_set():
                self.state = FINISHED
        except Exception as error:
            if not self.stopping.is_set():
                self._failed(self.judged(error)[0], FAILED)
        if not self.stopping.is_set():
            self.ended()
        self.around.tell_changed()

    def patiently(self, act: Callable[[], None]) -> None:
        """Does it; after an error that may pass again, after a pause that grows."""
        pauses = Pauses()
        while not self.stopping.is_set():
            before = self.moved_at
            try:
                act()
                return
            except Exception as error:
                told, may_pass = self.judged(error)
                if self.stopping.is_set() or not may_pass:
                    raise
                self._failed(told, RETRYING)
            self.around.tell_changed()
            if self.moved_at != before:
                pauses.begin_anew()
            self.stopping.wait(pauses.next_s())
            self.begin_again()

    def _failed(self, error: Error, state: str) -> None:
        self.attempts += 1
        self.error, self.state = error, state

    def is_well(self) -> None:
        """Whatever failed is over."""
        self.state, self.error, self.attempts = RUNNING, None, 0

    def _join(self, patience_s: float) -> bool:
        """Whether the thread has ended in time."""
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(patience_s)
        return not self._thread.is_alive()
