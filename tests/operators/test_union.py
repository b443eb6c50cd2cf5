"""UNION ALL against lists put together."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headwater.operators.union import UnionRows
from tests.operators.bags import FLOATS, TEXTS, Input, run

NAMES = (("a", "b"), ("c", "d"), ("a", "c"))


@pytest.mark.parametrize("seed", range(6))
def test_rows_of_several_inputs(seed: int) -> None:
    schemas = [pa.schema([(one, pa.string()), (two, pa.float64())]) for one, two in NAMES]
    takes_back = [seed > 1, seed > 2, False]
    inputs = [
        Input(schema, [TEXTS, FLOATS], 10 * seed + number, may)
        for number, (schema, may) in enumerate(zip(schemas, takes_back, strict=True))
    ]
    operator = run(
        lambda: UnionRows(schemas[0], takes_back), inputs, lambda one, two, three: one + two + three
    )
    assert operator.takes_back == (seed > 1)
