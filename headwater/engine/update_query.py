"""An update query at work: a factory that keeps the results of keys as fresh as its speed allows (US1–US10).

Owns: the queue of rows or windows between its tables and the query, how many keys a firing takes, and the
newest result of each key. A firing takes the next keys in the order of the policy, runs the query over their
rows, and stores the results before the queue counts the rows as processed. After a restart the queue is
filled again from the tables, from the place that the last stored result names, without rows whose keys have
a newer result. One thread at a time pulls or fires a query; others may ask how stale it is.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.engine.arrivals import Arrivals
from headwater.engine.eager_windows import EagerWindows
from headwater.engine.elsewhere import HostGone
from headwater.engine.evaluation import Evaluation
from headwater.engine.feed import FeedCursor
from headwater.engine.fold_run import Counters
from headwater.engine.hosted import LoggedQuery, held_from
from headwater.engine.load import Load
from headwater.engine.newest_results import NewestResults, times_of
from headwater.engine.query_parts import Evaluated
from headwater.engine.query_sinks import CLOCK
from headwater.engine.sampling import Instant
from headwater.engine.update_evaluation import results_of_rows, results_of_windows
from headwater.engine.update_join import results_of_join
from headwater.engine.update_queue import (
    BatchSizer,
    LoadSwitch,
    Offer,
    UpdateQueue,
    WindowBatch,
    WindowQueue,
)
from headwater.engine.update_queue.discipline import Dequeued
from headwater.engine.update_queue.window_queue import BLOCK_ROWS
from headwater.engine.update_source import Cursors, UpdateRows, UpdateSource
from headwater.engine.update_spec import TICK, Mode, UpdateSpec
from headwater.errors import OverloadError
from headwater.fold.columns import Column, Slots
from headwater.kernel.relation import HeldTables
from headwater.storage.streaming.seen import Needs, SeenTable

LEAST_RESULTS = 64  # between two snapshots, where bytes decide
SEED = 20_060_402  # of the rows that are shed: the same for each start


def monotonic_us() -> int:
    """A clock that never goes back."""
    return time.monotonic_ns() // 1000


@dataclass(kw_only=True)
class UpdateQuery(LoggedQuery):
    """One registered update query."""

    spec: UpdateSpec
    identifiers: frozenset[str]  # names that may mean standard tables
    for_view: bool = False  # its results are the rows of a table, whose clock it moves (US9)
    wanted: int | None = None  # how many keys the next firing takes, where queries compete
    clock: Callable[[], int] = monotonic_us

    def __post_init__(self) -> None:
        super().__post_init__()
        self.tables = [branch.table for branch in self.spec.branches]
        self._lock = threading.Lock()  # around the queue: `headwater.staleness` looks at it
        self.arrivals: list[Arrivals] = [Arrivals() for _ in self.spec.branches]
        self.newest = NewestResults(self.spec.stored, self.spec.key)
        self._taken_up = self._warm = False
        self._folded = Counters()
        self._since: float | None = None

    @property
    def output(self) -> pa.Schema:
        """The columns of its result."""
        return self.spec.shown

    @property
    def evaluations(self) -> Sequence[Evaluation]:
        """How its branches are evaluated."""
        return [branch.evaluation for branch in self.spec.branches]

    # Place

    def attach(self) -> None:
        """Takes up the place that the stored results say: the queue is filled again from there."""
        self.sink.recover()
        self._take_up()
        last = self.sink.last()
        saved = None if last is None else last[1].get("from")
        self._told: int | None = None if last is None else last[1].get(CLOCK)
        cursors = self.beginning.cursors
        if saved is not None and self.newest.next:
            cursors = tuple(None if c is None else FeedCursor(*c) for c in saved)
        self._low: Cursors = cursors
        known = self._is_new if self.newest.next else None
        with self._lock:
            cursors = self._begin_queue(cursors)
        self._source = UpdateSource(self.spec, self.world, cursors, self.arrivals, known)

    def _begin_queue(self, cursors: Cursors) -> Cursors:
        """An empty queue; gives the places from which it is filled."""
        now, spec = self.clock(), self.spec
        self.mode: Mode = "append" if spec.behind_us is not None else spec.mode
        self.sizer = BatchSizer(self._target_s)
        self._switch = None if spec.behind_us is None else LoadSwitch(spec.behind_us)
        self._load = Load(now)
        self._random = np.random.default_rng(SEED)
        self._eager: EagerWindows | None = None
        self.queue: UpdateQueue | WindowQueue
        if spec.window is not None:
            return self._begin_windows(cursors, now)
        self.queue = UpdateQueue(
            spec.waiting,
            spec.key_columns,
            spec.choice(self.mode, self._random),
            began=now,
            refresh=[] if spec.refresh is None else [([spec.refresh[0]], spec.refresh[1])],
        )
        if spec.is_union:
            self.queue.reached(*self._known())
        return cursors

    def _known(self) -> tuple[list[pa.Array], Slots]:
        """The keys that have results, and the times of these."""
        known = self.newest.stored()
        return [known.column(name).combine_chunks() for name in self.spec.key], times_of(known)

    @property
    def _target_s(self) -> float:
        """How long a firing should take."""
        return self.world.settings.number("update_target_ms") / 1000

    def _begin_windows(self, cursors: Cursors, now: int) -> Cursors:
        """A queue of windows; those that begin with rows that were there already see them."""
        shape, choice = self.spec.window, self.spec.choice("updates", self._random)
        assert shape is not None
        began, first = self.beginning.cursors[0], None
        if began is not None and not self.beginning.from_beginning:
            first = shape.first_after(began.tick)
        self.queue = WindowQueue(
            self.spec.waiting,
            self.spec.key_columns,
            shape.spec(first),
            shape.commits,
            choice,
            began=now,
            closed_at=lambda tick, now: self.arrivals[0].closed_at(tick, now),
        )
        if shape.commits == "eager":
            self._eager = EagerWindows(self.spec, self.queue.keys, self._folded)
        keys, times = self._known()
        if len(times):
            self.queue.delivered(keys, times - shape.reach)
        if cursors == self.beginning.cursors and first is not None:
            return (FeedCursor(first - 1),)
        return cursors

    def _is_new(self, number: int, rows: pa.Table, sequences: Slots) -> np.ndarray:  # noqa: ARG002
        """Which rows have no result yet; rows of a union have one per key and time.

        Rows that a view's clock has passed have had their turn, those too that gave nothing: shed ones,
        and those of keys that had a newer row. Windows know themselves which of them were delivered; a
        join is made again from stored rows.
        """
        if self.spec.window is not None:
            return np.ones(len(sequences), np.bool_)
        ticks = rows.column(TICK).to_numpy()
        to_come = np.ones(len(ticks), np.bool_) if self._told is None else ticks >= self._told
        if self.spec.join:
            return to_come
        keys = [Column(rows.column(name)) for name in self.spec.key_columns]
        newer = self.newest.is_newer(keys, ticks, None if self.spec.is_union else sequences)
        return newer & to_come

    def _take_up(self) -> None:
        """The newest results: from the snapshot and the results stored after it, else from nothing."""
        log = self.sink.log
        if not self._taken_up:
            self._taken_up = True
            self.keeper.kept = self.keeper.read(self.newest)
            self.newest.next = self._kept_next
        if self.newest.next < log.first:  # its snapshot is lost: every key is processed again
            self.newest = NewestResults(self.spec.stored, self.spec.key)
            return
        while self.newest.next < log.next:
            for result in log.read_from(self.newest.next):
                self.newest.take(result.rows, result.position)

    @property
    def _kept_next(self) -> int:
        """The first result that the snapshot does not hold."""
        return 0 if self.keeper.kept is None else int(self.keeper.kept["next"])

    # Firing

    def pull(self, since: float | None = None) -> bool:
        """Puts what came into the queue; whether a key can be processed."""
        if not self._source.pull():
            self.attach()  # stored rows were changed
        now = self.clock()
        with self._lock:
            self._fill(now)
            if isinstance(self.queue, WindowQueue):
                closed = self._source.closed
                if closed is not None:
                    self.queue.advance(closed, max(now, self.queue.last_time))
                self._wait_for_wall(closed)
            self._check_room()
            self._settle_mode(now)
            ready = self._is_ready
        if not ready:
            self._tell_clock()
        if ready and self._since is None:
            self._since = since
        return ready

    def _fill(self, now: int) -> None:
        """Rows go into the queue as far as there is room; the others wait in the basket."""
        while (room := self._room) > 0:
            piece = self._source.take(max(room // len(self.spec.branches), 1), now)
            if piece is None:
                return
            self._enqueue(piece)

    def _check_room(self) -> None:
        """Rows that wait in the basket must have something to wait for."""
        if self._room <= 0 and not self._is_ready and self._source.waiting():
            raise OverloadError(
                "the windows of an update query hold too many rows",
                detail=f"{self._held_rows} rows have a place",
                hint="raise update_queue_rows, or make the window shorter",
            )

    @property
    def _room(self) -> int:
        """How many rows may come; one that begins windows may take two blocks."""
        most = self.world.settings.integer("update_queue_rows")
        if isinstance(self.queue, WindowQueue):
            return (most - self._held_rows) // (2 * BLOCK_ROWS)
        return most - self.queue.waiting_count

    @property
    def _held_rows(self) -> int:
        """Places of rows in the queue, and what is kept of EAGER windows."""
        return self.queue.allocated_rows + (0 if self._eager is None else self._eager.size)

    def _enqueue(self, piece: UpdateRows) -> None:
        times = np.maximum(piece.times, self.queue.last_time)
        self._load.came(len(times))
        self.counters.rows_by_operators += len(times)
        if isinstance(self.queue, WindowQueue):
            self.queue.enqueue(piece.rows, piece.ticks, times, piece.numbers)
        else:
            stamps = piece.ticks if self.spec.is_union else None
            self.queue.enqueue(piece.rows, times, piece.numbers, stamps)

    @property
    def _is_ready(self) -> bool:
        queue = self.queue
        return queue.is_ready if isinstance(queue, WindowQueue) else queue.waiting_count > 0

    def _wait_for_wall(self, closed: int | None) -> None:
        """Over arrival times the wall clock closes windows."""
        shape, table = self.spec.window, self.tables[0]
        assert shape is not None
        assert isinstance(self.queue, WindowQueue)
        self.wall_due = None
        if table.definition.by_arrival and closed is not None and self.queue.used_rows:
            self.wall_due = (closed // shape.slide + 1) * shape.slide + 1

    def _settle_mode(self, now: int) -> None:
        """Append while the query keeps up, updates while it does not (US6)."""
        queue = self.queue
        if self._switch is None or not isinstance(queue, UpdateQueue):
            return
        starts = queue.queue_staleness.starts
        pending = starts[starts >= 0]
        behind = now - int(pending.min()) if len(pending) else 0
        mode = self._switch.observe(now, behind, self._load.of(now, self.sizer.row_s))
        if mode != self.mode:
            self.mode = "append" if mode == "append" else "updates"
            queue.switch(self.spec.choice(self.mode, self._random))

    def due_until(self) -> float:
        """The number of the last row that came; of windows, the tick up to which they are complete."""
        if isinstance(self.queue, WindowQueue):
            complete = self._source.complete
            return -math.inf if complete is None else complete
        return self._source.handed_on + self._source.waiting()

    @property
    def answered_until(self) -> float:
        """The number of the oldest row that waits; of windows, the tick up to which all were processed."""
        with self._lock:
            if isinstance(self.queue, WindowQueue):
                closed = self._source.closed
                return -math.inf if closed is None or self._is_ready else closed
            oldest = self.queue.oldest_seq
        return self._source.handed_on if oldest is None else oldest

    def fire(self) -> int:
        """Processes the next keys; 1 if results were stored."""
        started, now = time.perf_counter(), self.clock()
        count = 1 if self.careful else self.wanted or self.sizer.count
        self.wanted = None
        with self._lock:
            if not self._is_ready:
                return 0
            batch = self.queue.dequeue(count, max(now, self.queue.last_time))
        with self.world.held(self.identifiers) as held:
            rows = self._results(batch, held)
            if rows is not None:
                self._store(rows, batch)
        self._delivered(batch)
        self._measured(len(batch), time.perf_counter() - started)
        if rows is None:
            return 0
        since, self._since = self._since or started, None
        self.timings.add(time.perf_counter() - since, 1)
        return 1

    def _results(self, batch: Dequeued | WindowBatch, held: HeldTables) -> pa.Table | None:
        """What the query gives for keys; None if no window of them is whole yet, or no match is new."""
        if isinstance(batch, WindowBatch):
            if self._eager is not None:
                return self._eager.results(batch, held)
            return results_of_windows(self.spec, batch, held)
        if self.spec.join:
            return results_of_join(self.spec, batch, self.newest, held)
        return results_of_rows(self.spec, batch, held)

    def _store(self, rows: pa.Table, batch: Dequeued | WindowBatch) -> None:
        """Results are durable and readable when this returns."""
        self._append(rows, int(times_of(rows).max()), self._oldest_to_come(batch))
        self.results += 1

    def _append(self, rows: pa.Table, tick: int, clock: int | None) -> None:
        low, position = self._needed(), self.sink.log.next
        note: dict[str, Any] = {"from": [None if c is None else [c.tick, c.sequence] for c in low]}
        if self.for_view:
            note[CLOCK] = clock
        self.sink.append([Evaluated(Instant(tick, tick), rows, note)])
        self.newest.take(rows, position)
        self._low, self._told = low, clock
        self._put_away_in_time()

    def _tell_clock(self) -> None:
        """Time went on without results: the clock of the view's table goes on with an empty one."""
        if not self.for_view or not self.newest.next:
            return
        clock = self._oldest_to_come()
        if clock is not None and (self._told is None or clock > self._told):
            self._append(self.spec.stored.empty_table(), clock, clock)

    def _oldest_to_come(self, batch: Dequeued | WindowBatch | None = None) -> int | None:
        """A tick that no result is older than which comes after those of a batch; None: not known."""
        if not self.for_view:
            return None
        shape = self.spec.window
        with self._lock:
            if not isinstance(self.queue, WindowQueue):
                rows = self.queue
                return self._source.oldest_to_come(
                    rows.oldest_seq if batch is None else rows.oldest_waiting_seq
                )
            assert shape is not None
            assert batch is None or isinstance(batch, WindowBatch)
            closed, oldest = self._source.closed, self.queue.oldest_undelivered(batch)
        if closed is None:
            return None
        instant = shape.next_instant(closed)
        return instant if oldest is None else min(instant, oldest + shape.reach)

    def _needed(self) -> Cursors:
        """From where rows must be read again, if the process ended now."""
        with self._lock:
            if not isinstance(self.queue, WindowQueue):
                return self._source.before(self.queue.oldest_seq)
            oldest, size = self.queue.oldest_needed, self.queue.spec.size
        return self._source.cursors if oldest is None else (FeedCursor(oldest - size),)

    def _delivered(self, batch: Dequeued | WindowBatch) -> None:
        with self._lock:
            now = max(self.clock(), self.queue.last_time)
            self.queue.deliver(batch, now)  # type: ignore[arg-type]  # it is the queue's own

    def _measured(self, count: int, seconds: float) -> None:
        """How many keys a firing can take is learned from what this one took; not from the first on Spark."""
        if not self._warm and self.tier == "Spark":
            self._warm = True  # it started workers
            return
        self.sizer.target_s = self._target_s
        self.sizer.observe(count, seconds)
        if self.sizer.row_s is not None:
            with self._lock:
                self.queue.observe_cost(self.sizer.row_s * 1e6)

    # What others ask

    @property
    def competes(self) -> bool:
        """Whether its keys compete with those of other update queries, or it just takes turns.

        Rows of an append queue are many of one key and leave the key stale: counted as keys they
        would always win. A query that never ran has no cost to compare.
        """
        return self.mode == "updates" and self.sizer.row_s is not None

    def offer(self) -> Offer:
        """What the query could do next, where several compete (US10)."""
        with self._lock:
            starts = self.queue.waiting_starts(self.sizer.count)
        row_us, run_us = 1e6 * (self.sizer.row_s or 0.0), 1e6 * self.sizer.fixed_s
        return Offer(self.name.casefold(), starts, row_us, run_us, 2.0**self.priority)

    def staleness(self) -> tuple[pa.Table, dict[str, int]]:
        """Each key's staleness in seconds, and where all rows are."""
        with self._lock:
            now = max(self.clock(), self.queue.last_time)
            table, counts = self.queue.staleness(now), self.queue.ledger.counts()
        names = [*self.spec.key, *table.column_names[len(self.spec.key) :]]
        return table.rename_columns(names), counts

    @property
    def waiting_rows(self) -> int:
        """Rows that came and wait."""
        return self.queue.ledger.waiting + self._source.waiting()

    @property
    def computed_rows(self) -> int:
        """How many rows went through the query so far: a row of two windows counts twice."""
        evaluated = sum(evaluation.rows_evaluated for evaluation in self.evaluations)
        return evaluated + self._folded.rows_by_operators + self._folded.rows_on_spark

    @property
    def tier(self) -> str:
        """Where the query runs."""
        by_operators = all(evaluation.evaluates_by_operators for evaluation in self.evaluations)
        return "operators" if by_operators else "Spark"

    # Snapshots

    def drop(self) -> None:
        """Neither results nor rows that wait are held any more."""
        self.newest, self._taken_up = NewestResults(self.spec.stored, self.spec.key), False
        with self._lock:
            self._begin_queue(self._low)

    def shown(self) -> pa.Table:
        """The newest result of each key, as users see it."""
        while True:
            newest, elsewhere = self.newest, self.elsewhere  # in this order: it may move just now
            if elsewhere is None:
                return newest.shown()
            try:
                return elsewhere.newest_results(self)
            except HostGone:
                elsewhere.wait_gone()

    def to_keep(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The newest result of each key, if there are new ones."""
        if self.newest.next <= self._kept_next:
            return None
        return self.newest.state(), {"next": self.newest.next}

    def put_away_if_due(self, period_s: float) -> None:
        """Writes a snapshot if the last one is that old."""
        if self.keeper.is_due(period_s):
            self.put_away()

    def _put_away_in_time(self) -> None:
        """Results that the log will drop soon are in a snapshot before."""
        first, new = self.sink.log.first, self.newest.next - self._kept_next
        soon = new >= max(self.world.settings.integer("results_kept") // 2, 1)
        late = first > 0 and 2 * new > self.newest.next - first  # its bytes are bounded too
        if soon or (late and new >= LEAST_RESULTS):
            self.put_away()

    # What is still needed of the tables

    def needs(self, table: SeenTable) -> Needs:
        """What may be read again to fill the queue; RANGE waits for it."""
        ticks = [cursor.tick for cursor in self._low if cursor is not None]
        after = min(ticks) if len(ticks) == len(self._low) else None
        return Needs(self._needed_from(table.definition.id), held_from(after, table))

    def _needed_from(self, number: int) -> int | None:
        """The oldest tick of a table that may be read again; None for all of it."""
        spec, low = self.spec, self._low
        if not spec.join:
            low = tuple(
                cursor
                for table, cursor in zip(self.tables, low, strict=True)
                if table.definition.id == number
            )
        begins = spec.window is not None and low == self.beginning.cursors
        ticks = [cursor.tick for cursor in low if cursor is not None]
        if begins or len(ticks) < len(low):
            return None
        return min(ticks) - max((side.reach for side in spec.join), default=0)

    @property
    def reached(self) -> int | None:
        """The furthest tick that it has gone beyond."""
        places = [*self._source.cursors, *self._low]
        return max((cursor.tick for cursor in places if cursor is not None), default=None)


def key_texts(table: pa.Table, key: Sequence[str]) -> list[str]:
    """Each key as one text; an empty one where each row replaces the one before."""
    columns: list[list[Any]] = [table.column(name).to_pylist() for name in key]
    texts = [["NULL" if value is None else str(value) for value in column] for column in columns]
    return [", ".join(row[number] for row in texts) for number in range(table.num_rows)]
