"""The targets of B15 against what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.targets import Target

Figures = Mapping[str, Any]
FASTER = {"aim": 1.3, "8 queries": 1.6}  # with two factories, on two cores
FACTORIES = "2"
LATER_MS = 0.5


def targets(works: Figures) -> Iterator[Target]:
    """All of them, from the figures of one run."""
    for name, bound in FASTER.items():
        if name in works:
            found = gain(works[name], FACTORIES)
            yield Target(f"B15 {name}: two factories, times none", found, bound)
    if "B1" in works:
        mine, here = works["B1"].get(FACTORIES), works["B1"].get("0")
        later = mine["median_ms"] - here["median_ms"] if usable(mine) and usable(here) else None
        yield Target("B15 response of B1: ms later with two factories", later, LATER_MS, False)


def usable(figures: Figures | None) -> bool:
    """Whether it was measured, and its answers were right."""
    return figures is not None and "missing" not in figures and figures.get("void") is None


def gain(numbers: Figures, number: str) -> float | None:
    """Events per second with so many factories over those with none."""
    some, none = numbers.get(number), numbers.get("0")
    if some is None or none is None or not (usable(some) and usable(none)):
        return None
    return float(some["per_s"] / none["per_s"])
