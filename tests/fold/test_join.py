"""The stream join against joining the rows of both windows anew."""

from __future__ import annotations

import random
import time

import numpy as np
import pyarrow as pa
import pytest

from headwater.errors import DataError, NotSupportedError
from headwater.fold import snapshot
from headwater.fold.aggregates import Aggregate
from headwater.fold.columns import Column
from headwater.fold.join import LEFT, RIGHT, JoinSide, StreamJoin
from headwater.fold.pane import Panes, Window
from tests.fold.brute import (
    ALL_TYPES,
    DECIMALS,
    NUMBERS,
    check,
    functions_for,
    grouped,
    key,
    random_array,
)

NEITHER = ("first", "last", "first_ignore_nulls", "last_ignore_nulls", "count_distinct")


class Side:
    """Random rows of one side and what the query asks of them."""

    def __init__(
        self, rng: random.Random, name: str, key_types: list[pa.DataType], count: int
    ) -> None:
        self.times = np.cumsum([rng.choice([0, 0, 1, 1, 3]) for _ in range(count)])
        nulls = rng.choice([0, 0.2])
        self.keys = [random_array(rng, t, count, nulls) for t in key_types]
        group_types = rng.choices(ALL_TYPES, k=rng.choice([0, 0, 1]))
        self.groups = [random_array(rng, t, count, 0.1) for t in group_types]
        self.type = rng.choice([*NUMBERS, *DECIMALS, pa.string()])
        self.column = random_array(rng, self.type, count, nulls)
        functions = [f for f in functions_for(self.type) if f not in NEITHER]
        chosen = [None, *rng.sample(functions, 2)] if name == "left" else rng.sample(functions, 2)
        self.aggregates = [
            Aggregate(f or "count", None if f is None else 0, self.type, f"{name} {f}")
            for f in chosen
        ]
        self.window = Window(rng.choice([3, 8, 20]))
        fields = [pa.field(f"{name} {i}", t) for i, t in enumerate(group_types)]
        self.query = JoinSide(tuple(fields), tuple(self.aggregates))

    def inside(self, instant: int) -> list[int]:
        low, high = self.window.first_tick(instant), self.window.last_tick(instant)
        return np.flatnonzero((self.times >= low) & (self.times <= high)).tolist()


def joined(sides: tuple[Side, Side], instant: int):
    """key → aggregates over all pairs of rows with equal keys."""
    keys = [[key(row) for row in zip(*(k.to_pylist() for k in s.keys), strict=True)] for s in sides]
    nulls = [
        [None in row for row in zip(*(k.to_pylist() for k in s.keys), strict=True)] for s in sides
    ]
    pairs = [
        (left, right)
        for left in sides[0].inside(instant)
        for right in sides[1].inside(instant)
        if keys[0][left] == keys[1][right] and not nulls[0][left] and not nulls[1][right]
    ]
    halves = [pa.array([pair[side] for pair in pairs], pa.int64()) for side in (0, 1)]
    groups = [g.take(half) for s, half in zip(sides, halves, strict=True) for g in s.groups]
    results = [
        grouped(s.aggregates, groups, list(range(len(pairs))), [s.column.take(half)])
        for s, half in zip(sides, halves, strict=True)
    ]
    return {group: [*results[0][group], *results[1][group]] for group in results[0]}


def push(join: StreamJoin, side: int, data: Side, panes: Panes, pane: int, rows) -> None:
    numbers = pa.array(np.arange(len(data.times))[rows])
    expiry = panes.next_instant(panes.instants(pane, data.window)[-1])
    columns = [Column(data.column.take(numbers))]
    keys, groups = [k.take(numbers) for k in data.keys], [g.take(numbers) for g in data.groups]
    join.push(side, expiry, keys, groups, columns)


