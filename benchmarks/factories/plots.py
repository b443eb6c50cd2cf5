"""One picture of the run: events per second, and the driver's share of the work, by factories."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.factories.targets import gain, usable
from benchmarks.pictures import label, picture

Figures = Mapping[str, Any]


def draw(figures: Figures, path: Path) -> Path | None:
    """Writes the picture; None where matplotlib is not installed."""
    return picture(path, (1, 2), (_gains, _driver), figures, size=(12, 4.5))


def _gains(axes: Any, figures: Figures) -> None:
    """Events per second over those without factories."""
    for name, numbers in _works(figures).items():
        points = [(int(number), gain(numbers, number)) for number in numbers]
        known = [(x, y) for x, y in points if y is not None]
        if known:
            axes.plot(*zip(*known, strict=True), marker="o", label=name)
    axes.axhline(1.0, color="#7a7a7a", linewidth=0.8)
    axes.legend(fontsize=8, frameon=False)
    label(axes, "events/s, times those without factories", "factories", "×")


def _driver(axes: Any, figures: Figures) -> None:
    """The driver's share of the processor time."""
    for name, numbers in _works(figures).items():
        points = [
            (int(number), found["cpu_s"].get("here", 0.0) / max(sum(found["cpu_s"].values()), 1e-9))
            for number, found in numbers.items()
            if usable(found)
        ]
        if points:
            axes.plot(*zip(*points, strict=True), marker="o", label=name)
    axes.set_ylim(0, 1.05)
    axes.legend(fontsize=8, frameon=False)
    label(axes, "the driver's share of the processor time", "factories", "")


def _works(figures: Figures) -> dict[str, Any]:
    return {name: numbers for name, numbers in figures["works"].items() if name != "B1"}
