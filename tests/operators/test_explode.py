"""Lists and maps as rows, against loops in plain Python."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from headwater.operators.explode import ExplodeRows
from tests.operators.bags import INTEGERS, Input, Row, run

LISTS = [None, [], [1.0], [-0.0, None, math.nan]]
MAPS = [None, [], [("a", 1)], [("a", None), ("b", 2)]]
PAIRS = [None, [1, None], [2, 3]]


def exploded(rows: list[Row], position: bool, outer: bool, width: int) -> list[Row]:
    out = []
    for number, values in rows:
        for place, value in enumerate(values or ()):
            inner = value if width == 2 else (value,)
            out.append((number, values, *([place] if position else []), *inner))
        if outer and not values:
            out.append((number, values, *[None] * (width + position)))
    return out


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("position", [True, False])
@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.list_(pa.float64()), LISTS),
        (pa.large_list(pa.float64()), LISTS),
        (pa.map_(pa.string(), pa.int64()), MAPS),
        (pa.list_(pa.int64(), 2), PAIRS),
    ],
    ids=["list", "large list", "map", "fixed"],
)
def test_one_row_for_each_element(
    type_: pa.DataType, values: list[Any], position: bool, outer: bool
) -> None:
    schema = pa.schema([("a", pa.int64()), ("values", type_)])
    names = ["key", "value"] if pa.types.is_map(type_) else ["element"]
    outputs = ["position", *names] if position else names
    for seed in range(3):
        operator = run(
            lambda: ExplodeRows(schema, "values", outputs, position, outer, True),
            [Input(schema, [INTEGERS, values], seed)],
            lambda rows: exploded(rows, position, outer, len(names)),
        )
        assert operator.schema.names == ["a", "values", *outputs]
