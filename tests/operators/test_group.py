"""Groups against evaluating all rows anew in plain Python."""

from __future__ import annotations

import itertools
import math
import random
import struct
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.errors import DataError, NotSupportedError
from headwater.fold.aggregates import Aggregate
from headwater.fold.snapshot import dump, load
from headwater.operators import arrangement, distinct_pairs, group, last_given
from headwater.operators.changes import come
from headwater.operators.group import GroupRows
from headwater.operators.group_aggregates import GroupAggregate
from headwater.operators.grouped_rows import OrderColumn
from tests.fold.brute import (
    ALL_TYPES,
    DECIMALS,
    NUMBERS,
    evaluate,
    functions_for,
    key,
)
from tests.operators.model import (
    Bag,
    Row,
    changes_of,
    check,
    ordering,
    random_row,
    run,
    sort_key,
    tuples,
)

MOMENTS = ["skewness", "kurtosis", "covar_pop", "covar_samp", "corr"]
BY_ROWS = ["max_by", "min_by", "mode", "collect_list", "collect_set", "percentile_approx"]


def brute(aggregate: GroupAggregate, rows: list[dict[str, Any]], schema: pa.Schema) -> Any:
    """One aggregate over the rows of a group, in the order they came."""
    name, arguments = aggregate.function, aggregate.arguments
    if not arguments:
        return len(rows)
    values = [row[arguments[0]] for row in rows]
    there = [value for value in values if value is not None]
    if name in MOMENTS:
        return moment(name, [tuple(_number(row[a]) for a in arguments) for row in rows])
    if name in ("max_by", "min_by"):
        return best(name == "max_by", [(row[arguments[0]], row[arguments[1]]) for row in rows])
    if aggregate.distinct or name == "collect_set":
        there = first_of_each(there, sort_key)
    if name == "count_distinct" and len(arguments) > 1:
        pairs = [tuple(row[a] for a in arguments) for row in rows]
        return len({key(pair) for pair in pairs if None not in pair})
    if name in ("collect_list", "collect_set"):
        return there
    if name == "listagg":
        return listagg(aggregate, rows)
    if name == "mode":
        return mode(there, aggregate.descending)
    if name in ("percentile", "median", "percentile_disc", "percentile_approx"):
        return percentiles(aggregate, there)
    type_ = schema.field(arguments[0]).type
    inner = there if aggregate.distinct else values
    name = {"any_value": "first", "count_distinct": "count_distinct"}.get(name, name)
    return evaluate(Aggregate(name, 0, type_, ""), [(v, 0, n) for n, v in enumerate(inner)])


def first_of_each(values: list[Any], by: Callable[[Any], Any]) -> list[Any]:
    found: dict[Any, Any] = {}
    for value in values:
        found.setdefault(by(value), value)
    return list(found.values())


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def moment(name: str, rows: list[tuple[float | None, ...]]) -> float | None:
    there = [row for row in rows if None not in row]
    if not there:
        return None
    count, x = len(there), [row[0] for row in there]
    y = [row[-1] for row in there]
    if not all(map(math.isfinite, [*x, *y])):
        return None if count == 1 and name in ("covar_samp", "corr") else math.nan
    x, y = list(map(Fraction, x)), list(map(Fraction, y))  # equal values have no spread, exactly
    left, right = sum(x) / count, sum(y) / count
    power = {n: float(sum((value - left) ** n for value in x)) for n in (2, 3, 4)}
    product = float(sum((a - left) * (b - right) for a, b in zip(x, y, strict=True)))
    spread = math.sqrt(power[2] * float(sum((value - right) ** 2 for value in y)))
    if name == "skewness":
        return math.sqrt(count) * power[3] / math.sqrt(power[2] ** 3) if power[2] else None
    if name == "kurtosis":
        return count * power[4] / power[2] ** 2 - 3 if power[2] else None
    if name == "corr":
        return product / spread if count > 1 and spread else None
    divisor = count - (name == "covar_samp")
    return product / divisor if divisor else None


def best(greatest: bool, pairs: list[tuple[Any, Any]]) -> Any:
    there = [(value, by) for value, by in pairs if by is not None]
    pick = max if greatest else min
    return pick(there, key=lambda pair: sort_key(pair[1]))[0] if there else None


