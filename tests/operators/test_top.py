"""Top-n against sorting all rows anew in plain Python."""

from __future__ import annotations

import itertools
import random
import time
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.operators import arrangement
from headwater.operators import top as module
from headwater.operators.changes import come
from headwater.operators.top import TopRows
from tests.fold.brute import ALL_TYPES, key
from tests.operators.model import Row, changes_of, ordering, random_row, run, table, tuples

TIES = ["row_number", "rank", "dense_rank"]


def numbered(rows: list[Row], by: list[tuple[int, bool, bool]]) -> list[tuple[Row, dict[str, int]]]:
    """The rows of one partition in order, each with its three numbers."""
    found: list[tuple[Row, dict[str, int]]] = []
    keys = [(place, ordering(descending, first)) for place, descending, first in by]
    for row in sorted(rows, key=lambda row: [make(row[place]) for place, make in keys]):
        mine = [make(row[place]) for place, make in keys]
        last = found[-1] if found else None
        peers = last is not None and mine == [make(last[0][place]) for place, make in keys]
        position = len(found) + 1
        rank = last[1]["rank"] if last and peers else position
        dense = (last[1]["dense_rank"] if last else 0) + (not peers)
        found.append((row, {"row_number": position, "rank": rank, "dense_rank": dense}))
    return found


def check_top(seed: int) -> None:
    rng = random.Random(seed)
    types = [rng.choice([pa.int64(), pa.string(), pa.float64()]), *rng.choices(ALL_TYPES, k=3)]
    schema = pa.schema([*zip("kabc", types, strict=True), ("u", pa.int64())])
    partition = rng.choice([[], ["k"], ["k", "c"]])
    names = rng.sample("kabc", rng.choice([0, 1, 1, 2]))
    order = [(name, rng.random() < 0.5, rng.random() < 0.5) for name in names]
    limit, offset = rng.choice([None, 0, 1, 3, 10]), rng.choice([0, 0, 1, 4])
    takes_back, duplicates = rng.random() < 0.6, rng.random() < 0.5
    ties, number = rng.choice(TIES[duplicates:]), rng.choice([None, "n"])
    unique = itertools.count()

    def draw() -> Row:
        return (*random_row(rng, schema)[:-1], 0 if duplicates else next(unique))

    def expected(rows: list[Row]) -> list[Row]:
        parts: dict[Any, list[Row]] = defaultdict(list)
        for row in rows:
            parts[key(row[schema.names.index(name)] for name in partition)].append(row)
        by = [(schema.names.index(name), *rest) for name, *rest in order]
        last = offset + (10**9 if limit is None else limit)
        return [
            (*row, places[ties]) if number else row
            for part in parts.values()
            for row, places in numbered(part, by)
            if offset < places[ties] <= last
        ]

    def make() -> TopRows:
        return TopRows(schema, partition, order, limit, offset, ties, number, takes_back)

    run(rng, make, schema, expected, takes_back, draw, duplicates)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_tops_equal_all_rows_sorted(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrangement, "LEAST_DEAD", 2)
    monkeypatch.setattr(module, "SPARE", 0)
    for seed in range(first, first + 20):
        check_top(seed)


SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64())])


def test_a_row_that_came_first_stays_first() -> None:
    top = TopRows(SCHEMA.append(pa.field("s", pa.string())), ["k"], [("v", True, False)], 1)
    rows = [(1, 5, "a"), (1, 5, "b")]
    assert tuples(top.apply(changes_of(rows, [], top.input_schema)).rows) == [(1, 5, "a")]
    later = top.apply(changes_of([(1, 5, "c")], [], top.input_schema))
    assert len(later) == 0


def test_only_rows_whose_number_changed_are_given_anew() -> None:
    top = TopRows(SCHEMA, ["k"], [("v", False, True)], 5, number="n")
    top.apply(changes_of([(1, 10), (1, 20), (1, 30), (2, 1)], [], SCHEMA))
    out = top.apply(changes_of([(1, 25)], [], SCHEMA))
    found = list(zip(out.signs.tolist(), tuples(out.rows), strict=True))
    assert sorted(found) == [(-1, (1, 30, 3)), (1, (1, 25, 3)), (1, (1, 30, 4))]


def test_rows_beyond_the_limit_are_forgotten_where_rows_only_come() -> None:
    rng = np.random.default_rng(0)
    top = TopRows(SCHEMA, ["k"], [("v", True, False)], 3, takes_back=False)
    for _ in range(20):
        values = [pa.array(rng.integers(0, high, 2_000)) for high in (10, 10**9)]
        top.apply(come(pa.Table.from_arrays(values, schema=SCHEMA)))
    assert len(top._near.rows) == 30
    assert top.nbytes < 500_000


def test_a_row_costs_its_partition_and_not_the_others() -> None:
    def seconds(partitions: int) -> float:
        top = TopRows(SCHEMA, ["k"], [("v", True, False)], 10, takes_back=False)
        keys = np.arange(partitions * 20) % partitions
        rows = pa.Table.from_arrays([pa.array(keys), pa.array(keys)], schema=SCHEMA)
        top.apply(come(rows))
        best = float("inf")
        for number in range(30):
            row = table([(number, 1000 + number)], SCHEMA)
            start = time.thread_time()
            top.apply(come(row))
            best = min(best, time.thread_time() - start)
        return best

    assert seconds(20_000) < 5 * seconds(200)


def test_far_rows_are_looked_at_only_when_too_few_are_near() -> None:
    top = TopRows(SCHEMA, [], [("v", False, True)], 5)
    top.apply(changes_of([(0, number) for number in range(5_000)], [], SCHEMA))
    seen: list[int] = []
    of_slots = top._far.of_slots
    top._far.of_slots = lambda slots: seen.append(len(slots)) or of_slots(slots)  # type: ignore[method-assign]
    for number in range(100):
        out = top.apply(changes_of([], [(0, number)], SCHEMA))
        found = list(zip(out.signs.tolist(), tuples(out.rows), strict=True))
        assert found == [(-1, (0, number)), (1, (0, number + 5))]
    assert 2 < len(seen) < 10
    assert len(top.apply(changes_of([(0, 4_000)], [(0, 4_500)], SCHEMA))) == 0
    assert len(top._near.rows) < 100


def test_rows_that_came_first_stay_first_when_they_were_far() -> None:
    schema = SCHEMA.append(pa.field("s", pa.int64()))
    top = TopRows(schema, [], [("v", False, True)], 1, number="n")
    rows = [(0, 1, number) for number in range(200)]
    top.apply(changes_of(rows, [], schema))
    for number in range(199):
        out = top.apply(changes_of([], [rows[number]], schema))
        assert tuples(out.rows)[-1] == (*rows[number + 1], 1)


def test_a_row_that_was_near_and_went_far_is_still_before_those_that_came_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SPARE", 0)
    schema = SCHEMA.append(pa.field("s", pa.string()))
    top = TopRows(schema, [], [("v", False, True)], 1)
    top.apply(changes_of([(0, 5, name) for name in "abcde"], [], schema))  # c, d and e go far
    better = [(0, 1, name) for name in "xyz"]
    top.apply(changes_of(better, [], schema))  # z, a and b follow them
    out = top.apply(changes_of([], better, schema))
    assert tuples(out.rows)[-1] == (0, 5, "a")
