"""Arrangements against a plain list of rows."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.fold.snapshot import dump, load
from headwater.operators import arrangement as module
from headwater.operators.arrangement import Arrangement
from headwater.operators.changes import Changes

SCHEMA = pa.schema(
    [("k", pa.int64()), ("s", pa.string()), ("f", pa.float64()), ("l", pa.list_(pa.float64()))]
)
ROW = st.tuples(
    st.sampled_from([None, 0, 1, 2]),
    st.sampled_from([None, "", "a", "b"]),
    st.sampled_from([None, 0.0, -0.0, 1.5, math.nan]),
    st.sampled_from([None, (), (1.5,), (1.5, None), (math.nan,)]),
)


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[] for _ in SCHEMA]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def bag(rows: pa.Table) -> Counter[str]:
    return Counter(repr(tuple(row.values())) for row in rows.to_pylist())


def test_rows_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_DEAD", 3)

    @given(st.lists(st.tuples(st.lists(ROW, max_size=6), st.lists(st.integers(0, 99), max_size=6))))
    def run(batches: list[tuple[list[Any], list[int]]]) -> None:
        kept, model = Arrangement(SCHEMA, ["k", "s"]), []
        for come, picks in batches:
            model += come
            going = [model.pop(pick % len(model)) for pick in picks if model]
            signs = np.array([1] * len(come) + [-1] * len(going), np.int8)
            done = kept.apply(Changes(table([*come, *going]), signs))
            assert bag(kept.rows.take(done.went)) == bag(table(going))
            assert bag(kept.rows.table()) == bag(table(model))
            assert len(kept) == len(model)
            keys = table(model)
            slots = kept.find([keys.column("k"), keys.column("s")], len(model))
            assert (slots >= 0).all()
            wanted = Counter(repr(row[:2]) for row in model)
            places, numbers = kept.matches(np.unique(slots))
            found = kept.rows.take(numbers).select(["k", "s"])
            assert Counter(repr(tuple(row.values())) for row in found.to_pylist()) == wanted
            assert len(places) == len(model)
        again = Arrangement(SCHEMA, ["k", "s"])
        load(again, dump(kept))
        assert bag(again.rows.table()) == bag(table(model))

    run()


def test_a_row_that_is_not_there_cannot_be_taken_back() -> None:
    kept = Arrangement(SCHEMA, ["k"])
    kept.apply(Changes(table([(1, "a", 0.0, None)]), np.ones(1, np.int8)))
    with pytest.raises(AssertionError, match="not there"):
        kept.apply(Changes(table([(1, "a", -0.0, None)]), -np.ones(1, np.int8)))


def test_values_beside_the_rows_stay_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_DEAD", 2)
    kept = Arrangement(SCHEMA, ["k"])
    beside = kept.beside(np.int64)
    rows = table([(number, "a", 0.0, None) for number in range(20)])
    numbers = kept.apply(Changes(rows, np.ones(20, np.int8))).came
    beside.values[numbers] = np.arange(20) + 100
    kept.apply(Changes(rows.slice(0, 15), -np.ones(15, np.int8)))
    kept.apply(Changes(table([(50, "b", 0.0, None)]), np.ones(1, np.int8)))
    again = Arrangement(SCHEMA, ["k"])
    copied = again.beside(np.int64)
    load(again, dump(kept))
    for arranged, vector in ((kept, beside), (again, copied)):
        alive = np.flatnonzero(arranged.rows.alive)
        keys = arranged.rows.take(alive, ["k"]).column("k").to_pylist()
        pairs = dict(zip(keys, vector.values[alive].tolist(), strict=True))
        assert pairs == {15: 115, 16: 116, 17: 117, 18: 118, 19: 119, 50: 0}


def test_keys_without_rows_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_DEAD", 2)
    kept = Arrangement(SCHEMA, ["k"])
    rows = table([(number, "a", 0.0, None) for number in range(20)])
    kept.apply(Changes(rows, np.ones(20, np.int8)))
    assert kept.forget() is None
    kept.apply(Changes(rows.slice(0, 17), -np.ones(17, np.int8)))
    new = kept.forget()
    assert new is not None
    assert new.tolist() == [-1] * 17 + [0, 1, 2]
    assert kept.find([pa.array([16, 18])], 2).tolist() == [-1, 1]
    _, numbers = kept.matches(np.array([1]))
    assert kept.rows.take(numbers).column("k").to_pylist() == [18]
