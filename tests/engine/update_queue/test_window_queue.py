"""Windows over update streams against brute force, on random histories."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.engine.update_queue import Choice, PagePool, WindowBatch, WindowQueue, WindowSpec
from headwater.engine.update_queue.key_states import DONE, ENQ, IDLE, READY, WAIT, KeyStates
from headwater.engine.update_queue.window_marks import OPEN
from headwater.errors import OverloadError

SCHEMA = pa.schema([("key", pa.int64()), ("t", pa.int64()), ("text", pa.string())])
SMALLEST = -(10**6)

specs = st.builds(
    WindowSpec,
    size=st.integers(1, 6),
    slide=st.integers(1, 7),
    origin=st.integers(0, 3),
    first=st.sampled_from([None, 0, 5]),
    closes_at_last_tick=st.booleans(),
)
arrivals = st.lists(
    st.tuples(st.integers(0, 2), st.integers(1, 4), st.integers(0, 2)), min_size=1, max_size=6
)
histories = st.lists(
    st.one_of(
        st.tuples(st.just("enqueue"), arrivals),
        st.tuples(st.just("dequeue"), st.integers(1, 3)),
        st.tuples(st.just("deliver"), st.integers(0, 4)),
        st.tuples(st.just("advance"), st.integers(0, 4)),
    ),
    max_size=40,
)


@dataclass
class Key:
    """All rows of a key as (T, arrival), what the clock said, and what was delivered of it."""

    rows: list[tuple[int, int]] = field(default_factory=list)
    clock: list[tuple[int, int]] = field(default_factory=list)  # (mark, at)
    committed: int = SMALLEST
    delivered: int = SMALLEST
    open_rows: list[int] = field(default_factory=list)  # what the operator has in its window
    application_area: float = 0.0
    queue_area: float = 0.0


class Play:
    """A queue, an operator that obeys marks, and everything that ever came."""

    def __init__(self, spec: WindowSpec, kind: str, pool: PagePool) -> None:
        self.spec, self.kind = spec, kind
        self.queue = WindowQueue(SCHEMA, ["key"], spec, kind, pool=pool, page_rows=4, block_rows=2)
        self.keys: dict[int, Key] = {}
        self.batches: list[WindowBatch] = []
        self.now = self.stamp = 0
        self.results: list[tuple[int, int, list[int]]] = []

    # Brute force

    def rows_in(self, key: Key, start: int) -> list[int]:
        return [t for t, _ in key.rows if start <= t < start + self.spec.size]

    def windows(self, key: Key) -> list[int]:
        """Starts of all windows with rows."""
        found = set()
        for t, _ in key.rows:
            start = self.spec.started(t)
            while start is not None and t < start + self.spec.size:
                found.add(start)
                start = self.spec.started(start - 1)
        return sorted(found)

    def closed_at(self, key: Key, start: int) -> int | None:
        last = start + self.spec.size - 1
        needed = last if self.spec.closes_at_last_tick else last + 1
        times = [at for t, at in key.rows if t >= needed]
        times += [at for mark, at in key.clock if mark >= last]
        return min(times, default=None)

    def application_start(self, key: Key) -> int | None:
        times = [self.closed_at(key, s) for s in self.windows(key) if s > key.delivered]
        return min((t for t in times if t is not None), default=None)

    def queue_start(self, key: Key) -> int | None:
        if self.kind == "lazy":
            times = [self.closed_at(key, s) for s in self.windows(key) if s > key.committed]
            return min((t for t in times if t is not None), default=None)
        starts = ((self.spec.started(t), t, at) for t, at in key.rows)
        later = [
            at for s, t, at in starts
            if s is not None and s > key.committed and t < s + self.spec.size
        ]  # fmt: skip
        return min(later, default=None)

    def newest(self, key: Key) -> int | None:
        """What must be committed to next."""
        if self.kind == "lazy":
            closed = [s for s in self.windows(key) if self.closed_at(key, s) is not None]
            return max((s for s in closed if s > key.committed), default=None)
        started = [s for s in self.windows(key) if s > key.committed]
        return max(started, default=None)

    def pass_time(self, ticks: int) -> None:
        then, self.now = self.now, self.now + ticks
        for key in self.keys.values():
            for name in ("application", "queue"):
                start = getattr(self, f"{name}_start")(key)
                if start is not None:
                    low, high = max(then, start) - start, self.now - start
                    area = getattr(key, f"{name}_area") + (high * high - low * low) / 2
                    setattr(key, f"{name}_area", area)

    # Actions

    def enqueue(self, given: list[tuple[int, int, int]]) -> None:
        keys, stamps, times = [], [], []
        for name, step, wait in given:
            self.pass_time(wait)
            self.stamp += step
            self.keys.setdefault(name, Key()).rows.append((self.stamp, self.now))
            keys.append(name)
            stamps.append(self.stamp)
            times.append(self.now)
        self.came(keys, stamps, times)

    def came(self, keys: list[int], stamps: list[int], times: list[int]) -> None:
        rows = pa.table({"key": keys, "t": stamps, "text": [f"row {t}" for t in stamps]}, SCHEMA)
        self.queue.enqueue(rows, np.array(stamps), np.array(times))

    def advance(self, ahead: int) -> None:
        mark = self.stamp + ahead - 1
        for key in self.keys.values():
            key.clock.append((mark, self.now))
        self.stamp = max(self.stamp, mark)
        self.closed(mark)

    def closed(self, mark: int) -> None:
        self.queue.advance(mark, self.now)

    def dequeue(self, count: int) -> None:
        names = self.queue.keys()[0].to_pylist() if self.keys else []
        before = {name: self.newest(key) for name, key in self.keys.items()}
        batch = self.queue.dequeue(count, self.now)
        assert len(batch) <= count
        begin = 0
        for i, slot in enumerate(batch.slots.tolist()):
            rows = slice(begin, begin + int(batch.row_counts[i]))
            begin = rows.stop
            key, start = self.keys[names[slot]], int(batch.starts[i])
            marks, stamps = batch.marks[rows].tolist(), batch.stamps[rows].tolist()
            assert batch.rows["t"].to_pylist()[rows] == stamps
            assert batch.rows["text"].to_pylist()[rows] == [f"row {t}" for t in stamps]
            if OPEN in marks:
                assert marks.index(OPEN) == 0
                assert marks.count(OPEN) == 1
                assert start == before[names[slot]]
                key.committed, key.open_rows = start, []
            assert start == key.committed
            key.open_rows = key.open_rows + stamps
        self.batches.append(batch)

    def deliver(self, wait: int) -> None:
        self.pass_time(wait)
        if not self.batches:
            return
        batch = self.batches.pop(0)
        names = self.queue.keys()[0].to_pylist()
        for slot, start, complete in zip(
            batch.slots.tolist(), batch.starts.tolist(), batch.complete.tolist(), strict=True
        ):
            key = self.keys[names[slot]]
            if complete:
                assert key.open_rows == self.rows_in(key, start), "the window is whole"
                assert start > key.delivered, "never an older result after a newer one"
                key.delivered = start
                self.results.append((names[slot], start, key.open_rows))
        self.queue.deliver(batch, self.now)

    def compare(self) -> None:
        self.queue.validate()
        names = self.queue.keys()[0].to_pylist() if self.keys else []
        for kind in ("queue", "application"):
            tracker = getattr(self.queue, f"{kind}_staleness")
            expected = [getattr(self.keys[name], f"{kind}_area") for name in names]
            assert tracker.areas(self.now) == pytest.approx(expected), kind
        shown: set[tuple[int, int]] = set()
        for name, start, _ in self.results:
            shown |= {(name, t) for t in self.rows_in(self.keys[name], start)}
        assert self.queue.ledger.processed == len(shown)


@pytest.mark.parametrize("kind", ["lazy", "eager"])
@given(spec=specs, history=histories)
@settings(max_examples=150, deadline=None)
def test_windows_are_whole_newest_and_counted(
    kind: str, spec: WindowSpec, history: list[tuple[str, object]]
) -> None:
    """Integrity by marks, the newest window at each commit, exact counts and staleness."""
    pool = PagePool()
    play = Play(spec, kind, pool)
    for name, argument in history:
        getattr(play, name)(argument)
        play.compare()
    while play.batches:
        play.deliver(1)
    play.advance(100)
    for _ in range(2 * len(play.keys)):
        play.dequeue(3)
        play.deliver(1)
        play.compare()
    assert play.queue.waiting_keys == len(play.queue._ready) == 0
    for key in play.keys.values():
        assert key.delivered == max(play.windows(key), default=SMALLEST)
    assert play.queue.used_rows == 0
    assert pool.taken == 0, "memory returns to the pool"


class LatePlay(Play):
    """The same where the queue is told late: with the next dequeue, of rows first, then of the clock."""

    def __init__(self, spec: WindowSpec, kind: str, pool: PagePool) -> None:
        super().__init__(spec, kind, pool)
        self.untold: list[tuple[int, int, int]] = []  # rows: key, T, arrival
        self.marks: list[tuple[int, int]] = []  # of the clock, with their times
        self.queue = WindowQueue(SCHEMA, ["key"], spec, kind, pool=pool, closed_at=self.when)

    def when(self, tick: int, now: int) -> int:
        return min([now, *(at for mark, at in self.marks if mark >= tick)])

    def came(self, keys: list[int], stamps: list[int], times: list[int]) -> None:
        self.untold += zip(keys, stamps, times, strict=True)

    def closed(self, mark: int) -> None:
        self.marks.append((mark, self.now))

    def pull(self) -> None:
        if self.untold:
            keys, stamps, times = map(list, zip(*self.untold, strict=True))
            super().came(keys, stamps, times)
            self.untold.clear()
        if self.marks:
            self.queue.advance(max(mark for mark, _ in self.marks), self.now)

    def dequeue(self, count: int) -> None:
        self.pull()
        self.compare()
        super().dequeue(count)
        self.compare()


@pytest.mark.parametrize("kind", ["lazy", "eager"])
@given(spec=specs, history=histories)
@settings(max_examples=150, deadline=None)
def test_windows_are_stale_from_when_the_clock_closed_them(
    kind: str, spec: WindowSpec, history: list[tuple[str, object]]
) -> None:
    """Not from when the queue was told: time goes on between, and results are delivered."""
    play = LatePlay(spec, kind, PagePool())
    for name, argument in history:
        getattr(play, name)(argument)
        play.pass_time(1)
    play.pull()
    play.compare()


@pytest.mark.parametrize("kind", ["lazy", "eager"])
@given(spec=specs, history=histories)
@settings(max_examples=80, deadline=None)
def test_a_snapshot_is_restored_from_the_tables_rows(
    kind: str, spec: WindowSpec, history: list[tuple[str, object]]
) -> None:
    """What was in process waits again; counts hold; the same newest windows are delivered."""
    play = Play(spec, kind, PagePool())
    for name, argument in history:
        getattr(play, name)(argument)
    state = play.queue.state()
    log = sorted((t, at, name) for name, key in play.keys.items() for t, at in key.rows)
    needed = [log[seq] for seq in state["seqs"].tolist()]
    again = WindowQueue(SCHEMA, ["key"], spec, kind)
    rows = pa.table(
        {
            "key": [n for _, _, n in needed],
            "t": [t for t, _, _ in needed],
            "text": ["?"] * len(needed),
        },
        SCHEMA,
    )
    stamps = np.array([t for t, _, _ in needed], np.int64)
    times = np.array([at for _, at, _ in needed], np.int64)
    again.restore(state, rows, stamps, times, state["seqs"])
    again.validate()
    assert again.ledger.processed == play.queue.ledger.processed
    again.advance(play.stamp + 100, play.now)
    delivered = {n: k.delivered for n, k in play.keys.items()}
    for _ in range(2 * len(play.keys)):
        batch = again.dequeue(5, play.now)
        names = again.keys(batch.slots)[0].to_pylist()
        for name, start, complete in zip(names, batch.starts, batch.complete, strict=True):
            if complete:
                assert start > delivered[name]
                delivered[name] = int(start)
        again.deliver(batch, play.now)
        again.validate()
    for name, key in play.keys.items():
        assert delivered[name] == max(play.windows(key), default=SMALLEST)


@pytest.mark.parametrize("kind", ["lazy", "eager"])
def test_rows_that_come_after_newer_ones_are_passed_over(kind: str) -> None:
    """They are counted as superseded and lie in no window."""
    queue = WindowQueue(SCHEMA, ["key"], WindowSpec(4, 4), kind)
    rows = pa.table({"key": [1, 1, 1], "t": [5, 4, 7], "text": ["a", "b", "c"]}, SCHEMA)
    queue.enqueue(rows, np.array([5, 4, 7]), 9)
    queue.validate()
    batch = queue.dequeue(1, 9)
    assert batch.rows["t"].to_pylist() == [5, 7]
    assert queue.ledger.superseded == 1


def test_a_batch_that_may_not_fit_is_refused_as_a_whole() -> None:
    """Nothing of it has come; a smaller one is taken."""
    pool = PagePool(2)
    spec = WindowSpec(4, 4)
    queue = WindowQueue(SCHEMA, ["key"], spec, "eager", pool=pool, page_rows=4, block_rows=2)
    rows = pa.table({"key": [1, 2, 3], "t": [1, 2, 3], "text": ["", "", ""]}, SCHEMA)
    with pytest.raises(OverloadError, match="no memory"):
        queue.enqueue(rows, np.array([1, 2, 3]), 3)
    queue.validate()
    queue.enqueue(rows.slice(0, 2), np.array([1, 2]), 3)
    queue.validate()
    assert queue.ledger.rows_in == 2


def test_the_order_of_keys_is_the_policys() -> None:
    """FIFO serves the key first whose window closed first since its last update."""
    for policy, expected in (("fifo", [2, 1]), ("inplace", [1, 2])):
        queue = WindowQueue(SCHEMA, ["key"], WindowSpec(1, 1), "lazy", Choice(policy))
        rows = pa.table({"key": [1, 2, 1], "t": [1, 2, 3], "text": ["", "", ""]}, SCHEMA)
        queue.enqueue(rows, np.array([1, 2, 3]), np.array([1, 2, 3]))
        batch = queue.dequeue(2, 4)
        assert queue.keys(batch.slots)[0].to_pylist() == expected


def test_only_steps_of_the_graph_are_allowed() -> None:
    """ENQ, WAIT, READY, IDLE, DONE as in Fig. 10."""
    states = KeyStates()
    for before, after in ((ENQ, READY), (WAIT, IDLE), (WAIT, READY), (IDLE, DONE)):
        with pytest.raises(AssertionError):
            states.step(0, before, after)
    for before, after in ((ENQ, WAIT), (WAIT, READY), (ENQ, WAIT), (READY, IDLE), (IDLE, READY)):
        states.step(1, before, after)
    assert states.of(1) == {WAIT, READY}
    with pytest.raises(AssertionError, match="already in READY"):
        states.step(1, WAIT, READY)
    states.step(1, READY, DONE)
    assert states.of(1) == {WAIT}


def test_a_key_that_is_being_processed_competes_with_the_keys_of_other_queries() -> None:
    """EAGER: a committed window that can go on counts from when its result lags behind."""
    queue = WindowQueue(SCHEMA, ["key"], WindowSpec(10, 10), "eager")

    def arrive(t: int) -> None:
        row = {"key": 1, "t": t, "text": ""}
        queue.enqueue(pa.Table.from_pylist([row], SCHEMA), np.array([t]), t)

    arrive(1)
    queue.deliver(queue.dequeue(1, 1), 1)
    assert queue.waiting_starts(5).tolist() == []  # idle
    arrive(3)
    assert queue.waiting_starts(5).tolist() == [3]
    queue.advance(9, 12)
    assert queue.waiting_starts(5).tolist() == [12]
    arrive(14)  # the next window waits behind the one under way
    assert queue.waiting_starts(5).tolist() == [12, 14]
    assert queue.waiting_starts(1).tolist() == [12]


def test_the_oldest_undelivered_window_is_one_that_no_batch_ends() -> None:
    """Windows in process count until their batch is delivered, and those that wait beside them."""
    queue = WindowQueue(SCHEMA, ["key"], WindowSpec(4, 4), "eager")
    rows = pa.table({"key": [1, 2], "t": [1, 6], "text": ["", ""]}, SCHEMA)
    queue.enqueue(rows, np.array([1, 6]), 0)
    assert queue.oldest_undelivered() == 0
    queue.deliver(queue.dequeue(2, 1), 1)
    assert queue.oldest_undelivered() == 0
    queue.advance(9, 2)
    first = queue.dequeue(1, 3)
    assert queue.oldest_undelivered() == 0
    assert queue.oldest_undelivered(first) == 4
    queue.deliver(first, 3)
    assert queue.oldest_undelivered(queue.dequeue(1, 4)) is None
