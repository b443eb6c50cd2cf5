"""The interval index against brute force, its snapshots, and how many nodes a query visits."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.storage.interval_index import IntervalIndex, Intervals, _collect

TICKS = st.integers(-30, 30)
LARGE = st.integers(-(2**63), 2**63 - 1)
BOUNDS = st.tuples(TICKS, TICKS).map(sorted) | st.tuples(LARGE, LARGE).map(sorted)
ACTIONS = st.lists(st.tuples(st.just("add"), BOUNDS) | st.tuples(st.just("remove"), st.integers()))
LIMIT = st.none() | TICKS | LARGE


def expected(model: dict[int, tuple[int, int]], low: int | None, high: int | None) -> list[int]:
    """Brute force: blocks in the order of their arrival, sorted by low (stable)."""
    found = [
        block
        for block, (first, last) in model.items()
        if (low is None or last >= low) and (high is None or first <= high)
    ]
    return sorted(found, key=lambda block: model[block][0])


def visited(intervals: Intervals[int], low: int | None, high: int | None) -> tuple[int, int]:
    found: list[int] = []
    return _collect(intervals._root, low, high, found), len(found)


@settings(deadline=None)
@given(ACTIONS, st.lists(st.tuples(LIMIT, LIMIT), min_size=1, max_size=5))
def test_equals_brute_force(actions, queries):
    index: IntervalIndex[int] = IntervalIndex()
    model: dict[int, tuple[int, int]] = {}
    for number, (action, argument) in enumerate(actions):
        if action == "add":
            index.add(number, *argument)
            model[number] = tuple(argument)
        elif model:
            gone = list(model)[argument % len(model)]
            index.remove(gone)
            del model[gone]
        index.snapshot().validate()
    assert len(index) == len(index.snapshot()) == len(model)
    for low, high in queries:
        assert index.overlapping(low, high) == expected(model, low, high)
    every = [bound for bounds in model.values() for bound in bounds]
    assert index.snapshot().bounds() == ((min(every), max(every)) if every else None)


@settings(deadline=None)
@given(st.lists(BOUNDS), LIMIT, LIMIT)
def test_made_at_once_equals_made_one_by_one(bounds, low, high):
    blocks = [(number, first, last) for number, (first, last) in enumerate(bounds)]
    at_once, one_by_one = IntervalIndex(blocks), IntervalIndex[int]()
    for block in blocks:
        one_by_one.add(*block)
    at_once.snapshot().validate()
    assert at_once.overlapping(low, high) == one_by_one.overlapping(low, high)
    at_once.add("more", 0, 0)
    at_once.remove("more")
    assert list(at_once.snapshot()) == list(one_by_one.snapshot())


def test_closed_bounds():
    index = IntervalIndex([("a", 10, 20)])
    assert index.overlapping(20, 25) == index.overlapping(5, 10) == ["a"]
    assert index.overlapping(21, 25) == index.overlapping(5, 9) == []
    assert index.overlapping(20, 10) == ["a"]  # an empty stretch is the caller's business


def test_a_snapshot_does_not_change():
    index = IntervalIndex((number, number, number + 1) for number in range(100))
    before = index.snapshot()
    seen = list(before)
    for number in range(100):
        index.remove(number)
        index.add(1000 + number, 0, 5)
    assert list(before) == seen == list(range(100))
    assert len(before) == 100
    before.validate()


def test_refusals_leave_the_index_as_it_was():
    index = IntervalIndex([("a", 0, 1)])
    with pytest.raises(ValueError, match="already"):
        index.add("a", 5, 6)
    with pytest.raises(ValueError, match="before it begins"):
        index.add("b", 2, 1)
    with pytest.raises(KeyError):
        index.remove("b")
    assert list(index.snapshot()) == ["a"]
    assert "a" in index
    assert "b" not in index


def test_few_nodes_are_visited_among_thousands():
    count = 4096
    index = IntervalIndex((number, number * 10, number * 10 + 9) for number in range(count))
    index.add(-1, 0, count * 10)  # a block that overlaps all others does not spoil the search
    snapshot = index.snapshot()
    for start in range(0, count * 10, 997):
        nodes, found = visited(snapshot, start, start + 145)
        assert found <= 17
        assert nodes <= 3 * 13 + 2 * found
    nodes, found = visited(snapshot, count * 10, None)
    assert found == 1
    assert nodes <= 3 * 13


def test_scattered_long_blocks_cost_a_path_each():
    chance = random.Random(1)
    blocks = [(n, n * 10, n * 10 + (10**6 if n % 400 == 0 else 9)) for n in range(4000)]
    chance.shuffle(blocks)
    snapshot = IntervalIndex(blocks).snapshot()
    nodes, found = visited(snapshot, 39_990, 10**5)
    assert found == 11
    assert nodes <= found * 13
