"""Fig. 11: strategies of maintenance on one runtime, rows in chunks of 1 000: inserts, and refreshes.

A refresh is a read after one more chunk. Deferred views need a streaming table, the others read a
stream, which keeps nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from benchmarks.installed import Missing
from benchmarks.tpch import duck, ours
from benchmarks.tpch.answers import Rows, difference
from benchmarks.tpch.queries import ALL
from benchmarks.tpch.sizes import CHUNK
from benchmarks.tpch.throughput import batches_of

Figures = dict[str, Any]
STRATEGIES = ("split", "eager", "incremental", "deferred")


def measure(scale: float, rows: int, reads: int) -> Figures:
    """By query and strategy: rows per second, refreshes per second."""
    chunks = batches_of(scale, CHUNK, rows + reads * CHUNK)
    found: Figures = {query: {} for query in ALL}
    expected: dict[str, Rows] = {}
    with duck.opened(scale) as peer:
        inserted = peer.insert(chunks[:-reads])
        read = dict.fromkeys(ALL, 0.0)
        for chunk in chunks[-reads:]:
            peer.insert([chunk])
            for query in ALL:
                elapsed, expected[query] = peer.read(query)
                read[query] += elapsed
    count = sum(chunk.num_rows for chunk in chunks[:-reads])
    for query in ALL:
        found[query]["DuckDB deferred"] = {
            "rows_per_s": count / inserted,
            "refreshes_per_s": reads / read[query],
            "void": None,
        }
    for strategy in STRATEGIES:
        kind = "STREAMING TABLE" if strategy == "deferred" else "STREAM"
        with ours.opened(scale, kind=kind) as system:
            for query in ALL:
                found[query][strategy] = _one(
                    system, query, strategy, chunks, reads, expected[query]
                )
    return found


def _one(
    system: ours.Headwater,
    query: str,
    strategy: str,
    chunks: Sequence[pa.Table],
    reads: int,
    expected: Rows,
) -> Figures:
    if strategy == "deferred":
        system.db.sql("TRUNCATE TABLE lineitem")
    try:
        system.make(query, strategy)
    except Missing as error:
        return {"missing": str(error)}
    first, last = chunks[:-reads], chunks[-reads:]
    started = time.perf_counter()
    system.insert(first)
    system.db.flush()
    inserted = time.perf_counter() - started
    waited = 0.0
    for chunk in last:
        system.insert([chunk])
        started = time.perf_counter()
        rows = system.read(query)
        waited += time.perf_counter() - started
    system.drop(query)
    return {
        "rows_per_s": sum(chunk.num_rows for chunk in first) / inserted,
        "refreshes_per_s": reads / waited,
        "void": difference(expected, rows),
    }
