"""INTERSECT and EXCEPT against counters."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from headwater.operators import equal_rows
from headwater.operators.changes import come, go
from headwater.operators.set_operation import SetOperationRows
from tests.operators.bags import FLOATS, INTEGERS, Input, Row, rows_of, run, table
from tests.operators.test_distinct import grouped

LEFT = pa.schema([("a", pa.int64()), ("b", pa.float64())])
RIGHT = pa.schema([("c", pa.int64()), ("d", pa.float64())])


def expected(kind: str, keeps_all: bool, left: list[Row], right: list[Row]) -> list[Row]:
    mine, theirs = (
        Counter(repr(row).replace("-0.0", "0.0") for row in side) for side in (left, right)
    )
    shown = {repr(row).replace("-0.0", "0.0"): row for row in left}
    if keeps_all:
        counts = mine & theirs if kind == "intersect" else mine - theirs
    else:
        both = {row for row in mine if (row in theirs) == (kind == "intersect")}
        counts = Counter(both)
    return [shown[row] for row in counts.elements()]


@pytest.mark.parametrize("keeps_all", [True, False], ids=["all", "once"])
@pytest.mark.parametrize("kind", ["intersect", "except"])
@pytest.mark.parametrize("seed", range(8))
def test_set_operations(
    seed: int, kind: str, keeps_all: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(equal_rows, "LEAST_EMPTY", 3)
    takes_back = (seed % 2 == 0, seed % 3 == 0)
    operator = run(
        lambda: SetOperationRows(kind, keeps_all, LEFT, takes_back),
        [
            Input(LEFT, [INTEGERS, FLOATS], 2 * seed, takes_back[0]),
            Input(RIGHT, [INTEGERS, FLOATS], 2 * seed + 1, takes_back[1]),
        ],
        lambda left, right: expected(kind, keeps_all, left, right),
        batches=12,
        same=grouped,
    )
    assert operator.takes_back == (kind == "except" or any(takes_back))


@pytest.mark.parametrize("keeps_all", [True, False], ids=["all", "once"])
@pytest.mark.parametrize("kind", ["intersect", "except"])
def test_zeros_are_shown_as_one(kind: str, keeps_all: bool) -> None:
    """Spark shows what it has grouped, also within nested values."""
    inner = pa.struct([("x", pa.float32())])
    schema = pa.schema([("f", pa.float64()), ("l", pa.list_(pa.float64())), ("s", inner)])
    rows = [(-0.0, [None, -0.0], {"x": -0.0}), (None, None, None), (1.5, [], {"x": None})]
    left = table(schema, rows)
    operator = SetOperationRows(kind, keeps_all, schema, (True, True))
    right = left if kind == "intersect" else left.slice(0, 0)
    shown = rows_of(operator.apply(come(left), come(right)).rows)
    wanted = [(0.0, [None, 0.0], {"x": 0.0}), *rows[1:]]
    assert sorted(map(repr, shown)) == sorted(map(repr, wanted))
    assert rows_of(operator.apply(go(left), go(right)).rows) == shown


def test_rows_that_have_gone_are_forgotten() -> None:
    operator, sizes = SetOperationRows("except", False, LEFT, (True, True)), []
    for start in range(0, 200_000, 10_000):
        rows = table(LEFT, [(number, 0.0) for number in range(start, start + 10_000)])
        operator.apply(come(rows), come(rows.slice(0, 5000)))
        operator.apply(go(rows), go(rows.slice(0, 5000)))
        sizes.append(operator.nbytes)
    assert max(sizes[10:]) <= 1.1 * max(sizes[:10])
