"""Results that are kept against a list of rows, sorted as Spark sorts."""

from __future__ import annotations

import math
from functools import cmp_to_key
from itertools import pairwise
from time import thread_time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.fold.snapshot import dump, load
from headwater.operators import arrangement
from headwater.operators.changes import Changes, come
from headwater.operators.kept_rows import KeptRows
from tests.operators.bags import FLOATS, INTEGERS, TEXTS, Input, Row, bag, rows_of, table

SCHEMA = pa.schema([("a", pa.int64()), ("f", pa.float64()), ("s", pa.string())])
ORDERS: list[Any] = [
    (),
    [("a", False, True)],
    [("f", True, False), ("s", False, False)],
    [("s", True, True), ("a", False, False)],
]


def compared(left: Any, right: Any, descending: bool, nulls_first: bool) -> int:
    if left is None or right is None:
        return 0 if left is right else (-1 if (left is None) == nulls_first else 1)
    if isinstance(left, float):
        left, right = (math.isnan(left), left), (math.isnan(right), right)
        left, right = ((v[0], 0.0 if v[0] else v[1]) for v in (left, right))
    sign = (left > right) - (left < right)
    return -sign if descending else sign


def assert_in_order(rows: list[Row], order: Any) -> None:
    def by(left: Row, right: Row) -> int:
        for name, descending, nulls_first in order:
            place = SCHEMA.get_field_index(name)
            sign = compared(left[place], right[place], descending, nulls_first)
            if sign:
                return sign
        return 0

    key = cmp_to_key(by)
    assert all(not key(b) < key(a) for a, b in pairwise(rows))


@pytest.mark.parametrize("order", ORDERS, ids=["any", "a", "f, s", "s, a"])
@pytest.mark.parametrize("takes_back", [True, False])
def test_rows_as_they_are_now(
    takes_back: bool, order: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrangement, "LEAST_DEAD", 6)
    for seed in range(6):
        keys = ["a"] if seed % 2 else []
        kept = KeptRows(SCHEMA, takes_back, keys, order)
        given = Input(SCHEMA, [INTEGERS, FLOATS, TEXTS], seed, takes_back)
        for number in range(12):
            kept.apply(given.step())
            if number % 3 != 2:  # not every change is read
                rows = rows_of(kept.table())
                assert bag(rows) == bag(given.rows)
                assert_in_order(rows, order)
            if number == 6:
                again = KeptRows(SCHEMA, takes_back, keys, order)
                load(again, dump(kept))
                kept = again
        assert len(kept) == len(given.rows)


def test_rows_that_come_in_order_are_not_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = KeptRows(SCHEMA, True, order=[("a", False, True), ("s", True, False)])
    rows = [(number // 3, 0.0, chr(122 - number % 3)) for number in range(300)]
    with monkeypatch.context() as without_sort:
        without_sort.setattr(np, "lexsort", None)
        for start in range(0, 300, 30):
            kept.apply(come(table(SCHEMA, rows[start : start + 30])))
            kept.apply(Changes(table(SCHEMA, rows[start + 29 : start + 30]), -np.ones(1, np.int8)))
            assert kept.table().num_rows == 29 * (start // 30 + 1)
    kept.apply(come(table(SCHEMA, [(5, 0.0, "zz")])))
    assert_in_order(rows_of(kept.table()), [("a", False, True), ("s", True, False)])


@pytest.mark.parametrize("order", [(), [("a", False, True)]], ids=["any", "in order"])
def test_a_read_after_one_change_costs_what_changed(order: Any) -> None:
    count = 1_000_000
    columns = [np.arange(count), np.zeros(count), np.full(count, "text")]
    rows = pa.Table.from_arrays([pa.array(column) for column in columns], schema=SCHEMA)
    kept = KeptRows(SCHEMA, True, ["a"], order)
    for start in range(0, count, 50_000):
        kept.apply(come(rows.slice(start, 50_000)))
    kept.table()
    costs = []
    for number in range(20):
        gone, new = rows.slice(50_000 * number, 1), table(SCHEMA, [(count + number, 0.0, "text")])
        kept.apply(Changes(pa.concat_tables([gone, new]), np.array([-1, 1], np.int8)))
        before = thread_time()
        assert kept.table().num_rows == count
        costs.append(thread_time() - before)
    assert sorted(costs)[10] < 0.005, costs
