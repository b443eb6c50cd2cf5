"""Results by key: newest per key, keys without one, snapshots, and which rows are newer (US1)."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from headwater.engine import newest_results
from headwater.engine.newest_results import NewestResults, shown_rows, stored_schema
from headwater.fold.columns import Column
from headwater.fold.snapshot import dump, load

SCHEMA = stored_schema(pa.schema([("k", pa.string()), ("v", pa.int64()), ("_t", pa.int64())]))
Result = tuple[int, bool, str | None, int | None, int]  # _seq, _gone, k, v, _t


def _table(rows: list[Result]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(SCHEMA)
    return pa.Table.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


@pytest.mark.parametrize("few", [1, 1000])
def test_the_last_result_of_each_key_is_shown(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a dictionary: later results win, within one the newest row; gone keys are not shown."""
    monkeypatch.setattr(newest_results, "FEW_ROWS", few)
    choose, found, model = random.Random(1), NewestResults(SCHEMA, ["k"]), {}
    for position in range(60):
        rows: list[Result] = []
        for number in range(choose.randint(1, 5)):
            key, gone = choose.choice(["a", "b", None]), choose.random() < 0.2
            rows.append((number, gone, key, None if gone else position, position + number))
        found.take(_table(rows), position)
        own = {}
        for row in rows:
            own[row[2]] = row
        model |= own
        shown = sorted(map(str, found.shown().to_pylist()))
        assert shown == sorted(
            str({"k": k, "v": r[3], "_t": r[4]}) for k, r in model.items() if not r[1]
        )
    assert found.next == 60


def test_a_key_may_have_several_rows() -> None:
    """All rows of a key's newest result stay, all older ones go."""
    found = NewestResults(SCHEMA, ["k"])
    found.take(_table([(1, False, "a", 1, 5), (1, False, "a", 2, 5)]), 0)
    assert found.shown().column("v").to_pylist() == [1, 2]
    found.take(_table([(2, False, "a", 3, 6)]), 1)
    assert found.shown().column("v").to_pylist() == [3]


def test_rows_are_newer_by_time_and_number() -> None:
    """A row has no result yet iff it comes after the one that its key's result was made of."""
    found = NewestResults(SCHEMA, ["k"])
    found.take(_table([(7, False, "a", 1, 5), (3, True, "b", None, 9)]), 0)
    keys = [Column(pa.array(["a", "a", "a", "b", "c"]))]
    ticks, rows = np.array([5, 5, 6, 8, 0]), np.array([7, 8, 1, 50, 0])
    assert found.is_newer(keys, ticks, rows).tolist() == [False, True, True, False, True]
    assert found.is_newer(keys, ticks, None).tolist() == [False, False, True, False, True]


def test_a_snapshot_brings_all_back() -> None:
    """Keys that are gone too; results that follow replace what it held."""
    found = NewestResults(SCHEMA, ["k"])
    found.take(_table([(7, False, "a", 1, 5), (3, True, "b", None, 9)]), 0)
    again = NewestResults(SCHEMA, ["k"])
    load(again, dump(found, {}))
    assert again.stored().equals(found.stored())
    again.take(_table([(9, False, "b", 4, 10)]), 1)
    assert again.shown().to_pylist() == [
        {"k": "a", "v": 1, "_t": 5},
        {"k": "b", "v": 4, "_t": 10},
    ]


def test_without_a_key_each_result_replaces_the_one_before() -> None:
    """UPDATE KEY (): one result in all."""
    found = NewestResults(SCHEMA, [])
    for number in range(3):
        found.take(_table([(number, False, "x", number, number)]), number)
    assert found.shown().column("v").to_pylist() == [2]
    assert shown_rows(found.stored()).num_rows == 1
