"""Traces computed by hand from the text of the paper: Fig. 2, Fig. 6, Fig. 12."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from headwater.engine.update_queue import Choice, UpdateQueue, WindowQueue, WindowSpec
from headwater.engine.update_queue.key_states import DONE, ENQ, IDLE, READY, WAIT

TICKER = pa.schema([("symbol", pa.string()), ("price", pa.int64())])
VALUE = pa.schema([("value", pa.string())])


def quotes(*rows: tuple[str, int]) -> pa.Table:
    symbols, prices = zip(*rows, strict=True)
    return pa.table({"symbol": symbols, "price": prices}, schema=TICKER)


def prices(batch: object) -> list[tuple[str, int]]:
    return [(row["symbol"], row["price"]) for row in batch.rows.to_pylist()]


def test_figure_2_staleness_of_one_key() -> None:
    """An arrival every 2, cost 3: a, b, d, e, g, h … are processed; staleness as drawn.

    a (0) is delivered at 3, b (2) at 6, d (6; c was superseded at the same time) at 9, e (8) at
    12, g (12) at 15, h (14) at 18. After each delivery staleness falls to now minus the oldest
    later arrival: 1, 2, 1, 2, 1, 2.
    """
    queue = UpdateQueue(VALUE, [])
    names, arrivals = iter("abcdefghij"), iter(range(0, 22, 2))
    upcoming = next(arrivals)
    now, processed, after, areas = 0, [], [], []
    for _ in range(6):
        while upcoming <= now:
            queue.enqueue(pa.table({"value": [next(names)]}), upcoming)
            upcoming = next(arrivals)
        batch = queue.dequeue(1, now)
        processed += batch.rows["value"].to_pylist()
        now += 3
        while upcoming <= now:
            queue.enqueue(pa.table({"value": [next(names)]}), upcoming)
            upcoming = next(arrivals)
        areas.append(queue.application_staleness.areas(now)[0])
        assert queue.application_staleness.now(now)[0] == [3, 4, 5, 4, 5, 4][len(after)]
        queue.deliver(batch, now)
        after.append(int(queue.application_staleness.now(now)[0]))
        queue.validate()
    assert processed == list("abdegh")
    assert after == [1, 2, 1, 2, 1, 2]
    # 3²/2; then trapeziums 1…4, 2…5, 1…4, 2…5, 1…4 over 3 ticks each
    assert areas == pytest.approx([4.5, 12, 22.5, 30, 40.5, 48])
    # queue staleness: b waits 2…3, c 4…6, e 8…9, f 10…12, h 14…15 and i since 16
    assert queue.queue_staleness.areas(18)[0] == pytest.approx(0.5 + 2 + 0.5 + 2 + 0.5 + 2)
    assert queue.ledger.counts() == {
        "rows_in": 10,
        "processed": 6,
        "superseded": 3,
        "shed": 0,
        "waiting": 1,
        "in_process": 0,
    }


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("fifo", [("MSFT", 1), ("ORCL", 1), ("IBM", 2)]),
        ("inplace", [("IBM", 2), ("MSFT", 1), ("ORCL", 1)]),
        ("lifo", [("IBM", 2), ("ORCL", 1), ("MSFT", 1)]),
        ("append", [("IBM", 1), ("MSFT", 1), ("ORCL", 1), ("IBM", 2)]),
    ],
)
@pytest.mark.parametrize("together", [True, False])
def test_figure_6_where_the_new_value_goes(
    policy: str, expected: list[tuple[str, int]], together: bool
) -> None:
    """IBM1, …, IBM2: to the tail under FIFO, to IBM1's place under IN-PLACE; as one batch too."""
    queue = UpdateQueue(TICKER, ["symbol"], Choice(policy))
    rows = [("IBM", 1), ("MSFT", 1), ("ORCL", 1), ("IBM", 2)]
    if together:
        queue.enqueue(quotes(*rows), np.arange(4))
    else:
        for time, row in enumerate(rows):
            queue.enqueue(quotes(row), time)
    queue.validate()
    since = {"IBM": 0, "MSFT": 1, "ORCL": 2}  # the oldest update of each
    assert queue.waiting_starts(2).tolist() == [since[symbol] for symbol, _ in expected[:2]]
    assert prices(queue.dequeue(10, 5)) == expected
    assert queue.ledger.superseded == len(rows) - len(expected)


