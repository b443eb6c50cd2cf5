"""The algebra against plain Python: every aggregate on every type, merged and not, and its edges."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from headwater.errors import DataError, NotSupportedError
from headwater.fold.aggregates import FUNCTIONS, Aggregate, function_of, result_type
from headwater.fold.aggregation import Aggregation
from headwater.fold.chunk import Grouper
from headwater.fold.columns import Column
from headwater.fold.lookup import Lookup
from headwater.fold.state import GroupState
from tests.fold.brute import ALL_TYPES, check, functions_for, grouped, random_array


def all_aggregates(type_: pa.DataType) -> list[Aggregate]:
    named = [Aggregate(f, 0, type_, f) for f in functions_for(type_)]
    return [*named, Aggregate("count", None, pa.null(), "rows")]


def folded(aggregation: Aggregation, keys, columns, cuts) -> pa.Table:
    """Fold stretches of the rows by themselves and merge the partials."""
    lookup, grouper, whole = Lookup(aggregation.key_types), Grouper(), aggregation.empty(0)
    for start, end in cuts:
        part = [Column(column.slice(start, end - start)) for column in columns]
        slots = lookup.slots([k.slice(start, end - start) for k in keys], end - start)
        rows = np.arange(start, end)
        partial = aggregation.fold(slots, len(lookup), part, grouper, (np.zeros_like(rows), rows))
        whole = aggregation.grow(whole, len(lookup))
        aggregation.merge_at(whole, partial.slots, partial.vectors)
    return aggregation.table(lookup.keys(), aggregation.finish(whole))


@pytest.mark.parametrize("type_", ALL_TYPES, ids=str)
def test_partials_merge_to_the_whole(type_):
    for seed in range(4):
        check_merge(type_, seed)


def check_merge(type_: pa.DataType, seed: int) -> None:
    rng = random.Random(f"{seed} {type_}")
    count, nulls = rng.choice([1, 5, 60, 400]), rng.choice([0, 0.3, 0.9])
    keys = [random_array(rng, rng.choice(ALL_TYPES), count, 0.1) for _ in range(rng.choice([1, 2]))]
    columns = [random_array(rng, type_, count, nulls)]
    aggregates = [a for a in all_aggregates(type_) if a.function != "count_distinct"]
    fields = [pa.field(f"k{i}", k.type) for i, k in enumerate(keys)]
    cuts = sorted([*rng.sample(range(count + 1), min(count, 4)), 0, count])
    expected = grouped(aggregates, keys, list(range(count)), columns)
    spans = list(pairwise(cuts))
    check(folded(Aggregation(fields, aggregates), keys, columns, spans), len(keys), expected)


RESULT_TYPES = [
    ("count", pa.string(), pa.int64()),
    ("sum", pa.int8(), pa.int64()),
    ("sum", pa.int64(), pa.int64()),
    ("sum", pa.float32(), pa.float64()),
    ("sum", pa.decimal128(10, 2), pa.decimal128(20, 2)),
    ("sum", pa.decimal128(38, 2), pa.decimal128(38, 2)),
    ("avg", pa.int64(), pa.float64()),
    ("avg", pa.decimal128(10, 2), pa.decimal128(14, 6)),
    ("min", pa.date32(), pa.date32()),
    ("max", pa.float32(), pa.float32()),
    ("stddev", pa.decimal128(9, 2), pa.float64()),
    ("bool_and", pa.bool_(), pa.bool_()),
    ("last", pa.string(), pa.string()),
    ("count_distinct", pa.string(), pa.int64()),
]


@pytest.mark.parametrize(("name", "given", "expected"), RESULT_TYPES)
def test_result_types_are_sparks(name, given, expected):
    assert result_type(Aggregate(name, 0, given, "a")) == expected


def one(function: str, values: list, type_: pa.DataType, cuts: int = 1):
    """One aggregate over one group, in so many chunks: sliding merge and state agree."""
    aggregation = Aggregation([], [Aggregate(function, 0, type_, "a")])
    state, array = GroupState(aggregation), pa.array(values, type_)
    step = max(1, -(-len(values) // cuts))
    spans = [(s, min(len(values), s + step)) for s in range(0, len(values), step)]
    merged = folded(aggregation, [], [array], spans or [(0, 0)])["a"].to_pylist()[0]
    for start, end in spans:
        rows = np.arange(start, end)
        state.fold([], [Column(array.slice(start, end - start))], (rows, rows))
    other = state.result()["a"].to_pylist()[0]
    assert repr(merged) == repr(other)
    return merged


MAX, MIN = 2**63 - 1, -(2**63)


@pytest.mark.parametrize("cuts", [1, 2, 5])
def test_integer_sums_overflow_exactly_when_the_sum_does_not_fit(cuts):
    assert one("sum", [MAX, 1, -1], pa.int64(), cuts) == MAX
    assert one("sum", [MIN, MIN, MAX, MAX, 2], pa.int64(), cuts) == 0
    assert one("sum", [2**62] * 3 + [-(2**62)] * 2, pa.int64(), cuts) == 2**62
    for values in ([MAX, 1], [MIN, -1], [2**62] * 4, [MAX] * 5, [MIN] * 4, [2**32] * 2 + [MAX]):
        with pytest.raises(DataError) as caught:
            one("sum", values, pa.int64(), cuts)
        assert caught.value.sqlstate == "22003"
        assert "ARITHMETIC_OVERFLOW" in str(caught.value)


def test_averages_of_integers_do_not_overflow():
    assert one("avg", [MAX, MAX, MAX], pa.int64(), 2) == pytest.approx(float(MAX))
    assert one("avg", [2**53 + 1, -(2**53)], pa.int64()) == 0.5


def test_decimal_sums_and_averages():
    nines = Decimal("9" * 32 + ".999999")
    with pytest.raises(DataError):
        one("sum", [nines, nines], pa.decimal128(38, 6), 2)
    assert one("sum", [nines, nines.copy_negate(), None], pa.decimal128(38, 6)) == 0
    largest = Decimal("99999999999999.9999")
    assert one("sum", [largest] * 30, pa.decimal128(18, 4), 3) == largest * 30
    assert one("avg", [Decimal("1.67"), Decimal("1.68")], pa.decimal128(10, 2)) == Decimal(
        "1.675000"
    )
    assert one("avg", [Decimal(-2), Decimal(0), Decimal(0)], pa.decimal128(3, 0)) == Decimal(
        "-0.6667"
    )


def test_nothing_is_null_and_counts_zero():
    for values in ([], [None], [None] * 3):
        assert one("count", values, pa.int64()) == 0
        for name in ("sum", "avg", "min", "max", "var_pop", "stddev_samp"):
            assert one(name, values, pa.float64()) is None
    assert one("var_samp", [3.0], pa.float64()) is None
    assert one("var_pop", [3.0], pa.float64()) == 0.0


def test_nan_is_largest_and_zeros_are_equal():
    assert math.isnan(one("max", [1.0, math.nan, math.inf], pa.float64(), 2))
    assert one("min", [math.nan, math.inf, None], pa.float64(), 3) == math.inf
    assert math.isnan(one("min", [math.nan, None, math.nan], pa.float64(), 2))
    for name in ("min", "max"):
        for values in ([-0.0, 0.0], [0.0, -0.0], [-0.0]):
            assert math.copysign(1, one(name, values, pa.float64(), 2)) == 1
    assert math.isnan(one("sum", [math.inf, -math.inf], pa.float64(), 2))


def test_variances_far_from_zero_lose_nothing():
    values = [1e9 + v for v in (4.0, 7.0, 13.0, 16.0)]
    for cuts in (1, 2, 4):
        assert one("var_samp", values, pa.float64(), cuts) == pytest.approx(30.0, rel=1e-9)


def test_long_integers_survive_nulls():
    assert one("max", [2**53 + 1, None], pa.int64()) == 2**53 + 1
    assert one("sum", [2**53, 1, None], pa.int64()) == 2**53 + 1


def test_first_and_last_go_by_time_then_arrival_whatever_the_order_of_the_rows():
    aggregation = Aggregation([], [Aggregate(f, 0, pa.int64(), f) for f in ("first", "last")])
    state = GroupState(aggregation)
    times, sequence = np.array([5, 3, 5, 3]), np.array([1, 9, 0, 8])
    state.fold([], [Column(pa.array([10, 11, 12, None]))], (times, sequence))
    assert state.result().to_pylist() == [{"first": None, "last": 10}]
    state.fold([], [Column(pa.array([20, 21]))], (np.array([2, 5]), np.array([99, 2])))
    assert state.result().to_pylist() == [{"first": 20, "last": 21}]


def test_what_is_not_in_the_table_is_refused():
    with pytest.raises(NotSupportedError):
        function_of("percentile")
    for name, type_ in [("sum", pa.string()), ("avg", pa.bool_()), ("bool_or", pa.int64())]:
        with pytest.raises(NotSupportedError):
            Aggregation([], [Aggregate(name, 0, type_, "a")])


def test_equal_parts_are_shared():
    names = ["sum", "avg", "count", "min"]
    aggregation = Aggregation([], [Aggregate(n, 0, pa.int64(), n) for n in names])
    assert aggregation.parts == [("rows", None), ("sum", 0), ("count", 0), ("min", 0)]
    never_null = [Aggregate(n, 0, pa.int64(), n, nullable=False) for n in names]
    assert Aggregation([], never_null).parts == [("rows", None), ("sum", 0), ("min", 0)]


def test_only_counts_and_exact_sums_are_invertible():
    for name in FUNCTIONS:
        type_ = pa.bool_() if name.startswith("bool") else pa.int64()
        exact = Aggregation([], [Aggregate(name, 0, type_, "a")]).invertible
        assert exact == (name in ("count", "sum", "avg", "count_distinct"))
    assert not Aggregation([], [Aggregate("sum", 0, pa.float64(), "a")]).invertible
