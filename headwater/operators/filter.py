"""Rows for which a condition holds.

Owns: nothing; a row that is taken back is asked again and answers as it did. Must never: keep a row for which
the condition is NULL, or be given a condition that may answer otherwise the next time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.operators.changes import Changes
from headwater.operators.operator import Operator

Predicate = Callable[[pa.Table], pa.Array | pa.ChunkedArray]


class FilterRows(Operator):
    """WHERE."""

    name = "filter"

    def __init__(self, schema: pa.Schema, predicate: Predicate, takes_back: bool) -> None:
        self.schema, self.takes_back = schema, takes_back
        self._predicate = predicate

    def apply(self, *inputs: Changes) -> Changes:
        (changes,) = inputs
        return changes.filtered(holds(self._predicate, changes.rows))


def holds(predicate: Predicate, rows: pa.Table) -> npt.NDArray[np.bool_]:
    """For which rows a condition is true; NULL is not."""
    answer = predicate(rows)
    if answer.null_count:
        answer = answer.fill_null(False)
    if isinstance(answer, pa.ChunkedArray):
        return answer.to_numpy().astype(np.bool_, copy=False)
    return answer.to_numpy(zero_copy_only=False)
