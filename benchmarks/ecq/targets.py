"""The target of B9 beside what was reached: at least five times iterated one-time queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.targets import Target

Figures = Mapping[str, Any]
FASTER_THAN_ITERATED = 5.0
OURS, ON_SPARK = "Headwater", "Headwater, all on Spark"
ITERATED = "iterated"  # how the names of all iterated systems begin


def targets(figures: Figures) -> Iterator[Target]:
    """All of them, from the figures of one run."""
    for name, found in figures["fig6"].items():
        what = f"Fig. 6 {name}, {found['size']:,} rows"
        yield Target(f"{what}: times iterated", ratio(found["systems"]), FASTER_THAN_ITERATED)
    for name, points in figures["fig7"].items():
        for point in points:
            what = f"Fig. 7 {name}, {point['size']:,} rows"
            systems = point["systems"]
            yield Target(f"{what}: times iterated", ratio(systems), FASTER_THAN_ITERATED)
            if ON_SPARK in systems:
                reached = ratio(systems, ON_SPARK)
                what += ", all on Spark"
                yield Target(f"{what}: times iterated", reached, FASTER_THAN_ITERATED)


def ratio(systems: Figures, ours: str = OURS) -> float | None:
    """The fastest iterated response in terms of ours; None if an answer differs."""
    others = [f for name, f in systems.items() if name.startswith(ITERATED)]
    if not others or any(f["void"] is not None for f in (*others, systems[ours])):
        return None
    fastest: float = min(f["median_ms"] for f in others)
    mine: float = systems[ours]["median_ms"]
    return fastest / mine
