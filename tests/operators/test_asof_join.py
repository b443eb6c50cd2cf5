"""As-of joins against loops over all rows, and against DuckDB."""

from __future__ import annotations

import itertools
import math
import operator as comparing
import random
from time import thread_time
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from headwater.operators import arrangement, timed_index
from headwater.operators.asof_join import COMPARISONS, AsofJoinRows
from headwater.operators.changes import Changes, come, nothing
from tests.operators.bags import Input, Output, Row, bag, rows_of, run, table

OF = {">=": comparing.ge, ">": comparing.gt, "<=": comparing.le, "<": comparing.lt}
LEFT = pa.schema([("a", pa.int64()), ("t", pa.int64()), ("x", pa.string())])
RIGHT = pa.schema([("b", pa.int64()), ("u", pa.int64()), ("serial", pa.int64())])
KEYS = [None, 0, 1]
TIMES = [None, -3, 0, 1, 2, 5, 8]


class Numbered(Input):
    """Right rows, each with a number that rises: no two are equal, and the last that came is known."""

    def __init__(self, schema: pa.Schema, times: list[Any], seed: int) -> None:
        super().__init__(schema, [KEYS, times], seed)
        self._times, self._serials = times, itertools.count()

    def step(self) -> Changes:
        chance, coming, going = self.random, [], []
        for _ in range(chance.choice([0, 1, 6])):
            coming.append((chance.choice(KEYS), chance.choice(self._times), next(self._serials)))
        self.rows += coming
        for _ in range(min(chance.choice([0, 1, 4]), len(self.rows))):
            going.append(self.rows.pop(chance.randrange(len(self.rows))))
        signs = np.array([-1] * len(going) + [1] * len(coming), np.int8)
        return Changes(table(self.schema, [*going, *coming]), signs)


def order_of(time: Any) -> Any:
    return (math.isnan(time), 0 if math.isnan(time) else time)


def joined(
    left: list[Row], right: list[Row], keyed: bool, comparison: str, outer: bool
) -> list[Row]:
    out: list[Row] = []
    sign = max if comparison in (">=", ">") else min
    for row in left:
        same = [r for r in right if not keyed or (row[0] is not None and row[0] == r[0])]
        met = [r for r in same if row[1] is not None and r[1] is not None]
        met = [r for r in met if OF[comparison](order_of(row[1]), order_of(r[1]))]
        if met:
            nearest = sign(order_of(r[1]) for r in met)
            out.append(row + max((r for r in met if order_of(r[1]) == nearest), key=lambda r: r[2]))
        elif outer:
            out.append(row + (None,) * 3)
    return out


@pytest.mark.parametrize("outer", [True, False], ids=["outer", "inner"])
@pytest.mark.parametrize("comparison", COMPARISONS)
@pytest.mark.parametrize("keyed", [True, False], ids=["keys", "no keys"])
def test_each_left_row_meets_the_nearest(
    keyed: bool, comparison: str, outer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrangement, "LEAST_DEAD", 6)
    monkeypatch.setattr(timed_index, "LEAST_RUN", 2)
    monkeypatch.setattr(timed_index, "MOST_DEAD", 2)
    names = (["a"], ["b"]) if keyed else ([], [])
    for seed in range(6):
        run(
            lambda: AsofJoinRows(LEFT, RIGHT, *names, "t", "u", comparison, outer),
            [Input(LEFT, [KEYS, TIMES, ["x", "y"]], seed), Numbered(RIGHT, TIMES, seed)],
            lambda left, right: joined(left, right, keyed, comparison, outer),
            batches=14,
        )


@pytest.mark.parametrize("comparison", COMPARISONS)
def test_times_may_be_floats(comparison: str) -> None:
    left, right = (
        schema.set(1, schema.field(1).with_type(pa.float64())) for schema in (LEFT, RIGHT)
    )
    times = [None, -math.inf, -1.5, -0.0, 0.0, 1.5, math.nan]
    for seed in range(6):
        run(
            lambda: AsofJoinRows(left, right, ["a"], ["b"], "t", "u", comparison, True),
            [Input(left, [KEYS, times, ["x"]], seed), Numbered(right, times, seed)],
            lambda some, others: joined(some, others, True, comparison, True),
        )


@pytest.mark.parametrize("comparison", COMPARISONS)
def test_as_duckdb(comparison: str) -> None:
    chance = random.Random(1)
    left = [(chance.randrange(5), chance.randrange(200), "x") for _ in range(300)]
    times = [*itertools.product(range(5), range(0, 200, 3))]  # no ties: DuckDB does not say
    right = [(b, u, number) for number, (b, u) in enumerate(chance.sample(times, 150))]
    join = AsofJoinRows(LEFT, RIGHT, ["a"], ["b"], "t", "u", comparison, True)
    out = Output()
    for start in range(0, 300, 50):
        some, others = left[start : start + 50], right[start // 2 : start // 2 + 25]
        done = join.apply(come(table(LEFT, some)), come(table(RIGHT, others)))
        out.take(done, join.schema, True)
    with duckdb.connect() as connection:
        connection.register("l", table(LEFT, left))
        connection.register("r", table(RIGHT, right))
        query = f"SELECT * FROM l ASOF LEFT JOIN r ON a = b AND t {comparison} u"
        assert out.rows == bag(rows_of(connection.sql(query).to_arrow_table()))


def test_a_right_row_touches_only_left_rows_near_it() -> None:
    """A key of 200 000 left rows: a right row costs what it changes."""
    join = AsofJoinRows(LEFT, RIGHT, ["a"], ["b"], "t", "u", ">=", False)
    count = 200_000
    rows = [
        pa.array(np.ones(count, np.int64)),
        pa.array(np.arange(count)),
        pa.nulls(count, pa.string()),
    ]
    left = pa.Table.from_arrays(rows, schema=LEFT)
    right = table(RIGHT, [(1, time, time) for time in range(0, count, 100)])
    join.apply(come(left), come(right))
    costs = []
    for number in range(20):
        before = thread_time()
        out = join.apply(nothing(LEFT), come(table(RIGHT, [(1, 5000 + 100 * number + 50, -1)])))
        costs.append(thread_time() - before)
        assert len(out) == 100
    assert sorted(costs)[10] < 0.02, costs
