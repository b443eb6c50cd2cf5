"""How large each experiment is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    """One set of sizes."""

    scale: float
    batch: int
    repetitions: int  # after a warm-up
    memory_repetitions: int  # of the run without durability
    chunk_rows: int  # Fig. 11: rows in chunks of 1 000
    reads: int  # Fig. 11: refreshes, each after one more chunk
    core_rows: int  # Fig. 12


CHUNK = 1_000
QUICK = Sizes(0.02, 20_000, 3, 1, 10_000, 3, 60_000)
FULL = Sizes(1, 100_000, 5, 3, 100_000, 10, 1_000_000)
