"""The newest row per key: what makes a queue an update queue (UpStream §4.1).

Owns: one place for each waiting key, overwritten by newer rows. The order of keys is the
policy's. Must never: keep two rows of one key.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headwater.engine.update_queue.discipline import Admitted, Dequeued, Discipline, QueueArrivals
from headwater.engine.update_queue.policy import News, Policy
from headwater.engine.update_queue.store import PAGE_ROWS, PagedRowStore, PagePool
from headwater.engine.update_queue.vectors import NONE, grown, newest_rows
from headwater.fold.columns import Slots, Vector

NOWHERE = -1


class Latest(Discipline):
    """Waiting keys with a row each."""

    def __init__(
        self, schema: pa.Schema, policy: Policy, pool: PagePool, page_rows: int = PAGE_ROWS
    ) -> None:
        self.name = policy.name
        self.policy = policy
        self._store = PagedRowStore(schema, pool, page_rows=page_rows)
        self._waits: Vector = np.empty(0, np.bool_)  # by slot, as the next three
        self._place: Slots = np.empty(0, np.int64)
        self._times: Slots = np.empty(0, np.int64)
        self._seqs: Slots = np.empty(0, np.int64)
        self._owner: Slots = np.empty(0, np.int64)  # by place: whose it is

    @property
    def waiting_count(self) -> int:
        return self._store.block_count

    @property
    def allocated_rows(self) -> int:
        return self._store.allocated_rows

    def grow(self, key_count: int) -> None:
        self._waits = grown(self._waits, key_count, False)
        self._place = grown(self._place, key_count, NOWHERE)
        self._times = grown(self._times, key_count, NONE)
        self._seqs = grown(self._seqs, key_count, NONE)
        self.policy.grow(key_count)

    def observe_cost(self, ticks: float) -> None:
        self.policy.observe_cost(ticks)

    def admit(self, given: QueueArrivals) -> Admitted:
        news = News(given.slots, given.times, self._waits, self.waiting_count)
        newest, fresh = news.newest_row, news.fresh
        cells = self._store.encode(given.rows, newest)
        self._place_keys(fresh)
        self.policy.arrived(news)
        self._waits[fresh] = True
        slots = given.slots[newest]
        self._store.write(self._place[slots], cells)
        self._times[slots], self._seqs[slots] = given.times[newest], given.seqs[newest]
        first = news.first_row
        return Admitted(given.slots[first], given.times[first], len(fresh), len(given) - len(fresh))

    def _place_keys(self, fresh: Slots) -> None:
        places = self._store.allocate(len(fresh))
        self._owner = grown(self._owner, self._store.block_count, NOWHERE)
        self._place[fresh] = places
        self._owner[places] = fresh

    def take(self, count: int, now: int) -> tuple[QueueArrivals, Slots, Slots]:
        slots = self.policy.take(count, now)
        taken = self._read(slots)
        self._free(slots)
        return taken, slots, np.full(len(slots), NONE)

    def _read(self, slots: Slots) -> QueueArrivals:
        rows = self._store.read(self._place[slots])
        return QueueArrivals(rows, slots, self._times[slots], self._seqs[slots])

    def _free(self, slots: Slots) -> None:
        places = self._place[slots]
        self._place[slots], self._waits[slots] = NOWHERE, False
        sources, targets = self._store.free(places)
        moved = self._owner[sources]
        self._owner[targets] = moved
        self._place[moved] = targets

    def delivered(
        self, batch: Dequeued, later: Sequence[Dequeued], starts: Slots
    ) -> tuple[Slots, Slots]:
        if not later:
            return batch.slots, starts[batch.slots]
        starts = starts.copy()
        for other in reversed(later):
            starts[other.slots] = other.starts
        return batch.slots, starts[batch.slots]

    def put_back(self, batch: QueueArrivals) -> int:
        alone = newest_rows(batch.slots, np.empty(len(self._waits), np.int64))
        alone = alone[~self._waits[batch.slots[alone]]]
        back = batch.take(alone)
        self._place_keys(back.slots)
        self._waits[back.slots] = True
        self._store.write(self._place[back.slots], self._store.encode(back.rows))
        self._times[back.slots], self._seqs[back.slots] = back.times, back.seqs
        self.policy.put_back(back.slots)
        return len(batch) - len(back)

    def contents(self) -> QueueArrivals:
        return self._read(self.policy.in_order())

    @property
    def oldest_seq(self) -> int | None:
        return int(self._seqs[self._waits].min()) if self.waiting_count else None

    def next_slots(self, count: int) -> Slots:
        return self.policy.in_order()[:count]

    def restore(self, parts: Sequence[QueueArrivals]) -> int:
        return sum(self.put_back(part) for part in reversed(parts))

    def take_over(self, held: QueueArrivals) -> int:
        return self.admit(held).superseded if len(held) else 0

    def clear(self) -> None:
        self._free(self.policy.take(self.waiting_count, NONE))
