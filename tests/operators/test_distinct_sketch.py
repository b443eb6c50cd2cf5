"""About how many different values a group has, against counting them; and the state against one batch."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.operators.changes import come
from headwater.operators.distinct_sketch import bits_for
from headwater.operators.group import GroupRows
from headwater.operators.group_aggregates import GroupAggregate
from tests.operators.model import Row, run, table, tuples

SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.float64()), ("s", pa.string())])


def make(keys: list[str], takes_back: bool = False) -> GroupRows:
    calls = [
        GroupAggregate("approx_count_distinct", ("v",), "a"),
        GroupAggregate("count", (), "n"),
        GroupAggregate("approx_count_distinct", ("s",), "b", error=0.01),
        GroupAggregate("approx_count_distinct", ("v",), "c"),
    ]
    return GroupRows(SCHEMA, keys, calls, takes_back)


def counted(values: pa.Array, error: float) -> int:
    one = GroupAggregate("approx_count_distinct", ("x",), "a", error=error)
    group = GroupRows(pa.schema([("x", values.type)]), [], [one], False)
    found = group.begin().rows.column("a").to_pylist()
    pieces = [values.slice(start, 40_000) for start in range(0, len(values), 40_000)]
    for piece in pieces:
        found += group.apply(come(pa.table({"x": piece}))).rows.column("a").to_pylist()
    return int(found[-1])


VALUES: dict[str, Any] = {
    "integers": lambda n: pa.array(np.arange(n)),
    "far integers": lambda n: pa.array(np.arange(n) * 1_000_003 - 5_000_000),
    "floats": lambda n: pa.array(np.arange(n) / 7),
    "texts": lambda n: pa.array([f"user {number}" for number in range(n)]),
    "times": lambda n: pa.array(np.arange(n) * 60_000_000, pa.timestamp("us")),
    "decimals": lambda n: pa.array(np.arange(n)).cast(pa.decimal128(30, 2)),
}


@pytest.mark.parametrize("count", [0, 1, 7, 100, 1000, 4000, 10_000, 100_000])
@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("error", [0.05, 0.01])
def test_the_error_is_smaller_than_promised(kind: str, count: int, error: float) -> None:
    values = VALUES[kind](count)
    twice = pa.concat_arrays([values, values, pa.nulls(3, values.type)])
    found = counted(twice, error)
    assert abs(found - count) <= 2 * error * count
    assert found == count or count > 7


def test_over_many_seeds_the_deviation_keeps_to_the_promise() -> None:
    """Half of what is allowed; in the range, too, where estimates without a table are known to be off."""
    for count in (300, 2000, 5000, 12_000):
        off = []
        for seed in range(60):
            values = np.random.default_rng(seed).integers(0, 2**62, count)
            off.append(counted(pa.array(values), 0.05) / count - 1)
        assert math.sqrt(np.mean(np.square(off))) < 0.03
        assert abs(np.mean(off)) < 0.015


@pytest.mark.parametrize("keys", [[], ["k"]])
def test_batch_after_batch_equals_all_rows_at_once(keys: list[str]) -> None:
    for seed in range(15):
        rng = random.Random(seed)

        def draw(rng: random.Random = rng) -> Row:
            number = rng.choice([None, -0.0, 0.0, math.nan, float(rng.randrange(1000))])
            return rng.randrange(3), number, rng.choice([None, str(rng.randrange(1000))])

        def expected(rows: list[Row]) -> list[Row]:
            whole = make(keys)
            first = whole.begin()
            out = whole.apply(come(table(rows, SCHEMA)))
            return [
                row
                for row, sign in zip(tuples(out.rows), out.signs.tolist(), strict=True)
                if sign > 0
            ] or tuples(first.rows)

        run(rng, lambda: make(keys), SCHEMA, expected, False, draw, duplicates=True)


@pytest.mark.parametrize("keys", [[], ["k"]])
def test_where_rows_go_it_counts(keys: list[str]) -> None:
    rng = random.Random(3)

    def expected(rows: list[Row]) -> list[Row]:
        groups: dict[Any, list[Row]] = {} if keys else {None: []}
        for row in rows:
            groups.setdefault(row[0] if keys else None, []).append(row)
        found = []
        for key, some in groups.items():
            v = len({row[1] for row in some} - {None})
            s = len({row[2] for row in some} - {None})
            found.append((*([key] if keys else []), v, len(some), s, v))
        return found

    def draw() -> Row:
        return rng.randrange(3), rng.choice([None, 1.0, 2.0, 3.0]), rng.choice([None, "a", "b"])

    run(rng, lambda: make(keys, True), SCHEMA, expected, True, draw, duplicates=True)


def test_a_large_group_takes_no_more_than_its_registers() -> None:
    group, sizes = make(["k"]), []
    for start in range(0, 400_000, 50_000):
        numbers = np.arange(start, start + 50_000)
        texts = pa.array(numbers).cast(pa.string())
        group.apply(come(pa.table([numbers % 2, numbers / 1.0, texts], schema=SCHEMA)))
        sizes.append(group.nbytes)
    assert sizes[-1] < 1.1 * sizes[3]
    assert sizes[-1] < 100 * 2 * ((1 << bits_for(0.01)) + (1 << bits_for(0.05)))
