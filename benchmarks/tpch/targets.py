"""The targets of B6 against what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.targets import Target

Figures = Mapping[str, Any]
OWN_DEFERRED = 3.0


def targets(figures: Figures) -> Iterator[Target]:
    """All of them, from the figures of one run."""
    for key, how in (("durable", "durable"), ("memory", "without durability")):
        for query, systems in figures[key].items():
            peer = _ratio(systems["DuckDB deferred"])
            yield Target(f"B6 {query}, {how}: times DuckDB deferred", peer, 1.0)
            if "own deferred" in systems:
                own = _ratio(systems["own deferred"])
                yield Target(f"B6 {query}: times own deferred", own, OWN_DEFERRED)


def _ratio(figures: Figures) -> float | None:
    return None if figures.get("void") is not None else figures.get("ratio")
