"""Joins of every kind against loops over all pairs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headwater.operators import arrangement, partners
from headwater.operators.changes import come
from headwater.operators.filter import Predicate
from headwater.operators.join import join_rows
from tests.operators.bags import FLOATS, INTEGERS, TEXTS, Input, Row, run, table

LEFT = pa.schema([("a", pa.int64()), ("x", pa.float64()), ("s", pa.string())])
RIGHT = pa.schema([("b", pa.int64()), ("y", pa.float64()), ("u", pa.int64())])
KINDS = ["inner", "left", "right", "full", "semi", "anti"]


def greater(rows: pa.Table) -> pa.ChunkedArray:
    return pc.greater(rows["a"], rows["u"])


def equal(left: Any, right: Any, null_safe: bool) -> bool:
    """As Spark compares keys."""
    if left is None or right is None:
        return null_safe and left is right
    both_nan = isinstance(left, float) and math.isnan(left) and math.isnan(right)
    return bool(both_nan or left == right)


def joined(kind: str, left: list[Row], right: list[Row], on: Any) -> Iterator[Row]:
    if kind in ("semi", "anti"):
        yield from (row for row in left if any(on(row, r) for r in right) == (kind == "semi"))
        return
    yield from (row + other for row in left for other in right if on(row, other))
    if kind in ("left", "full"):
        yield from (row + (None,) * 3 for row in left if not any(on(row, r) for r in right))
    if kind in ("right", "full"):
        yield from ((None,) * 3 + row for row in right if not any(on(r, row) for r in left))


@pytest.mark.parametrize("with_residual", [True, False], ids=["residual", "keys"])
@pytest.mark.parametrize("key_count", [0, 1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_joins(
    kind: str, key_count: int, with_residual: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partners, "PIECE", 5)
    monkeypatch.setattr(arrangement, "LEAST_DEAD", 8)
    for seed in range(7):
        check(kind, key_count, greater if with_residual else None, seed)


def check(kind: str, key_count: int, residual: Predicate | None, seed: int) -> None:
    null_safe = [bool(seed & 1), bool(seed & 2)][:key_count]
    takes_back = (seed % 3 != 0, seed % 4 != 0)

    def on(left: Row, right: Row) -> bool:
        a, u = left[0], right[2]
        keys = [equal(left[place], right[place], safe) for place, safe in enumerate(null_safe)]
        return all(keys) and (residual is None or (None not in (a, u) and a > u))

    names = ["a", "x"][:key_count], ["b", "y"][:key_count]
    run(
        lambda: join_rows(kind, LEFT, RIGHT, *names, residual, null_safe, takes_back),
        [
            Input(LEFT, [INTEGERS, FLOATS, TEXTS], 2 * seed, takes_back[0]),
            Input(RIGHT, [INTEGERS, FLOATS, [0, 1, None]], 2 * seed + 1, takes_back[1]),
        ],
        lambda left, right: joined(kind, left, right, on),
        batches=10,
    )


@pytest.mark.parametrize("kind", ["semi", "anti"])
def test_left_rows_that_have_a_partner_forever_are_not_kept(kind: str) -> None:
    semi = join_rows(kind, LEFT, RIGHT, ["a"], ["b"], None, [False], (False, False))
    left = come(table(LEFT, [(number % 1000, 0.0, "") for number in range(100_000)]))
    right = come(table(RIGHT, [(number, 0.0, 0) for number in range(1000)]))
    semi.apply(left, right)
    small = semi.nbytes
    semi.apply(left, come(RIGHT.empty_table()))
    assert semi.nbytes == small


def test_pairs_of_a_hot_key_are_made_in_pieces() -> None:
    """Nine million pairs, of which the condition leaves none: they are never there at once."""
    seen: list[int] = []

    def never(rows: pa.Table) -> pa.ChunkedArray:
        seen.append(rows.num_rows)
        return pc.less(rows["u"], 0)

    join = join_rows("inner", LEFT, RIGHT, ["a"], ["b"], never, [False], (True, True))
    many = 3000
    join.apply(come(table(LEFT, [(1, 0.0, "")] * many)), come(table(RIGHT, [(1, 0.0, 0)] * many)))
    assert sum(seen) == many * many
    assert max(seen) <= partners.PIECE