def mode(values: list[Any], descending: bool) -> Any:
    times = Counter(map(sort_key, values))
    most = [value for value in values if times[sort_key(value)] == max(times.values())]
    pick = max if descending else min
    return pick(most, key=sort_key) if most else None


def percentiles(aggregate: GroupAggregate, values: list[Any]) -> Any:
    values = sorted(values, key=sort_key, reverse=aggregate.descending)
    if not values:
        return None
    given = aggregate.percentages
    if isinstance(given, tuple):
        return [percentile(aggregate.function, values, one) for one in given]
    return percentile(aggregate.function, values, given)


def percentile(name: str, values: list[Any], share: float) -> Any:
    count = len(values)
    if name == "percentile_disc":
        return float(values[max(math.ceil(share * count), 1) - 1])
    if name == "percentile_approx":
        rank = 1 if share <= 1e-4 else count if share >= 1 - 1e-4 else math.ceil(share * count)
        return values[rank - 1]
    position = (count - 1) * share
    lower, higher = math.floor(position), math.ceil(position)
    low, high = float(values[lower]), float(values[higher])
    if lower == higher or low == high:
        return low
    return (higher - position) * low + (position - lower) * high


def listagg(aggregate: GroupAggregate, rows: list[dict[str, Any]]) -> Any:
    name = aggregate.arguments[0]
    there = [row for row in rows if row[name] is not None]
    if aggregate.distinct:
        there = first_of_each(there, lambda row: row[name])
    for one in reversed(aggregate.order):
        by = ordering(one.descending, one.nulls_first)
        there.sort(key=lambda row, by=by, one=one: by(row[one.name]))
    return aggregate.delimiter.join(row[name] for row in there) if there else None


def grouped(
    keys: Sequence[str], aggregates: Sequence[GroupAggregate], schema: pa.Schema, rows: list[Row]
) -> list[Row]:
    groups: dict[Row, list[dict[str, Any]]] = defaultdict(list)
    names: dict[Row, Row] = {}
    for row in rows:
        named = dict(zip(schema.names, row, strict=True))
        own = tuple(named[k] for k in keys)
        names.setdefault(key(own), own)
        groups[key(own)].append(named)
    if not keys:
        groups.setdefault((), [])
        names[()] = ()
    return [
        (*(_zero(v) for v in names[g]), *(brute(a, found, schema) for a in aggregates))
        for g, found in groups.items()
    ]


def _zero(value: Any) -> Any:
    return value + 0.0 if isinstance(value, float) else value


IN_ORDER = ["first", "last", "first_ignore_nulls", "last_ignore_nulls", "any_value", "collect_list"]
IN_ORDER += ["collect_set"]


def all_aggregates(schema: pa.Schema, in_order: bool) -> list[GroupAggregate]:
    """Every function over every column that takes it, v and w being the arguments.

    Some depend on the order of rows; where rows go, these are over u, which no two rows have in common, or n,
    which is u or NULL.
    """
    found = [GroupAggregate("count", (), "rows")]
    for name in ("v", "w"):
        type_ = schema.field(name).type
        number = type_ in NUMBERS or type_ in DECIMALS
        functions = [f for f in functions_for(type_) if f not in IN_ORDER]
        distinct = ["count"] + (["sum", "avg", "max", "var_pop"] if number else [])
        if number:
            functions += ["skewness", "kurtosis", "percentile_disc", "median"]
            given = [("percentile", (0.0, 0.3, 1.0), False), ("percentile", 0.9, True)]
            given += [("percentile_disc", (0.25, 0.6), False)]
            if not pa.types.is_floating(type_):
                given += [("percentile_approx", p, False) for p in ((0.0, 0.7, 1.0), 0.5)]
            found += [
                GroupAggregate(f, (name,), "p", percentages=p, descending=d) for f, p, d in given
            ]
        found += [GroupAggregate(f, (name,), f) for f in functions]
        found += [GroupAggregate(f, (name,), f, distinct=True) for f in distinct]
        found += [GroupAggregate("mode", (name,), "m", descending=d) for d in (True, False)]
        if in_order:
            found += [GroupAggregate(f, (name,), f) for f in IN_ORDER]
            found.append(GroupAggregate("collect_list", (name,), "l", distinct=True))
            found += [GroupAggregate(f, ("s", name), f) for f in ("max_by", "min_by")]
    if all(schema.field(name).type in [*NUMBERS, *DECIMALS] for name in "vw"):
        found += [GroupAggregate(f, ("v", "w"), f) for f in MOMENTS[2:]]
    found.append(GroupAggregate("count_distinct", ("v", "w"), "pairs"))
    found += [
        GroupAggregate(f, ("n",), f) for f in IN_ORDER if f not in ("first", "last", "any_value")
    ]
    found += [GroupAggregate(f, ("u",), f) for f in ("first", "last", "any_value")]
    found += [GroupAggregate(f, ("u", "w"), f) for f in ("max_by", "min_by")]
    order = (OrderColumn("w", True, False), OrderColumn("s"))
    found.append(GroupAggregate("listagg", ("s",), "l", delimiter=", ", order=order))
    own = (OrderColumn("s", True, False),)
    found.append(GroupAggregate("listagg", ("s",), "m", delimiter="-", distinct=True, order=own))
    return found


