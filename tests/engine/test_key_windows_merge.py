"""The partials of windows that end one by one: each against a fold of its rows alone."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from headwater.engine import merges
from headwater.engine.merges import KeyWindowsMerge, PaneChunk
from headwater.fold.aggregates import Aggregate
from headwater.fold.aggregation import Aggregation
from headwater.fold.columns import Column
from headwater.fold.state import GroupState

AGGREGATES = [
    Aggregate("count", None, pa.int64(), "_a0"),
    Aggregate("sum", 0, pa.int64(), "_a1"),
    Aggregate("max", 0, pa.int64(), "_a2"),
    Aggregate("count_distinct", 0, pa.int64(), "_a3"),
]
Row = tuple[int, str, int]  # window, key, value


def _aggregation(keys: int) -> Aggregation:
    return Aggregation([pa.field("_k0", pa.string())][:keys], AGGREGATES)


def _chunk(rows: Sequence[Row], keys: int) -> PaneChunk:
    windows, names, values = zip(*rows, strict=True)
    groups = [pa.array(names, pa.string())][:keys]
    return PaneChunk(np.array(windows), groups, [pa.array(values, pa.int64())])


def _alone(rows: Sequence[Row], windows: Sequence[int], keys: int) -> list[str]:
    """What the windows give, each folded alone."""
    found: list[str] = []
    for window in windows:
        state, own = GroupState(_aggregation(keys)), [row for row in rows if row[0] == window]
        if own:
            chunk = _chunk(own, keys)
            state.fold(chunk.keys, [Column(a) for a in chunk.arguments], None, len(own))
        found += map(str, state.result().to_pylist())
    return sorted(found)


@pytest.mark.parametrize("keys", [0, 1])
@pytest.mark.parametrize("worth_cleaning", [0, 4096])
def test_windows_give_what_their_rows_alone_give(
    keys: int, worth_cleaning: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any order of rows and ends, over clean-ups and restored snapshots; a window without rows too."""
    monkeypatch.setattr(merges, "WORTH_CLEANING", worth_cleaning)
    choose, number = random.Random(7), 0
    merge, rows, open_ = KeyWindowsMerge(_aggregation(keys)), [], [0, 1, 2]
    for _ in range(300):
        some = [
            (choose.choice(open_), choose.choice("xyz"), choose.randrange(5))
            for _ in range(choose.randrange(1, 6))
        ]
        rows += some
        merge.add(_chunk(some, keys))
        if choose.random() < 0.5:
            ended = sorted(choose.sample(open_, choose.randrange(1, 3)))
            merge.close(ended)
            assert sorted(map(str, merge.result().to_pylist())) == _alone(rows, ended, keys)
            rows = [row for row in rows if row[0] not in ended]
            open_ = [window for window in open_ if window not in ended]
        while len(open_) < 3:
            number += 1
            open_.append(number + 2)
        assert merge.size == len({row[: 1 + keys] for row in rows})
        if choose.random() < 0.1:
            before, merge = merge, KeyWindowsMerge(_aggregation(keys))
            merge.restore(before.state())
