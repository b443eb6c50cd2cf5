"""One picture of the run: Fig. 8, Fig. 9 and Table 3."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.pictures import OURS, PEER, THIRD, bars, label, picture

Figures = Mapping[str, Any]


def draw(figures: Figures, path: Path) -> Path | None:
    """Writes the picture; None where matplotlib is not installed."""
    return picture(path, (1, 3), (_inserts, _reads, _table_3), figures, size=(17, 5))


def _there(figures: Figures) -> dict[str, Any]:
    """The systems whose answers were right."""
    systems = figures["systems"].items()
    return {n: s for n, s in systems if "missing" not in s and not s.get("void")}


def _inserts(axes: Any, figures: Figures) -> None:
    """Events per second: without reads, with reads, and our views one by one."""
    rates = {}
    for name, system in _there(figures).items():
        rates[name] = system["insert"]["per_s"]
        rates[f"{name}, with reads"] = system["with_reads"]["per_s"]
    alone = figures["alone"].items()
    rates |= {f"Headwater, {v.replace('none', 'no view')} alone": f["per_s"] for v, f in alone}
    bars(axes, rates, [_colour(name) for name in rates])
    label(axes, "Fig. 9: inserts with six views", "events/s", "")


def _colour(name: str) -> str:
    if name.endswith("alone"):
        return THIRD
    return OURS if name.startswith("Headwater") else PEER


def _reads(axes: Any, figures: Figures) -> None:
    """Queries per second beside inserts."""
    rates = {
        f"{name}, {int(rate) // 1000} K events/s": f["queries_per_s"]
        for name, system in _there(figures).items()
        for rate, f in system["reads"].items()
    }
    bars(axes, rates, [_colour(name) for name in rates])
    label(axes, "Fig. 8: queries beside inserts", "queries/s", "")


def _table_3(axes: Any, figures: Figures) -> None:
    """Unchanged queries per second, view by view."""
    systems = _there(figures)
    views = list(systems["Headwater"]["table_3"])
    for place, (name, system) in enumerate(systems.items()):
        width = 0.8 / len(systems)
        heights = [max(system["table_3"][view]["queries_per_s"], 0.1) for view in views]
        places = [x + (place - len(systems) / 2 + 0.5) * width for x in range(len(views))]
        axes.bar(places, heights, width, label=name, color=f"C{place}" if place else OURS)
    axes.set_xticks(range(len(views)), views)
    axes.set_yscale("log")
    axes.legend(fontsize=7, frameon=False)
    label(axes, "Table 3: unchanged reads after 10 000 calls", "view", "queries/s")
