"""Equi-joins of chunks with a static table that is indexed once.

Owns: the rows of the static table under each key. Keys are equal as Spark's joins say: NULL matches
nothing, NaN matches NaN, -0.0 matches 0.0. Must never: build its index again for a chunk.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.fold.columns import Column, Slots, Vector
from headwater.fold.lookup import Lookup

KINDS = ("inner", "left", "semi", "anti")


class Probe:
    """A static table indexed by its key columns, joined to chunk after chunk."""

    def __init__(self, table: pa.Table, keys: Sequence[str]) -> None:
        if not keys:
            raise ValueError("a probe needs a key column")
        self._table = table.combine_chunks()
        columns = [Column(table.column(key)) for key in keys]
        self._lookup = Lookup([column.type for column in columns])
        there = np.flatnonzero(_complete(columns, table.num_rows))
        known = [column.array.take(pa.array(there)) for column in columns]
        slots = self._lookup.slots(known) if len(there) else np.empty(0, np.int64)
        self._counts = np.bincount(slots, minlength=len(self._lookup)).astype(np.int64)
        self._starts = np.cumsum(self._counts) - self._counts
        self._rows = there[np.argsort(slots, kind="stable")]  # by key, in the table's order
        self._unique = bool((self._counts <= 1).all())

    def join(
        self,
        chunk: pa.Table,
        keys: Sequence[pa.Array | pa.ChunkedArray],
        columns: Sequence[str],
        kind: str,
    ) -> pa.Table:
        """The chunk's rows in order, once per match, and the named columns of the static table."""
        if kind not in KINDS:
            raise ValueError(f"no join of kind {kind}")
        slots = self._find(keys, chunk.num_rows)
        if kind in ("semi", "anti"):
            return _kept(chunk, slots >= 0 if kind == "semi" else slots < 0)
        left, right = self._matches(slots, outer=kind == "left")
        rows = chunk if left is None else chunk.take(pa.array(left))
        return self._beside(rows, right, columns)

    def _find(self, keys: Sequence[pa.Array | pa.ChunkedArray], row_count: int) -> Slots:
        """The slot of each row's key, -1 if the static table has none."""
        given = [Column(key) for key in keys]
        if not len(self._lookup) or not row_count:
            return np.full(row_count, -1, np.int64)
        return self._lookup.find(given)

    def _matches(self, slots: Slots, outer: bool) -> tuple[Slots | None, Slots]:
        """Row numbers of both sides, match by match; None: every row of the chunk once."""
        if self._unique:
            found = slots >= 0
            right = np.full(len(slots), -1, np.int64)
            right[found] = self._rows[self._starts[slots[found]]]
            if outer or found.all():
                return None, right
            left = np.flatnonzero(found)
            return left, right[left]
        return self._repeated(slots, outer)

    def _repeated(self, slots: Slots, outer: bool) -> tuple[Slots, Slots]:
        known = slots >= 0
        counts = np.where(known, self._counts[slots], 1 if outer else 0)
        left = np.repeat(np.arange(len(slots)), counts)
        within = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
        matched = known[left]
        right = np.full(len(left), -1, np.int64)
        places = self._starts[slots[left[matched]]] + within[matched]
        right[matched] = self._rows[places]
        return left, right

    def _beside(self, rows: pa.Table, right: Slots, columns: Sequence[str]) -> pa.Table:
        """The rows with the static columns of the matches beside them, NULL where there is none."""
        missing = right < 0
        places = pa.array(right, mask=missing) if missing.any() else pa.array(right)
        found = [self._table.column(name).take(places) for name in columns]
        fields = [*rows.schema, *(self._field(name) for name in columns)]
        return pa.table([*rows.columns, *found], schema=pa.schema(fields))

    def _field(self, name: str) -> pa.Field:
        return self._table.schema.field(name).with_nullable(True)


def _complete(columns: Sequence[Column], row_count: int) -> Vector:
    """Which rows have no NULL in their key."""
    complete = np.ones(row_count, np.bool_)
    for column in columns:
        if column.valid is not None:
            complete &= column.valid
    return complete


def _kept(chunk: pa.Table, keep: Vector) -> pa.Table:
    return chunk if keep.all() else chunk.filter(pc.fill_null(pa.array(keep), False))
