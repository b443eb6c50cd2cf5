"""Changes: rows with a sign, what flows between operators.

Owns: the type. A bag of rows changes by rows that come (+1) and rows that are taken back (−1); a row that
comes twice stands there twice. A − repeats its + bit for bit. Within one batch the order means nothing: a row
that comes and goes in it leaves nothing behind. Must never: hold a weight other than +1 or −1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.fold.columns import Slots

Signs = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Changes:
    """Rows, and for each of them whether it comes or is taken back."""

    rows: pa.Table
    signs: Signs

    def __post_init__(self) -> None:
        assert len(self.signs) == self.rows.num_rows

    def __len__(self) -> int:
        return self.rows.num_rows

    @cached_property
    def only_come(self) -> bool:
        """Whether no row is taken back."""
        return bool((self.signs > 0).all())

    @property
    def coming(self) -> pa.Table:
        """The rows that come."""
        return self.rows if self.only_come else self.rows.filter(pa.array(self.signs > 0))

    @property
    def going(self) -> pa.Table:
        """The rows that are taken back."""
        if self.only_come:
            return self.rows.slice(0, 0)
        return self.rows.filter(pa.array(self.signs < 0))

    def with_rows(self, rows: pa.Table) -> Changes:
        """The same signs over other columns of the same rows."""
        return Changes(rows, self.signs)

    def in_one_piece(self) -> Changes:
        """The same, each column in one piece: rows are taken from it fast."""
        pieces = max((column.num_chunks for column in self.rows.columns), default=1)
        return self if pieces == 1 else self.with_rows(self.rows.combine_chunks())

    def renamed(self, schema: pa.Schema) -> Changes:
        """The same columns under the names of a schema."""
        if self.rows.schema.equals(schema):
            return self
        return self.with_rows(pa.Table.from_arrays(self.rows.columns, schema=schema))

    def taken(self, places: Slots) -> Changes:
        """Some of them, by their places."""
        return Changes(self.rows.take(pa.array(places)), self.signs[places])

    def filtered(self, kept: npt.NDArray[np.bool_]) -> Changes:
        """Those for which a condition holds."""
        if kept.all():
            return self
        return Changes(self.rows.filter(pa.array(kept)), self.signs[kept])


def come(rows: pa.Table) -> Changes:
    """Rows that come."""
    return Changes(rows, np.ones(rows.num_rows, np.int8))


def go(rows: pa.Table) -> Changes:
    """Rows that are taken back."""
    return Changes(rows, np.full(rows.num_rows, -1, np.int8))


def nothing(schema: pa.Schema) -> Changes:
    """No change."""
    return come(schema.empty_table())


def together(parts: Sequence[Changes], schema: pa.Schema) -> Changes:
    """Several batches as one."""
    there = [part for part in parts if len(part)]
    if not there:
        return nothing(schema)
    if len(there) == 1:
        return there[0]
    rows = pa.concat_tables([part.rows for part in there])
    return Changes(rows, np.concatenate([part.signs for part in there]))
