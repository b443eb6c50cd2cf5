"""Generated streams: the same rows for the same arguments; T is the number of the row, from 1."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

DDL = "x1 INT, x2 INT, t BIGINT"
VALUES = 1000  # x2 of Q1 and x1 of Q2 lie below
FIRST, SECOND, MODULUS = 48_271, 69_621, 2_147_483_647  # of the counted stream


@dataclass(frozen=True)
class Keys:
    """Where keys come from: so many of them, the larger `skew` the more rows the first ones have."""

    count: int
    skew: float = 0.0

    def draw(self, random: np.random.Generator, count: int) -> npt.NDArray[np.int32]:
        """Some keys; with skew they follow Zipf's law."""
        if not self.skew:
            return random.integers(0, self.count, count, dtype=np.int32)
        places = np.searchsorted(_cumulated(self.count, self.skew), random.random(count))
        return places.astype(np.int32)


@functools.cache
def _cumulated(count: int, skew: float) -> npt.NDArray[np.float64]:
    weights = np.arange(1, count + 1) ** -skew
    return np.cumsum(weights) / weights.sum()


def grouped(first: int, count: int, groups: int) -> pa.Table:
    """Rows of Q1 and Q3: x1 is the group."""
    random = np.random.default_rng((1, first, groups))
    return _table(
        random.integers(0, groups, count, dtype=np.int32),
        random.integers(0, VALUES, count, dtype=np.int32),
        np.arange(first + 1, first + 1 + count),
    )


def keyed(first: int, count: int, keys: Keys, stream: int) -> pa.Table:
    """Rows of one of Q2's streams: x2 is the key of the join."""
    random = np.random.default_rng((2, first, stream))
    values = random.integers(0, VALUES, count, dtype=np.int32)
    return _table(values, keys.draw(random, count), np.arange(first + 1, first + 1 + count))


def counted(first: int, count: int, groups: int, per_second: int) -> pa.Table:
    """Rows of B2: each a function of its number, so that every system can make them itself."""
    number = np.arange(first, first + count, dtype=np.int64)
    return _table(
        (number * FIRST % MODULUS % groups).astype(np.int32),
        (number * SECOND % MODULUS % VALUES).astype(np.int32),
        number // per_second,
    )


def _table(
    x1: npt.NDArray[np.int32], x2: npt.NDArray[np.int32], t: npt.NDArray[np.int64]
) -> pa.Table:
    return pa.table({"x1": x1, "x2": x2, "t": t})
