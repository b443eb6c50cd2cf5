"""Which keys of a state are in memory, and what of the others lies in runs on disk.

Owns: for each key that is in memory whether it is *whole* there, and whether it has *changed* since it was
read from the runs. A key goes by 64 bits of its hash: keys of one hash go to disk and come back together, so
none is mistaken for another. A run has the rows of keys in the order of their hashes; the rows of a key say
whether they are all that there is of it (older runs do not count for it) or are more of it. Must never: read
a file, or lose the order in which the rows of a key stand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from headwater.fold.codes import IntegerCodes
from headwater.fold.columns import Vector
from headwater.fold.spill import HASH
from headwater.operators.vectors import Growing, distinct

KIND = "kind"  # the column that says what a row is to older runs:
MORE, ALL, NOTHING = 0, 1, 2  # one more; one of all there are; no row, and there is none
HERE, CHANGED = 1, 2  # flags of a key in memory: it is whole, and not what the runs have of it


class Runs(Protocol):
    """Runs of one state, from the oldest to the newest."""

    def write(self, rows: pa.Table) -> None:
        """The newest run, in the order of hashes."""

    def find(self, hashes: Vector) -> pa.Table | None:
        """What all runs have of some keys, as `united` gives it; None for nothing."""

    def pieces(self) -> Iterator[pa.Table]:
        """What all runs have, as `united` gives it, piece by piece in the order of hashes."""


class SpilledKeys:
    """The keys of one state."""

    def __init__(self) -> None:
        self.runs: Runs | None = None  # None: nothing may go to disk
        self.restore(None)

    def __bool__(self) -> bool:
        """Whether anything went to disk."""
        return self._active

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        return self._codes.nbytes + self._flags.nbytes if self._active else 0

    def missing(self, hashes: Vector) -> pa.Table | None:
        """What the runs have of keys that are not whole in memory, but are from now on."""
        if not self._active:
            return None
        codes, flags = self._known(hashes)
        codes = distinct(codes[flags[codes] & HERE == 0])
        if not len(codes):
            return None
        flags[codes] |= HERE
        assert self.runs is not None
        return self.runs.find(self._codes.values[codes].view(np.uint64))

    def touch(self, hashes: Vector) -> None:
        """Rows of keys have come, gone or changed in memory."""
        if self._active:
            codes, flags = self._known(hashes)
            flags[codes] |= CHANGED

    def _known(self, hashes: Vector) -> tuple[Vector, Vector]:
        codes = self._codes.codes(hashes.view(np.int64))
        return codes, self._flags.filled(len(self._codes), 0)

    def are_here(self, hashes: Vector) -> Vector:
        """Which keys are whole in memory, whatever the runs have."""
        codes = self._codes.find(hashes.view(np.int64))
        return (codes >= 0) & (np.append(self._flags.values, 0)[codes] & HERE > 0)

    def put(self, hashes: Vector, columns: Sequence[pa.Array | pa.ChunkedArray]) -> None:
        """All rows in memory go to disk, those of keys that have changed in a new run."""
        assert self.runs is not None
        kinds = np.full(len(hashes), MORE, np.int8)
        rows = pa.table([*columns], names=[str(place) for place in range(len(columns))])
        if self._active:
            codes = self._codes.find(hashes.view(np.int64))
            flags = self._flags.filled(len(self._codes), 0)
            kinds[flags[codes] & HERE > 0] = ALL
            chosen = flags[codes] & CHANGED > 0
            gone = flags == HERE | CHANGED
            gone[codes] = False
            lost = self._codes.values[gone].view(np.uint64)
            rows = pa.concat_tables([rows.filter(pa.array(chosen)), _nulls(rows.schema, len(lost))])
            hashes = np.concatenate([hashes[chosen], lost])
            kinds = np.concatenate([kinds[chosen], np.full(len(lost), NOTHING, np.int8)])
        if len(hashes):
            self.runs.write(ordered(rows, hashes, kinds))
        if len(hashes) or self._active:
            self.restore({"hashes": np.empty(0, np.int64), "flags": np.empty(0, np.uint8)})

    def state(self) -> dict[str, Any] | None:
        """What a snapshot needs; whoever has the runs keeps those."""
        if not self._active:
            return None
        flags = self._flags.filled(len(self._codes), 0)
        return {"hashes": self._codes.values.copy(), "flags": flags}

    def restore(self, state: dict[str, Any] | None) -> None:
        """Go back to a snapshot."""
        self._active = state is not None
        self._codes, self._flags = IntegerCodes(), Growing(np.uint8)
        if state is not None:
            self._codes.load(state["hashes"])
            self._flags.append(state["flags"])


def ordered(rows: pa.Table, hashes: Vector, kinds: Vector) -> pa.Table:
    """Rows as a run has them; those of one key stay as they stand."""
    order = np.argsort(hashes, kind="stable")
    taken = rows.take(pa.array(order)).combine_chunks()
    kind = pa.array(kinds[order])
    return taken.append_column(KIND, kind).append_column(HASH, pa.array(hashes[order]))


def united(tables: Sequence[pa.Table], oldest: bool) -> pa.Table:
    """One run of what some neighbouring runs have, the oldest first; `oldest`: there is none below them."""
    if len(tables) == 1 and not oldest:
        return tables[0]
    rows = pa.concat_tables(tables)
    hashes, kinds = rows.column(HASH).to_numpy(), rows.column(KIND).to_numpy()
    number = np.repeat(np.arange(len(tables)), [table.num_rows for table in tables])
    order = np.lexsort((number, hashes))
    hashes, kinds, number = hashes[order], kinds[order], number[order]
    starts = np.flatnonzero(np.diff(hashes, prepend=~hashes[:1]))
    lengths = np.diff(starts, append=len(hashes))
    valid_from = np.repeat(_most(np.where(kinds == MORE, -1, number), starts), lengths)
    kept = number >= valid_from
    real = kept & (kinds != NOTHING)
    if oldest:
        kept, new = real, np.full(len(kinds), MORE, np.int8)
    else:
        there = np.repeat(_most(real.astype(np.int64), starts), lengths) > 0
        kept = real | (kept & ~there)
        new = np.where(kinds == NOTHING, NOTHING, np.where(valid_from < 0, MORE, ALL))
    columns = rows.take(pa.array(order[kept])).drop_columns([KIND, HASH])
    kind = pa.array(new[kept].astype(np.int8))
    return columns.append_column(KIND, kind).append_column(HASH, pa.array(hashes[kept]))


def _most(values: Vector, starts: Vector) -> Vector:
    return np.maximum.reduceat(values, starts) if len(starts) else values


def _nulls(schema: pa.Schema, count: int) -> pa.Table:
    return pa.Table.from_arrays([pa.nulls(count, field.type) for field in schema], schema=schema)
