"""Rows of a table and of the one beside it: the same for the same numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

TABLE = "id BIGINT, k BIGINT, g BIGINT, v BIGINT, ts TIMESTAMP"
BESIDE = "k BIGINT, name STRING, w BIGINT"
KEYS = 10_000
GROUPS = 1_000
VALUES = 1_000
BEGIN = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
PER_SECOND = 100
BATCH = 100_000


def rows(first: int, count: int) -> pa.Table:
    """Rows of the table from a number on, in order of time; one that is alone is in every view's result."""
    random = np.random.default_rng((14, first))
    number = np.arange(first, first + count, dtype=np.int64)
    value = random.integers(0, VALUES, count) if count > 1 else np.array([5])
    key = random.integers(0, KEYS, count)
    micros = BEGIN * 1_000_000 + number * (1_000_000 // PER_SECOND)
    return pa.table(
        {
            "id": number,
            "k": key // 2 * 2 if count == 1 else key,  # of the even ones there is a row beside
            "g": random.integers(0, GROUPS, count),
            "v": value,
            "ts": pa.array(micros, pa.timestamp("us", "UTC")),
        }
    )


def beside() -> pa.Table:
    """A row for every second key."""
    key = np.arange(0, KEYS, 2, dtype=np.int64)
    names = pa.array([f"name {k}" for k in key])
    return pa.table({"k": key, "name": names, "w": key % VALUES})


def batches(count: int) -> Iterator[pa.Table]:
    """All rows of the table."""
    for first in range(0, count, BATCH):
        yield rows(first, min(BATCH, count - first))


def one_by_one(first: int) -> Iterator[pa.Table]:
    """Rows from a number on, without end."""
    return (rows(number, 1) for number in itertools.count(first))


def keyed(first: int, count: int, groups: int) -> pa.Table:
    """Rows of as many keys as there are groups, each key once before the first comes again."""
    number = np.arange(first, first + count, dtype=np.int64)
    # A stride that has no divisor in common with the number of groups mixes the keys.
    return pa.table({"k": number * 7_919 % groups, "v": number % VALUES, "t": number})
