"""EMIT: the difference of two results against a brute-force bag difference in plain Python."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from headwater.engine.emit import emitted, instant_scalar

NAN, INF = float("nan"), float("inf")
NOW = pa.scalar(20, pa.int64())
FLOATS = [0.0, -0.0, 0.3, 0.1 + 0.2, 0.3 * (1 + 2e-9), 1e300, -1e300, 5e-324, NAN, INF, -INF, None]

Row = tuple[Any, ...]


def result(columns: dict[str, Any], types: dict[str, pa.DataType], at: int) -> pa.Table:
    """A result with its instant as the last column."""
    count = len(next(iter(columns.values())))
    arrays = [pa.array(values, types[name]) for name, values in columns.items()]
    return pa.table([*arrays, pa.array([at] * count, pa.int64())], names=[*columns, "_t"])


def rows_of(table: pa.Table) -> list[Row]:
    return [tuple(row.values()) for row in table.to_pylist()]


def same(a: Any, b: Any, near: bool) -> bool:
    """Whether two values are the same, exactly or nearly."""
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        return a == b or (near and math.isclose(a, b, rel_tol=1e-9, abs_tol=0.0))
    if isinstance(a, dict) and isinstance(b, dict):
        return same(list(a.values()), list(b.values()), near)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same(x, y, near) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and a == b


def without_pairs(gone: list[Row], added: list[Row], near: bool) -> tuple[list[Row], list[Row]]:
    """Takes out pairs of the same rows; of equal rows the last ones are left."""
    kept, free = [], list(added)
    for row in gone:
        place = next((i for i, other in enumerate(free) if same(row, other, near)), None)
        if place is None:
            kept.append(row)
        else:
            del free[place]
    return kept, free


def brute_force(previous: Sequence[Row], current: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Exact pairs first, then near ones, row by row."""
    gone, added = without_pairs(list(previous), list(current), near=False)
    return without_pairs(gone, added, near=True)


def bag(rows: Sequence[Row]) -> list[str]:
    """Rows as a bag; -0.0 is 0.0."""
    return sorted(repr(row).replace("-0.0", "0.0") for row in rows)


def check(previous: pa.Table, current: pa.Table) -> None:
    """All kinds of EMIT against brute force, on columns without `_t`."""
    before = [row[:-1] for row in rows_of(previous)]
    after = [row[:-1] for row in rows_of(current)]
    gone, added = brute_force(before, after)
    changes = rows_of(emitted("changes", previous, current, NOW))
    assert bag([r[:-2] for r in changes if r[-1] == "-"]) == bag(gone)
    assert bag([r[:-2] for r in changes if r[-1] == "+"]) == bag(added)
    assert [r[-1] for r in changes] == ["-"] * len(gone) + ["+"] * len(added)
    assert all(r[-2] == 20 for r in changes)
    deletes = rows_of(emitted("deletes", previous, current, NOW))
    inserts = rows_of(emitted("inserts", previous, current, NOW))
    assert repr([*deletes, *inserts]) == repr([r[:-1] for r in changes])
    assert emitted("all", previous, current, NOW) is current


KEYS = st.one_of(st.none(), st.sampled_from(["a", "b", "c"]))
# Values that are near each other come in pairs only, so that which pairs are made does not matter.
ROWS = st.lists(st.tuples(KEYS, st.sampled_from(FLOATS), st.integers(0, 2)), max_size=12)
TYPES = {"k": pa.string(), "x": pa.float64(), "n": pa.int32()}


def typed(rows: Sequence[Row], types: dict[str, pa.DataType], at: int) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(types)
    return result(dict(zip(types, columns, strict=True)), types, at)


@settings(max_examples=300, deadline=None)
@given(ROWS, ROWS)
def test_differences_of_rows_with_floats(previous: list[Row], current: list[Row]) -> None:
    """NULL, NaN, infinities, both zeros, floats near each other, rows that occur twice."""
    check(typed(previous, TYPES, 10), typed(current, TYPES, 20))