def named(aggregates: list[GroupAggregate]) -> list[GroupAggregate]:
    """Each with a name of its own."""
    fields = [{**a.__dict__, "name": f"a{n}"} for n, a in enumerate(aggregates)]
    return [GroupAggregate(**values) for values in fields]


@pytest.fixture
def little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is dead goes at once."""
    for module in (arrangement, group, last_given):
        monkeypatch.setattr(module, "LEAST_DEAD", 2)
    monkeypatch.setattr(distinct_pairs, "LEAST_GONE", 2)
    monkeypatch.setattr(last_given, "LEAST_BYTES", 100)


def check_groups(seed: int, only: tuple[str, ...] = ()) -> None:
    rng = random.Random(seed)
    key_types = rng.choices(ALL_TYPES, k=rng.choice([0, 1, 1, 2]))
    fields = [(f"k{n}", type_) for n, type_ in enumerate(key_types)]
    numbers = [*NUMBERS, *DECIMALS]
    fields += [("v", rng.choice(ALL_TYPES)), ("w", rng.choice(numbers)), ("s", pa.string())]
    schema = pa.schema([*fields, ("u", pa.int64()), ("n", pa.int64())])
    keys = [f"k{n}" for n in range(len(key_types))]
    takes_back, duplicates = rng.random() < 0.7, rng.random() < 0.5
    every = [a for a in all_aggregates(schema, not takes_back) if not only or a.function in only]
    if duplicates and takes_back:
        every = [a for a in every if not {"u", "n"} & {*a.arguments}]
    chosen = min(rng.choice([0 if keys else 1, 1, 2, 12]), len(every))
    aggregates, unique = named(rng.sample(every, chosen)), itertools.count()

    def draw() -> Row:
        number = next(unique)
        return (*random_row(rng, schema)[:-2], number, rng.choice([number, None]))

    run(
        rng,
        lambda: GroupRows(schema, keys, aggregates, takes_back),
        schema,
        lambda rows: grouped(keys, aggregates, schema, rows),
        takes_back,
        draw,
        duplicates,
    )


@pytest.mark.parametrize("seed", range(12))
def test_extremes_alone(seed: int, little_room: None) -> None:
    """A group loses its extreme, or another value, and nothing else makes it be folded afresh."""
    check_groups(seed, ("min", "max", "bool_and", "bool_or"))


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_groups_equal_all_rows_evaluated(first: int, little_room: None) -> None:
    for seed in range(first, first + 20):
        check_groups(seed)


NUMBERS_OF_SPARK = pa.schema([("x", pa.float64()), ("y", pa.int32())])
NAN = math.nan
POWERS = [(8.0, 0), (1.0, 0), (4.0, 0), (2.0, 0)]
AS_SPARK = [  # what Spark 4.3 answered: function, parameters, rows, answer
    ("skewness", {}, [(1.0, 0)], None),
    ("covar_samp", {}, [(1.0, 1)], None),
    ("covar_pop", {}, [(1.0, 1)], 0.0),
    ("corr", {}, [(1.0, 1)], None),
    ("kurtosis", {}, [(0.1, 0)] * 3, None),
    ("skewness", {}, [(0.1, 0)] * 3, None),
    ("corr", {}, [(1.0, 1), (1.0, 2), (1.0, 4)], None),
    ("corr", {}, [(1.0, 3), (2.0, None), (None, 3), (7.0, 4), (9.0, -5), (11.0, 2)], -0.377964473009),
    ("regr_slope", {}, [(1.0, 2), (2.0, 2)], None),
    ("regr_intercept", {}, [(3.0, 1)], None),
    ("regr_slope", {}, [(1.0, 3), (7.0, 4), (None, 9), (9.0, -5)], -0.520547945205),
    ("regr_intercept", {}, [(1.0, 3), (7.0, 4), (9.0, -5)], 6.013698630137),
    ("regr_r2", {}, [(3.0, 1), (3.0, 2)], 1.0),
    ("regr_r2", {}, [(1.0, 2), (2.0, 2)], None),
    ("regr_sxx", {}, [(3.0, 1), (None, 9), (3.0, 2)], 0.5),
    ("regr_syy", {}, [(3.0, None)], None),
    ("covar_samp", {}, [(1.0, 3), (7.0, 4), (9.0, -5), (11.0, 2)], -6.66666666666),
    ("skewness", {}, [(1.0, 0), (2.0, 0), (None, 0), (7.0, 0), (9.0, 0), (11.0, 0)], -0.1214974364311),
    ("kurtosis", {}, [(1.0, 0), (2.0, 0), (None, 0), (7.0, 0), (9.0, 0), (11.0, 0)], -1.6253462603878),
    ("skewness", {}, [(1.0, 0), (NAN, 0)], NAN),
    ("percentile", {"percentages": 0.3}, [(x, 0) for x in (1.0, 2.0, 4.0, 8.0, None)], 1.9),
    ("percentile", {"percentages": (0.0, 0.25, 1.0)}, POWERS, [1.0, 1.75, 8.0]),
    ("percentile_cont", {"percentages": 0.3, "descending": True}, POWERS, 4.4),
    ("percentile_disc", {"percentages": 0.3}, POWERS, 2.0),
    ("percentile_disc", {"percentages": 0.5, "descending": True}, POWERS, 4.0),
    ("percentile_disc", {"percentages": 0.75}, [(x, 0) for x in (1.0, 2.0, 3.0, 4.0)], 3.0),
    ("percentile_disc", {"percentages": 0.76}, [(x, 0) for x in (1.0, 2.0, 3.0, 4.0)], 4.0),
    ("percentile", {"percentages": 0.9}, [(x, 0) for x in (1.0, NAN, 2.0)], NAN),
    ("median", {}, [(x, 0) for x in (1.0, NAN, 2.0)], 2.0),
    ("mode", {}, [(x, 0) for x in (-0.0, 0.0, -0.0, 0.0, 1.0, 1.0, 1.0)], 0.0),
    ("mode", {"descending": True}, [(1.0, 0), (2.0, 0), (2.0, 0), (1.0, 0)], 2.0),
    ("collect_set", {}, [(x, 0) for x in (NAN, NAN, -0.0, 0.0, -0.0, 1.0, 1.0, None)], [NAN, 0.0, 1.0]),
    ("collect_list", {}, [(None, 0)], []),
    ("percentile", {"percentages": (0.5,)}, [(None, 0)], None),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(AS_SPARK)))
def test_answers_of_spark(case: int) -> None:
    function, parameters, rows, wanted = AS_SPARK[case]
    two = function in ("corr", "covar_pop", "covar_samp") or function.startswith("regr")
    aggregate = GroupAggregate(function, ("x", "y")[: 1 + two], "a", **parameters)
    for takes_back in (False, True):
        for batches in ([rows], [[row] for row in rows]):
            group, bag = GroupRows(NUMBERS_OF_SPARK, [], [aggregate], takes_back), Bag()
            bag.take(group.begin())
            for batch in batches:
                bag.take(group.apply(changes_of(batch, [], NUMBERS_OF_SPARK)))
            check(bag.rows(), [(wanted,)])


SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64())])
SUMS = [GroupAggregate("count", (), "c"), GroupAggregate("sum", ("v",), "s")]


TEXTS = pa.schema([("x", pa.string())])


def test_approximate_percentiles_of_spark() -> None:
    """Up to an error of 1 / accuracy the least value is the answer, from 1 less it the greatest."""
    floats = pa.schema([("x", pa.float64())])
    schema = pa.schema([("x", pa.int32())])
    rows = [(x,) for x in (1, 2, 4, 8, None, 9, 11)]
    given = [((0.0, 0.25, 0.3, 0.75, 1.0), 10_000, [1, 2, 2, 9, 11]), (0.5, 10_000, 4), (0.5, 2, 1)]
    aggregates = [
        GroupAggregate(
            "percentile_approx", ("x",), f"a{number}", percentages=share, accuracy=accuracy
        )
        for number, (share, accuracy, _) in enumerate(given)
    ]
    group = GroupRows(schema, [], aggregates, False)
    group.begin()
    assert tuples(group.apply(changes_of(rows, [], schema)).rows)[-1] == tuple(
        a for _, _, a in given
    )
    group = GroupRows(floats, [], [GroupAggregate("approx_percentile", ("x",), "a")], False)
    group.begin()
    assert tuples(group.apply(changes_of([(0.5,), (2.5,)], [], floats)).rows)[-1] == (0.5,)
    with pytest.raises(NotSupportedError):
        GroupRows(TEXTS, [], [GroupAggregate("approx_percentile", ("x",), "a")], False)


def test_first_and_last_go_by_an_order() -> None:
    """Whatever came first; a row that goes is followed by the next one."""
    schema = pa.schema([("k", pa.int32()), ("v", pa.int32()), ("t", pa.int32())])
    order = (OrderColumn("t"),)
    names = ("first", "last", "first_ignore_nulls", "any_value", "collect_list")
    aggregates = [GroupAggregate(name, ("v",), name, order=order) for name in names]
    group = GroupRows(schema, ["k"], aggregates, True)
    rows = [(1, 20, 2), (1, None, 1), (1, 30, 3), (2, 5, 9)]
    out = group.apply(changes_of(rows, [], schema))
    assert sorted(tuples(out.rows)) == [
        (1, None, 30, 20, None, [20, 30]),
        (2, 5, 5, 5, 5, [5]),
    ]
    out = group.apply(changes_of([(1, 7, 0)], [(1, 30, 3), (2, 5, 9)], schema))
    came = [row for row, sign in zip(tuples(out.rows), out.signs.tolist(), strict=True) if sign > 0]
    assert came == [(1, 7, 20, 7, 7, [7, 20])]


def test_without_keys_the_one_group_is_always_there() -> None:
    group = GroupRows(SCHEMA, [], [*SUMS, GroupAggregate("collect_list", ("v",), "l")], True)
    assert tuples(group.begin().rows) == [(0, None, [])]
    out = group.apply(changes_of([(1, 5)], [], SCHEMA))
    assert tuples(out.rows) == [(0, None, []), (1, 5, [5])]
    out = group.apply(changes_of([], [(1, 5)], SCHEMA))
    assert (tuples(out.rows), out.signs.tolist()) == ([(1, 5, [5]), (0, None, [])], [-1, 1])


def test_a_group_whose_row_stays_equal_gives_nothing() -> None:
    group = GroupRows(SCHEMA, ["k"], [GroupAggregate("max", ("v",), "m")], True)
    group.apply(changes_of([(1, 5), (2, 5)], [], SCHEMA))
    assert len(group.apply(changes_of([(1, 3)], [], SCHEMA))) == 0
    out = group.apply(changes_of([(1, 4), (2, 6)], [(1, 3)], SCHEMA))
    assert list(zip(out.signs.tolist(), tuples(out.rows), strict=True)) == [
        (-1, (2, 5)),
        (1, (2, 6)),
    ]


@pytest.mark.parametrize("restarted", [False, True])
def test_a_sum_that_does_not_fit_raises_until_the_row_is_gone(restarted: bool) -> None:
    aggregates = [*SUMS, GroupAggregate("collect_list", ("v",), "l")]
    group, large = GroupRows(SCHEMA, ["k"], aggregates, True), 2**63 - 1
    group.apply(changes_of([(3, 3), (1, large), (2, 1)], [], SCHEMA))
    with pytest.raises(DataError, match="out of range"):
        group.apply(changes_of([(1, 1), (2, 5)], [(3, 3)], SCHEMA))
    with pytest.raises(DataError, match="out of range"):
        group.apply(changes_of([(4, 4)], [], SCHEMA))
    if restarted:
        again = GroupRows(SCHEMA, ["k"], aggregates, True)
        load(again, dump(group))
        group = again
    out = group.apply(changes_of([], [(1, large)], SCHEMA))
    found = list(zip(out.signs.tolist(), tuples(out.rows), strict=True))
    assert sorted(found) == [
        (-1, (1, 1, large, [large])),
        (-1, (2, 1, 1, [1])),
        (-1, (3, 1, 3, [3])),
        (1, (1, 1, 1, [1])),
        (1, (2, 2, 6, [1, 5])),
        (1, (4, 1, 4, [4])),
    ]


def bits(value: float) -> bytes:
    return struct.pack("d", value)


def test_a_value_is_given_bit_for_bit() -> None:
    """Zeros of a set are positive; between two equal values there is nothing to round."""
    schema = pa.schema([("v", pa.float64())])
    aggregates = [
        GroupAggregate("collect_set", ("v",), "s"),
        GroupAggregate("percentile", ("v",), "p", percentages=0.1),
    ]
    group = GroupRows(schema, [], aggregates, True)
    group.begin()
    out = group.apply(changes_of([(-0.0,), (0.0,)], [], schema))
    assert [bits(value) for value in tuples(out.rows)[-1][0]] == [bits(0.0)]
    out = group.apply(changes_of([(1.34,)] * 2, [(-0.0,), (0.0,)], schema))
    assert bits((1 - 0.1) * 1.34 + 0.1 * 1.34) != bits(1.34)
    assert bits(tuples(out.rows)[-1][1]) == bits(1.34)


def test_float_sums_are_as_if_folded_afresh() -> None:
    schema = pa.schema([("k", pa.int64()), ("v", pa.float64())])
    group = GroupRows(schema, ["k"], [GroupAggregate("sum", ("v",), "s")], True)
    group.apply(changes_of([(1, 1e300), (1, 0.1), (1, math.inf)], [], schema))
    out = group.apply(changes_of([], [(1, 1e300), (1, math.inf)], schema))
    assert tuples(out.rows)[-1] == (1, 0.1)


def test_the_type_of_a_result_can_be_asked_for() -> None:
    wider = GroupAggregate("max", ("v",), "m", pa.decimal128(20, 0))
    group = GroupRows(
        SCHEMA, [], [wider, GroupAggregate("median", ("v",), "d", pa.float32())], False
    )
    assert group.schema.types == [pa.decimal128(20, 0), pa.float32()]
    assert group.begin().rows.schema == group.schema


def test_what_is_not_kept_is_refused() -> None:
    for function, arguments in (("histogram_numeric", ("v",)), ("sum", ()), ("corr", ("v",))):
        with pytest.raises(NotSupportedError):
            GroupRows(SCHEMA, ["k"], [GroupAggregate(function, arguments, "a")], True)


def test_nested_keys_are_refused() -> None:
    schema = pa.schema([("k", pa.list_(pa.int64())), ("v", pa.int64())])
    for function in ("count", "median"):
        with pytest.raises(NotSupportedError):
            GroupRows(schema, ["k"], [GroupAggregate(function, ("v",), "a")], True)


def test_where_rows_only_come_the_best_row_of_a_group_is_enough() -> None:
    aggregates = [
        GroupAggregate("max_by", ("k", "v"), "a"),
        GroupAggregate("min_by", ("k", "v"), "b"),
    ]
    group, rng = GroupRows(SCHEMA, ["k"], aggregates, False), np.random.default_rng(0)
    for _ in range(20):
        values = [pa.array(rng.integers(0, high, 2_000)) for high in (10, 10**9)]
        group.apply(come(pa.Table.from_arrays(values, schema=SCHEMA)))
    assert group._rows is not None
    assert len(group._rows) == 20


def test_a_row_costs_its_group_and_not_the_others() -> None:
    def seconds(groups: int) -> float:
        group = GroupRows(SCHEMA, ["k"], [*SUMS, GroupAggregate("max", ("v",), "m")], True)
        keys = pa.array(np.arange(groups))
        group.apply(come(pa.Table.from_arrays([keys, keys], schema=SCHEMA)))
        best = float("inf")
        for number in range(30):
            row = changes_of([(number, 5)], [(number, number)], SCHEMA)
            start = time.thread_time()
            group.apply(row)
            best = min(best, time.thread_time() - start)
        return best

    assert seconds(100_000) < 5 * seconds(2_000)
