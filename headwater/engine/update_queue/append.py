"""The append queue: every row waits and is served in the order of arrival.

Owns: chunks as they came, and for each row the arrival of the next one of its key, from which
staleness goes on once the row is served. Must never: change the order, or drop a row (a subclass
sheds). UpStream §4: append and update queues stand side by side.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headwater.engine.update_queue.discipline import Admitted, Dequeued, Discipline, QueueArrivals
from headwater.engine.update_queue.vectors import NONE, first_rows, grown, newest_rows
from headwater.fold.columns import Slots, Vector

SMALLEST = 1024


class Append(Discipline):
    """All rows, first in, first out. Rows are numbered as they are kept: 0, 1, 2, …"""

    name = "append"

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._chunks: deque[QueueArrivals] = deque()
        self._waiting = 0
        self._taken = self._delivered = 0  # so many rows were taken, and their batches delivered
        self._end = 0  # so many were kept
        self._base = 0  # the number of the first row in the next two
        self._next_kept: Slots = np.empty(0, np.int64)  # arrival of the key's next row here
        self._next_any: Slots = np.empty(0, np.int64)  # … of its next row, kept or shed
        self._tail: Slots = np.empty(0, np.int64)  # by slot: its last row here, or -1

    @property
    def waiting_count(self) -> int:
        return self._waiting

    @property
    def allocated_rows(self) -> int:
        return self._waiting

    def grow(self, key_count: int) -> None:
        self._tail = grown(self._tail, key_count, -1)

    def observe_cost(self, ticks: float) -> None:
        pass

    def keep(self, given: QueueArrivals) -> Vector | None:  # noqa: ARG002
        """Which rows to keep; None: all."""
        return None

    def admit(self, given: QueueArrivals) -> Admitted:
        return self._admit(given, self.keep(given))

    def _admit(self, given: QueueArrivals, kept: Vector | None) -> Admitted:
        if not len(given):  # a union passed over all of them
            return Admitted(given.slots, given.times, 0, 0)
        numbers = np.arange(len(given)) if kept is None else np.flatnonzero(kept)
        queued = given if kept is None else given.take(numbers)
        self._make_room(len(queued))
        self._link(given, numbers)
        if len(queued):
            self._chunks.append(queued)
        self._waiting += len(queued)
        self._end += len(queued)
        first = first_rows(queued.slots, np.empty(len(self._tail), np.int64))
        shed = len(given) - len(queued)
        return Admitted(queued.slots[first], queued.times[first], len(queued), 0, shed)

    def _make_room(self, count: int) -> None:
        if self._end - self._base + count <= len(self._next_any):
            return
        live = slice(self._delivered - self._base, self._end - self._base)
        size = max(2 * (self._end - self._delivered + count), SMALLEST)
        for name in ("_next_kept", "_next_any"):
            longer = np.full(size, NONE, np.int64)
            longer[: live.stop - live.start] = getattr(self, name)[live]
            setattr(self, name, longer)
        self._base = self._delivered

    def _link(self, given: QueueArrivals, kept: Slots) -> None:
        """Tell each kept row when the next row of its key arrived; rows come in key by key."""
        first = self._end - self._base
        self._next_kept[first : first + len(kept)] = NONE
        self._next_any[first : first + len(kept)] = NONE
        number = np.full(len(given), -1)  # of the row that each row follows, then of itself
        number[kept] = self._end + np.arange(len(kept))
        order = np.argsort(given.slots, kind="stable")
        slots, times, own = given.slots[order], given.times[order], number[order]
        before = np.maximum.accumulate(np.where(own >= 0, np.arange(len(own)), -1))
        before = np.concatenate([[-1], before[:-1]])  # the kept row before, of this key or another
        same = (before >= 0) & (slots[before] == slots)
        previous = np.where(same, own[before], self._tail[slots])
        alive = previous >= self._delivered
        self._tell(self._next_any, previous, times, alive)
        self._tell(self._next_kept, previous, times, alive & (own >= 0))
        last = newest_rows(given.slots[kept], np.empty(len(self._tail), np.int64))
        self._tail[given.slots[kept][last]] = number[kept][last]

    def _tell(self, vector: Slots, rows: Slots, times: Slots, which: Vector) -> None:
        places, times = rows[which] - self._base, times[which]
        unset = vector[places] == NONE
        vector[places[unset][::-1]] = times[unset][::-1]  # the first of several stays

    def take(self, count: int, now: int) -> tuple[QueueArrivals, Slots, Slots]:  # noqa: ARG002
        taken = self._cut(min(count, self._waiting))
        slots, last = self._last(taken.slots, self._taken)
        self._taken += len(taken)
        self._waiting -= len(taken)
        return taken, slots, self._next_kept[last]

    def _cut(self, count: int) -> QueueArrivals:
        parts: list[QueueArrivals] = []
        while count:
            chunk = self._chunks.popleft()
            if len(chunk) > count:
                self._chunks.appendleft(_slice(chunk, count, len(chunk)))
                chunk = _slice(chunk, 0, count)
            parts.append(chunk)
            count -= len(chunk)
        return self._joined(parts)

    def _last(self, slots: Slots, first: int) -> tuple[Slots, Slots]:
        """Distinct keys of rows numbered from `first`, and where the last row of each is linked."""
        last = newest_rows(slots, np.empty(len(self._tail), np.int64))
        return slots[last], last + first - self._base

    def delivered(
        self,
        batch: Dequeued,
        later: Sequence[Dequeued],  # noqa: ARG002
        starts: Slots,  # noqa: ARG002
    ) -> tuple[Slots, Slots]:
        slots, last = self._last(batch.slots, self._delivered)
        self._delivered += len(batch)
        return slots, self._next_any[last]

    def put_back(self, batch: QueueArrivals) -> int:
        self._chunks.appendleft(batch)
        self._taken -= len(batch)
        self._waiting += len(batch)
        return 0

    def contents(self) -> QueueArrivals:
        return self._joined(list(self._chunks))

    @property
    def oldest_seq(self) -> int | None:
        return int(self._chunks[0].seqs[0]) if self._chunks else None

    def next_slots(self, count: int) -> Slots:
        parts = [np.empty(0, np.int64), *(chunk.slots[:count] for chunk in self._chunks)]
        return np.concatenate(parts)[:count]

    def restore(self, parts: Sequence[QueueArrivals]) -> int:
        for part in parts:
            self._admit(part, None)
        return 0

    def _joined(self, parts: Sequence[QueueArrivals]) -> QueueArrivals:
        if len(parts) == 1:
            return parts[0]
        rows = pa.concat_tables([p.rows for p in parts]) if parts else self._schema.empty_table()
        nothing = [np.empty(0, np.int64)]
        return QueueArrivals(
            rows,
            np.concatenate([p.slots for p in parts] or nothing),
            np.concatenate([p.times for p in parts] or nothing),
            np.concatenate([p.seqs for p in parts] or nothing),
        )

    def take_over(self, held: QueueArrivals) -> int:
        return self.restore([held])

    def clear(self) -> None:
        self._chunks.clear()
        self._taken = self._delivered = self._end
        self._waiting = 0


def _slice(chunk: QueueArrivals, begin: int, end: int) -> QueueArrivals:
    part = slice(begin, end)
    rows = chunk.rows.slice(begin, end - begin)
    return QueueArrivals(rows, chunk.slots[part], chunk.times[part], chunk.seqs[part])
