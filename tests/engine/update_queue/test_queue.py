"""The queue of rows against its definition, on random histories."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.upstream.simulator import SCHEMA, Simulation, run_rows
from benchmarks.upstream.traces import Trace
from headwater.engine.update_queue import Choice, PagePool, UpdateQueue
from headwater.errors import OverloadError
from headwater.fold.snapshot import dump, load
from tests.engine.update_queue.model import Model

ROWS = pa.schema([("key", pa.int64()), ("seq", pa.int64()), ("text", pa.string())])
ALL = ("fifo", "inplace", "lifo", "append", "linecutting", "random", "shedding")

arrivals = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=8)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("enqueue"), arrivals),
        st.tuples(st.just("dequeue"), st.integers(1, 4)),
        st.tuples(st.just("deliver"), st.integers(0, 5)),
        st.tuples(st.just("put back"), st.integers(0, 5)),
    ),
    max_size=40,
)


def choice(policy: str, seed: int = 0) -> Choice:
    return Choice(policy, np.random.default_rng(seed), 0.4)


def rows_of(keys: list[int], seqs: list[int]) -> pa.Table:
    texts = [None if seq % 3 == 0 else f"{key}:{seq}" for key, seq in zip(keys, seqs, strict=True)]
    return pa.table({"key": keys, "seq": seqs, "text": texts}, schema=ROWS)


class Pair:
    """A queue and its model, driven alike."""

    def __init__(self, policy: str, pool: PagePool) -> None:
        self.queue = UpdateQueue(ROWS, ["key"], choice(policy), pool=pool, page_rows=2)
        self.model = Model(policy)
        self.batches: list[object] = []
        self.now = self.seq = 0

    def enqueue(self, given: list[tuple[int, int]]) -> None:
        keys, times, seqs = [], [], []
        for key, wait in given:
            self.pass_time(wait)
            self.model.arrive(key, self.seq)
            keys.append(key)
            times.append(self.now)
            seqs.append(self.seq)
            self.seq += 1
        self.queue.enqueue(rows_of(keys, seqs), np.array(times), np.array(seqs))

    def pass_time(self, ticks: int) -> None:
        self.now += ticks
        self.model.pass_time(self.now)

    def dequeue(self, count: int) -> None:
        batch = self.queue.dequeue(count, self.now)
        expected = self.model.take(count)
        keys, seqs = [key for key, _ in expected], [seq for _, seq in expected]
        assert batch.rows.equals(rows_of(keys, seqs))
        assert batch.seqs.tolist() == seqs
        self.batches.append(batch)

    def deliver(self, wait: int) -> None:
        self.pass_time(wait)
        if self.batches:
            self.queue.deliver(self.batches.pop(0), self.now)
            self.model.deliver()

    def put_back(self, wait: int) -> None:
        self.pass_time(wait)
        if self.batches:
            self.queue.put_back(self.batches.pop(), self.now)
            self.model.put_back()

    def compare(self) -> None:
        queue, model = self.queue, self.model
        queue.validate()
        ledger = queue.ledger
        assert (ledger.rows_in, ledger.superseded) == (model.rows_in, model.superseded)
        assert (ledger.processed, ledger.waiting) == (model.processed, len(model.line))
        names = queue.keys()[0].to_pylist()
        for kind in ("queue", "application"):
            tracker = getattr(queue, f"{kind}_staleness")
            expected = [getattr(model.keys[name], f"{kind}_area") for name in names]
            assert tracker.areas(self.now) == pytest.approx(expected), kind


@pytest.mark.parametrize("policy", ["fifo", "inplace", "lifo", "append"])
@given(history=actions)
@settings(max_examples=120, deadline=None)
def test_order_counts_and_staleness_are_those_of_the_definition(
    policy: str, history: list[tuple[str, object]]
) -> None:
    """Rows come out in the policy's order; counts and both staleness integrals are exact."""
    pool = PagePool()
    pair = Pair(policy, pool)
    for name, argument in history:
        getattr(pair, name.replace(" ", "_"))(argument)
        pair.compare()
        held = -(-pair.queue.waiting_count // 2)
        assert pool.taken == (0 if policy == "append" else held)
    while pair.batches:
        pair.deliver(1)
    pair.dequeue(1000)
    pair.deliver(1)
    pair.compare()
    assert pool.taken == 0, "memory returns to the pool"
    assert not pair.queue.application_staleness.now(pair.now).any()


@pytest.mark.parametrize("policy", ALL)
@given(
    history=st.lists(st.tuples(arrivals, st.integers(0, 3)), max_size=25), seed=st.integers(0, 99)
)
@settings(max_examples=60, deadline=None)
def test_every_policy_keeps_the_order_of_each_key_and_counts_every_row(
    policy: str, history: list[tuple[list[tuple[int, int]], int]], seed: int
) -> None:
    """Never an older result after a newer one; the row equation at each step; newest at the end."""
    queue = UpdateQueue(ROWS, ["key"], choice(policy, seed), page_rows=4)
    queue.observe_cost(2)
    now = seq = 0
    shown: dict[int, int] = {}
    newest: dict[int, int] = {}

    def serve(count: int) -> None:
        batch = queue.dequeue(count, now)
        queue.validate()
        for row in batch.rows.to_pylist():
            assert row["seq"] > shown.get(row["key"], -1)
            shown[row["key"]] = row["seq"]
        queue.deliver(batch, now)
        queue.validate()

    for given_rows, count in history:
        keys = [key for key, _ in given_rows]
        times = now + np.cumsum([wait for _, wait in given_rows])
        seqs = list(range(seq, seq + len(keys)))
        newest.update(zip(keys, seqs, strict=True))
        seq, now = seq + len(keys), int(times[-1])
        queue.enqueue(rows_of(keys, seqs), times, np.array(seqs))
        queue.validate()
        serve(count)
    serve(1000)
    if policy != "shedding":
        assert shown == newest
    assert queue.waiting_count == 0


@given(history=st.lists(st.tuples(arrivals, st.integers(0, 3)), max_size=25))
@settings(max_examples=60, deadline=None)
def test_in_place_takes_the_stalest_key(
    history: list[tuple[list[tuple[int, int]], int]],
) -> None:
    """At every dequeue: no waiting key has a larger queue staleness than the one that is taken."""
    queue = UpdateQueue(SCHEMA, ["key"])
    now = 0
    for given_rows, count in history:
        times = now + np.cumsum([wait for _, wait in given_rows])
        now = int(times[-1])
        queue.enqueue(pa.table({"key": [key for key, _ in given_rows]}), times)
        for _ in range(min(count, queue.waiting_count)):
            stalest = queue.queue_staleness.now(now).max()
            batch = queue.dequeue(1, now)
            assert now - batch.starts[0] == stalest
            queue.deliver(batch, now)


@pytest.mark.parametrize("count", [150, pytest.param(1000, marks=pytest.mark.large)])
def test_in_place_is_freshest_when_all_keys_update_alike(count: int) -> None:
    """Over many uniform traces its mean staleness is below FIFO's, LIFO's and that of chance."""
    keys, results, cost = 5, 10, 10
    totals = dict.fromkeys(("inplace", "fifo", "lifo", "random"), 0.0)
    for seed in range(count):
        random = np.random.default_rng(seed)
        times = np.cumsum(random.integers(1, 5, 5 * results))  # 2.5 ticks apart: load 4
        trace = Trace(times, random.integers(0, keys, len(times)))
        for policy in totals:
            outcome = run_rows(trace, policy, cost, results, seed=seed)
            totals[policy] += outcome.queue_staleness + outcome.application_staleness
    assert min(totals, key=totals.__getitem__) == "inplace", totals


def test_without_a_key_each_row_replaces_the_one_before() -> None:
    """`UPDATE KEY ()`."""
    queue = UpdateQueue(ROWS, [])
    queue.enqueue(rows_of([1, 2, 3], [0, 1, 2]), np.array([5, 6, 7]))
    queue.validate()
    assert queue.dequeue(10, 9).rows["key"].to_pylist() == [3]
    assert (queue.ledger.superseded, queue.key_count) == (2, 1)
    assert queue.queue_staleness.areas(9).tolist() == [8.0]  # since the first of them arrived


def test_rows_older_than_their_keys_newest_are_passed_over() -> None:
    """A union delivers the youngest: one row per key and time, older ones that come later not."""
    queue = UpdateQueue(ROWS, ["key"])
    stamps = np.array([10, 10, 9, 20, 15, 20])
    queue.enqueue(rows_of([1, 1, 1, 2, 2, 2], list(range(6))), 0, stamps=stamps)
    queue.validate()
    assert queue.dequeue(5, 1).rows["seq"].to_pylist() == [0, 3]
    queue.enqueue(rows_of([1, 2, 1], [6, 7, 8]), 2, stamps=np.array([10, 21, 11]))
    queue.validate()
    assert queue.dequeue(5, 3).rows["seq"].to_pylist() == [7, 8]


def test_named_keys_are_refreshed_at_their_rate() -> None:
    """A due key comes before all others, a named one that is not due only if nothing else waits."""
    goog, gm, other = 1, 2, 3
    targets = [([pa.array([goog])], 60), ([pa.array([gm])], 3600)]
    queue = UpdateQueue(SCHEMA, ["key"], refresh=targets)

    def served(now: int, *arrived: int, count: int = 1) -> list[int]:
        if arrived:
            queue.enqueue(pa.table({"key": list(arrived)}), now)
        batch = queue.dequeue(count, now)
        queue.deliver(batch, now)
        queue.validate()
        return batch.rows["key"].to_pylist()

    assert served(0, other, gm, goog, count=3) == [gm, goog, other]  # never served: due
    assert served(10, goog, gm, other) == [other]
    assert served(59, other) == [other]
    assert served(60, other) == [goog]
    assert served(61, goog) == [other]
    assert served(62) == [goog]  # nothing else but gm waits, whose hour is not over
    assert served(63) == [gm]
    assert served(64) == []


class Scripted:
    """Random numbers as told: 0 sheds a row, 1 keeps it."""

    def __init__(self, *numbers: float) -> None:
        self.numbers = list(numbers)

    def random(self, count: int) -> np.ndarray:
        taken, self.numbers = self.numbers[:count], self.numbers[count:]
        return np.array(taken)


@pytest.mark.parametrize("together", [True, False])
def test_a_shed_row_makes_results_stale_but_does_not_wait(together: bool) -> None:
    """Rows at 0 (kept), 2 and 3 (shed), 5 (kept), 20 (shed) of one key; another key between."""
    chance = Scripted(1, 0, 1, 0, 1, 0)
    queue = UpdateQueue(SCHEMA, ["key"], Choice("shedding", chance, 0.5))  # type: ignore[arg-type]
    keys, times = [7, 7, 8, 7, 7], [0, 2, 2, 3, 5]
    if together:
        queue.enqueue(pa.table({"key": keys}), np.array(times))
    else:
        for key, time in zip(keys, times, strict=True):
            queue.enqueue(pa.table({"key": [key]}), time)
    queue.validate()
    assert queue.ledger.shed == 2
    first = queue.dequeue(1, 6)
    assert queue.queue_staleness.now(6).tolist() == [6 - 5, 6 - 2]
    queue.deliver(first, 10)
    assert queue.application_staleness.now(10).tolist() == [10 - 2, 10 - 2]
    rest = queue.dequeue(9, 11)
    assert rest.rows["key"].to_pylist() == [8, 7]
    queue.deliver(rest, 12)
    assert queue.application_staleness.now(12).tolist() == [0, 0]
    queue.enqueue(pa.table({"key": [7]}), 20)
    queue.validate()
    assert queue.queue_staleness.now(25).tolist() == [0, 0]
    assert queue.application_staleness.now(25).tolist() == [5, 0]


def test_switching_keeps_rows_counts_and_staleness() -> None:
    """Append to updates drops what is superseded; back again what waits is served in order."""
    queue = UpdateQueue(ROWS, ["key"], Choice("append"))
    queue.enqueue(rows_of([1, 2, 1, 3, 2], list(range(5))), np.arange(5))
    queue.switch(Choice("inplace"))
    queue.validate()
    assert (queue.policy, queue.ledger.superseded, queue.waiting_count) == ("inplace", 2, 3)
    assert queue.queue_staleness.now(10).tolist() == [10, 9, 7]
    batch = queue.dequeue(1, 10)
    assert batch.seqs.tolist() == [2]
    with pytest.raises(ValueError, match="in process"):
        queue.switch(Choice("append"))
    queue.deliver(batch, 11)
    queue.switch(Choice("append"))
    queue.enqueue(rows_of([1, 1], [5, 6]), 12)
    queue.validate()
    assert queue.dequeue(10, 13).seqs.tolist() == [3, 4, 5, 6]
    queue.validate()


@pytest.mark.parametrize("policy", ["fifo", "inplace", "lifo", "append", "linecutting"])
def test_a_snapshot_names_the_rows_that_wait(policy: str) -> None:
    """Restored from the table's rows: the same order, counts and staleness; in process first."""
    queue = UpdateQueue(ROWS, ["key"], Choice(policy))
    table = rows_of([4, 1, 2, 1, 3, 2], list(range(6)))
    queue.enqueue(table, np.arange(6))
    taken = queue.dequeue(2, 10)

    class Saved:
        def state(self) -> dict[str, object]:
            return queue.state()

        def restore(self, state: dict[str, object]) -> None:
            self.found = state

    saved = Saved()
    load(saved, dump(queue))
    again = UpdateQueue(ROWS, ["key"], Choice(policy))
    parts = [*saved.found["in_process"], saved.found["waiting"]]
    seqs = np.sort(np.concatenate([part["seqs"] for part in parts]))
    again.restore(saved.found, table.take(pa.array(seqs)), seqs)
    again.validate()
    queue.put_back(taken, 10)
    queue.validate()
    assert again.state()["last_seq"] == 5
    assert again.ledger == queue.ledger
    assert again.queue_staleness.areas(20) == pytest.approx(queue.queue_staleness.areas(20))
    assert again.staleness(30).equals(queue.staleness(30))
    assert again.dequeue(10, 31).rows.equals(queue.dequeue(10, 31).rows)
    with pytest.raises(ValueError, match="fresh"):
        again.restore(saved.found, table, np.arange(6))


def test_what_must_not_be() -> None:
    """Rows out of order, deliveries out of order, and more pages than the pool has."""
    queue = UpdateQueue(SCHEMA, ["key"], page_rows=2, pool=PagePool(2))
    queue.enqueue(pa.table({"key": [1, 2]}), 5)
    with pytest.raises(ValueError, match="order of their arrival"):
        queue.enqueue(pa.table({"key": [1]}), 4)
    with pytest.raises(ValueError, match="one arrival time"):
        queue.enqueue(pa.table({"key": [1]}), np.array([6, 7]))
    first, second = queue.dequeue(1, 6), queue.dequeue(1, 6)
    with pytest.raises(ValueError, match="in the order"):
        queue.deliver(second, 7)
    with pytest.raises(ValueError, match="last"):
        queue.put_back(first, 7)
    many, stamps = pa.table({"key": [3, 4, 5, 6, 7]}), np.arange(5)
    with pytest.raises(OverloadError, match="no memory"):
        queue.enqueue(many, 8, stamps=stamps)
    queue.validate()
    queue.enqueue(many.slice(0, 3), 8, stamps=stamps[:3])  # nothing of it has come yet
    queue.validate()
    assert queue.waiting_count == 3


def test_a_simulation_ends_with_its_trace() -> None:
    """Idle times are skipped, every row is delivered below full load, and memory is measured."""
    trace = Trace(np.array([10, 20, 300]), np.array([1, 2, 1]))
    simulation = Simulation(trace, UpdateQueue(SCHEMA, ["key"], page_rows=2), 5)
    outcome = simulation.run(100)
    assert (outcome.results, outcome.skipped, outcome.ended) == (3, 0, 305)
    assert outcome.queue_staleness == 0
    assert outcome.application_staleness == pytest.approx(3 * 12.5 / 2 / 305)
