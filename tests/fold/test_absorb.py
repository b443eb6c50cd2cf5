"""Partials made elsewhere (here by brute force, as Spark would) beside partials folded by operators."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from headwater.errors import NotSupportedError
from headwater.fold.absorb import absorb, partial_fields
from headwater.fold.aggregates import Aggregate
from headwater.fold.aggregation import Aggregation
from headwater.fold.columns import Column
from headwater.fold.state import GroupState
from tests.fold.brute import ALL_TYPES, check, evaluate, functions_for, grouped, random_array


def made_elsewhere(
    aggregation: Aggregation, keys: pa.Array, column: pa.Array, rows: list[int]
) -> pa.Table:
    """One row per group: the columns that `absorb` documents."""
    members: dict = {}
    for row in rows:
        members.setdefault(repr(keys[row].as_py()), []).append(row)
    fields = [*aggregation.keys, *partial_fields(aggregation)]
    cells: dict[str, list] = {field.name: [] for field in fields}
    for group in members.values():
        cells["k"].append(keys[group[0]].as_py())
        values = [(column[row].as_py(), 0, row) for row in group]
        for field in fields[1:]:
            cells[field.name].append(_cell(field.name, column.type, values))
    return pa.table(
        [pa.array(cells[f.name], f.type) for f in fields], names=[f.name for f in fields]
    )


def _cell(name: str, type_: pa.DataType, rows: list):
    if name == "rows":
        return len(rows)
    kind, _, rest = name.partition("_0")
    there = [row for row in rows if row[0] is not None]
    if kind == "moments":
        function = {"_count": "count", "_mean": "avg", "_squares": "var_pop"}[rest]
        value = evaluate(Aggregate(function, 0, type_, ""), rows)
        value = None if value is None else float(value)
        return value * len(there) if rest == "_squares" and value is not None else value
    if rest:
        rows = there if kind.endswith("_there") else rows
        picked = (rows[0] if kind.startswith("first") else rows[-1]) if rows else (None, None, None)
        return {"_value": picked[0], "_time": picked[1], "_sequence": picked[2]}[rest]
    return evaluate(Aggregate(kind, 0, type_, ""), rows)


@pytest.mark.parametrize("type_", ALL_TYPES, ids=str)
def test_both_tiers_feed_one_state(type_):
    rng = random.Random(str(type_))
    aggregates = [Aggregate(f, 0, type_, f) for f in functions_for(type_) if f != "count_distinct"]
    aggregation = Aggregation([pa.field("k", pa.string())], aggregates)
    state, count = GroupState(aggregation), 120
    keys, column = random_array(rng, pa.string(), count, 0.1), random_array(rng, type_, count, 0.3)
    for number, rows in enumerate(np.array_split(np.arange(count), 6)):
        if number % 2:
            part = [k.slice(rows[0], len(rows)) for k in (keys, column)]
            state.fold([part[0]], [Column(part[1])], (rows * 0, rows))
        else:
            table = made_elsewhere(aggregation, keys, column, rows.tolist())
            state.merge(absorb(aggregation, state.lookup, table))
        expected = grouped(aggregates, [keys], list(range(rows[-1] + 1)), [column])
        check(state.result(), 1, expected)


def test_distinct_values_are_refused():
    aggregation = Aggregation([], [Aggregate("count_distinct", 0, pa.int64(), "a")])
    with pytest.raises(NotSupportedError):
        absorb(aggregation, GroupState(aggregation).lookup, pa.table({"rows": [1]}))
