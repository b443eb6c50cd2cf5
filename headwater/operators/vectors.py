"""Vectors that grow at their end, and the distinct values of short ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from headwater.fold.columns import Vector

LEAST_ROOM = 256


class Growing:
    """A NumPy vector with room at its end."""

    def __init__(self, dtype: Any, values: Vector | None = None) -> None:
        """With the given values in it, which are its own from now on."""
        self._room: Vector = np.empty(0, dtype) if values is None else values
        self._count = len(self._room)

    def __len__(self) -> int:
        return self._count

    @property
    def values(self) -> Vector:
        """What is in it; writing to it changes it."""
        return self._room[: self._count]

    @property
    def nbytes(self) -> int:
        """How much memory is held."""
        return self._room.nbytes

    def append(self, values: Vector) -> None:
        """Adds values."""
        self.grow(self._count + len(values))
        self._room[self._count - len(values) : self._count] = values

    def keep(self, kept: Vector) -> None:
        """Only the values of these places stay, in their order."""
        self._room = self.values[kept]
        self._count = len(self._room)

    def filled(self, count: int, value: Any) -> Vector:
        """So many values at least, new ones being this one; what is in it then."""
        before = self._count
        if count > before:
            self.grow(count)
            self._room[before:count] = value
        return self.values

    def grow(self, count: int) -> None:
        """So many values at least; what stands in new ones is arbitrary."""
        if count > len(self._room):
            wider = np.empty(max(2 * len(self._room), count, LEAST_ROOM), self._room.dtype)
            wider[: self._count] = self._room[: self._count]
            self._room = wider
        self._count = max(self._count, count)


def distinct(values: Vector) -> Vector:
    """Each value once, in order; `np.unique` without an index hashes, which costs several times as much."""
    ordered = np.sort(values)
    return (
        ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(values) else ordered
    )
