"""What both systems get: a file of rows for every slide, and how much processor time a run took.

Must never: import Headwater; plain Structured Streaming runs in a process that has nothing of it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

SLIDE_S = 10
GROUPS = 100
Answers = dict[int, list[int]]  # by the end of a window in seconds: rows, and the sum of all groups


def put(folder: Path, slide: int, rows: int) -> None:
    """The rows of one slide, as a file that is there at once."""
    rng = np.random.default_rng(slide)
    times = np.sort(rng.integers(SLIDE_S * slide, SLIDE_S * (slide + 1), rows)) * 1_000_000
    columns = {
        "at": pa.array(times, pa.timestamp("us", "UTC")),
        "k": pa.array(rng.integers(0, GROUPS, rows), pa.int32()),
        "v": pa.array(rng.integers(0, 1000, rows), pa.int32()),
    }
    hidden = folder / f".{slide}"
    pq.write_table(pa.table(columns), hidden)
    os.rename(hidden, folder / f"{slide:06d}.parquet")


def processor_s() -> float:
    """The processor time of this process and of all under it, those that have ended too."""
    own = psutil.Process()
    total = 0.0
    for process in (own, *own.children(recursive=True)):
        try:
            spent = process.cpu_times()
        except psutil.Error:
            continue  # it has ended: its parent has its time
        total += spent.user + spent.system + spent.children_user + spent.children_system
    return total


def measured(slides: int, warm: int, step: Callable[[int], None]) -> dict[str, float]:
    """Milliseconds of processor time and of waiting for each slide, after some that are not counted."""
    for slide in range(warm):
        step(slide)
    spent, started = processor_s(), time.perf_counter()
    for slide in range(warm, warm + slides):
        step(slide)
    seconds = time.perf_counter() - started
    return {
        "processor_ms": 1000 * (processor_s() - spent) / slides,
        "slide_ms": 1000 * seconds / slides,
    }
