"""DISTINCT against a dictionary, by SQL's equality."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from headwater.operators import equal_rows
from headwater.operators.changes import come, go
from headwater.operators.distinct import DistinctRows
from tests.operators.bags import FLOATS, TEXTS, Input, Row, rows_of, run, table

SCHEMA = pa.schema([("s", pa.string()), ("f", pa.float64()), ("l", pa.list_(pa.float64()))])
LISTS: list[Any] = [None, [], [0.0], [-0.0], [math.nan]]


def grouped(shown: Counter[str]) -> Counter[str]:
    """Rows as SQL compares them: −0.0 is 0.0."""
    return Counter({row.replace("-0.0", "0.0"): count for row, count in shown.items()})


def distinct_rows(rows: list[Row]) -> list[Row]:
    return list({repr(row).replace("-0.0", "0.0"): row for row in rows}.values())


@pytest.mark.parametrize("takes_back", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_each_row_once(seed: int, takes_back: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equal_rows, "LEAST_EMPTY", 3)
    pools = [TEXTS, FLOATS, LISTS] if seed % 2 else [["a"], FLOATS, [None]]
    run(
        lambda: DistinctRows(SCHEMA, takes_back),
        [Input(SCHEMA, pools, seed, takes_back)],
        distinct_rows,
        batches=12,
        same=grouped,
    )


def test_zeros_are_shown_as_one_and_stay_until_the_last_has_gone() -> None:
    schema = pa.schema([("f", pa.float64())])
    negative, positive = table(schema, [(-0.0,)]), table(schema, [(0.0,)])
    distinct = DistinctRows(schema, True)
    assert repr(rows_of(distinct.apply(come(negative)).rows)) == "[(0.0,)]"
    assert not len(distinct.apply(come(positive)))
    assert not len(distinct.apply(go(negative)))
    last = distinct.apply(go(positive))
    assert repr(rows_of(last.rows)) == "[(0.0,)]"
    assert last.signs.tolist() == [-1]
    assert repr(rows_of(distinct.apply(come(positive)).rows)) == "[(0.0,)]"


def test_rows_that_have_gone_are_forgotten() -> None:
    schema = pa.schema([("a", pa.int64())])
    distinct = DistinctRows(schema, True)
    for start in range(0, 200_000, 10_000):
        rows = table(schema, [(number,) for number in range(start, start + 10_000)])
        distinct.apply(come(rows))
        distinct.apply(go(rows))
    assert distinct.nbytes < 3_000_000
