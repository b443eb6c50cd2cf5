"""Vectors with one entry per key that grow as keys come.

Owns: how such a vector grows, and which rows of a batch are the first and the newest of their
key. Must never: sort. The last of several writes to one place is the one that stays.
"""

from __future__ import annotations

import numpy as np

from headwater.fold.columns import Slots, Vector

NONE = int(np.iinfo(np.int64).min)  # no time, no place
SMALLEST = 64


def grown(vector: Vector, size: int, fill: int | float) -> Vector:
    """The vector, or a longer one with the same start, at least `size` long."""
    if len(vector) >= size:
        return vector
    longer = np.full(max(size, 2 * len(vector), SMALLEST), fill, vector.dtype)
    longer[: len(vector)] = vector
    return longer


def newest_rows(slots: Slots, scratch: Slots) -> Slots:
    """Which rows are the newest of their key, in order; `scratch` has an entry per key."""
    numbers = np.arange(len(slots))
    scratch[slots] = numbers
    return np.flatnonzero(scratch[slots] == numbers)


def first_rows(slots: Slots, scratch: Slots) -> Slots:
    """Which rows are the first of their key, in order."""
    numbers = np.arange(len(slots))
    scratch[slots[::-1]] = numbers[::-1]
    return np.flatnonzero(scratch[slots] == numbers)
