"""Groups against evaluating all rows anew in plain Python."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest

from headwater.fold.aggregates import Aggregate
from headwater.operators import arrangement, distinct_pairs, group, last_given
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
    Row,
    ordering,
    random_row,
    run,
    sort_key,
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


def all_aggregates(schema: pa.Schema) -> list[GroupAggregate]:
    """Every function over every column that takes it, v and w being the arguments."""
    found = [GroupAggregate("count", (), "rows")]
    for name in ("v", "w"):
        type_ = schema.field(name).type
        number = type_ in NUMBERS or type_ in DECIMALS
        functions = [*functions_for(type_), "any_value", "mode", "collect_list", "collect_set"]
        distinct = ["count", "collect_list"] + (["sum", "avg", "max", "var_pop"] if number else [])
        if number:
            functions += ["skewness", "kurtosis", "percentile_approx", "percentile_disc", "median"]
            found.append(GroupAggregate("percentile", (name,), "p", percentages=(0.0, 0.3, 1.0)))
            found.append(
                GroupAggregate("percentile", (name,), "q", percentages=0.9, descending=True)
            )
            found.append(GroupAggregate("percentile_disc", (name,), "d", percentages=(0.25, 0.6)))
            found.append(
                GroupAggregate("percentile_approx", (name,), "a", percentages=(0.0, 0.7, 1.0))
            )
        found += [GroupAggregate(f, (name,), f) for f in functions]
        found += [GroupAggregate(f, (name,), f, distinct=True) for f in distinct]
        found += [GroupAggregate(f, ("s", name), f) for f in ("max_by", "min_by")]
        found.append(GroupAggregate("mode", (name,), "m", descending=True))
    if all(schema.field(name).type in [*NUMBERS, *DECIMALS] for name in "vw"):
        found += [GroupAggregate(f, ("v", "w"), f) for f in MOMENTS[2:]]
    found.append(GroupAggregate("count_distinct", ("v", "w"), "pairs"))
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


def check_groups(seed: int) -> None:
    rng = random.Random(seed)
    key_types = rng.choices(ALL_TYPES, k=rng.choice([0, 1, 1, 2]))
    fields = [(f"k{n}", type_) for n, type_ in enumerate(key_types)]
    numbers = [*NUMBERS, *DECIMALS]
    fields += [("v", rng.choice(ALL_TYPES)), ("w", rng.choice(numbers)), ("s", pa.string())]
    schema, keys = pa.schema(fields), [f"k{n}" for n in range(len(key_types))]
    every = all_aggregates(schema)
    aggregates = named(rng.sample(every, rng.choice([0 if keys else 1, 1, 2, len(every)])))
    takes_back = rng.random() < 0.7

    def make() -> GroupRows:
        return GroupRows(schema, keys, aggregates, takes_back)

    kept = make()._rows
    names = schema.names if kept is None else kept.schema.names
    places = [schema.names.index(name) for name in names]
    run(
        rng,
        make,
        schema,
        lambda rows: grouped(keys, aggregates, schema, rows),
        takes_back,
        lambda: random_row(rng, schema),
        lambda row: tuple(row[place] for place in places),
    )


@pytest.mark.parametrize("first", range(0, 120, 20))
def test_groups_equal_all_rows_evaluated(first: int, little_room: None) -> None:
    for seed in range(first, first + 20):
        check_groups(seed)
