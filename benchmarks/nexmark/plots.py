"""One picture of the run: rates with reads beside DuckDB, and without beside Flink and Pathway."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.nexmark.targets import DUCK, OURS_ALONE, PEERS
from benchmarks.pictures import OURS, PEER, THIRD, label, picture

Figures = Mapping[str, Any]


def draw(figures: Figures, path: Path) -> Path | None:
    """Writes the picture; None where matplotlib is not installed."""
    return picture(path, (2, 1), (_alone, _peers), figures, size=(13, 9))


def _alone(axes: Any, figures: Figures) -> None:
    """The smallest size: every query, and all together."""
    rates: dict[str, dict[str, float]] = {"Headwater": {}, DUCK: {}}
    for part in ("alone", "together"):
        for query, systems in next(iter(figures[part].values()), {}).items():
            for name in rates:
                if "per_s" in systems.get(name, {}) and systems[name].get("void") is None:
                    rates[name][query] = systems[name]["per_s"]
    _beside(axes, rates, (OURS, PEER))
    place = next(iter(figures["alone"]), "")
    label(axes, f"read after every chunk: {place}", "", "events/s")


def _peers(axes: Any, figures: Figures) -> None:
    rates = {
        name: {
            query: found["per_s"]
            for query, found in figures["peers"].get(name, {}).items()
            if isinstance(found, Mapping) and "per_s" in found and found.get("void") is None
        }
        for name in (OURS_ALONE, *PEERS)
    }
    _beside(axes, rates, (OURS, PEER, THIRD))
    label(axes, "read at the end, or pushed", "", "events/s")


def _beside(axes: Any, rates: Mapping[str, Mapping[str, float]], colours: tuple[str, ...]) -> None:
    """Bars of each query side by side."""
    queries = list(dict.fromkeys(query for found in rates.values() for query in found))
    width = 0.8 / len(rates)
    for place, (name, found) in enumerate(rates.items()):
        places = [x - 0.4 + (place + 0.5) * width for x in range(len(queries))]
        heights = [found.get(query, 0.0) for query in queries]
        axes.bar(places, heights, width, label=name, color=colours[place])
    axes.set_xticks(range(len(queries)), queries, rotation=45, fontsize=8)
    if any(rates.values()):
        axes.set_yscale("log")
    axes.legend(fontsize=8, frameon=False)
