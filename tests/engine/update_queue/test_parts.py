"""The parts of an update queue, each alone: the queue of keys, pages, times that only rise."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.engine.update_queue.key_queue import KeyQueue
from headwater.engine.update_queue.ledger import Ledger
from headwater.engine.update_queue.newest_only import NewestOnly
from headwater.engine.update_queue.staleness import Staleness
from headwater.engine.update_queue.store import PagedRowStore, PagePool
from headwater.engine.update_queue.window_spec import WindowSpec

some_slots = st.lists(st.integers(0, 40), unique=True, max_size=20)


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["back", "front", "remove"]), some_slots),
            st.tuples(st.just("pop"), st.integers(0, 30)),
        ),
        max_size=60,
    )
)
@settings(max_examples=150, deadline=None)
def test_the_queue_of_keys_is_a_list(steps: list[tuple[str, object]]) -> None:
    """Whatever is pushed, popped and removed: a slot stands in it once, in the right place."""
    queue, model = KeyQueue(), list[int]()
    queue.grow(41)
    for name, argument in steps:
        if name == "pop":
            assert queue.pop_front(argument).tolist() == model[:argument]
            model = model[argument:]
            continue
        slots, rest = np.array(argument, np.int64), [s for s in model if s not in argument]
        if name == "remove":
            queue.remove(slots)
            model = rest
        else:
            getattr(queue, f"push_{name}")(slots)
            model = rest + argument if name == "back" else argument + rest
        assert queue.in_order().tolist() == model
        assert len(queue) == len(model)
        if model:
            assert queue.front == model[0]


TYPES: dict[str, tuple[pa.DataType, list[object]]] = {
    "small": (pa.int8(), [1, None, -3]),
    "float": (pa.float32(), [1.5, -0.0, None]),
    "text": (pa.string(), ["a", None, "ccc"]),
    "bytes": (pa.binary(), [b"a", b"", None]),
    "flag": (pa.bool_(), [True, None, False]),
    "day": (pa.date32(), [dt.date(2026, 1, 1), None, dt.date(1, 1, 1)]),
    "time": (pa.timestamp("us", "UTC"), [dt.datetime(2026, 1, 1, tzinfo=dt.UTC), None, None]),
    "money": (pa.decimal128(12, 2), [Decimal("1.25"), None, Decimal("-3.00")]),
    "long": (pa.decimal128(38, 0), [Decimal(10**30), None, Decimal(-5)]),
    "list": (pa.list_(pa.int32()), [[1, 2], None, []]),
    "pair": (pa.struct([("a", pa.int32()), ("b", pa.string())]), [{"a": 1, "b": None}, None, None]),
}


@pytest.mark.parametrize("name", TYPES)
def test_rows_of_every_type_come_back_as_they_were(name: str) -> None:
    """Also NULLs, and when a NULL comes only later."""
    type_, values = TYPES[name]
    store = PagedRowStore(pa.schema([("x", type_)]), PagePool(), page_rows=4)
    places = store.allocate(5)
    rows = pa.table({"x": pa.array([values[0]] * 5, type_)})
    store.write(places, store.encode(rows))
    changed = pa.table({"x": pa.array(values, type_)})
    store.write(places[[4, 0, 2]], store.encode(changed))
    expected = [values[1], values[0], values[2], values[0], values[0]]
    assert store.read(places)["x"].to_pylist() == expected
    store.write(places[[0]], store.encode(changed, np.array([2])))
    assert store.read(places[[0]])["x"].to_pylist() == [values[2]]


@given(steps=st.lists(st.tuples(st.integers(0, 9), st.randoms(use_true_random=False)), max_size=40))
@settings(max_examples=80, deadline=None)
@pytest.mark.parametrize("block_rows", [1, 3])
def test_pages_have_no_holes(block_rows: int, steps: list[tuple[int, object]]) -> None:
    """Blocks keep their rows while others come and go; pages are those that the blocks need."""
    pool = PagePool()
    schema = pa.schema([("x", pa.int64()), ("s", pa.string())])
    store = PagedRowStore(schema, pool, page_rows=6, block_rows=block_rows)
    held: dict[int, int] = {}  # block → what stands in its first row
    number = 0
    for count, random in steps:
        if random.random() < 0.5:
            blocks = store.allocate(count)
            values = list(range(number, number + count))
            number += count
            rows = pa.table({"x": values, "s": [f"s{v}" for v in values]}, schema)
            store.write(blocks * block_rows, store.encode(rows))
            held.update(zip(blocks.tolist(), values, strict=True))
        else:
            gone = random.sample(sorted(held), min(count, len(held)))
            for block in gone:
                del held[block]
            sources, targets = store.free(np.array(gone, np.int64))
            for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
                held[target] = held.pop(source)
        assert sorted(held) == list(range(store.block_count))
        found = store.read(np.array(sorted(held), np.int64) * block_rows)
        assert found["x"].to_pylist() == [held[block] for block in sorted(held)]
        assert found["s"].to_pylist() == [f"s{held[block]}" for block in sorted(held)]
        assert pool.taken == store.allocated_rows // 6 == -(-len(held) * block_rows // 6)
        assert store.allocated_rows - len(held) * block_rows < 6


@given(rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=40))
@settings(max_examples=100, deadline=None)
def test_only_rows_newer_than_all_before_are_admitted(rows: list[tuple[int, int]]) -> None:
    """In any batches: as if row by row."""
    newest: dict[int, int] = {}
    expected = []
    for slot, stamp in rows:
        expected.append(stamp > newest.get(slot, -1))
        newest[slot] = max(stamp, newest.get(slot, -1))
    for size in (1, 3, 40):
        only, admitted = NewestOnly(), list[bool]()
        for begin in range(0, len(rows), size):
            slots, stamps = np.array(rows[begin : begin + size], np.int64).T
            which = only.admit(slots, stamps, 4)
            only.note(slots[which], stamps[which])
            admitted += which.tolist()
        assert admitted == expected


def test_a_row_that_was_not_seen_at_once_counts_from_its_arrival() -> None:
    """A batch is enqueued after the delivery at 10 that it arrived before: stale since 10."""
    staleness = Staleness(0)
    staleness.grow(1)
    key = np.array([0])
    staleness.pending(key, np.array([2]))
    staleness.covered(key, 10)
    staleness.pending(key, np.array([8]))
    assert staleness.now(11).tolist() == [3]
    assert staleness.areas(12).tolist() == [8 * 8 / 2 + (4 * 4 - 2 * 2) / 2]
    assert staleness.mean(12) == pytest.approx(38 / 12)


def test_the_ledger_finds_what_is_missing() -> None:
    """The equation, and counts that are not what the queue holds."""
    ledger = Ledger()
    ledger.came(10, waiting=6, superseded=3, shed=1)
    ledger.take(4)
    ledger.deliver(1)
    ledger.put_back(2, superseded=1)
    ledger.validate(waiting=3, in_process=1)
    assert ledger.skipped == 5
    with pytest.raises(AssertionError, match="rows wait"):
        ledger.validate(waiting=4, in_process=1)
    ledger.rows_in += 1
    with pytest.raises(AssertionError, match="accounted"):
        ledger.validate(waiting=3, in_process=1)


def test_windows_of_a_closed_interval() -> None:
    """[INTERVAL 3] at 10, slide 2: size 4, from 7 to 10; the next ones start at 9, 11."""
    spec = WindowSpec(4, 2, origin=7, first=7)
    assert [spec.started(t) for t in (6, 7, 8, 9)] == [None, 7, 7, 9]
    assert [spec.closed(t) for t in (9, 10, 11, 12)] == [None, 7, 7, 9]
    assert (spec.open_from(9), spec.open_from(10)) == (7, 9)
    with pytest.raises(ValueError, match="one tick"):
        WindowSpec(0, 1)
