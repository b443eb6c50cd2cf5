"""Group state against evaluating all rows anew, and what counts as changed."""

from __future__ import annotations

import random
import time

import numpy as np
import pyarrow as pa
import pytest

from headwater.errors import DataError
from headwater.fold import snapshot
from headwater.fold.aggregates import Aggregate
from headwater.fold.aggregation import Aggregation
from headwater.fold.chunk import Grouper
from headwater.fold.columns import Column
from headwater.fold.state import GroupState
from tests.fold.brute import ALL_TYPES, check, functions_for, grouped, key, random_array


def check_state_equals_all_rows_evaluated(seed: int) -> None:
    rng = random.Random(seed)
    type_, key_types = rng.choice(ALL_TYPES), rng.choices(ALL_TYPES, k=rng.choice([0, 1, 2]))
    aggregates = [Aggregate(f, 0, type_, f) for f in functions_for(type_)]
    aggregation = Aggregation([pa.field(f"k{i}", t) for i, t in enumerate(key_types)], aggregates)
    state, count = GroupState(aggregation), rng.choice([30, 200])
    keys = [random_array(rng, t, count, 0.1) for t in key_types]
    column, start, touched = random_array(rng, type_, count, rng.choice([0, 0.3])), 0, set()
    while start < count:
        end = min(count, start + rng.choice([1, 5, 40]))
        rows, part = np.arange(start, end), [k.slice(start, end - start) for k in keys]
        values = [Column(column.slice(start, end - start))]
        if rng.random() < 0.3:
            slots = state.lookup.slots(part, len(rows))
            size = len(state.lookup)
            state.merge(aggregation.fold(slots, size, values, Grouper(), (rows * 0, rows)))
        else:
            state.fold(part, values, (rows * 0, rows))
        touched |= {key(row) for row in zip(*(k.to_pylist() for k in part), strict=True)} or {()}
        start = end
        if rng.random() < 0.3:
            restored = GroupState(aggregation)
            snapshot.load(restored, snapshot.dump(state))
            state = restored
        expected = grouped(aggregates, keys, list(range(end)), [column])
        check(state.result(), len(keys), expected)
        if rng.random() < 0.4:
            check(state.changed(), len(keys), {group: expected[group] for group in touched})
            assert state.changed().num_rows == 0
            touched = set()
    if keys:
        some = [k.slice(0, 1) for k in keys]
        wanted = key(k[0].as_py() for k in some)
        check(state.get(some), len(keys), {wanted: expected[wanted]})


@pytest.mark.parametrize("first", range(0, 30, 5))
def test_state_equals_all_rows_evaluated(first):
    for seed in range(first, first + 5):
        check_state_equals_all_rows_evaluated(seed)


def check_rows_are_taken_back(seed: int) -> None:
    rng = random.Random(seed)
    type_, key_types = rng.choice(ALL_TYPES), rng.choices(ALL_TYPES, k=rng.choice([0, 1, 2]))
    names = rng.choice([functions_for(type_), rng.sample(functions_for(type_), 1)])
    aggregates = [Aggregate(f, 0, type_, f) for f in names]
    aggregation = Aggregation([pa.field(f"k{i}", t) for i, t in enumerate(key_types)], aggregates)
    count, state = rng.choice([30, 200]), GroupState(aggregation)
    keys = [random_array(rng, t, count, 0.1) for t in key_types]
    column, left = random_array(rng, type_, count, rng.choice([0, 0.3])), list(range(count))

    def fold(target: GroupState, numbers: list[int]) -> None:
        rows = pa.array(numbers, pa.int64())
        order = (rows.to_numpy() * 0, rows.to_numpy())
        target.fold([k.take(rows) for k in keys], [Column(column.take(rows))], order, len(numbers))

    fold(state, left)
    while left:
        state.changed()
        gone, others = GroupState(aggregation), GroupState(aggregation)
        going = rng.sample(left, min(len(left), rng.choice([1, 3, 20])))
        left = [number for number in left if number not in going]
        fold(gone, sorted(going))
        wrong = state.take_back(gone)
        fold(others, left)
        state.exchange(wrong, others)
        check(state.result(), len(keys), grouped(aggregates, keys, left, [column]))
        if keys:
            assert state.changed().num_rows <= gone.result().num_rows


