"""Sameness of values of all types against plain Python."""

from __future__ import annotations

import math
import struct
from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headwater.operators.equality import same_rows, same_values

PAIR = pa.struct([("a", pa.float64()), ("b", pa.string())])
CASES = [
    (pa.int32(), [None, 0, 1]),
    (pa.float64(), [None, 0.0, -0.0, math.nan, 1.5]),
    (pa.string(), [None, "", "a"]),
    (pa.decimal128(38, 2), [None, Decimal("0.00"), Decimal(10**30)]),
    (pa.timestamp("us", "UTC"), [None, datetime(2026, 1, 1), datetime(2026, 1, 2)]),
    (pa.list_(pa.float64()), [None, [], [None], [math.nan], [0.0], [-0.0], [math.nan, 1.0]]),
    (pa.list_(pa.list_(pa.string())), [None, [], [None], [[]], [["a"]], [["a"], ["b"]]]),
    (PAIR, [None, {"a": None, "b": None}, {"a": math.nan, "b": "x"}, {"a": math.nan, "b": "y"}]),
    (pa.list_(PAIR), [None, [], [{"a": 1.0, "b": None}], [None], [{"a": math.nan, "b": "x"}]]),
    (pa.map_(pa.string(), pa.int64()), [None, [], [("a", 1)], [("a", None)], [("a", 1), ("b", 2)]]),
    (pa.month_day_nano_interval(), [None, pa.MonthDayNano([1, 2, 3]), pa.MonthDayNano([1, 2, 4])]),
]


def form(value: Any) -> Any:
    """A value whose equality is by bits."""
    if isinstance(value, float):
        return struct.pack("d", value)
    if isinstance(value, dict):
        return {key: form(inner) for key, inner in value.items()}
    return [form(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("type_", "values"), CASES, ids=lambda case: str(case)[:40])
def test_values_are_the_same_or_not(type_: pa.DataType, values: list[Any]) -> None:
    left = [one for one in values for _ in values]
    right = [other for _ in values for other in values]
    wanted = [form(one) == form(other) for one, other in zip(left, right, strict=True)]
    one, other = pa.array([values[1], *left], type_), pa.array([*right, values[1]], type_)
    found = same_values(one.slice(1), other.slice(0, len(right)))
    assert found.tolist() == wanted


def test_rows_in_several_chunks() -> None:
    chunks = pa.chunked_array([[1, 2], [3]])
    table = pa.table({"a": chunks, "b": pa.chunked_array([[True], [False, None]])})
    assert same_rows(table, table.combine_chunks()).tolist() == [True] * 3
    assert same_rows(table.slice(0, 0), table.schema.empty_table()).tolist() == []
