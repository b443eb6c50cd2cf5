"""A source at work: its thread, its state, what it tells the clock, and its figures.

Each kind has a runner; a runner runs once and is thrown away: RESUME makes a new one.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headwater.errors import ClosedError, Error
from headwater.extras import from_environment
from headwater.kernel.failure import translate
from headwater.kernel.kernel import Kernel
from headwater.sources.address import Address
from headwater.sources.options import SourceOptions
from headwater.storage.disk import may_pass
from headwater.storage.streaming import micro_batch
from headwater.storage.streaming.store import StreamStore
from headwater.storage.streaming.table import StreamingTable

POLL_S = 0.05
FIRST_PAUSE_S = 0.1  # between attempts; it doubles up to the longest
LONGEST_PAUSE_S = 30.0
SERVERS = ("kafka", "postgresql", "tcp")
RATE_BATCHES = 10
STOP_PATIENCE_S = 20.0


@dataclass(frozen=True)
class Surroundings:
    """What a runner needs of the database."""

    kernel: Kernel
    streams: StreamStore
    functions: Mapping[str, Any]
    changed: threading.Condition = field(default_factory=threading.Condition)  # some source's state

    def tell_changed(self) -> None:
        """Wakes whoever waits for sources."""
        with self.changed:
            self.changed.notify_all()


@dataclass(frozen=True)
class Feed:
    """What a source is: its key is never given twice, unlike its name."""

    name: str
    key: str
    table: StreamingTable
    address: Address
    options: SourceOptions
    checkpoint: Path


def with_environment(address: Address, options: SourceOptions) -> tuple[Address, SourceOptions]:
    """An address and options for use, with the values of environment variables that they name."""
    spark = {name: from_environment(value) for name, value in options.spark.items()}
    if address.kind in SERVERS:
        address = Address(address.kind, from_environment(address.rest))
    return address, replace(options, spark=spark)


class Runner(ABC):
    """One run of a source."""

    def __init__(self, feed: Feed, around: Surroundings) -> None:
        self.feed = feed
        self.around = around
        self.state = "running"
        self.error: Error | None = None
        self.started_at = datetime.now(UTC)
        self.stopping = threading.Event()
        self.on_end: Callable[[], None] = lambda: None
        self.busy = False  # a micro-batch is under way: the source is not silent
        self._last_row_at: float | None = None
        self._silent_since = time.monotonic()
        self._idle = False
        self._recent: deque[tuple[float, int]] = deque(maxlen=RATE_BATCHES + 1)
        self._thread = threading.Thread(
            target=self._main, name=f"headwater-source-{feed.name}", daemon=True
        )

    def start(self) -> None:
        """Starts the thread; the clock waits for the source from here on."""
        self.tell("add")
        self._recent.append((time.monotonic(), 0))
        self._thread.start()

    def stop(self) -> None:
        """Asks the run to end and waits until it has."""
        self.stopping.set()
        self.interrupt()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(STOP_PATIENCE_S)

    def _main(self) -> None:
        try:
            address, options = with_environment(self.feed.address, self.feed.options)
            self.feed = replace(self.feed, address=address, options=options)
            self.run()
            if not self.stopping.is_set():
                self.state = "finished"
        except Exception as error:
            if not self.stopping.is_set():
                self.error = translate(error, "")
                self.state = "failed"
        if not self.stopping.is_set():
            self._fall_silent()
            self.on_end()
        self.around.tell_changed()

    def patiently(self, act: Callable[[], None]) -> None:
        """Does it; after a full disk or a failed system call of ours again, after a pause that grows.

        The clock waits for the source meanwhile, or its rows would be late.
        """
        pause_s = FIRST_PAUSE_S
        while not self.stopping.is_set():
            before = self._last_row_at
            try:
                act()
                return
            except Exception as error:
                found = translate(error, "")
                if self.stopping.is_set() or not may_pass(found):
                    raise
            self.error, self.state = found, "retrying"
            self.around.tell_changed()
            pause_s = FIRST_PAUSE_S if self._last_row_at != before else pause_s
            self.stopping.wait(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            self.error, self.state = None, "running"
            self.watch_idle()

    @abstractmethod
    def run(self) -> None:
        """Feeds the table until `stopping` is set, the rows end, or an error is raised."""

    @abstractmethod
    def interrupt(self) -> None:
        """Ends whatever run() waits for."""

    # The clock

    def tell(self, event: micro_batch.Event) -> None:
        """Tells the table's clock; arrival time needs to hear nothing."""
        if not self.feed.table.definition.by_arrival:
            micro_batch.tell(self.feed.table, event, self.feed.key)

    def watch_idle(self) -> None:
        """Lets the clock go on without a source that has been silent for its idle_timeout."""
        limit = self.feed.options.idle_timeout_s
        if limit is None or self._idle or self.busy:
            return
        if time.monotonic() - self._silent_since >= limit:
            self._fall_silent()

    def _fall_silent(self) -> None:
        self._idle = True
        try:
            self.tell("idle")
        except ClosedError:  # the database closes; the mark is as the log says
            return
        self.around.tell_changed()

    # Figures

    def delivered(self, row_count: int) -> None:
        """Some rows were committed."""
        now = time.monotonic()
        self._recent.append((now, row_count))
        if row_count:
            self._last_row_at = self._silent_since = now
            self._idle = False
        self.around.tell_changed()

    @property
    def rate(self) -> float:
        """Rows per second over the last micro-batches; 0 once the source is silent for a while."""
        recent = list(self._recent)
        if len(recent) < 2:
            return 0.0
        span = recent[-1][0] - recent[0][0]
        since = time.monotonic() - recent[-1][0]
        if since > max(span, 1.0):
            return 0.0
        return sum(rows for _, rows in recent[1:]) / max(span, 1e-6)

    @property
    def lag_s(self) -> float | None:
        """Seconds since the last row of this run."""
        return None if self._last_row_at is None else time.monotonic() - self._last_row_at