@pytest.mark.parametrize("first", range(0, 30, 5))
def test_rows_are_taken_back(first):
    """Those that can are subtracted, and the groups of others are named, to be made again."""
    for seed in range(first, first + 5):
        check_rows_are_taken_back(seed)


def test_an_extreme_outlasts_values_that_are_none():
    state, gone = GroupState(summing()), GroupState(summing())
    state.fold([pa.array([1, 1, 2])], [Column(pa.array([5, 9, 3]))])
    gone.fold([pa.array([1, 2])], [Column(pa.array([5, 3]))])
    assert state.lookup.keys(state.take_back(gone))[0].to_pylist() == [2]
    assert state.get([pa.array([1])]).to_pylist() == [{"k": 1, "sum": 9, "count": 1, "max": 9}]


def summing() -> Aggregation:
    aggregates = [Aggregate(name, 0, pa.int64(), name) for name in ("sum", "count", "max")]
    return Aggregation([pa.field("k", pa.int64())], aggregates)


def test_reset_begins_anew():
    state = GroupState(summing())
    state.fold([pa.array([1, 2])], [Column(pa.array([5, 6]))])
    state.clear()
    assert (state.result().num_rows, len(state)) == (0, 0)
    state.fold([pa.array([2])], [Column(pa.array([7]))])
    assert state.result().to_pylist() == [{"k": 2, "sum": 7, "count": 1, "max": 7}]


def test_a_group_that_is_not_there_is_not_found():
    state = GroupState(summing())
    assert state.get([pa.array([1])]).num_rows == 0
    state.lookup.slots([pa.array([1])])  # a slot that another structure gave out
    assert state.get([pa.array([1])]).num_rows == 0


def test_results_do_not_change_afterwards():
    state = GroupState(summing())
    state.fold([pa.array([1])], [Column(pa.array([5]))])
    table = state.result()
    state.fold([pa.array([1])], [Column(pa.array([5]))])
    assert table["sum"].to_pylist() == [5]


def test_sums_are_brought_to_form_in_time(monkeypatch):
    """Values below 2^31 leave a sum's second word alone, so it must follow the first in time."""
    monkeypatch.setattr("headwater.fold.state.NORMAL_ROWS", 1)
    state = GroupState(summing())
    row = [pa.array([1])], [Column(pa.array([1]))]
    state.fold(*row)
    for _ in range(3):
        state._vectors[1][0][:1] += 2**62  # as 2^32 rows of 2^30 would
        state.fold(*row)
    with pytest.raises(DataError):
        state.result()


def seconds_per_epoch(groups: int) -> float:
    rng = np.random.default_rng(0)
    state = GroupState(summing())
    state.fold([pa.array(np.arange(groups))], [Column(pa.array(np.arange(groups)))])
    state.changed()
    best = float("inf")
    for _ in range(20):
        keys, values = pa.array(rng.integers(0, groups, 500)), Column(pa.array(np.arange(500)))
        start = time.thread_time()
        state.fold([keys], [values])
        state.changed()
        best = min(best, time.thread_time() - start)
    return best


def test_an_epoch_costs_its_rows_and_not_the_groups():
    assert seconds_per_epoch(400_000) < 5 * seconds_per_epoch(4_000)


@pytest.mark.large
def test_ten_million_groups():
    rng, groups = np.random.default_rng(0), 10_000_000
    state = GroupState(summing())
    state.fold([pa.array(np.arange(groups))], [Column(pa.array(np.zeros(groups, np.int64)))])
    keys = rng.integers(0, groups, 1_000_000)
    state.changed()
    state.fold([pa.array(keys)], [Column(pa.array(np.ones(len(keys), np.int64)))])
    changed = state.changed()
    assert changed.num_rows == len(np.unique(keys))
    assert sum(changed["sum"].to_pylist()) == len(keys)
