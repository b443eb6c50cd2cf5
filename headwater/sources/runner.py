"""A source at work: what it tells the clock, and its figures. Each kind has a runner."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headwater.connectors.address import Address, all_from_environment
from headwater.connectors.runner import Runner, Surroundings
from headwater.errors import ClosedError, Error
from headwater.kernel.failure import translate
from headwater.kernel.kernel import Kernel
from headwater.sources.options import SourceOptions
from headwater.storage.disk import may_pass
from headwater.storage.streaming import micro_batch
from headwater.storage.streaming.store import StreamStore
from headwater.storage.streaming.table import StreamingTable

POLL_S = 0.05
RATE_BATCHES = 10
STOP_PATIENCE_S = 20.0


@dataclass(frozen=True)
class SourceSurroundings(Surroundings):
    """What the runs of sources need of the database."""

    kernel: Kernel
    streams: StreamStore
    functions: Mapping[str, Any]


@dataclass(frozen=True)
class SourceFeed:
    """What a source is: its key is never given twice, unlike its name."""

    name: str
    key: str
    table: StreamingTable
    address: Address
    options: SourceOptions
    checkpoint: Path


class SourceRunner(Runner):
    """One run of a source."""

    what = "source"
    around: SourceSurroundings

    def __init__(self, feed: SourceFeed, around: SourceSurroundings) -> None:
        super().__init__(feed.name, around)
        self.feed = feed
        self.started_at = datetime.now(UTC)
        self.on_end: Callable[[], None] = lambda: None
        self.busy = False  # a micro-batch is under way: the source is not silent
        self._silent_since = time.monotonic()
        self._idle = False
        self._recent: deque[tuple[float, int]] = deque(maxlen=RATE_BATCHES + 1)

    def start(self) -> None:
        """Starts the thread; the clock waits for the source from here on."""
        self.tell("add")
        self._recent.append((time.monotonic(), 0))
        super().start()

    def stop(self) -> None:
        """Asks the run to end and waits until it has."""
        self.ask_to_stop()
        self.interrupt()
        self._join(STOP_PATIENCE_S)

    def prepare(self) -> None:
        """The address and options for use."""
        feed = self.feed
        options = replace(feed.options, spark=all_from_environment(feed.options.spark))
        self.feed = replace(feed, address=feed.address.for_use(), options=options)

    def judged(self, error: Exception) -> tuple[Error, bool]:
        """A full disk or a failed system call of ours may pass.

        The clock waits for the source meanwhile, or its rows would be late.
        """
        found = translate(error, "")
        return found, may_pass(found)

    def begin_again(self) -> None:
        """It runs, until it fails again."""
        self.is_well()
        self.watch_idle()

    def ended(self) -> None:
        """The clock goes on without it."""
        self._fall_silent()
        self.on_end()

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
            self.moved_at = self._silent_since = now
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
        return None if self.moved_at is None else time.monotonic() - self.moved_at
