"""How many rows come, as a rate that forgets the past by and by.

Owns: the rate. Must never: read a clock.
"""

from __future__ import annotations

import math

MEMORY_US = 2_000_000  # what came longer ago counts for less and less
LEAST_US = 100_000  # shorter stretches of time are not looked at alone


class Load:
    """Arrivals of one query."""

    def __init__(self, now: int) -> None:
        self._since = now
        self._count = 0
        self._rate: float | None = None  # rows per µs

    def came(self, count: int) -> None:
        """So many rows arrived."""
        self._count += count

    def of(self, now: int, row_s: float | None) -> float:
        """What part of the time it takes to process every row: 1 if that is all of it."""
        passed = now - self._since
        if passed >= LEAST_US:
            rate, weight = self._count / passed, math.exp(-passed / MEMORY_US)
            known = rate if self._rate is None else self._rate
            self._rate = known * weight + rate * (1 - weight)
            self._since, self._count = now, 0
        return (self._rate or 0.0) * (row_s or 0.0) * 1e6