def test_linecutting_lets_a_slow_key_to_the_front() -> None:
    """Fast keys update every 10 ticks, the slow one after 1 000: it passes them, they stay put."""
    queue = UpdateQueue(TICKER, ["symbol"], Choice("linecutting"))
    queue.observe_cost(100)
    for time in range(0, 1000, 10):
        queue.enqueue(quotes(("A", time), ("B", time), ("C", time)), time)
        if time == 980:
            queue.dequeue(3, 985)
    queue.enqueue(quotes(("SLOW", 1)), 1000)  # 1 row in 1 000 ticks · cost 100 · 4 keys < 1
    queue.enqueue(quotes(("B", 1001)), 1001)
    assert prices(queue.dequeue(4, 1010)) == [("SLOW", 1), ("A", 990), ("B", 1001), ("C", 990)]


def test_linecutting_is_in_place_when_nobody_is_slow() -> None:
    """Keys that all update at one rate keep their places, under the full rule."""
    queue = UpdateQueue(TICKER, ["symbol"], Choice("linecutting"))
    queue.observe_cost(1)
    for time in range(0, 300, 3):
        queue.enqueue(quotes(("A", time), ("B", time), ("C", time)), time)
    assert [s for s, _ in prices(queue.dequeue(3, 301))] == ["A", "B", "C"]


def windows_of_one_key(
    kind: str, until: int
) -> tuple[list[tuple[int, list[int], int]], WindowQueue]:
    """ω = 3, δ = 1, C_t = 2, a row per tick from 1: windows as (start, rows, delivered at)."""
    queue = WindowQueue(VALUE, [], WindowSpec(3, 1, first=1), kind)
    delivered, rows, batch, free_at = [], [], None, 0
    for now in range(1, until + 1):
        queue.enqueue(pa.table({"value": [str(now)]}), np.array([now]), now)
        if batch is not None and now == free_at:
            queue.deliver(batch, now)
            if batch.complete[0]:
                delivered.append((int(batch.starts[0]), rows, now))
                rows = []
            batch = None
        if batch is None:
            batch = queue.dequeue(1, now)
            rows = [*rows, *map(int, batch.rows["value"].to_pylist())]
            free_at = now + 2 * batch.row_count
            batch = batch if len(batch) else None
        queue.validate()
    return delivered, queue


def test_figure_12_eager() -> None:
    """EAGER delivers the windows starting at 1, 7, 13 at 7, 13, 19, each with its three rows."""
    delivered, queue = windows_of_one_key("eager", 19)
    assert delivered == [(1, [1, 2, 3], 7), (7, [7, 8, 9], 13), (13, [13, 14, 15], 19)]
    # the window that closes at 4 invalidates the first result: staleness falls to 7 − 4, and so on
    assert queue.application_staleness.now(19)[0] == 19 - 16
    # closed at 3 and delivered at 7; pending since 4 until 13, since 10 until 19, since 16
    area = 4 * 4 / 2 + (9 * 9 - 3 * 3) / 2 + (9 * 9 - 3 * 3) / 2
    assert queue.application_staleness.areas(19)[0] == pytest.approx(area)
    # the key waits from the starter after the commit: 2…7, 8…13, 14…19
    assert queue.queue_staleness.areas(19)[0] == pytest.approx(3 * 5 * 5 / 2)
    assert queue.states.steps[READY, DONE] == 3