EXACT = {"k": pa.string(), "d": pa.decimal128(20, 2), "b": pa.bool_()}
EXACT_ROWS = st.lists(
    st.tuples(
        KEYS,
        st.sampled_from([None, Decimal("1.00"), Decimal("1.01")]),
        st.sampled_from([True, None]),
    ),
    max_size=20,
)


@settings(max_examples=150, deadline=None)
@given(EXACT_ROWS, EXACT_ROWS)
def test_differences_of_rows_without_floats(previous: list[Row], current: list[Row]) -> None:
    """Texts, decimals and booleans are compared exactly."""
    check(typed(previous, EXACT, 10), typed(current, EXACT, 20))


NESTED = {
    "l": pa.list_(pa.float64()),
    "s": pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))]),
}
LISTS = st.one_of(
    st.none(), st.lists(st.sampled_from([0.3, 0.1 + 0.2, 1.0, NAN, None]), max_size=2)
)
STRUCTS = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {"a": st.sampled_from([1, None]), "b": st.sampled_from([None, [], ["x"]])}
    ),
)
NESTED_ROWS = st.lists(st.tuples(LISTS, STRUCTS), max_size=8)


@settings(max_examples=150, deadline=None)
@given(NESTED_ROWS, NESTED_ROWS)
def test_differences_of_nested_rows(previous: list[Row], current: list[Row]) -> None:
    """Lists and structs are compared structurally, floats inside them within the tolerance."""
    check(typed(previous, NESTED, 10), typed(current, NESTED, 20))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 30), max_size=12), st.lists(st.integers(0, 30), max_size=12))
def test_every_pairing_of_near_floats_is_a_difference(before: list[int], after: list[int]) -> None:
    """Nearness is not transitive; what is left on one side has no near row left on the other."""
    previous = typed([(1 + n * 3e-10,) for n in before], {"x": pa.float64()}, 10)
    current = typed([(1 + n * 3e-10,) for n in after], {"x": pa.float64()}, 20)
    gone = rows_of(emitted("deletes", previous, current, NOW))
    added = rows_of(emitted("inserts", previous, current, NOW))
    assert len(gone) - len(added) == len(before) - len(after)
    assert not any(same(g[0], a[0], near=True) for g in gone for a in added)
    assert not (set(gone) - {(*r[:-1], 20) for r in rows_of(previous)})


def test_maps_have_no_order() -> None:
    """The entries of a map may come in any order; a float that moved less is no change."""
    types = {"m": pa.map_(pa.string(), pa.float64())}
    previous = result({"m": [[("a", 0.3), ("b", 2.0)], [("a", 1.0)], None]}, types, 10)
    current = result({"m": [None, [("b", 2.0), ("a", 0.1 + 0.2)], [("a", 1.1)]]}, types, 20)
    assert rows_of(emitted("changes", previous, current, NOW)) == [
        ([("a", 1.0)], 20, "-"),
        ([("a", 1.1)], 20, "+"),
    ]


def test_order_and_columns() -> None:
    """'-' rows first, then '+', each in the order of its table; `_t` is the current instant."""
    previous = typed([("b", 1.0, 1), ("a", 2.0, 1), ("c", 3.0, 1)], TYPES, 10)
    current = typed([("z", 9.0, 1), ("a", 2.0, 1), ("d", 8.0, 1)], TYPES, 20)
    changes = emitted("changes", previous, current, NOW)
    assert changes.column_names == ["k", "x", "n", "_t", "_op"]
    assert rows_of(changes) == [
        ("b", 1.0, 1, 20, "-"),
        ("c", 3.0, 1, 20, "-"),
        ("z", 9.0, 1, 20, "+"),
        ("d", 8.0, 1, 20, "+"),
    ]
    assert emitted("deletes", previous, current, NOW).schema == current.schema
    assert emitted("inserts", previous, current, NOW).schema == current.schema


def test_no_previous_result_is_an_empty_one() -> None:
    """The first result is all inserts."""
    current = typed([("a", NAN, 1), ("a", NAN, 1)], TYPES, 20)
    assert emitted("inserts", None, current, NOW).num_rows == 2
    assert emitted("deletes", None, current, NOW).num_rows == 0
    assert emitted("changes", None, current, NOW).column("_op").to_pylist() == ["+", "+"]


