"""The update queue: rows come in batches, the next rows go out in the order of a policy.

Owns: keys (a lookup of `fold`), the discipline in which rows wait, counts, and both kinds of
staleness. Must never: read a clock or draw a random number; both are passed in. UpStream §4, §5.

    queue.enqueue(rows, times, seqs)       # as rows arrive
    batch = queue.dequeue(count, now)      # as many keys as can be processed in the target time
    queue.deliver(batch, now)              # their results are with the application

At equal times arrivals come before dequeues: enqueue what has arrived up to `now` first. Several
batches may be in process; they are delivered in the order of their dequeues, so that no key shows
an older result after a newer one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.engine.update_queue.append import Append
from headwater.engine.update_queue.discipline import Dequeued, QueueArrivals
from headwater.engine.update_queue.ledger import Ledger
from headwater.engine.update_queue.newest_only import NewestOnly
from headwater.engine.update_queue.policies import Choice, make_discipline
from headwater.engine.update_queue.staleness import Staleness, staleness_table
from headwater.engine.update_queue.store import PAGE_ROWS, PagePool
from headwater.engine.update_queue.vectors import NONE
from headwater.fold.columns import Column, Slots
from headwater.fold.lookup import Lookup

__all__ = ["Dequeued", "UpdateQueue"]

Target = tuple[Sequence[pa.Array], int]  # key columns, interval in ticks


class UpdateQueue:
    """Rows of one stream, waiting for one query."""

    def __init__(
        self,
        schema: pa.Schema,
        key: Sequence[str],
        choice: Choice | None = None,
        *,
        began: int = 0,
        pool: PagePool | None = None,
        page_rows: int = PAGE_ROWS,
        refresh: Sequence[Target] = (),
    ) -> None:
        """`key`: the update key's columns; none of them: each row replaces the one before.

        `began`: when staleness begins to be observed. `refresh`: keys that have a rate to keep.
        """
        self.schema = schema
        self.key = tuple(key)
        self.ledger = Ledger()
        self.queue_staleness = Staleness(began)
        self.application_staleness = Staleness(began)
        self._lookup = Lookup([schema.field(name).type for name in key])
        self._pool = PagePool() if pool is None else pool
        self._page_rows = page_rows
        self._targets = [(self._lookup.slots(keys), interval) for keys, interval in refresh]
        # named keys of which no row has come: they are no keys of the stream
        self._absent = np.unique(np.concatenate([[], *(s for s, _ in self._targets)]).astype(int))
        self._newest_only = NewestOnly()
        self._in_process: list[Dequeued] = []
        self._batch_number = 0
        self._last_time = NONE
        self._last_seq = -1
        self._cost = 0.0
        self._use(choice or Choice())

    def _use(self, choice: Choice) -> None:
        self._discipline = make_discipline(
            choice,
            self.schema,
            pool=self._pool,
            page_rows=self._page_rows,
            targets=self._targets,
        )
        self._discipline.observe_cost(self._cost)
        self._grow()

    def _grow(self) -> None:
        count = self.key_count
        self.queue_staleness.grow(count)
        self.application_staleness.grow(count)
        self._discipline.grow(count)

    # What there is

    @property
    def policy(self) -> str:
        """The policy's name."""
        return self._discipline.name

    @property
    def key_count(self) -> int:
        """How many keys have come."""
        return len(self._lookup)

    @property
    def waiting_count(self) -> int:
        """How many rows wait; in an update queue also the number of waiting keys."""
        return self._discipline.waiting_count

    @property
    def oldest_seq(self) -> int | None:
        """The smallest `_seq` of a row that is not yet processed or superseded; None if none is left."""
        held = [int(batch.seqs.min()) for batch in self._in_process if len(batch)]
        waiting = self._discipline.oldest_seq
        return min(held if waiting is None else [*held, waiting], default=None)

    @property
    def oldest_waiting_seq(self) -> int | None:
        """The same without those that are in process."""
        return self._discipline.oldest_seq

    @property
    def last_time(self) -> int:
        """When the newest row came."""
        return self._last_time

    @property
    def allocated_rows(self) -> int:
        """How many rows the memory that is taken has room for."""
        return self._discipline.allocated_rows

    def keys(self, slots: Slots | None = None) -> list[pa.Array]:
        """The key columns of all keys, or of the given ones."""
        return self._lookup.keys(slots)

    def waiting_starts(self, count: int) -> Slots:
        """Since when the next `count` keys have waited, in the order of the policy."""
        slots = self._discipline.next_slots(count)
        return self.queue_staleness.starts[slots]

    def staleness(self, now: int) -> pa.Table:
        """Keys with both kinds of staleness, now and on average, in ticks."""
        table = staleness_table(self, now)
        if not len(self._absent):
            return table
        return table.take(pa.array(np.delete(np.arange(self.key_count), self._absent)))

    # Steps

    def observe_cost(self, ticks: float) -> None:
        """What processing one row takes, as measured."""
        self._cost = ticks
        self._discipline.observe_cost(ticks)

    def enqueue(
        self,
        rows: pa.Table,
        times: Slots | int,
        seqs: Slots | None = None,
        stamps: Slots | None = None,
    ) -> None:
        """Rows have arrived, at these times. `stamps`: pass over rows older than their key's newest.

        Without `seqs` rows are numbered as they come.
        """
        given = self._given(rows, times, seqs)
        if not len(given):
            return
        count, last = len(given), (int(given.times[-1]), int(given.seqs[-1]))
        self._grow()
        if stamps is not None:
            newer = self._newest_only.admit(given.slots, stamps, self.key_count)
            given, stamps = given.take(np.flatnonzero(newer)), stamps[newer]
        if len(self._absent):
            self._absent = np.setdiff1d(self._absent, given.slots)
        self._admit(given, count)
        self._last_time, self._last_seq = last
        if stamps is not None:
            self._newest_only.note(given.slots, stamps)

    def reached(self, keys: Sequence[pa.Array], stamps: Slots) -> None:
        """The times of results that keys have already; before any row comes (UNION)."""
        slots = self._lookup.slots([Column(key) for key in keys], len(stamps))
        self._grow()
        self._newest_only.raise_to(slots, stamps, self.key_count)

    def _given(self, rows: pa.Table, times: Slots | int, seqs: Slots | None) -> QueueArrivals:
        count = rows.num_rows
        if isinstance(times, int):
            times = np.full(count, times, np.int64)
        if seqs is None:
            seqs = np.arange(self._last_seq + 1, self._last_seq + 1 + count)
        if len(times) != count or len(seqs) != count:
            raise ValueError("each row has one arrival time and one _seq")
        if count and not self._in_order(times, seqs):
            raise ValueError("rows must come in the order of their arrival")
        slots = self._lookup.slots([Column(rows.column(name)) for name in self.key], count)
        return QueueArrivals(rows.select(self.schema.names), slots, times, seqs)

    def _in_order(self, times: Slots, seqs: Slots) -> bool:
        if times[0] < self._last_time or seqs[0] <= self._last_seq:
            return False
        return bool((times[1:] >= times[:-1]).all() and (seqs[1:] > seqs[:-1]).all())

    def _admit(self, given: QueueArrivals, count: int) -> None:
        done = self._discipline.admit(given)
        passed = count - len(given)
        superseded = done.superseded + passed
        self.ledger.came(count, waiting=done.waiting, superseded=superseded, shed=done.shed)
        self.queue_staleness.pending(done.slots, done.times)
        if done.shed:  # they have arrived, though they do not wait
            scratch = np.empty(self.key_count, np.int64)
            scratch[given.slots[::-1]] = given.times[::-1]
            slots = np.unique(given.slots)
            self.application_staleness.pending(slots, scratch[slots])
        else:
            self.application_staleness.pending(done.slots, done.times)

    def dequeue(self, count: int, now: int) -> Dequeued:
        """The rows of the next `count` keys (append: the next rows), in the order of the policy."""
        starts = self.queue_staleness.starts
        taken, slots, following = self._discipline.take(count, now)
        batch = Dequeued(
            taken.rows,
            taken.slots,
            taken.times,
            taken.seqs,
            self._batch_number,
            starts[taken.slots],
        )
        self._batch_number += 1
        self.queue_staleness.covered(slots, now, following)
        self.ledger.take(len(batch))
        self._in_process.append(batch)
        return batch

    def deliver(self, batch: Dequeued, now: int) -> None:
        """The results of the oldest batch in process are with the application."""
        if not self._in_process or self._in_process[0] is not batch:
            raise ValueError("batches are delivered in the order in which they were dequeued")
        later = self._in_process[1:]
        starts = self.queue_staleness.starts
        slots, following = self._discipline.delivered(batch, later, starts)
        self._in_process = later
        self.application_staleness.covered(slots, now, following)
        self.ledger.deliver(len(batch))

    def put_back(self, batch: Dequeued, now: int) -> None:
        """The newest batch in process failed: its rows wait again, unless newer ones do."""
        if not self._in_process or self._in_process[-1] is not batch:
            raise ValueError("only the batch that was dequeued last can be put back")
        self._in_process.pop()
        superseded = self._discipline.put_back(batch)
        self.ledger.put_back(len(batch), superseded)
        self._reopen(batch.slots, batch.starts, now)

    def _reopen(self, slots: Slots, starts: Slots, now: int | None = None) -> None:
        distinct, first = np.unique(slots, return_index=True)
        self.queue_staleness.reopen(distinct, starts[first], now)

    def switch(self, choice: Choice) -> None:
        """Go on with another policy, or from an append to an update queue and back (US6)."""
        if self._in_process:
            raise ValueError("a queue does not change its policy while a batch is in process")
        held = self._discipline.contents()
        held = held.take(np.argsort(held.seqs))
        self._discipline.clear()
        self._use(choice)
        self.ledger.drop(self._discipline.take_over(held))

    def validate(self) -> None:
        """Fails if the row equation or another rule does not hold; for tests."""
        self.ledger.validate(self.waiting_count, sum(len(b) for b in self._in_process))
        waits = np.zeros(self.key_count, np.bool_)
        waits[self._discipline.contents().slots] = True
        queue, application = self.queue_staleness.starts, self.application_staleness.starts
        assert ((queue != NONE) == waits).all(), "a key is stale in the queue iff it waits"
        assert (application[waits] <= queue[waits]).all(), "results lag behind dequeues"
        assert (application[waits] != NONE).all(), "a waiting key's result is not fresh"
        if not isinstance(self._discipline, Append):
            assert self.waiting_count == waits.sum(), "one row per key"

    # Snapshots

    def state(self) -> dict[str, Any]:
        """Which rows wait or are in process, by `_seq`, with keys, counts and staleness."""
        waiting = self._discipline.contents()
        return {
            "keys": self._lookup.keys(),
            "ledger": self.ledger.counts(),
            "queue": self.queue_staleness.state(),
            "application": self.application_staleness.state(),
            "newest": self._newest_only.state(),
            "waiting": {"seqs": waiting.seqs, "times": waiting.times},
            "in_process": [
                {"seqs": b.seqs, "times": b.times, "starts": b.starts} for b in self._in_process
            ],
            "last_time": self._last_time,
            "last_seq": self._last_seq,
        }

    def restore(self, state: dict[str, Any], rows: pa.Table, seqs: Slots) -> None:
        """Take a fresh queue to a snapshot; `rows`, `seqs`: those that wait or are in process, in any order.

        What was in process waits again, before all others.
        """
        if self.ledger.rows_in:
            raise ValueError("only a fresh queue can be restored")
        self._lookup.load(state["keys"])
        self.queue_staleness.restore(state["queue"])
        self.application_staleness.restore(state["application"])
        self._newest_only.restore(state["newest"])
        self._last_time, self._last_seq = state["last_time"], state["last_seq"]
        self.ledger = Ledger(**state["ledger"])
        self._grow()
        parts = [*state["in_process"], state["waiting"]]
        found = [self._found(rows, seqs, part) for part in parts]
        self.ledger.put_back(self.ledger.in_process, self._discipline.restore(found))
        for part, own in zip(state["in_process"], found, strict=False):
            self._reopen(own.slots, part["starts"])

    def _found(self, rows: pa.Table, seqs: Slots, part: dict[str, Any]) -> QueueArrivals:
        places = pc.index_in(pa.array(part["seqs"]), pa.array(seqs))
        if places.null_count:
            raise ValueError("rows of the snapshot are missing")
        found = rows.select(self.schema.names).take(places)
        columns = [Column(found.column(name)) for name in self.key]
        slots = self._lookup.slots(columns, found.num_rows)
        return QueueArrivals(found, slots, part["times"], part["seqs"])
