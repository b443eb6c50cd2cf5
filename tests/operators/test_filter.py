"""Filters against the same condition in plain Python."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headwater.operators.filter import FilterRows
from tests.operators.bags import FLOATS, INTEGERS, Input, run

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.float64())])


@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_rows_for_which_a_condition_holds(seed: int, chunked: bool) -> None:
    def positive(rows: pa.Table) -> pa.Array | pa.ChunkedArray:
        answer = pc.greater(rows["a"], 0)
        return answer if chunked else answer.combine_chunks()

    takes_back = seed > 0
    run(
        lambda: FilterRows(SCHEMA, positive, takes_back),
        [Input(SCHEMA, [INTEGERS, FLOATS], seed, takes_back)],
        lambda rows: [row for row in rows if row[0] is not None and row[0] > 0],
    )
