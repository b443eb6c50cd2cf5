"""A discrete-event simulation around the engine's own update queue.

One operator processes one row at a time, which takes a given number of ticks. At equal times
arrivals come before dequeues. Time is the trace's, never the machine's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from benchmarks.upstream.traces import Ticks, Trace
from headwater.engine.update_queue import Choice, UpdateQueue

SCHEMA = pa.schema([pa.field("key", pa.int64())])


@dataclass(frozen=True)
class Outcome:
    """What one run showed; staleness in ticks, averaged over keys and time."""

    queue_staleness: float
    application_staleness: float
    results: int
    skipped: int
    ended: int
    used_rows: float = 0.0  # on average over time
    allocated_rows: float = 0.0
    effective_use: float = 1.0  # used of allocated rows, while any were


class Memory:
    """Averages over time of what is used and what is taken."""

    def __init__(self) -> None:
        self._time = 0
        self._now = (0, 0)
        self._used = self._taken = self._effective = self._some = 0.0

    def observe(self, now: int, used: int, taken: int) -> None:
        """From now on so many rows are used and have room."""
        span, (before, room) = now - self._time, self._now
        self._used += span * before
        self._taken += span * room
        if room:
            self._effective += span * before / room
            self._some += span
        self._time, self._now = now, (used, taken)

    def means(self) -> tuple[float, float, float]:
        """Used rows, allocated rows, effective use."""
        time = max(self._time, 1)
        return self._used / time, self._taken / time, self._effective / max(self._some, 1)


class Simulation:
    """Rows of a trace, one queue, one operator."""

    def __init__(self, trace: Trace, queue: UpdateQueue, cost: int) -> None:
        self.trace, self.queue, self.cost = trace, queue, cost
        self.memory = Memory()
        self.now = 0
        self._next = 0
        queue.observe_cost(cost)

    def run(self, results: int) -> Outcome:
        """Until so many results are delivered, or nothing is left."""
        delivered = 0
        while delivered < results and self.step():
            delivered += 1
        return self.outcome(delivered)

    def step(self) -> bool:
        """Process one row; False if there is none any more."""
        self._arrive(self.now)
        if not self.queue.waiting_count:
            if self._next == len(self.trace):
                return False
            self.now = max(self.now, int(self.trace.times[self._next]))
            self._arrive(self.now)
            if not self.queue.waiting_count:  # all of them were shed
                return self.step()
        batch = self.queue.dequeue(1, self.now)
        self._look()
        self.now += self.cost
        self._arrive(self.now)
        self.queue.deliver(batch, self.now)
        return True

    def _arrive(self, until: int) -> None:
        end = int(np.searchsorted(self.trace.times, until, "right"))
        if end > self._next:
            part = slice(self._next, end)
            rows = pa.Table.from_arrays([pa.array(self.trace.keys[part])], schema=SCHEMA)
            self.queue.enqueue(rows, self.trace.times[part])
            self._next = end
            self._look()

    def _look(self) -> None:
        self.memory.observe(self.now, self.queue.waiting_count, self.queue.allocated_rows)

    def outcome(self, delivered: int) -> Outcome:
        """What has been measured so far."""
        queue, now = self.queue, self.now
        used, taken, effective = self.memory.means()
        return Outcome(
            queue.queue_staleness.mean(now),
            queue.application_staleness.mean(now),
            delivered,
            queue.ledger.skipped,
            now,
            used,
            taken,
            effective,
        )


def run_rows(
    trace: Trace, policy: str, cost: int, results: int, *, seed: int = 0, page_rows: int = 4
) -> Outcome:
    """One run with a policy; shedding drops what the operator cannot process."""
    queue = UpdateQueue(SCHEMA, ["key"], choice(trace, policy, cost, seed), page_rows=page_rows)
    return Simulation(trace, queue, cost).run(results)


def choice(trace: Trace, policy: str, cost: int, seed: int) -> Choice:
    """A policy by name."""
    if policy not in ("random", "shedding"):
        return Choice(policy)
    span = max(int(trace.times[-1]), 1)
    fraction = max(0.0, 1 - span / (cost * len(trace)))
    return Choice(policy, np.random.default_rng(seed), fraction)


def end_of(times: Ticks) -> int:
    """When the last row arrives."""
    return int(times[-1]) if len(times) else 0
