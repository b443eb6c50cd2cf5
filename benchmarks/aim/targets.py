"""The targets of B5 against what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.targets import Target

Figures = Mapping[str, Any]
EVENTS_PER_S = 300_000.0
QUERIES_PER_S = 10_000.0
TIMES = {"DuckDB deferred": 5.0, "ClickHouse": 2.0, "PostgreSQL": 10.0}


def targets(figures: Figures) -> Iterator[Target]:
    """All of them, from the figures of one run."""
    mine = figures["systems"]["Headwater"]
    yield Target("B5 events/s with all six views", mine["insert"]["per_s"], EVENTS_PER_S)
    least = min(view["queries_per_s"] for view in mine["table_3"].values())
    yield Target("B5 unchanged queries/s in process, the slowest view", least, QUERIES_PER_S)
    for peer, times in TIMES.items():
        theirs = figures["systems"][peer]
        yield Target(f"B5 inserts: times {peer}", _ratio(mine, theirs, "insert"), times)
        read = _ratio(mine, theirs, "with_reads")
        yield Target(f"B5 inserts, all views read now and then: times {peer}", read, times)


def _ratio(mine: Figures, theirs: Figures, step: str) -> float | None:
    if "missing" in theirs or theirs.get("void") is not None:
        return None
    return float(mine[step]["per_s"] / theirs[step]["per_s"])
