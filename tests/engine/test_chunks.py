"""Chunks that end by their values, against a walk over the rows."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.engine.chunks import Chunks, changes, step_values
from headwater.engine.feed import FeedCursor

TYPES = {
    pa.int32(): st.integers(-3, 3),
    pa.float64(): st.sampled_from([0.0, -0.0, 1.5, math.nan]),
    pa.string(): st.sampled_from(["", "a", "b"]),
}


def same(a: Any, b: Any) -> bool:
    """Equality in which NULL and NaN equal themselves."""
    return a == b or (a is None and b is None) or (a != a and b != b)


def ends_of(values: list[Any]) -> list[int]:
    """Where a walk finds that finished chunks end."""
    return [n for n in range(1, len(values)) if not same(values[n - 1], values[n])]


@given(st.data())
def test_ends_are_where_values_change(data: st.DataObject) -> None:
    """Rows come in pieces; chunks end where a walk over all of them says, each known once."""
    type_ = data.draw(st.sampled_from(list(TYPES)))
    values = data.draw(st.lists(st.one_of(st.none(), TYPES[type_]), max_size=30))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=4)))
    chunks = Chunks("k", lambda found: found, 2, 0, [None])
    for start, stop in itertools.pairwise([0, *cuts, len(values)]):
        chunks.look(pa.table({"k": pa.array(values[start:stop], type_)}))
    assert chunks.ends(0) == ends_of(values)
    assert chunks.finished == len(ends_of(values))
    assert chunks.ends(1, 1) == [end - 1 for end in ends_of(values)[:1]]


@given(
    keep=st.integers(1, 4),
    sizes=st.lists(st.integers(1, 3), min_size=1, max_size=8),
    turns=st.lists(st.integers(1, 3), max_size=4),
)
def test_the_kept_chunks_and_their_numbers(keep: int, sizes: list[int], turns: list[int]) -> None:
    """After any number of answers the bounds enclose the last chunks, and rows know their chunk."""
    numbers = np.repeat(np.arange(1, len(sizes) + 2), [*sizes, 1])
    ticks = np.arange(len(numbers))
    chunks = Chunks("k", lambda found: found, keep, 0, [None])
    chunks.look(pa.table({"k": numbers}))
    ends = [FeedCursor(int(end) - 1, 0) for end in np.cumsum(sizes)]
    done = 0
    for count in turns:
        taken = min(count, len(sizes) - done)
        chunks.turns = ends[done : done + taken]
        for turn in range(taken):
            first = done + turn - keep  # the chunk before the kept ones
            assert chunks.start(turn) == (ends[first] if first >= 0 else None)
            before = done + turn - 1
            assert chunks.newest_start(turn) == (ends[before] if before >= 0 else None)
        chunks.answered(taken)
        done += taken
        start = chunks.bounds[0]
        later = ticks > (-1 if start is None else start.tick)
        found = chunks.ordinals(ticks[later], np.zeros(later.sum(), np.int64))
        unanswered = np.minimum(numbers[later], done + 1)  # rows after the last end are one chunk
        assert found.tolist() == unanswered.tolist()
        assert len(chunks.bounds) <= keep


@pytest.mark.parametrize(
    ("type_", "value", "microseconds", "step", "whole"),
    [
        (pa.int64(), -1, None, 10, -1),
        (pa.int32(), 29, 10_000_000, None, 2),
        (pa.float64(), -0.5, None, 2, -1.0),
        (pa.decimal128(6, 2), 7, None, 2, 3.0),
        (pa.timestamp("us", tz="UTC"), -1, 60_000_000, None, -1),
        (pa.date32(), 3, 86_400_000_000 * 2, None, 1),
    ],
)
def test_steps(
    type_: pa.DataType, value: Any, microseconds: int | None, step: int | None, whole: float
) -> None:
    """A step goes into a value a whole number of times, rounded down; NULL stays NULL."""
    values = step_values(type_, microseconds, step)(pa.array([value, None], type_))
    assert values.to_pylist() == [whole, None]


def test_the_first_row_changes_nothing() -> None:
    """There is no chunk before the first row; a row like the last one goes on with its chunk."""
    assert changes(pa.array([1, 1, 2]), None).tolist() == [False, False, True]
    assert changes(pa.array([1]), pa.array([1])).tolist() == [False]
    assert changes(pa.array([1]), pa.array([None], pa.int64())).tolist() == [True]