def test_figure_12_lazy() -> None:
    """LAZY delivers {1–3}, {7–9}, {13–15} at 9, 15, 21."""
    delivered, queue = windows_of_one_key("lazy", 21)
    assert delivered == [(1, [1, 2, 3], 9), (7, [7, 8, 9], 15), (13, [13, 14, 15], 21)]
    assert queue.application_staleness.now(21)[0] == 21 - 16
    # both kinds are computed on window ends: 4…9, 10…15, 16…21 in the queue
    assert queue.queue_staleness.areas(21)[0] == pytest.approx(3 * 5 * 5 / 2)
    area = 6 * 6 / 2 + 2 * (11 * 11 - 5 * 5) / 2
    assert queue.application_staleness.areas(21)[0] == pytest.approx(area)
    assert IDLE not in {state for step in queue.states.steps for state in step}


def test_a_gap_makes_an_eager_key_idle() -> None:
    """Rows 1 and 2, then a gap: the key is idle until 3 comes, and others are served meanwhile."""
    schema = pa.schema([("key", pa.string())])
    queue = WindowQueue(schema, ["key"], WindowSpec(3, 3, origin=1, first=1), "eager")

    def arrive(key: str, now: int) -> None:
        queue.enqueue(pa.table({"key": [key]}), np.array([now]), now)
        queue.validate()

    arrive("x", 1)
    assert queue.states.of(0) == {WAIT}
    first = queue.dequeue(1, 1)
    assert queue.states.of(0) == {READY}
    queue.deliver(first, 1)
    assert queue.states.of(0) == {IDLE}
    arrive("y", 2)
    other = queue.dequeue(1, 2)
    assert other.slots.tolist() == [1]
    arrive("x", 3)  # closes its window: ready again
    assert queue.states.of(0) == {READY}
    queue.deliver(other, 3)
    last = queue.dequeue(1, 3)
    assert (last.slots.tolist(), last.complete.tolist(), last.row_count) == ([0], [True], 1)
    arrive("x", 4)
    assert queue.states.of(0) == {READY, WAIT}
    queue.deliver(last, 4)
    assert queue.states.of(0) == {WAIT}
    arrive("y", 7)  # y's window closes without a row at its end
    assert queue.states.of(1) == {READY, WAIT}
    finished = queue.dequeue(1, 7)
    assert (finished.slots.tolist(), finished.complete.tolist()) == ([1], [True])
    assert finished.row_count == 0
    assert queue.states.steps[ENQ, WAIT] == 4


def test_an_eager_key_goes_on_before_others_that_are_ready() -> None:
    """The operator stays with a key as long as rows of its window are there (UpStream §6.2)."""
    schema = pa.schema([("key", pa.string())])
    queue = WindowQueue(schema, ["key"], WindowSpec(10, 10), "eager")

    def arrive(key: str, now: int) -> None:
        queue.enqueue(pa.table({"key": [key]}), np.array([now]), now)

    for now, key in enumerate("xy", start=1):
        arrive(key, now)
        queue.deliver(queue.dequeue(1, now), now)  # committed, then idle
    arrive("x", 3)
    batch = queue.dequeue(1, 3)
    arrive("y", 4)
    arrive("x", 5)
    queue.deliver(batch, 6)
    queue.validate()
    assert queue.dequeue(2, 6).slots.tolist() == [0, 1]


@pytest.mark.parametrize("kind", ["lazy", "eager"])
def test_the_clock_closes_windows(kind: str) -> None:
    """A key that falls silent: its last window is delivered once the table's mark passes its end."""
    queue = WindowQueue(VALUE, [], WindowSpec(10, 10), kind)
    queue.enqueue(pa.table({"value": ["a", "b"]}), np.array([1, 2]), np.array([1, 2]))
    batch = queue.dequeue(1, 3)
    assert not batch.complete.any()
    queue.deliver(batch, 4)
    queue.advance(8, 9)
    assert not queue.dequeue(1, 9).complete.any()
    queue.advance(9, 11)
    queue.validate()
    assert queue.application_staleness.now(13)[0] == 2
    batch = queue.dequeue(1, 13)
    assert batch.complete.all()
    queue.deliver(batch, 14)
    queue.validate()
    assert queue.application_staleness.now(15)[0] == 0
    assert queue.ledger.processed == 2
