"""The targets of B14 against what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.targets import Target

Figures = Mapping[str, Any]
READ_MS = 5.0
TIMES_OWN = 100.0
GROWTH = 1.3
OWN = "own re-evaluation"


def targets(figures: Figures) -> Iterator[Target]:
    """All of them, from the figures of one run."""
    for name, systems in figures["views"].items():
        mine = systems["Headwater"]
        void = any(found.get("void") for found in systems.values())
        took = None if void else mine["median_ms"]
        yield Target(f"B14 {name}: ms of a read after a row", took, READ_MS, False)
        own = systems[OWN]
        ratio = None if own.get("void") else own["ratio"]
        yield Target(f"B14 {name}: times own re-evaluation", ratio, TIMES_OWN)
    if figures["point"]:
        point = figures["point"]
        void = any(isinstance(f, Mapping) and f.get("void") for f in point.values())
        took = None if void else point["Headwater"]["median_ms"]
        yield Target(f"B14 one key of {point['groups']:,}: ms of a read", took, READ_MS, False)
    if figures["instants"]:
        yield _growth(figures["instants"])


def _growth(instants: Figures) -> Target:
    """The largest result beside the smallest."""
    (first, small), (last, large) = next(iter(instants.items())), next(reversed(instants.items()))
    what = f"B14 result of {first} → {last} rows, one changes: an instant costs times"
    void = small.get("void") or large.get("void")
    grown = None if void else large["median_ms"] / small["median_ms"]
    return Target(what, grown, GROWTH, False)
