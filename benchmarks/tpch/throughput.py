"""Fig. 10: rows per second of lineitem including one refresh, query by query, ours and DuckDB's.

DuckDB and our own deferred views insert once a repetition and then run every query; each query's rate
counts all of the insert and its own refresh.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from benchmarks.installed import Missing
from benchmarks.report import spread
from benchmarks.tpch import data, duck, ours
from benchmarks.tpch.answers import Rows, difference
from benchmarks.tpch.queries import ALL

Figures = dict[str, Any]


def batches_of(scale: float, size: int, most: int | None = None) -> list[pa.Table]:
    """lineitem in batches, each in memory of its own."""
    rows = data.table(scale, data.STREAM)
    end = rows.num_rows if most is None else min(most, rows.num_rows)
    return [rows.slice(at, min(size, end - at)).combine_chunks() for at in range(0, end, size)]


def measure(scale: float, size: int, repetitions: int, durable: bool) -> Figures:
    """By query: ours beside DuckDB deferred and, where rows stay, our own deferred views."""
    batches = batches_of(scale, size)
    peers, expected = duck_deferred(scale, batches, repetitions, durable)
    found = {"Headwater": headwater(scale, batches, repetitions, durable), "DuckDB deferred": peers}
    if durable:
        found["own deferred"] = own_deferred(scale, batches, max(repetitions // 2, 1))
    return {query: _one(query, found, expected[query]) for query in ALL}


def _one(query: str, systems: Figures, expected: Rows) -> Figures:
    """The systems' figures for one query, their answers compared with DuckDB's."""
    found: Figures = {}
    for name, queries in systems.items():
        figures = dict(queries[query])
        if "missing" not in figures:
            figures["void"] = difference(expected, figures.pop("rows"))
        found[name] = figures
    mine = found["Headwater"]
    for figures in found.values():
        if "missing" not in figures and "missing" not in mine:
            figures["ratio"] = mine["per_s"]["median"] / figures["per_s"]["median"]
    return found


def headwater(
    scale: float, batches: Sequence[pa.Table], repetitions: int, durable: bool = True
) -> Figures:
    """Ours: one view at a time, made before the clock starts."""
    total = sum(batch.num_rows for batch in batches)
    found: Figures = {}
    with ours.opened(scale, durable=durable) as system:
        for query in ALL:
            rates = []
            try:
                for number in range(repetitions + 1):
                    system.make(query)
                    part = batches if number else batches[:2]  # the first is a warm-up
                    elapsed, rows = ours.timed(system, query, part)
                    tier = system.tier(query)
                    system.drop(query)
                    if number:
                        rates.append(total / elapsed)
            except Missing as error:
                found[query] = {"missing": str(error)}
                continue
            found[query] = {"per_s": spread(rates), "rows": rows, "tier": tier}
    return found


def duck_deferred(
    scale: float, batches: Sequence[pa.Table], repetitions: int, durable: bool
) -> tuple[Figures, dict[str, Rows]]:
    """DuckDB: all rows in, then each query; also the rows of each query."""
    total = sum(batch.num_rows for batch in batches)
    rates: dict[str, list[float]] = {query: [] for query in ALL}
    answers: dict[str, Rows] = {}
    with duck.opened(scale, durable=durable) as peer:
        for number in range(repetitions + 1):
            peer.empty()
            inserted = peer.insert(batches)
            for query in ALL:
                read, answers[query] = peer.read(query)
                if number:
                    rates[query].append(total / (inserted + read))
    found = {q: {"per_s": spread(rates[q]), "rows": answers[q]} for q in ALL}
    return found, answers


def own_deferred(scale: float, batches: Sequence[pa.Table], repetitions: int) -> Figures:
    """Ours with `maintenance = 'deferred'` on a streaming table: all rows kept, then each query."""
    total = sum(batch.num_rows for batch in batches)
    rates: dict[str, list[float]] = {query: [] for query in ALL}
    answers: dict[str, Rows] = {}
    for _ in range(repetitions):
        with ours.opened(scale, kind="STREAMING TABLE") as system:
            for query in ALL:
                system.make(query, "deferred")
            started = time.perf_counter()
            system.insert(batches)
            inserted = time.perf_counter() - started
            for query in ALL:
                read, answers[query] = ours.timed(system, query, ())
                rates[query].append(total / (inserted + read))
    return {q: {"per_s": spread(rates[q]), "rows": answers[q]} for q in ALL}
