"""Several windows over one set of panes: each result is that of the rows of its window (DC9)."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.engine.merges import PaneChunk
from headwater.engine.pane_merge import PaneMerge
from headwater.fold import sliding
from headwater.fold.aggregates import Aggregate
from headwater.fold.aggregation import Aggregation
from headwater.fold.pane import Panes, Window

WINDOWS = (Window(7), Window(40), Window(4, before=True), Window(0))
STEPS = (2, 4, 6, 2)
INVERTIBLE = ("sum", "count")
Row = tuple[int, int, int]  # T, key, value


def aggregation(functions: tuple[str, ...]) -> Aggregation:
    """Of one argument, by one key."""
    made = [Aggregate(name, 0, pa.int64(), name) for name in functions]
    return Aggregation([pa.field("k", pa.int64())], made)


def chunk(rows: list[Row]) -> PaneChunk:
    """Rows in the order of T."""
    columns = list(zip(*rows, strict=True))
    places = np.array(columns[0], np.int64)
    return PaneChunk(places, [pa.array(columns[1])], [pa.array(columns[2])])


def expected(rows: list[Row], window: Window, instant: int, functions: tuple[str, ...]) -> Any:
    """The window's rows, evaluated."""
    groups: dict[int, list[int]] = {}
    for at, key, value in rows:
        if window.first_tick(instant) <= at <= window.last_tick(instant):
            groups.setdefault(key, []).append(value)
    each = {"sum": sum, "count": len, "max": max, "count_distinct": lambda v: len(set(v))}
    return {key: [each[name](values) for name in functions] for key, values in groups.items()}


@pytest.mark.parametrize("functions", [INVERTIBLE, ("max", "sum", "count_distinct")])
@pytest.mark.parametrize("seed", range(6))
def test_every_window_holds_its_own_rows(
    functions: tuple[str, ...], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows that run ahead of each other, early chunks, and keys that come and never return."""
    monkeypatch.setattr(sliding, "WORTH_CLEANING", 5)
    rng = random.Random(seed)
    merge = PaneMerge(aggregation(functions), Panes(2, WINDOWS), WINDOWS)
    asked = [deque(range(0, 301, step)) for step in STEPS]
    rows: list[Row] = []
    for end in range(10, 311, 10):
        new = [(at, at // 3 + rng.randrange(2), rng.randrange(9)) for at in range(end - 10, end)]
        rows += new
        cut = rng.randrange(1, 9)
        for part in (new[:cut], new[cut:]):
            merge.add(chunk(part))
        for number, own in enumerate(merge.windows):
            while asked[number] and asked[number][0] < end and rng.random() < 0.9:
                instant = asked[number].popleft()
                own.advance(instant)
                found = merge.result_of(own).to_pydict()
                values = zip(*(found[name] for name in functions), strict=True)
                by_key = {k: list(v) for k, v in zip(found["k"], values, strict=True)}
                assert by_key == expected(rows, own.window, instant, functions)
            if asked[number] and rng.random() < 0.5:
                own.advance(asked[number][0])  # before it is complete
    assert len(merge.windows[0].sliding.lookup) < 80, "keys that left are forgotten"


def test_a_pane_is_folded_once() -> None:
    """Whichever window comes first; the others hold the same partial."""
    merge = PaneMerge(aggregation(INVERTIBLE), Panes(2, WINDOWS[:2]), WINDOWS[:2])
    merge.add(chunk([(1, 1, 1), (2, 1, 5), (5, 2, 7)]))
    long, short = merge.windows[1], merge.windows[0]
    long.advance(6)
    waiting = [part.partial for part in short.waiting]
    assert None not in waiting
    held = [entry[2] for entry in long.sliding._merges[0]._panes]
    assert [id(part.vectors) for part in waiting if part is not None] == [id(h) for h in held]
    short.advance(6)
    assert merge.result_of(short).to_pydict() == merge.result_of(long).to_pydict()
    assert merge.size == 3
