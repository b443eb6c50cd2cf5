"""How large the tables and results are, and how often a read is repeated."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

ROWS = "HEADWATER_READS_ROWS"  # in the environment: rows of the table, in place of the full size


@dataclass(frozen=True)
class Sizes:
    """One set of sizes."""

    rows: int  # of the table that views stand on
    groups: int  # of the view of which one key is asked
    results: tuple[int, ...]  # rows of a query's result of which one changes
    repetitions: int
    slow_repetitions: int  # of Spark's


QUICK = Sizes(50_000, 200_000, (1_000, 10_000), 10, 2)
FULL = Sizes(1_000_000, 20_000_000, (1_000, 10_000, 100_000, 1_000_000), 20, 5)


def of(quick: bool) -> Sizes:
    """The sizes of a run."""
    given = os.environ.get(ROWS)
    if quick or not given:
        return QUICK if quick else FULL
    rows = int(given)
    results = tuple(count for count in FULL.results if count <= rows)
    return replace(FULL, rows=rows, groups=20 * rows, results=results)
