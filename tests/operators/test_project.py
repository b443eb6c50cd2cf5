"""Projections against the same expressions in plain Python."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headwater.operators.project import ProjectRows
from tests.operators.bags import FLOATS, INTEGERS, Input, run

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.float64())])
OUTPUT = pa.schema([("b", pa.float64()), ("next", pa.int64()), ("b_again", pa.float64())])


@pytest.mark.parametrize("seed", range(5))
def test_rows_with_other_columns(seed: int) -> None:
    takes_back = seed > 0
    columns = [
        lambda rows: rows["b"],
        lambda rows: pc.add(rows["a"], 1).combine_chunks(),
        lambda rows: rows["b"],
    ]
    run(
        lambda: ProjectRows(OUTPUT, columns, takes_back),
        [Input(SCHEMA, [INTEGERS, FLOATS], seed, takes_back)],
        lambda rows: [(b, None if a is None else a + 1, b) for a, b in rows],
    )
