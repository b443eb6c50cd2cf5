"""Plain Python beside the structures: random columns, aggregates over lists of values, comparison."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import pyarrow as pa

from headwater.fold.aggregates import Aggregate, result_type

Row = tuple[Any, int, int]  # value, T, _seq
NUMBERS = [pa.int8(), pa.int32(), pa.int64(), pa.float32(), pa.float64()]
DECIMALS = [pa.decimal128(9, 2), pa.decimal128(18, 4), pa.decimal128(38, 6)]
OTHERS = [pa.string(), pa.binary(), pa.bool_(), pa.date32(), pa.timestamp("us", "UTC")]
ALL_TYPES = [*NUMBERS, *DECIMALS, *OTHERS]
WORDS = ["", "a", "ab", "b", "é", "\U0001f600", "￿", "zz", "customer 1", "customer 2"]


def random_value(rng: random.Random, type_: pa.DataType) -> Any:
    """A value out of few, so that ties and repeated keys are common."""
    small = rng.randrange(-5, 6)
    if pa.types.is_floating(type_):
        return rng.choice([math.nan, -0.0, 0.0, math.inf, 1.5, -2.25, float(small), float(small)])
    if pa.types.is_boolean(type_):
        return rng.random() < 0.5
    if pa.types.is_integer(type_):
        return small
    if pa.types.is_decimal(type_):
        return Decimal(small * 12345).scaleb(-type_.scale)
    if pa.types.is_string(type_):
        return rng.choice(WORDS)
    if pa.types.is_binary(type_):
        return rng.choice(WORDS).encode()
    if pa.types.is_date(type_):
        return date(1970, 1, 1) + timedelta(small)
    if pa.types.is_timestamp(type_):
        return datetime(1970, 1, 1) + timedelta(microseconds=small)
    raise AssertionError(type_)


def random_array(rng: random.Random, type_: pa.DataType, count: int, nulls: float) -> pa.Array:
    """A column with NULLs; sometimes cut out of a longer one, as slices of chunks are."""
    values = [None if rng.random() < nulls else random_value(rng, type_) for _ in range(count + 3)]
    return pa.array(values, type_).slice(rng.randrange(4), count)


def functions_for(type_: pa.DataType) -> list[str]:
    """The aggregates that take a type."""
    names = ["count", "min", "max", "first", "last", "first_ignore_nulls", "last_ignore_nulls"]
    if pa.types.is_boolean(type_):
        names += ["bool_and", "bool_or"]
    if type_ in NUMBERS or type_ in DECIMALS:
        names += ["sum", "avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop"]
    return [*names, "count_distinct"]


def _order(value: Any) -> Any:
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value + 0.0)
    return value


def key(values: Iterable[Any]) -> tuple[Any, ...]:
    """A key as Spark groups: NaN equals itself, -0.0 equals 0.0."""
    return tuple(_order(value) for value in values)


def _variance(values: list[Any], sample: bool) -> float | None:
    count = len(values)
    if count < 1 + sample:
        return None
    numbers = [float(value) for value in values]
    mean = sum(numbers) / count
    if not math.isfinite(mean):
        return math.nan
    return sum((number - mean) ** 2 for number in numbers) / (count - sample)


def evaluate(aggregate: Aggregate, rows: list[Row]) -> Any:
    """One aggregate over the rows of one group."""
    if aggregate.argument is None:
        return len(rows)
    ordered = sorted(rows, key=lambda row: row[1:])
    there = [row[0] for row in ordered if row[0] is not None]
    name = aggregate.function
    if name == "count":
        return len(there)
    if name == "count_distinct":
        return len({_order(value) for value in there})
    if name in ("first", "last"):
        return ordered[0 if name == "first" else -1][0] if ordered else None
    if not there:
        return None
    if name.endswith("_ignore_nulls"):
        return there[0 if name.startswith("first") else -1]
    if name in ("min", "bool_and", "max", "bool_or"):
        pick = min if name in ("min", "bool_and") else max
        return pick(there, key=_order)
    if name in ("sum", "avg"):
        return _sum(aggregate, there)
    variance = _variance(there, name.endswith("_samp"))
    return math.sqrt(variance) if variance is not None and name.startswith("std") else variance


def _sum(aggregate: Aggregate, values: list[Any]) -> Any:
    with localcontext(prec=80):
        total = sum(values[1:], values[0])
        if aggregate.function == "sum":
            return total
        if isinstance(total, Decimal):
            unit = Decimal(1).scaleb(-result_type(aggregate).scale)
            return (total / len(values)).quantize(unit, ROUND_HALF_UP)
    return total / len(values)


def grouped(
    aggregates: Sequence[Aggregate],
    keys: Sequence[pa.Array],
    rows: list[Any],
    columns: Sequence[pa.Array],
) -> dict[tuple[Any, ...], list[Any]]:
    """The result over some row numbers: key → aggregates. Rows are in the order of (T, _seq)."""
    key_lists, lists = [k.to_pylist() for k in keys], [c.to_pylist() for c in columns]
    groups: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for row in rows:
        groups[key(values[row] for values in key_lists)].append(row)
    if not keys:
        groups.setdefault((), [])
    return {
        group: [
            evaluate(a, [(lists[a.argument or 0][row], 0, row) for row in members])
            for a in aggregates
        ]
        for group, members in groups.items()
    }


def same(mine: Any, theirs: Any) -> bool:
    """Equal values; floats up to rounding."""
    if isinstance(mine, float) and isinstance(theirs, float):
        if math.isnan(mine) or math.isnan(theirs):
            return math.isnan(mine) and math.isnan(theirs)
        return math.isclose(mine, theirs, rel_tol=1e-9, abs_tol=1e-9)
    return type(mine) is type(theirs) and mine == theirs


def check(table: pa.Table, key_count: int, expected: dict[tuple[Any, ...], list[Any]]) -> None:
    """The table has exactly the expected groups and values."""
    table.validate(full=True)
    found = {}
    columns = [column.to_pylist() for column in table.columns]
    for row in zip(*columns, strict=True):
        group = key(row[:key_count])
        assert group not in found, f"group {group} twice"
        found[group] = list(row[key_count:])
    assert found.keys() == expected.keys()
    for group, values in expected.items():
        for mine, theirs, field in zip(
            found[group], values, table.schema.names[key_count:], strict=True
        ):
            theirs = _aware(theirs)
            assert same(_aware(mine), theirs), f"{group} {field}: {mine!r}, expected {theirs!r}"


def _aware(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value
