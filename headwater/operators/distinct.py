"""DISTINCT: each row once.

Owns: how many equal rows there are, and the one that is shown: it stays until the last of them has gone.
Where rows only come, nothing but the keys is kept. Must never: take a row back while an equal one is there.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.operators.changes import Changes, come, go, nothing, together
from headwater.operators.equal_rows import EqualRows, EqualRowsOperator, with_one_zero


class DistinctRows(EqualRowsOperator):
    """Rows are equal as Spark groups them: NULL equals NULL, NaN equals NaN, −0.0 equals 0.0."""

    name = "distinct"

    def __init__(self, schema: pa.Schema, takes_back: bool) -> None:
        self.schema, self.takes_back = schema, takes_back
        self._equal = EqualRows(schema, 1 if takes_back else 0, shows=takes_back)

    def apply(self, *inputs: Changes) -> Changes:
        changes = with_one_zero(inputs[0].in_one_piece())
        return self._count(changes) if self.takes_back else self._first(changes)

    def _first(self, changes: Changes) -> Changes:
        """Rows whose key has not been there: new slots rise in the order of first appearance."""
        self._equal.bring(changes.rows.columns, len(changes))
        known = len(self._equal.lookup)
        slots = self._equal.slots(changes.rows.columns, len(changes))
        before = np.maximum.accumulate(np.concatenate([[known - 1], slots]))[:-1]
        return changes.filtered(slots > before)

    def _count(self, changes: Changes) -> Changes:
        if not len(changes):
            return nothing(self.schema)
        equal = self._equal
        equal.make_room()
        touched = equal.change(0, changes.rows.columns, changes.signs)
        equal.show(touched, changes)
        fresh = touched.slots[(touched.before == 0) & (touched.after > 0)]
        gone = touched.slots[(touched.before > 0) & (touched.after == 0)]
        out = together([come(equal.shown(fresh)), go(equal.shown(gone))], self.schema)
        equal.hide(touched)
        return out
