"""The update queue for queries with windows: updates are whole windows, not rows.

Owns: the keys' windows, their order and states, counts and staleness. LAZY commits to the newest
window that has fully arrived, EAGER to the newest that has started. Must never: hand out a part of
a window and then drop the rest. UpStream §6 and §7.2.

    queue.enqueue(rows, stamps, times, seqs)   # T and arrival of each row
    queue.advance(mark, now)                   # the table's closed mark: windows close without rows;
                                               # `closed_at` knows since when they are closed
    batch = queue.dequeue(count, now)          # windows (EAGER: what is there of them)
    queue.deliver(batch, now)                  # complete ones are with the application

Queue staleness of a key begins where it has an update (LAZY: a window closes, EAGER: one starts)
and ends at the commit; application staleness begins where a window closes whose result is not
delivered (§6.1.2). The queue decides where windows start and end; the operator opens only those
that are marked (§6.1.3).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.engine.update_queue.eager import EagerKey
from headwater.engine.update_queue.key_states import DONE, ENQ, IDLE, READY, WAIT, KeyStates
from headwater.engine.update_queue.key_windows import ClosedAt, KeyWindows, WindowStep
from headwater.engine.update_queue.lazy import LazyKey
from headwater.engine.update_queue.ledger import Ledger
from headwater.engine.update_queue.policies import Choice, make_policy
from headwater.engine.update_queue.policy import News
from headwater.engine.update_queue.staleness import Staleness, staleness_table
from headwater.engine.update_queue.store import PAGE_ROWS, PagedRowStore, PagePool
from headwater.engine.update_queue.vectors import NONE, grown
from headwater.engine.update_queue.window_buffer import Blocks
from headwater.engine.update_queue.window_marks import marks_of
from headwater.engine.update_queue.window_spec import WindowSpec
from headwater.fold.columns import Column, Slots, Vector
from headwater.fold.lookup import Lookup

BLOCK_ROWS = 8
KINDS: dict[str, type[KeyWindows]] = {"lazy": LazyKey, "eager": EagerKey}


@dataclass(frozen=True)
class WindowBatch:
    """Windows that were dequeued, one per key, with their rows one after the other."""

    slots: Slots  # of the windows
    starts: Slots
    complete: Vector  # whether all rows of the window have been handed out with this batch
    row_counts: Slots  # how many of the rows belong to each window
    rows: pa.Table
    stamps: Slots  # T of the rows
    seqs: Slots
    marks: Vector  # of the rows: which of them the operator opens a window at

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def row_count(self) -> int:
        """How many rows are in it."""
        return len(self.seqs)


class WindowQueue:
    """Windows of one stream, waiting for one query."""

    def __init__(
        self,
        schema: pa.Schema,
        key: Sequence[str],
        spec: WindowSpec,
        kind: str,
        choice: Choice | None = None,
        *,
        began: int = 0,
        pool: PagePool | None = None,
        page_rows: int = PAGE_ROWS,
        block_rows: int = BLOCK_ROWS,
        closed_at: ClosedAt | None = None,
    ) -> None:
        """`kind`: lazy or eager. `choice`: a policy that orders keys.

        `closed_at(tick, now)`: when the clock closed a tick, never after now; without it, now.
        """
        self.schema, self.key, self.spec = schema, tuple(key), spec
        self.ledger = Ledger()
        self.queue_staleness = Staleness(began)
        self.application_staleness = Staleness(began)
        self.states = KeyStates()
        self._kind = KINDS[kind]
        self._closed_at = closed_at or (lambda _tick, now: now)
        self._lookup = Lookup([schema.field(name).type for name in key])
        stored = [*schema, pa.field("_stamp", pa.int64()), pa.field("_seq", pa.int64())]
        self._store = PagedRowStore(
            pa.schema(stored), pool or PagePool(), page_rows=page_rows, block_rows=block_rows
        )
        self._blocks = Blocks(self._store, block_rows)
        self._policy = make_policy(choice or Choice())
        self._windows: list[KeyWindows] = []
        self._waits: Vector = np.empty(0, np.bool_)
        self._newest: Slots = np.empty(0, np.int64)  # by slot: T of the newest row
        self._marks: Slots = np.empty(0, np.int64)  # by slot: no row up to it can come any more
        self._ready: deque[int] = deque()  # EAGER: committed keys that can go on
        self._last_seq = -1
        self._last_time = NONE

    # What there is

    @property
    def key_count(self) -> int:
        """How many keys have come."""
        return len(self._lookup)

    @property
    def policy(self) -> str:
        """The policy's name."""
        return self._policy.name

    @property
    def waiting_keys(self) -> int:
        """How many keys have a window to commit to."""
        return int(self._waits.sum())

    @property
    def is_ready(self) -> bool:
        """Whether a dequeue would give something: not all keys wait for rows of a committed window."""
        waiting = np.flatnonzero(self._waits).tolist()
        return bool(self._ready) or any(not self.states.is_committed(s) for s in waiting)

    @property
    def used_rows(self) -> int:
        """How many rows the buffers hold; a row in two buffers counts twice."""
        buffers = [w.buffer for w in self._windows]
        buffers += [w.front for w in self._windows if isinstance(w, EagerKey)]
        return sum(len(buffer) for buffer in buffers)

    @property
    def allocated_rows(self) -> int:
        """How many rows the memory that is taken has room for."""
        return self._store.allocated_rows

    @property
    def last_time(self) -> int:
        """When the newest row came."""
        return self._last_time

    @property
    def oldest_needed(self) -> int | None:
        """T from which rows are held, or belong to a window that is being processed; None for none."""
        held = [w.buffer.times[0] for w in self._windows if len(w.buffer)]
        held += [w.committed for w in self._windows if w.committed is not None]
        return min(held, default=None)

    def oldest_undelivered(self, batch: WindowBatch | None = None) -> int | None:
        """The start of the oldest window that waits or is in process, without those that a batch ends."""
        ended = () if batch is None else frozenset(batch.slots[batch.complete].tolist())
        starts = [w.candidate for w in self._windows]
        starts += [w.committed for slot, w in enumerate(self._windows) if slot not in ended]
        return min((start for start in starts if start is not None), default=None)

    def keys(self, slots: Slots | None = None) -> list[pa.Array]:
        """The key columns of all keys, or of the given ones."""
        return self._lookup.keys(slots)

    def waiting_starts(self, count: int) -> Slots:
        """Since when the next `count` keys have waited: those that are being processed, then the others.

        A key with a committed window no longer waits; what counts is since when its result lags behind.
        """
        ready = np.array(self._ready, np.int64)[:count]
        lagging = self.application_staleness.starts[ready]
        lagging = np.where(lagging == NONE, self._last_time, lagging)
        waiting = self._policy.in_order()[: count - len(ready)]
        return np.concatenate([lagging, self.queue_staleness.starts[waiting]])

    def staleness(self, now: int) -> pa.Table:
        """Keys with both kinds of staleness, now and on average, in ticks."""
        return staleness_table(self, now)

    def delivered(self, keys: Sequence[pa.Array], starts: Slots) -> None:
        """The windows whose results keys have already; before any row comes."""
        slots = self._slots([Column(key) for key in keys], len(starts))
        for slot, start in zip(slots.tolist(), starts.tolist(), strict=True):
            windows = self._windows[slot]
            windows.delivered, windows.mark = start, self.spec.last_tick(start)

    # Arrivals

    def observe_cost(self, ticks: float) -> None:
        """What processing one window takes, as measured."""
        self._policy.observe_cost(ticks)

    def enqueue(
        self, rows: pa.Table, stamps: Slots, times: Slots | int, seqs: Slots | None = None
    ) -> None:
        """Rows have arrived at `times`, with `stamps` as their T; per key T never goes back."""
        count = rows.num_rows
        if isinstance(times, int):
            times = np.full(count, times, np.int64)
        if seqs is None:
            seqs = np.arange(self._last_seq + 1, self._last_seq + 1 + count)
        if len(times) != count or len(seqs) != count or len(stamps) != count:
            raise ValueError("each row has one T, one arrival time and one _seq")
        if not count:
            return
        if (times < np.r_[self._last_time, times[:-1]]).any():
            raise ValueError("rows must come in the order of their arrival")
        self._store.require(2 * count)  # a row begins at most one block in each of two buffers
        self._last_time, self._last_seq = int(times[-1]), int(seqs[-1])
        self.ledger.came(count, waiting=count, superseded=0)
        self._arrive(rows, stamps, times, seqs, np.zeros(count, np.bool_))

    def _arrive(
        self, rows: pa.Table, stamps: Slots, times: Slots, seqs: Slots, counted: Vector
    ) -> None:
        slots = self._slots_of(rows)
        given = zip(slots.tolist(), stamps.tolist(), times.tolist(), counted.tolist(), strict=True)
        numbers: list[int] = []
        places: list[int] = []
        steps: list[tuple[int, int, WindowStep]] = []
        for number, (slot, t, at, known) in enumerate(given):
            windows = self._windows[slot]
            if windows.newest is not None and t < windows.newest:
                self.ledger.drop(not known)  # a newer row is there already
                continue
            step = windows.arrive(t, at, known)
            places.extend(step.places)
            numbers.extend([number] * len(step.places))
            steps.append((slot, at, step))
        self._newest[slots] = np.maximum(self._newest[slots], stamps)
        self._marks[slots] = np.maximum(self._marks[slots], self.spec.mark_of(self._newest[slots]))
        if places:
            self._write(rows, stamps, seqs, np.array(numbers), places)
        self._blocks.give_back()
        self._follow(steps)

    def _slots_of(self, rows: pa.Table) -> Slots:
        return self._slots([Column(rows.column(name)) for name in self.key], rows.num_rows)

    def _slots(self, keys: Sequence[Column], row_count: int) -> Slots:
        slots = self._lookup.slots(keys, row_count)
        count = self.key_count
        for _ in range(len(self._windows), count):
            self._windows.append(self._kind(self.spec, self._blocks, self.ledger, self._closed_at))
        self._waits = grown(self._waits, count, False)
        self._newest = grown(self._newest, count, NONE)
        self._marks = grown(self._marks, count, NONE)
        self._policy.grow(len(self._waits))
        self.queue_staleness.grow(count)
        self.application_staleness.grow(count)
        return slots

    def _write(
        self, rows: pa.Table, stamps: Slots, seqs: Slots, numbers: Slots, places: list[int]
    ) -> None:
        taken = rows.select(self.schema.names).take(pa.array(numbers))
        extra = [pa.array(stamps[numbers]), pa.array(seqs[numbers])]
        whole = pa.Table.from_arrays([*taken.columns, *extra], schema=self._store.schema)
        self._blocks.write(places, self._store.encode(whole))

    def advance(self, mark: int, now: int) -> None:
        """No row up to `mark` can come any more, for any key: windows close."""
        count = self.key_count
        slots = self.spec.closing_keys(self._marks[:count], mark, self._newest[:count])
        self._marks[slots] = mark
        steps = [(slot, now, self._windows[slot].advance(mark, now)) for slot in slots.tolist()]
        self._blocks.give_back()
        self._follow(steps)

    def _follow(self, steps: Iterable[tuple[int, int, WindowStep]]) -> None:
        """Keys that have an update wait; idle keys that can go on are ready again."""
        waits: list[tuple[int, int, int]] = []
        for slot, at, step in steps:
            if step.waits_since is not None:
                waits.append((slot, at, step.waits_since))
            if step.closed_at is not None:
                since = np.array([step.closed_at])
                self.application_staleness.pending(np.array([slot]), since)
            if step.promoted and IDLE in self.states.of(slot):
                self.states.step(slot, IDLE, READY)
                self._ready.append(slot)
        if not waits:
            return
        slots, times, sinces = np.array(waits, np.int64).T
        news = News(slots, times, self._waits, self.waiting_keys)
        fresh, since = news.fresh, sinces[news.fresh_row]
        self._policy.arrived(news)
        self._waits[fresh] = True
        self.queue_staleness.pending(fresh, since)
        for slot in fresh.tolist():
            self.states.step(slot, ENQ, WAIT)

    # Service

    def dequeue(self, count: int, now: int) -> WindowBatch:
        """Windows of up to `count` keys: first those that were committed to, then new ones."""
        chosen = [self._ready.popleft() for _ in range(min(count, len(self._ready)))]
        fresh = self._commit(count - len(chosen), now)
        slots = np.array([*chosen, *fresh], np.int64)
        places: list[Slots] = [np.empty(0, np.int64)]
        counts = [self._windows[slot].hand_out(places.append) for slot in slots.tolist()]
        every = self._store.read(np.concatenate(places))
        self._blocks.give_back()
        return self._batch(slots, counts, every, set(fresh))

    def _commit(self, count: int, now: int) -> list[int]:
        """Commit to the next windows; a key of which one is being processed keeps its place."""
        chosen: list[int] = []
        blocked: list[Slots] = []
        while len(chosen) < count:
            slots = self._policy.take(count - len(chosen), now)
            if not len(slots):
                break
            busy = np.array([self.states.is_committed(s) for s in slots.tolist()])
            blocked.append(slots[busy])
            chosen.extend(slots[~busy].tolist())
        if blocked:
            self._policy.put_back(np.concatenate(blocked))
        own = np.array(chosen, np.int64)
        self._waits[own] = False
        self.queue_staleness.covered(own, now)
        for slot in chosen:
            self._windows[slot].commit()
            self.states.step(slot, WAIT, READY)
        return chosen

    def _batch(
        self, slots: Slots, counts: list[int], every: pa.Table, fresh: set[int]
    ) -> WindowBatch:
        stamps, seqs = (Column(every.column(name)).values for name in ("_stamp", "_seq"))
        begin = 0
        for slot, count in zip(slots.tolist(), counts, strict=True):
            self._windows[slot].process_seqs += seqs[begin : begin + count].tolist()
            begin += count
        windows = [self._windows[slot] for slot in slots.tolist()]
        opened = np.array([slot in fresh for slot in slots.tolist()], np.bool_)
        return WindowBatch(
            slots=slots,
            starts=np.array([w.committed for w in windows], np.int64),
            complete=np.array([w.complete for w in windows], np.bool_),
            row_counts=np.array(counts, np.int64),
            rows=every.select(range(len(self.schema))),
            stamps=stamps,
            seqs=seqs,
            marks=marks_of(self.spec, stamps, np.array(counts, np.int64), opened),
        )

    def deliver(self, batch: WindowBatch, now: int) -> None:
        """The batch is processed; the results of its complete windows are with the application."""
        ready: list[int] = []
        for slot, complete in zip(batch.slots.tolist(), batch.complete.tolist(), strict=True):
            windows = self._windows[slot]
            if complete:
                pending = windows.deliver()
                self.application_staleness.covered(np.array([slot]), now, pending)
                self.states.step(slot, READY, DONE)
            elif windows.is_available:
                ready.append(slot)
            else:
                self.states.step(slot, READY, IDLE)
        self._ready.extendleft(reversed(ready))

    def validate(self) -> None:
        """Fails if the row equation or another rule does not hold; for tests."""
        waiting = sum(w.waiting_rows for w in self._windows)
        self.ledger.validate(waiting, sum(w.taken for w in self._windows))
        waits = self._waits[: self.key_count]
        assert ((self.queue_staleness.starts != NONE) == waits).all(), "stale iff it waits"
        for slot, windows in enumerate(self._windows):
            states = self.states.of(slot)
            assert (WAIT in states) == waits[slot] == (windows.candidate is not None)
            assert self.states.is_committed(slot) == (windows.committed is not None)
            assert (IDLE not in states) or not windows.is_available
        assert self.used_rows <= self.allocated_rows

    # Snapshots

    def state(self) -> dict[str, Any]:
        """Which rows are needed, by `_seq`, with what has been delivered, counts and staleness."""
        seqs: list[int] = []
        processed: list[int] = []
        for windows in self._windows:
            held = self._held_seqs(windows)
            own = windows.process_seqs + [seq for seq in held if seq not in windows.process_seqs]
            known = windows.process_counted if windows.committed is not None else windows.counted
            seqs += own
            processed += own[:known]
        delivered = [NONE if w.delivered is None else w.delivered for w in self._windows]
        return {
            "keys": self._lookup.keys(),
            "ledger": self.ledger.counts(),
            "queue": self.queue_staleness.state(),
            "application": self.application_staleness.state(),
            "delivered": np.array(delivered, np.int64),
            "seqs": np.sort(np.array(seqs, np.int64)),
            "processed": np.sort(np.array(processed, np.int64)),
            "last_time": self._last_time,
            "last_seq": self._last_seq,
        }

    def _held_seqs(self, windows: KeyWindows) -> list[int]:
        buffers = [windows.front] if isinstance(windows, EagerKey) else []
        places = [b.places(len(b)) for b in (*buffers, windows.buffer)]
        held = self._store.read(np.concatenate(places))
        return list(dict.fromkeys(held.column("_seq").to_pylist()))

    def restore(
        self, state: dict[str, Any], rows: pa.Table, stamps: Slots, times: Slots, seqs: Slots
    ) -> None:
        """Take a fresh queue to a snapshot; the rows of its `seqs` come from the table, in order.

        Windows that were being processed wait again, unless newer ones do.
        """
        if self.ledger.rows_in or not np.array_equal(np.sort(seqs), state["seqs"]):
            raise ValueError("a fresh queue is restored from exactly the rows of the snapshot")
        self._lookup.load(state["keys"])
        self._slots_of(rows.slice(0, 0))
        self.queue_staleness.restore(state["queue"])
        self.application_staleness.restore(state["application"])
        self.queue_staleness.forget_pending()
        for windows, delivered in zip(self._windows, state["delivered"].tolist(), strict=False):
            if delivered != NONE:
                windows.delivered = delivered
                windows.mark = self.spec.last_tick(delivered)
        counted = pc.is_in(pa.array(seqs), pa.array(state["processed"])).to_numpy(False)
        counts = state["ledger"]
        back = len(seqs) - int(counted.sum())
        counts = {**counts, "waiting": back, "in_process": 0}
        self.ledger = Ledger(**counts)
        for windows in self._windows:
            windows.ledger = self.ledger
        self._last_time, self._last_seq = state["last_time"], state["last_seq"]
        self._arrive(rows, stamps, times, seqs, counted)
