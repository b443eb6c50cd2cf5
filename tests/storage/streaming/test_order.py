"""Rows are given by (T, _seq), whatever the order they were found in and wherever it breaks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from headwater.storage.streaming import read
from headwater.storage.streaming.definition import SEQUENCE

DEFINITION = cast(Any, SimpleNamespace(time="at", ticks=lambda column: column.to_numpy()))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("swapped", [None, *range(9)])
def test_order(monkeypatch: pytest.MonkeyPatch, descending: bool, swapped: int | None) -> None:
    """Two neighbours in the wrong order are seen in a part, and between two parts."""
    monkeypatch.setattr(read, "ORDER_ROWS", 3)
    places = np.arange(10)[:: -1 if descending else 1].copy()
    if swapped is not None:
        places[[swapped, swapped + 1]] = places[[swapped + 1, swapped]]
    rows = pa.table({"at": places // 2, SEQUENCE: places, "name": [str(p) for p in places]})
    found = read.in_order(rows, DEFINITION, descending=descending)
    expected = sorted(range(10), reverse=descending)
    assert found.column(SEQUENCE).to_pylist() == expected
    assert found.column("name").to_pylist() == [str(p) for p in expected]
    assert (found is rows) == (swapped is None)


@pytest.mark.parametrize("count", [0, 1])
def test_nothing_to_order(count: int) -> None:
    """No row, or one, is in order."""
    rows = pa.table({"at": pa.array([5] * count, pa.int64()), SEQUENCE: pa.array([1] * count)})
    assert read.in_order(rows, DEFINITION) is rows
