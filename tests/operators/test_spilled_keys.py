"""Operators whose states go to disk at any moment give what their twins in memory give, change by change."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from headwater.fold.snapshot import dump, load
from headwater.operators.changes import Changes
from headwater.operators.distinct import DistinctRows
from headwater.operators.group import GroupRows
from headwater.operators.group_aggregates import GroupAggregate
from headwater.operators.join import join_rows
from headwater.operators.operator import Operator
from headwater.operators.spilled_keys import ALL, MORE, NOTHING, SpilledKeys, ordered, united
from headwater.operators.top import TopRows
from tests.operators.bags import bag, rows_of, table
from tests.operators.runs import taken_up, with_runs

LEFT = pa.schema([("a", pa.int64()), ("x", pa.string())])
RIGHT = pa.schema([("b", pa.int64()), ("y", pa.string())])
AGGREGATES = [
    GroupAggregate("count", (), "n"),
    GroupAggregate("max", ("x",), "m"),
    GroupAggregate("count", ("x",), "d", distinct=True),
]
MAKERS: dict[str, Callable[[], Operator]] = {
    "full join": lambda: join_rows("full", LEFT, RIGHT, ["a"], ["b"], None, [True], (True, True)),
    "anti join": lambda: join_rows("anti", LEFT, RIGHT, ["a"], ["b"], None, [False], (True, True)),
    "group": lambda: GroupRows(LEFT, ["a"], AGGREGATES, True),
    "top": lambda: TopRows(LEFT, ["a"], [("x", False, True)], 1),
    "distinct": lambda: DistinctRows(LEFT, True),
}
ROWS = st.lists(
    st.tuples(st.sampled_from([None, *range(5)]), st.sampled_from("abc")), min_size=1, max_size=6
)


def signed(changes: Changes) -> Any:
    """What came out, rows that came and went left out."""
    rows = list(zip(rows_of(changes.rows), changes.signs.tolist(), strict=True))
    plus, minus = bag(r for r, sign in rows if sign > 0), bag(r for r, sign in rows if sign < 0)
    return plus - minus, minus - plus


class SpillingOperators(RuleBasedStateMachine):
    """One operator in memory, one that spills."""

    @initialize(name=st.sampled_from(sorted(MAKERS)), seed=st.integers(0, 99))
    def begin(self, name: str, seed: int) -> None:
        self.make = MAKERS[name]
        self.schemas = [LEFT, RIGHT] if "join" in name else [LEFT]
        self.rows: list[list[Any]] = [[] for _ in self.schemas]
        self.here, self.there = self.make(), self.make()
        with_runs(self.there.spilled, random.Random(seed))

    def apply(self, place: int, rows: list[Any], sign: int) -> None:
        inputs = []
        for number, schema in enumerate(self.schemas):
            mine = rows if number == place else []
            inputs.append(Changes(table(schema, mine), np.full(len(mine), sign, np.int8)))
        assert signed(self.there.apply(*inputs)) == signed(self.here.apply(*inputs))

    @rule(place=st.integers(0, 1), rows=ROWS)
    def come(self, place: int, rows: list[Any]) -> None:
        place %= len(self.schemas)
        self.rows[place] += rows
        self.apply(place, rows, 1)

    @rule(place=st.integers(0, 1), picks=st.lists(st.integers(0, 99), min_size=1, max_size=6))
    def go(self, place: int, picks: list[int]) -> None:
        rows = self.rows[place % len(self.schemas)]
        gone = [rows.pop(pick % len(rows)) for pick in picks if rows]
        if gone:
            self.apply(place % len(self.schemas), gone, -1)

    @rule()
    def spill(self) -> None:
        self.there.spill()

    @rule()
    def take_up(self) -> None:
        again = self.make()
        load(again, dump(self.there))
        taken_up(again.spilled, self.there.spilled)
        self.there = again


TestSpillingOperators = SpillingOperators.TestCase
TestSpillingOperators.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)


def run_of(rows: list[tuple[int, int, int]]) -> pa.Table:
    """Rows (hash, value, kind) as a run."""
    hashes, values, kinds = (np.array(column) for column in zip(*rows, strict=True))
    return ordered(pa.table({"0": values}), hashes.astype(np.uint64), kinds.astype(np.int8))


def test_older_runs_do_not_count_for_a_key_that_is_whole_in_a_newer_one() -> None:
    runs = [
        run_of([(1, 10, MORE), (2, 20, MORE), (3, 30, MORE)]),
        run_of([(1, 11, MORE), (2, 21, ALL), (2, 22, ALL), (3, 0, NOTHING)]),
        run_of([(2, 23, MORE), (4, 40, MORE)]),
    ]
    found = united(runs, oldest=True)
    assert found.column("0").to_pylist() == [10, 11, 21, 22, 23, 40]
    found = united(runs[1:], oldest=False)
    wanted = [(11, MORE), (21, ALL), (22, ALL), (23, ALL), (0, NOTHING), (40, MORE)]
    assert list(zip(*(found.column(n).to_pylist() for n in ("0", "kind")), strict=True)) == wanted


def test_keys_that_were_only_read_are_not_written_again() -> None:
    keys = SpilledKeys()
    with_runs([keys], random.Random(1))
    hashes = np.array([5, 6], np.uint64)
    keys.put(hashes, [pa.array([1, 2])])
    assert keys.missing(hashes[:1]) is not None
    assert keys.missing(hashes[:1]) is None  # it is there by now
    keys.put(hashes[:1], [pa.array([1])])
    runs: Any = keys.runs
    assert [run.num_rows for run in runs.tables] == [2]
