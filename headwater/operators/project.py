"""Rows with other columns.

Owns: nothing; a row that is taken back gets the columns it had. Must never: be given an expression that may
answer otherwise the next time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from headwater.operators.changes import Changes
from headwater.operators.operator import Operator

Expression = Callable[[pa.Table], pa.Array | pa.ChunkedArray]


class ProjectRows(Operator):
    """A select list: one expression for each column of the schema."""

    name = "project"

    def __init__(self, schema: pa.Schema, columns: Sequence[Expression], takes_back: bool) -> None:
        assert len(schema) == len(columns)
        self.schema, self.takes_back = schema, takes_back
        self._columns = tuple(columns)

    def apply(self, *inputs: Changes) -> Changes:
        (changes,) = inputs
        columns = [column(changes.rows) for column in self._columns]
        return changes.with_rows(pa.Table.from_arrays(columns, schema=self.schema))
