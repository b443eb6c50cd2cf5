"""Generated position reports: eight integers a row, in order of time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

COLUMNS = ("vid", "spd", "xway", "lane", "dir", "seg", "pos", "t")
DDL = ", ".join(f"{name} INT" for name in COLUMNS)


def batch(first: int, count: int, *, per_second: int, cars: int, seed: int = 0) -> pa.Table:
    """`count` reports from the `first` on; the same numbers for the same arguments."""
    random = np.random.default_rng((seed, first))
    segment = random.integers(0, 100, count, dtype=np.int32)
    return pa.table(
        {
            "vid": pa.array(random.integers(0, cars, count, dtype=np.int32)),
            "spd": pa.array(random.integers(0, 100, count, dtype=np.int32)),
            "xway": pa.array(np.zeros(count, np.int32)),
            "lane": pa.array(random.integers(0, 5, count, dtype=np.int32)),
            "dir": pa.array(random.integers(0, 2, count, dtype=np.int32)),
            "seg": pa.array(segment),
            "pos": pa.array((segment * 5280 + random.integers(0, 5280, count)).astype(np.int32)),
            "t": pa.array(((first + np.arange(count)) // per_second).astype(np.int32)),
        }
    )
