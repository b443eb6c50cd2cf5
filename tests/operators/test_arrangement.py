"""Arrangements against a plain list of rows."""

from __future__ import annotations

import math
from collections import Counter
from time import thread_time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.fold.snapshot import dump, load
from headwater.operators import arrangement as module
from headwater.operators.arrangement import Arrangement
from headwater.operators.changes import Changes, come, go

SCHEMA = pa.schema(
    [("k", pa.int64()), ("s", pa.string()), ("f", pa.float64()), ("l", pa.list_(pa.float64()))]
)
ROW = st.tuples(
    st.sampled_from([None, 0, 1, 2]),
    st.sampled_from([None, "", "a", "b"]),
    st.sampled_from([None, 0.0, -0.0, 1.5, math.nan]),
    st.sampled_from([None, (), (-0.0,), (0.0, None), (math.nan,)]),
)


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[] for _ in SCHEMA]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def bag(rows: pa.Table) -> Counter[str]:
    return Counter(repr(tuple(row.values())) for row in rows.to_pylist())


@pytest.mark.parametrize(
    ("few", "modulus"), [(1000, None), (1, None), (1, 2)], ids=["by key", "by hash", "bad hash"]
)
def test_rows_come_and_go(few: int, modulus: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = module.row_hashes
    if modulus is not None:
        monkeypatch.setattr(module, "row_hashes", lambda rows: hashes(rows) % modulus)
    monkeypatch.setattr(module, "LEAST_DEAD", 3)
    monkeypatch.setattr(module, "FEW", few)
    monkeypatch.setattr(module, "FEW_EACH", 0)

    @given(st.lists(st.tuples(st.lists(ROW, max_size=6), st.lists(st.integers(0, 99), max_size=6))))
    @settings(max_examples=40)
    def run(batches: list[tuple[list[Any], list[int]]]) -> None:
        kept, model = Arrangement(SCHEMA, ["k", "s"]), []
        for coming, picks in batches:
            model += coming
            going = [model.pop(pick % len(model)) for pick in picks if model]
            signs = np.array([1] * len(coming) + [-1] * len(going), np.int8)
            done = kept.apply(Changes(table([*coming, *going]), signs))
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


def test_marks_stay_with_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_DEAD", 3)
    kept = Arrangement(SCHEMA, ["k"], marked=True, forgets_keys=True)
    rows = [(number, None, None, None) for number in range(8)]
    kept.apply(come(table(rows)))
    kept.marks[:] = np.arange(8) * 10
    kept.apply(go(table(rows[:6])))
    kept.apply(come(table(rows[:1])))  # room is made first
    assert kept.rows.table().column("k").to_pylist() == [6, 7, 0]
    assert kept.marks.tolist() == [60, 70, 0]
    assert len(kept.lookup) == 3
    again = Arrangement(SCHEMA, ["k"], marked=True)
    load(again, dump(kept))
    assert again.marks.tolist() == [60, 70, 0]


def test_without_keys_every_row_has_one_slot() -> None:
    kept = Arrangement(SCHEMA, [])
    kept.apply(come(table([(number, None, None, None) for number in range(3)])))
    kept.apply(go(table([(1, None, None, None)])))
    pieces = list(kept.matches_in_pieces(np.array([0, -1, 0]), 3))
    found = [(a, b) for p, n in pieces for a, b in zip(p.tolist(), n.tolist(), strict=True)]
    assert found == [(0, 0), (0, 2), (2, 0), (2, 2)]
    assert [len(p) for p, _ in pieces] == [3, 1]


def test_of_many_equal_rows_few_are_looked_at() -> None:
    kept = Arrangement(SCHEMA, [])
    rows = table([(1, "a", 0.5, None)] * 50_000)
    kept.apply(come(rows))
    before = thread_time()
    kept.apply(go(rows.slice(0, 40_000)))  # 2 000 000 000 pairs are equal
    assert thread_time() - before < 10
    assert len(kept) == 10_000


def test_values_beside_the_rows_stay_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_DEAD", 2)
    kept = Arrangement(SCHEMA, ["k"])
    beside = kept.beside(np.int64)
    rows = table([(number, "a", 0.0, None) for number in range(20)])
    numbers = kept.apply(come(rows)).came
    beside.values[numbers] = np.arange(20) + 100
    kept.apply(go(rows.slice(0, 15)))
    kept.apply(come(table([(50, "b", 0.0, None)])))
    assert kept.rows.dead_count == 0
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
    kept.apply(come(rows))
    assert kept.forget() is None
    kept.apply(go(rows.slice(0, 17)))
    new = kept.forget()
    assert new is not None
    assert new.tolist() == [-1] * 17 + [0, 1, 2]
    assert kept.find([pa.array([16, 18])], 2).tolist() == [-1, 1]
    _, numbers = kept.matches(np.array([1]))
    assert kept.rows.take(numbers).column("k").to_pylist() == [18]


@pytest.mark.parametrize("few", [1000, 1])
def test_rows_that_are_not_there_can_be_asked_for(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FEW", few)
    monkeypatch.setattr(module, "FEW_EACH", 0)
    kept = Arrangement(SCHEMA, ["k"])
    one, other = (1, "a", 0.0, None), (1, "b", 0.0, None)
    numbers = kept.add(table([one, other, one]))
    assert numbers.tolist() == [0, 1, 2]
    found = kept.remove(table([(2, "a", 0.0, None), one, (1, "c", 0.0, None), one, other, one]))
    assert found[[0, 2, 5]].tolist() == [-1, -1, -1]
    assert sorted(found[[1, 3, 4]].tolist()) == [0, 1, 2]
    assert len(kept) == 0
    assert kept.remove(table([one])).tolist() == [-1]
