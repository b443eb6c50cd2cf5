"""Bags of rows compared bit for bit, against counts of what rows print as."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from headwater.operators.bags import bag_difference, consolidated, left_of
from tests.operators import bags

SCHEMA = pa.schema(
    [("n", pa.int64()), ("s", pa.string()), ("x", pa.float64()), ("l", pa.list_(pa.float32()))]
)
POOLS = [bags.INTEGERS, bags.TEXTS, bags.FLOATS, [None, [], [0.0], [-0.0]]]


def some(random: Random, count: int) -> list[bags.Row]:
    return [tuple(map(random.choice, POOLS)) for _ in range(count)]


@pytest.mark.parametrize("seed", range(30))
def test_the_difference_makes_one_bag_of_another(seed: int) -> None:
    random = Random(seed)
    before = some(random, random.randrange(40))
    after = random.sample(before, len(before) // 2) + some(random, random.randrange(9))
    found = bag_difference(bags.table(SCHEMA, before), bags.table(SCHEMA, after))
    gone, added = bags.bag(bags.rows_of(found.going)), bags.bag(bags.rows_of(found.coming))
    assert gone == bags.bag(before) - bags.bag(after)
    assert added == bags.bag(after) - bags.bag(before)


@pytest.mark.parametrize("seed", range(10))
def test_what_comes_and_goes_is_left_out(seed: int) -> None:
    random = Random(seed)
    coming, going = some(random, 30), some(random, 30)
    found = consolidated(bags.changes(SCHEMA, (coming, going), random))
    assert bags.bag(bags.rows_of(found.coming)) == bags.bag(coming) - bags.bag(going)
    assert bags.bag(bags.rows_of(found.going)) == bags.bag(going) - bags.bag(coming)


@pytest.mark.parametrize("seed", range(10))
def test_of_equal_rows_the_first_go(seed: int) -> None:
    random = Random(seed)
    rows = some(random, 40)
    gone = random.sample(rows, 15)
    left, owed = list[bags.Row](), bags.bag(gone)
    for row in rows:
        if owed[repr(row)]:
            owed[repr(row)] -= 1
        else:
            left.append(row)
    table = bags.table(SCHEMA, rows)
    found = table.take(pa.array(left_of(table, bags.table(SCHEMA, gone))))
    assert list(map(repr, bags.rows_of(found))) == list(map(repr, left))
