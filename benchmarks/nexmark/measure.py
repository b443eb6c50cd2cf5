"""Chunks in, views read after each: events per second and the time of reads, and whether answers are equal.

A system that needs longer than it may is stopped after a chunk; its rate is that of the events it took, which
flatters a system that slows down. Answers are compared after the events that ours took.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import pyarrow as pa

from benchmarks.bags import difference
from benchmarks.nexmark import data
from benchmarks.nexmark.data import Chunk
from benchmarks.nexmark.systems import QUERIES, System
from tests.harness.workloads.queries import WorkloadQuery

BLOCK = 100_000  # events that are made at once, off the clock
BLOCKS = 10  # that are kept for the next query
Figures = dict[str, Any]


@dataclass
class Run:
    """What one system did with some queries."""

    events: int = 0
    seconds: float = 0.0
    reads_ms: list[float] = field(default_factory=list)
    answers: dict[str, pa.Table] = field(default_factory=dict)

    def figures(self) -> Figures:
        """For the report."""
        found: Figures = {"events": self.events, "per_s": self.events / self.seconds}
        if self.reads_ms:
            found |= {"read_ms": median(self.reads_ms), "worst_ms": max(self.reads_ms)}
        return found


@functools.lru_cache(maxsize=BLOCKS)
def block(first: int, count: int, size: int) -> list[Chunk]:
    """Some chunks; they are the same for every query."""
    return data.chunks(first, count, size)


def chunks(first: int, end: int, size: int) -> Iterator[Chunk]:
    """All chunks between two events."""
    for begin in range(first, end, max(BLOCK, size)):
        yield from block(begin, min(max(BLOCK, size), end - begin), size)


def follow(
    system: System, names: Sequence[str], events: int, size: int, seconds: float, read: bool = True
) -> Run:
    """Chunk by chunk; without reads the views are read once, when everything has been processed."""
    queries = [QUERIES[name] for name in names]
    system.begin(queries)
    run = Run()
    for chunk in chunks(0, events, size):
        started = time.perf_counter()
        system.insert(chunk)
        if read:
            run.reads_ms += [_read(system, query, run) for query in queries]
        run.seconds += time.perf_counter() - started
        run.events += sum(rows.num_rows for rows in chunk.values())
        if run.seconds > seconds:
            break
    if not read:
        run.seconds += _settled(system, queries, run)
    return run


def _read(system: System, query: WorkloadQuery, run: Run) -> float:
    """Milliseconds of a read; its answer is kept."""
    started = time.perf_counter()
    run.answers[query.name] = system.read(query)
    return (time.perf_counter() - started) * 1000


def _settled(system: System, queries: Sequence[WorkloadQuery], run: Run) -> float:
    started = time.perf_counter()
    system.settle()
    for query in queries:
        _read(system, query, run)
    return time.perf_counter() - started


def difference_to(peer: System, run: Run, done: int, size: int) -> str | None:
    """Which answers differ once the peer, which has seen so many events, has seen all of the run's."""
    for chunk in chunks(done, run.events, max(size, BLOCK)):
        peer.insert(chunk)
    for name, mine in run.answers.items():
        wrong = difference(mine, peer.read(QUERIES[name]))
        if wrong is not None:
            return f"{name}: {wrong}"
    return None


def beside(
    mine: System, peer: System, names: Sequence[str], events: int, size: int, seconds: float
) -> Figures:
    """Ours and DuckDB with the same queries; DuckDB gets no more events than ours took."""
    run = follow(mine, names, events, size, seconds)
    theirs = follow(peer, names, run.events, size, seconds)
    void = difference_to(peer, run, theirs.events, size)
    ratio = run.figures()["per_s"] / theirs.figures()["per_s"]
    return {
        "Headwater": run.figures(),
        "DuckDB re-evaluation": {**theirs.figures(), "ratio": ratio, "void": void},
    }