def join_at_random(seed: int) -> None:
    rng = random.Random(seed)
    key_types = rng.choices(ALL_TYPES, k=rng.choice([1, 1, 2]))
    sides = tuple(Side(rng, name, key_types, rng.choice([5, 60])) for name in ("left", "right"))
    join = StreamJoin(key_types, sides[0].query, sides[1].query)
    slide = rng.choice([1, 2, 3])
    layouts = [Panes(slide, (side.window,)) for side in sides]
    waiting = [layout.split(side.times) for layout, side in zip(layouts, sides, strict=True)]
    width = len(sides[0].groups) + len(sides[1].groups)
    instants = list(range(0, 100, slide))
    restart = rng.choice(instants)
    for instant in instants:
        join.advance(instant)
        for side in rng.sample([LEFT, RIGHT], 2):
            held = layouts[side].of_window(sides[side].window, instant)
            while waiting[side] and waiting[side][0][0] < held.stop:
                pane, rows = waiting[side].pop(0)
                if pane >= held.start:
                    push(join, side, sides[side], layouts[side], pane, rows)
        if instant == restart:
            data = snapshot.dump(join)
            join = StreamJoin(key_types, sides[0].query, sides[1].query)
            snapshot.load(join, data)
        if rng.random() < 0.2 or instant == restart:
            check(join.result(), width, joined(sides, instant))


@pytest.mark.parametrize("first", range(0, 40, 5))
def test_joins_equal_their_rows_joined(first, monkeypatch):
    if first % 10:
        for place in ("join.WORTH_CLEANING", "join_nodes.SMALLEST"):
            monkeypatch.setattr(f"headwater.fold.{place}", 3)
    for seed in range(first, first + 5):
        join_at_random(seed)


@pytest.mark.large
def test_many_joins_equal_their_rows_joined():
    for seed in range(1000, 2000):
        join_at_random(seed)


def counting(names: tuple[str, ...] = ("count", "sum", "max")) -> StreamJoin:
    side = JoinSide((), tuple(Aggregate(n, 0, pa.int64(), n, nullable=False) for n in names))
    return StreamJoin([pa.int64()], side, JoinSide((), ()))


def test_nothing_joined_is_one_row_of_nothing():
    assert counting().result().to_pylist() == [{"count": 0, "sum": None, "max": None}]


def test_sums_of_joined_rows_overflow_and_recover():
    join = counting(("sum",))
    key_ = pa.array([1])
    join.push(LEFT, 10, [key_], [], [Column(pa.array([2**61]))])
    for expiry in (3, 4, 5, 6):
        join.push(RIGHT, expiry, [key_], [], [Column(pa.array([0]))])
    with pytest.raises(DataError):
        join.result()
    join.advance(3)
    assert join.result()["sum"].to_pylist() == [3 * 2**61]


def test_what_does_not_cross_a_join_is_refused():
    for name in ("first", "count_distinct"):
        with pytest.raises(NotSupportedError):
            counting((name,))


def test_bins_are_as_many_as_panes():
    join, rng = counting(), np.random.default_rng(0)
    for pane in range(100):
        join.advance(pane)
        for side in (LEFT, RIGHT):
            rows = pa.array(rng.integers(0, 5, 20)), Column(pa.array(np.ones(20, np.int64)))
            join.push(side, pane + 16, [rows[0]], [], [rows[1]])
    assert len(join._cells._bins) == 16
    assert len(join._nodes[LEFT]) <= 16 * 5


def seconds_per_slide(hot_rows: int) -> float:
    join, rng = counting(), np.random.default_rng(0)
    times = []
    for pane in range(60):
        start = time.thread_time()
        join.advance(pane)
        for side in (LEFT, RIGHT):
            keys = np.concatenate([rng.integers(1, 10_000, 400), np.zeros(hot_rows, np.int64)])
            values = Column(pa.array(np.ones(len(keys), np.int64)))
            join.push(side, pane + 16, [pa.array(keys)], [], [values])
        join.result()
        times.append(time.thread_time() - start)
    return min(times[20:])


def test_a_hot_key_does_not_make_a_slide_quadratic():
    """100 rows of one key per pane: 1600 × 1600 pairs in the window, 16 nodes a side."""
    assert seconds_per_slide(100) < 4 * seconds_per_slide(1)
