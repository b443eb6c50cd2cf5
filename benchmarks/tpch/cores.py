"""Fig. 12: how much faster the same inserts and one refresh are on two cores than on one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.installed import Missing
from benchmarks.tpch import duck, ours
from benchmarks.tpch.queries import ALL
from benchmarks.tpch.throughput import batches_of

Figures = dict[str, Any]


@contextlib.contextmanager
def on_cores(count: int) -> Iterator[None]:
    """All threads of this process, Spark's too, on so many cores."""
    every = os.sched_getaffinity(0)
    _pin(set(sorted(every)[:count]))
    try:
        yield
    finally:
        _pin(every)


def _pin(cores: set[int]) -> None:
    waiting = [os.getpid()]
    while waiting:
        process = Path("/proc") / str(waiting.pop())
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for thread in (process / "task").iterdir():
                os.sched_setaffinity(int(thread.name), cores)
                waiting += [int(child) for child in (thread / "children").read_text().split()]


def measure(scale: float, size: int, rows: int) -> Figures:
    """By system and query: rows per second on one core and on all."""
    batches = batches_of(scale, size, rows)
    counts = sorted({1, len(os.sched_getaffinity(0))})
    found: Figures = {"Headwater": {}, "DuckDB deferred": {}}
    with ours.opened(scale) as system:
        for query in ALL:
            with contextlib.suppress(Missing):
                found["Headwater"][query] = [_ours(system, query, batches, n) for n in counts]
    with duck.opened(scale) as peer:
        for query in ALL:
            found["DuckDB deferred"][query] = [_duck(peer, query, batches, n) for n in counts]
    return {"cores": counts, "per_s": found}


def _ours(system: ours.Headwater, query: str, batches: Sequence[pa.Table], cores: int) -> float:
    rates = []
    for _ in range(2):  # the first is a warm-up
        system.make(query)
        with on_cores(cores):
            elapsed, _ = ours.timed(system, query, batches)
        system.drop(query)
        rates.append(sum(b.num_rows for b in batches) / elapsed)
    return rates[-1]


def _duck(peer: duck.Duck, query: str, batches: Sequence[pa.Table], cores: int) -> float:
    peer.empty()
    peer.connection.execute(f"SET threads = {cores}")
    with on_cores(cores):
        elapsed = peer.insert(batches) + peer.read(query)[0]
    return sum(b.num_rows for b in batches) / elapsed
