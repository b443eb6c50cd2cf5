"""A sink at work: it reads results by token and writes them; its figures.

Owns: how much is read ahead (one batch), and where an attempt begins: the target and the place are
taken up again from what the target holds. Must never: slow the
query down, pass over a result, or go on where results that it has not written were dropped.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from headwater.connectors.runner import Runner, Surroundings
from headwater.engine.subscription import Out, Subscription
from headwater.engine.token import decode
from headwater.errors import ClosedError, DataError, Error, OverloadError
from headwater.sinks.options import SinkOptions, written
from headwater.sinks.target import SinkBatch, SinkProgress, Target, write_error

STOP_PATIENCE_S = 5.0


@dataclass(frozen=True)
class SinkSurroundings(Surroundings):
    """What the runs of sinks need of the database: readers of queries."""

    subscribe: Callable[[str, SinkOptions, str], Subscription]  # query, options, after
    last_token: Callable[[str], str | None]


@dataclass(frozen=True)
class Flow:
    """What a sink is: a query's results, from a place on, to a target."""

    name: str
    query: str
    after: str
    options: SinkOptions
    target: Callable[[], Target]


class SinkRunner(Runner):
    """One run of a sink, from its start to its end; errors do not end it."""

    what = "sink"
    around: SinkSurroundings

    def __init__(self, flow: Flow, around: SinkSurroundings) -> None:
        super().__init__(flow.name, around)
        self.flow = flow
        self.row_count = 0
        self.last_time: str | None = None
        self.written_at: str | None = None
        self._placing = False  # the target's token is being looked up among the results
        self._reader: Subscription | None = None
        self._target: Target | None = None

    def ask_to_stop(self) -> None:
        """Ends the run after the batch under way; does not wait."""
        super().ask_to_stop()
        reader = self._reader
        if reader is not None:
            reader.close()

    def stop(self) -> None:
        """Ends the run after the batch under way, or without it if that takes too long."""
        self.ask_to_stop()
        target = None if self._join(STOP_PATIENCE_S) else self._target
        if target is not None:
            target.interrupt()
            self._join(STOP_PATIENCE_S)

    @property
    def waiting(self) -> int | None:
        """How many results are there that it has not taken yet; None while it has no reader."""
        reader = self._reader
        return None if reader is None else reader.waiting

    # Work

    def run(self) -> None:
        """Writes until the sink is stopped, or no attempt can help."""
        self.patiently(self._attempt)

    def judged(self, error: Exception) -> tuple[Error, bool]:
        """Any may pass, unless the results that follow are gone, or the place is unknown."""
        told = error if isinstance(error, Error) else write_error("a write failed", error)
        if isinstance(error, OverloadError):
            return told, error.sqlstate != "55000"
        return told, not (self._placing and isinstance(error, DataError))

    def _attempt(self) -> None:
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
                    self.is_well()
                self.around.tell_changed()
                self._pump(reader, target)
        finally:
            self._reader = self._target = None
            target.close()

    def _pump(self, reader: Subscription, target: Target) -> None:
        options = self.flow.options
        while not self.stopping.is_set():
            outs = reader.take(options.batch_rows)
            if not outs and not self.stopping.is_set():
                raise ClosedError(f"query {self.flow.query} is gone", sqlstate="55000")
            if not outs:
                return
            began = time.monotonic()
            batch = _batch(outs, self.row_count, options)
            target.write(batch)
            self._written(batch.progress, outs[-1])
            self.stopping.wait(max(began + options.interval_s - time.monotonic(), 0.0))

    def _written(self, progress: SinkProgress, last: Out) -> None:
        self.row_count = progress.row_count
        self.last_time = str(last.time)
        self.written_at, self.moved_at = datetime.now(UTC).isoformat(), time.monotonic()
        self.is_well()
        self.around.tell_changed()


def _batch(outs: list[Out], row_count: int, options: SinkOptions) -> SinkBatch:
    """The rows of some results, and how far the sink is with them."""
    rows = written(pa.concat_tables([out.table for out in outs]), options)
    token = outs[-1].token
    progress = SinkProgress(token, row_count + rows.num_rows)
    return SinkBatch(rows, decode(token).position, progress)
