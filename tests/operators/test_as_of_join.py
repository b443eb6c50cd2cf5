"""As-of joins against loops over all pairs."""

from __future__ import annotations

import operator
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.errors import NotSupportedError
from headwater.operators import arrangement, timed_index
from headwater.operators.arrangement import row_hashes
from headwater.operators.as_of_join import COMPARISONS, AsOfJoinRows
from headwater.operators.changes import Changes, come, go
from tests.operators.bags import INTEGERS, Input, Row, rows_of, run, table
from tests.operators.test_join import equal

LEFT = pa.schema([("a", pa.int64()), ("c", pa.float64()), ("t", pa.int64()), ("v", pa.string())])
RIGHT = pa.schema([("b", pa.int64()), ("d", pa.float64()), ("u", pa.int64()), ("n", pa.int64())])
HOLDS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
TIMES = [None, *range(6)]
NUMBERS = [0.0, 1.5, None]


def make(
    outer: bool, keys: int, safe: list[bool], comparison: str, ties: list[str]
) -> AsOfJoinRows:
    names = ["a", "c"][:keys], ["b", "d"][:keys]
    return AsOfJoinRows(outer, LEFT, RIGHT, *names, safe, ("t", "u"), comparison, ties)


def ranks(right: list[Row], by_number: bool) -> dict[str, int]:
    """What tells right rows of one time apart."""
    hashes = row_hashes(table(RIGHT, right)).tolist()
    return {repr(row): row[3] if by_number else n for row, n in zip(right, hashes, strict=True)}


def joined(
    left: list[Row],
    right: list[Row],
    outer: bool,
    safe: list[bool],
    comparison: str,
    by_number: bool,
) -> Iterator[Row]:
    rank, sign = ranks(right, by_number), 1 if comparison.startswith(">") else -1
    for row in left:
        found = [
            other
            for other in right
            if all(equal(row[place], other[place], one) for place, one in enumerate(safe))
            and None not in (row[2], other[2])
            and HOLDS[comparison](row[2], other[2])
        ]
        if found:
            yield row + max(found, key=lambda other: (sign * other[2], rank[repr(other)]))
        elif outer:
            yield row + (None,) * 4


@pytest.mark.parametrize("outer", [False, True], ids=["inner", "left"])
@pytest.mark.parametrize("keys", [0, 1, 2])
@pytest.mark.parametrize("comparison", COMPARISONS)
def test_as_of_joins(
    comparison: str, keys: int, outer: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrangement, "LEAST_DEAD", 8)
    monkeypatch.setattr(timed_index, "LEAST_RUN", 2)
    monkeypatch.setattr(timed_index, "MOST_DEAD", 2)
    for seed in range(8):
        safe = [bool(seed & 1), bool(seed & 2)][:keys]
        ties = ["n"] if seed & 1 else []
        run(
            lambda safe=safe, ties=ties: make(outer, keys, safe, comparison, ties),
            [
                Input(LEFT, [INTEGERS, NUMBERS, TIMES, ["x", "y"]], 2 * seed, seed % 3 != 0),
                Input(RIGHT, [INTEGERS, NUMBERS, TIMES, range(10**6)], 2 * seed + 1, seed % 4 != 0),
            ],
            lambda left, right, safe=safe, ties=ties: joined(
                left, right, outer, safe, comparison, bool(ties)
            ),
            batches=10,
        )


def rows(schema: pa.Schema, given: list[tuple[int, int | None, Any]]) -> pa.Table:
    return table(schema, [(key, 0.0, time, value) for key, time, value in given])


def partners(out: Changes) -> list[tuple[int, str, int | None]]:
    """The sign, the left row's value and the right row's number."""
    both = zip(out.signs.tolist(), rows_of(out.rows), strict=True)
    return sorted((sign, row[3], row[7]) for sign, row in both)


def test_a_late_row_moves_only_the_left_rows_up_to_the_next_one() -> None:
    join = make(True, 1, [False], ">=", ["n"])
    left = [(1, time, f"l{time}") for time in range(0, 100, 10)]
    join.apply(come(rows(LEFT, left)), come(rows(RIGHT, [(1, 5, 5), (1, 65, 65)])))
    late = join.apply(come(LEFT.empty_table()), come(rows(RIGHT, [(1, 35, 35)])))
    moved = [f"l{time}" for time in (40, 50, 60)]
    assert partners(late) == [(-1, one, 5) for one in moved] + [(1, one, 35) for one in moved]
    back = join.apply(come(LEFT.empty_table()), go(rows(RIGHT, [(1, 5, 5)])))
    moved = [f"l{time}" for time in (10, 20, 30)]
    assert partners(back) == [(-1, one, 5) for one in moved] + [(1, one, None) for one in moved]
    assert not len(join.apply(come(LEFT.empty_table()), come(rows(RIGHT, [(2, 1, 1)]))))


def test_a_row_is_replaced_at_its_time_at_once() -> None:
    join = make(False, 1, [False], ">=", ["n"])
    join.apply(come(rows(LEFT, [(1, 10, "l")])), come(rows(RIGHT, [(1, 5, 5)])))
    both = rows(RIGHT, [(1, 5, 5), (1, 7, 7)])
    out = join.apply(come(LEFT.empty_table()), Changes(both, make_signs([-1, 1])))
    assert partners(out) == [(-1, "l", 5), (1, "l", 7)]


def make_signs(signs: list[int]) -> Any:
    return np.array(signs, np.int8)


def test_many_right_rows_reach_each_left_row_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand rows come late for a thousand: a million pairs are never looked at."""
    join = make(True, 1, [False], ">=", ["n"])
    join.apply(come(rows(LEFT, [(1, n, str(n)) for n in range(1000)])), come(RIGHT.empty_table()))
    looked: list[int] = []
    between = timed_index.TimedIndex.between
    monkeypatch.setattr(
        timed_index.TimedIndex,
        "between",
        lambda self, slots, *rest: looked.append(len(slots)) or between(self, slots, *rest),
    )
    out = join.apply(come(LEFT.empty_table()), come(rows(RIGHT, [(1, n, n) for n in range(1000)])))
    assert (len(out), looked) == (2000, [1])


def test_a_row_that_is_replaced_again_and_again_is_found_without_the_dead() -> None:
    join = make(False, 1, [False], ">=", ["n"])
    join.apply(come(rows(LEFT, [(1, 10, "l")])), come(rows(RIGHT, [(1, 0, 0)])))
    chance, there = random.Random(1), (1, 0, 0)
    for number in range(1, 200):
        gone, there = there, (1, chance.randrange(5), number)
        both = Changes(rows(RIGHT, [gone, there]), make_signs([-1, 1]))
        out = join.apply(come(LEFT.empty_table()), both)
        assert partners(out) == [(-1, "l", number - 1), (1, "l", number)]


def test_texts_are_no_times() -> None:
    with pytest.raises(NotSupportedError):
        AsOfJoinRows(False, LEFT, RIGHT, [], [], [], ("v", "u"), ">=", [])
