"""How large each experiment is: the paper's sizes, and small ones for `--quick`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """One set of sizes; a segment is what one repetition inserts."""

    customers: int
    segment: int  # calls of ours and DuckDB's
    segments: int
    alone_segment: int  # one view at a time
    slow_segment: int  # of PostgreSQL and ClickHouse
    slow_segments: int
    read_every: int
    seconds: float  # of reads beside inserts
    alone_seconds: float  # of one view read again and again
    checked: int  # calls of the comparison of all systems


BATCH = 10_000
RATES = (10_000, 50_000)  # Fig. 8: calls per second
TABLE_3 = 10_000  # calls before the reads of Table 3
CHECKED_CUSTOMERS = 2_000

QUICK = Sizes(
    customers=100_000,
    segment=200_000,
    segments=5,
    alone_segment=100_000,
    slow_segment=20_000,
    slow_segments=3,
    read_every=100_000,
    seconds=1.5,
    alone_seconds=0.2,
    checked=20_000,
)
FULL = Sizes(
    customers=10_000_000,
    segment=1_000_000,
    segments=5,
    alone_segment=500_000,
    slow_segment=100_000,
    slow_segments=5,
    read_every=100_000,
    seconds=20.0,
    alone_seconds=1.0,
    checked=20_000,
)
