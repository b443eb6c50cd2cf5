"""Ten weeks of historical tolls: what each car paid on each of the 69 days before today.

A toll is a function of seed, car and day, so that any part of the history can be made alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

DAYS = 69
HIGHEST_TOLL = 100
HISTORY = pa.schema([pa.field(name, pa.int32(), nullable=False)
                     for name in ("vid", "day", "xway", "toll")])  # fmt: skip
Numbers = np.ndarray[Any, Any]
_MIX, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def historical_tolls(
    vehicle_count: int, expressways: int = 1, seed: int = 1, first_vehicle: int = 0
) -> pa.Table:
    """One row for each car and day: vid, day, xway, toll."""
    vid = np.repeat(np.arange(first_vehicle, first_vehicle + vehicle_count, dtype=np.int32), DAYS)
    day = np.tile(np.arange(1, DAYS + 1, dtype=np.int32), vehicle_count)
    mixed = _mixed(vid, day, seed)
    toll = ((mixed >> np.uint64(40)) % np.uint64(HIGHEST_TOLL)).astype(np.int32)
    columns = [vid, day, _expressway(mixed, expressways), toll]
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=HISTORY)


def expressway_of(vid: Numbers, day: Numbers, expressways: int, seed: int) -> Numbers:
    """The expressway that a car paid for on a day."""
    return _expressway(_mixed(vid, day, seed), expressways)


def _expressway(mixed: Numbers, expressways: int) -> Numbers:
    return ((mixed >> np.uint64(8)) % np.uint64(expressways)).astype(np.int32)


def _mixed(vid: Numbers, day: Numbers, seed: int) -> Numbers:
    """Numbers that look random (splitmix64)."""
    found = vid.astype(np.uint64) * np.uint64(128) + day.astype(np.uint64)
    found += np.uint64(seed * 0x9E3779B97F4A7C15 % 2**64)
    found = (found ^ (found >> np.uint64(30))) * _MIX
    found = (found ^ (found >> np.uint64(27))) * _MIX_2
    return found ^ (found >> np.uint64(31))