def test_an_empty_result_deletes_everything_at_its_instant() -> None:
    """The instant of '-' rows is the current one also where that result has no rows."""
    stamp = pa.timestamp("us", "UTC")
    previous = pa.table({"a": [1, 1], "_t": pa.array([5, 5], stamp)})
    changes = emitted("changes", previous, previous.slice(0, 0), instant_scalar(stamp, 7))
    assert changes.column("_t").cast(pa.int64()).to_pylist() == [7, 7]
    assert changes.column("_op").to_pylist() == ["-", "-"]


def test_columns_of_one_name() -> None:
    """Columns are taken by place: a result may hold a name twice."""
    names = ["a", "a", "_t"]
    previous = pa.table([pa.array([1, 2]), pa.array([1, 2]), pa.array([10, 10])], names=names)
    current = pa.table([pa.array([1, 2]), pa.array([1, 3]), pa.array([20, 20])], names=names)
    changes = emitted("changes", previous, current, NOW)
    found = list(zip(*(column.to_pylist() for column in changes.columns), strict=True))
    assert found == [(2, 2, 20, "-"), (2, 3, 20, "+")]


def test_many_columns_do_not_overflow_codes() -> None:
    """Eight columns of 10 bits each: codes are made dense before the first column is lost."""
    names = [f"c{i}" for i in range(8)]
    columns = [np.arange(1024) for _ in names]
    previous = pa.table([*columns, np.full(1024, 10)], names=[*names, "_t"])
    columns[0] = columns[0].copy()
    columns[0][[500, 501]] = 501, 500
    current = pa.table([*columns, np.full(1024, 20)], names=[*names, "_t"])
    assert emitted("inserts", previous, current, NOW).column("c0").to_pylist() == [501, 500]
    assert emitted("deletes", previous, current, NOW).column("c0").to_pylist() == [500, 501]


@pytest.mark.parametrize("type_", [pa.int64(), pa.date32(), pa.timestamp("us", "UTC")], ids=str)
def test_instants_as_values(type_: pa.DataType) -> None:
    """Ticks become values of the type of `_t`."""
    tick = 3 * 86_400_000_000
    expected = 3 if pa.types.is_date(type_) else tick
    whole = pa.int32() if pa.types.is_date(type_) else pa.int64()
    assert instant_scalar(type_, tick).cast(whole).as_py() == expected


def fastest(previous: pa.Table, current: pa.Table) -> float:
    """The shortest of some runs, in seconds."""
    runs = []
    for _ in range(7):
        began = time.thread_time()
        emitted("changes", previous, current, NOW)
        runs.append(time.thread_time() - began)
    return min(runs)


def large(noise: float = 0.0) -> tuple[pa.Table, pa.Table]:
    """10 000 rows of which 100 change; the noise moves every float a little."""
    keys = [f"key {n}" for n in range(10_000)]
    values = np.arange(1, 10_001) / 7
    previous = pa.table({"k": keys, "x": values, "_t": np.full(10_000, 10)})
    values = values * (1 + noise)
    values[::100] += 1
    return previous, pa.table({"k": keys, "x": values, "_t": np.full(10_000, 20)})


@pytest.mark.parametrize(("noise", "most_ms"), [(0.0, 20), (1e-14, 60)])
def test_speed(noise: float, most_ms: int) -> None:
    """100 changes in 10 000 rows are found in milliseconds, also where every float moved a bit."""
    previous, current = large(noise)
    assert emitted("changes", previous, current, NOW).num_rows == 200
    assert fastest(previous, current) * 1000 < most_ms


def test_many_near_floats_without_a_key() -> None:
    """One column of floats that all moved a bit, beside one that is always the same."""
    values = np.arange(1, 5001) / 7
    same_value = np.full(5000, 1.5)
    previous = pa.table({"c": same_value, "x": values, "_t": np.full(5000, 10)})
    moved = values[::-1] * (1 + 1e-13)
    current = pa.table({"c": same_value * (1 + 1e-13), "x": moved, "_t": np.full(5000, 20)})
    assert emitted("changes", previous, current, NOW).num_rows == 0
    assert fastest(previous, current) < 1
