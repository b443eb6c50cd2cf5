"""UNION ALL: the rows of several inputs.

Owns: nothing. Must never: compare rows; UNION without ALL has a DISTINCT above it.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.operators.changes import Changes, together
from headwater.operators.operator import Operator


class UnionRows(Operator):
    """Columns go by their place; the schema names them."""

    name = "union all"

    def __init__(self, schema: pa.Schema, takes_back: Sequence[bool]) -> None:
        self.schema, self.takes_back = schema, any(takes_back)

    def apply(self, *inputs: Changes) -> Changes:
        return together([part.renamed(self.schema) for part in inputs], self.schema)
