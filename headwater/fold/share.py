"""Keys → shares: which part of a split view has a group.

Owns: the hash by which groups are shared out. Keys that Spark groups together (NaN with NaN, -0.0 with 0.0,
NULL with NULL) are one part's, in every process and at every start. It is not the hash that spilled states
and lookups go by: else a part would fill only some of their places. Must never: change, because the groups
of a part's snapshot were chosen by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.fold.columns import OBJECT, Column, Slots, Vector
from headwater.fold.hashing import bits_of

MULTIPLIER = np.uint64(0xD1342543DE82EF95)
HALF = np.uint64(32)


class Share(NamedTuple):
    """Of all groups those that fall to one of several parts."""

    place: int  # from 0 on
    parts: int

    def __str__(self) -> str:
        return f"part {self.place + 1} of {self.parts}"

    def mask(self, keys: Sequence[pa.Array], row_count: int) -> npt.NDArray[np.bool_]:
        """Which rows are of a group of this part."""
        mine: npt.NDArray[np.bool_] = shares_of(keys, row_count, self.parts) == self.place
        return mine


def shares_of(keys: Sequence[pa.Array], row_count: int, parts: int) -> Slots:
    """The part that has each row's group, below `parts`."""
    bits = np.zeros(row_count, np.uint64)
    for number, key in enumerate(keys):
        own = _bits(Column(key))
        bits = (own if not number else (bits ^ (bits >> HALF)) + own) * MULTIPLIER
    return (((bits >> HALF) * np.uint64(parts)) >> HALF).astype(np.int64)


def _bits(column: Column) -> Vector:
    """64 bits for each value; those of text are made once for each that the chunk has."""
    if column.kind != OBJECT or pa.types.is_decimal(column.type):
        return bits_of(column)
    coded = column.array.dictionary_encode(null_encoding="encode")
    return bits_of(Column(coded.dictionary))[coded.indices.to_numpy(zero_copy_only=False)]
