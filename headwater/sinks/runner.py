"""A sink at work: its thread, which reads results by token and writes them, and its figures.

Owns: how much is read ahead (one batch), and what happens after an error: the target and the place are
taken up again from what the target holds, after a pause that doubles up to a bound. Must never: slow the
query down, pass over a result, or go on where results that it has not written were dropped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa

from headwater.engine.subscription import Out, Subscription
from headwater.engine.token import decode
from headwater.errors import ClosedError, DataError, Error, OverloadError
from headwater.sinks.options import SinkOptions, written
from headwater.sinks.target import Batch, Progress, Target, write_error

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 30.0
STOP_PATIENCE_S = 5.0
RUNNING, FAILED = "running", "failed"


@dataclass(frozen=True)
class Surroundings:
    """What a runner needs of the database: readers of queries, and who waits for sinks."""

    subscribe: Callable[[str, SinkOptions, str], Subscription]  # query, options, after
    last_token: Callable[[str], str | None]
    changed: threading.Condition = field(default_factory=threading.Condition)

    def tell_changed(self) -> None:
        """Wakes whoever waits for sinks."""
        with self.changed:
            self.changed.notify_all()


@dataclass(frozen=True)
class Flow:
    """What a sink is: a query's results, from a place on, to a target."""

    name: str
    query: str
    after: str
    options: SinkOptions
    target: Callable[[], Target]


class SinkRunner:
    """One run of a sink, from its start to its end; errors do not end it."""

    def __init__(self, flow: Flow, around: Surroundings) -> None:
        self.flow, self.around = flow, around
        self.state = RUNNING
        self.error: Error | None = None
        self.attempts = 0  # failed ones since the last batch
        self.row_count = 0
        self.last_time: str | None = None
        self.written_at: str | None = None
        self._placing = False  # the target's token is being looked up among the results
        self._stopping = threading.Event()
        self._reader: Subscription | None = None
        self._target: Target | None = None
        self._thread = threading.Thread(
            target=self._main, name=f"headwater-sink-{flow.name}", daemon=True
        )

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Ends the run after the batch under way; does not wait."""
        self._stopping.set()
        reader = self._reader
        if reader is not None:
            reader.close()

    def stop(self) -> None:
        """Ends the run after the batch under way, or without it if that takes too long."""
        self.ask_to_stop()
        self._thread.join(STOP_PATIENCE_S)
        target = self._target
        if self._thread.is_alive() and target is not None:
            target.interrupt()
            self._thread.join(STOP_PATIENCE_S)

    @property
    def waiting(self) -> int | None:
        """How many results are there that it has not taken yet; None while it has no reader."""
        reader = self._reader
        return None if reader is None else reader.waiting

    # Work

    def _main(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._stopping.is_set():
            before = self.written_at
            try:
                self._run()
                break
            except Exception as error:
                if self._stopping.is_set():
                    break
                self._failed(error)
            if self.state == FAILED:
                return
            pause_s = FIRST_PAUSE_S if self.written_at != before else pause_s
            self._stopping.wait(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _failed(self, error: Exception) -> None:
        self.attempts += 1
        self.error = error if isinstance(error, Error) else write_error("a write failed", error)
        self.state = FAILED if self._is_final(error) else "retrying"
        self.around.tell_changed()

    def _is_final(self, error: Exception) -> bool:
        """Whether no attempt can help: the results that follow are gone, or the place is unknown."""
        if isinstance(error, OverloadError):
            return error.sqlstate == "55000"
        return self._placing and isinstance(error, DataError)

    def _run(self) -> None:
        """Writes batch after batch, until the sink is stopped."""
        flow = self.flow
        with self.around.subscribe(flow.query, flow.options, "earliest") as probe:
            schema = written(probe.schema.empty_table(), flow.options).schema
        self._target = target = flow.target()
        try:
            progress = target.open(schema)
            self.row_count = 0 if progress is None else progress.row_count
            after = flow.after if progress is None else progress.token
            self._placing = True
            with self.around.subscribe(flow.query, flow.options, after) as reader:
                self._placing = False
                self._reader = reader
                if not reader.waiting:  # all is written that there is: whatever failed is over
                    self._is_well()
                self.around.tell_changed()
                self._pump(reader, target)
        finally:
            self._reader = self._target = None
            target.close()

    def _pump(self, reader: Subscription, target: Target) -> None:
        options = self.flow.options
        while not self._stopping.is_set():
            outs = reader.take(options.batch_rows)
            if not outs and not self._stopping.is_set():
                raise ClosedError(f"query {self.flow.query} is gone", sqlstate="55000")
            if not outs:
                return
            began = time.monotonic()
            batch = _batch(outs, self.row_count, options)
            target.write(batch)
            self._written(batch.progress, outs[-1])
            self._stopping.wait(max(began + options.interval_s - time.monotonic(), 0.0))

    def _written(self, progress: Progress, last: Out) -> None:
        self.row_count = progress.row_count
        self.last_time = str(last.time)
        self.written_at = datetime.now(UTC).isoformat()
        self._is_well()
        self.around.tell_changed()

    def _is_well(self) -> None:
        self.state, self.error, self.attempts = RUNNING, None, 0


def _batch(outs: list[Out], row_count: int, options: SinkOptions) -> Batch:
    """The rows of some results, and how far the sink is with them."""
    rows = written(pa.concat_tables([out.table for out in outs]), options)
    token = outs[-1].token
    progress = Progress(token, row_count + rows.num_rows)
    return Batch(rows, decode(token).position, progress)
