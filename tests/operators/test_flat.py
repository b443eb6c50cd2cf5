"""Nested values as bytes: equal just where the values are."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from headwater.operators.flat import flat

NESTED: list[tuple[pa.DataType, list[Any]]] = [
    (pa.list_(pa.int64()), [None, [], [None], [0], [1, 2], [1, None], [1], [256]]),
    (pa.list_(pa.string()), [None, [], [""], [None], ["", ""], ["ab"], ["a", "b"], ["a\0", "b"]]),
    (pa.list_(pa.list_(pa.int8())), [[], [[]], [[], []], [[1], []], [[], [1]], [None], [[None]]]),
    (
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
        [None, {"a": None, "b": None}, {"a": 0, "b": ""}, {"a": 0, "b": None}, {"a": 0, "b": "x"}],
    ),
    (
        pa.map_(pa.string(), pa.decimal128(30, 2)),
        [None, [], [("a", None)], [("a", 1)], [("b", 1)], [("a", 1), ("b", None)]],
    ),
    (pa.uint64(), [None, 0, 1, 2**64 - 1]),
    (pa.list_(pa.bool_(), 2), [None, [True, False], [False, True], [None, True]]),
]


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize(("type_", "values"), NESTED, ids=lambda p: str(p)[:30])
def test_values_that_differ_have_other_bytes(
    type_: pa.DataType, values: list[Any], exact: bool
) -> None:
    twice = pa.chunked_array([pa.array(values, type_), pa.array([*values[:1], *values], type_)])
    found = flat(twice, exact).array.to_pylist()
    count = len(values)
    assert (
        found[:count] == found[count + 1 :] == flat(twice.slice(count + 1), exact).array.to_pylist()
    )
    assert len(set(found)) == count
    assert [value is None for value in found[:count]] == [value is None for value in values]


def test_floats_are_equal_as_they_are_grouped_or_bit_for_bit() -> None:
    values = pa.array([[0.0], [-0.0], [math.nan], [float("-nan")]], pa.list_(pa.float32()))
    grouped = flat(values, exact=False).array.to_pylist()
    assert grouped[0] == grouped[1]
    assert grouped[2] == grouped[3]
    exact = flat(values, exact=True).array.to_pylist()
    assert len({*exact}) == 4


def test_other_columns_stay_as_they_are() -> None:
    column = pa.array(["a", None])
    assert flat(column, exact=True).array is column
