"""INTERSECT and EXCEPT, with and without ALL.

Owns: how many equal rows each of the two inputs has, and the left row that stands for them: it stays until
the last equal one of the left has gone. Must never: give out a row of the right input.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.fold.columns import Slots
from headwater.operators.changes import Changes, come, go, together
from headwater.operators.equal_rows import EqualRows, EqualRowsOperator, with_one_zero
from headwater.operators.vectors import distinct

INTERSECT, EXCEPT = "intersect", "except"


class SetOperationRows(EqualRowsOperator):
    """Columns go by their place; the schema is the left one's. Rows are equal as in DISTINCT."""

    def __init__(
        self, kind: str, keeps_all: bool, schema: pa.Schema, takes_back: tuple[bool, bool]
    ) -> None:
        self.name = f"{kind} all" if keeps_all else kind
        self.schema = schema
        self.takes_back = any(takes_back) or kind == EXCEPT
        self._intersects, self._all = kind == INTERSECT, keeps_all
        self._equal = EqualRows(schema, 2, shows=True)

    def apply(self, *inputs: Changes) -> Changes:
        left, right = (with_one_zero(changes.in_one_piece()) for changes in inputs)
        equal = self._equal
        equal.make_room()
        first = equal.change(0, left.rows.columns, left.signs)
        equal.show(first, left)
        second = equal.change(1, right.rows.columns, right.signs)
        slots = distinct(np.concatenate([first.slots, second.slots]))
        before = [equal.counts(number, slots) for number in (0, 1)]
        after = [count.copy() for count in before]
        for old, touched in zip(before, (first, second), strict=True):
            old[np.searchsorted(slots, touched.slots)] = touched.before
        change = self._copies(*after) - self._copies(*before)
        more, fewer = (
            np.repeat(slots, np.maximum(change, 0)),
            np.repeat(slots, np.maximum(-change, 0)),
        )
        out = together([come(equal.shown(more)), go(equal.shown(fewer))], self.schema)
        equal.hide(first)
        return out

    def _copies(self, left: Slots, right: Slots) -> Slots:
        """How many rows come out where the inputs have so many."""
        if self._all:
            return np.minimum(left, right) if self._intersects else np.maximum(left - right, 0)
        there = right > 0 if self._intersects else right == 0
        return ((left > 0) & there).astype(np.int64)
