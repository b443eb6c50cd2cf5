"""The rows that fall to one part of a circuit.

Owns: nothing; by the hash that shares out the groups of folded views, a row that is taken back is the part's
that had it. Must never: give a row to two parts, or to none.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.fold.columns import Column
from headwater.fold.share import Share
from headwater.operators.changes import Changes
from headwater.operators.operator import Operator


class ShareRows(Operator):
    """Rows by a hash of some of their columns."""

    name = "part"

    def __init__(
        self, schema: pa.Schema, hashed: Sequence[str], share: Share, takes_back: bool
    ) -> None:
        self.schema, self.takes_back = schema, takes_back
        self._hashed, self._share = tuple(hashed), share

    def apply(self, *inputs: Changes) -> Changes:
        (changes,) = inputs
        keys = [Column(changes.rows.column(name)).array for name in self._hashed]
        mine = self._share.rows(keys, len(changes))
        return changes if len(mine) == len(changes) else changes.taken(mine)
