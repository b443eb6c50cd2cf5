"""One picture of the run: reads after a row, and what an instant costs by the size of the result."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.pictures import OURS, PEER, THIRD, label, picture
from benchmarks.reads.tell import SYSTEMS

Figures = Mapping[str, Any]


def draw(figures: Figures, path: Path) -> Path | None:
    """Writes the picture; None where matplotlib is not installed."""
    return picture(path, (1, 2), (_views, _instants), figures, size=(13, 4.5))


def _views(axes: Any, figures: Figures) -> None:
    """Milliseconds of a read, view by view."""
    asked = dict(figures["views"])
    if figures["point"]:
        asked["one key"] = figures["point"]
    for place, (system, colour) in enumerate(zip(SYSTEMS, (OURS, THIRD, PEER), strict=True)):
        points = [
            (x + 0.27 * (place - 1), systems[system]["median_ms"])
            for x, systems in enumerate(asked.values())
            if system in systems and not systems[system].get("void")
        ]
        if points:
            axes.bar(*zip(*points, strict=True), 0.27, label=system, color=colour)
    axes.set_xticks(range(len(asked)), list(asked), rotation=40, fontsize=8)
    if asked:
        axes.set_yscale("log")
    axes.legend(fontsize=8, frameon=False)
    label(axes, "a read after one row", "", "ms")


def _instants(axes: Any, figures: Figures) -> None:
    points = [
        (int(count.replace(",", "")), found["median_ms"])
        for count, found in figures["instants"].items()
    ]
    if points:
        axes.plot(*zip(*points, strict=True), marker="o", color=OURS)
        axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    label(axes, "one row of the result changes", "rows of the result", "ms an instant")
