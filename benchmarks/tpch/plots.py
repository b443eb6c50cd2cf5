"""One picture of the run: Fig. 10, 11 and 12."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.pictures import OURS, PEER, THIRD, label, picture

Figures = Mapping[str, Any]
COLOURS = {
    "Headwater": OURS,
    "DuckDB deferred": PEER,
    "own deferred": THIRD,
    "split": OURS,
    "eager": "#8fc1d4",
    "incremental": "#e2b13c",
    "deferred": THIRD,
}


def draw(figures: Figures, path: Path) -> Path | None:
    """Writes the picture; None where matplotlib is not installed."""
    panels = (_durable, _memory, _cores, _inserts, _refreshes, _targets)
    return picture(path, (2, 3), panels, figures, size=(17, 9))


def _rates(systems: Figures) -> dict[str, float]:
    there = {n: f for n, f in systems.items() if "missing" not in f and not f.get("void")}
    return {name: f["per_s"]["median"] for name, f in there.items()}


def _durable(axes: Any, figures: Figures) -> None:
    _grouped(axes, {q: _rates(s) for q, s in figures["durable"].items()})
    label(axes, f"Fig. 10: SF {figures['scale']:g}, durable", "", "rows/s with one refresh")


def _memory(axes: Any, figures: Figures) -> None:
    _grouped(axes, {q: _rates(s) for q, s in figures["memory"].items()})
    label(axes, f"Fig. 10: SF {figures['scale']:g}, in memory", "", "rows/s with one refresh")


def _chunk_rates(figures: Figures, key: str) -> dict[str, dict[str, float]]:
    return {
        query: {n: f[key] for n, f in strategies.items() if "missing" not in f and not f["void"]}
        for query, strategies in figures["chunks"].items()
    }


def _inserts(axes: Any, figures: Figures) -> None:
    _grouped(axes, _chunk_rates(figures, "rows_per_s"))
    label(axes, "Fig. 11: inserts in chunks of 1 000", "", "rows/s")


def _refreshes(axes: Any, figures: Figures) -> None:
    _grouped(axes, _chunk_rates(figures, "refreshes_per_s"))
    label(axes, "Fig. 11: refreshes", "", "refreshes/s")


def _cores(axes: Any, figures: Figures) -> None:
    rates = figures["cores"]["per_s"]
    queries = list(figures["durable"])
    ratios: dict[str, dict[str, float]] = {q: {} for q in queries}
    for name, by_query in rates.items():
        for query, found in by_query.items():
            ratios[query][name] = found[-1] / found[0]
    _grouped(axes, ratios, logarithmic=False)
    axes.axhline(1, color=THIRD, linewidth=0.8)
    count = figures["cores"]["cores"][-1]
    label(axes, f"Fig. 12: {count} cores against one", "", "times as fast")


def _targets(axes: Any, figures: Figures) -> None:
    """Ours / DuckDB deferred, by query."""
    ratios = {
        query: {
            how: figures[key][query]["DuckDB deferred"]["ratio"]
            for key, how in (("durable", "split"), ("memory", "deferred"))
            if "ratio" in figures[key][query]["DuckDB deferred"]
        }
        for query in figures["durable"]
    }
    _grouped(axes, ratios, names={"split": "durable", "deferred": "in memory"})
    axes.axhline(1, color=PEER, linewidth=0.8)
    label(axes, "B6: ours / DuckDB deferred", "", "ratio")


def _grouped(
    axes: Any,
    values: Mapping[str, Mapping[str, float]],
    logarithmic: bool = True,
    names: Mapping[str, str] | None = None,
) -> None:
    """Bars side by side for each query; what is missing leaves a gap."""
    queries: Sequence[str] = list(values)
    every = list(dict.fromkeys(name for found in values.values() for name in found))
    width = 0.8 / max(len(every), 1)
    for place, name in enumerate(every):
        at = [q for q, query in enumerate(queries) if name in values[query]]
        places = [q + (place - len(every) / 2 + 0.5) * width for q in at]
        heights = [values[queries[q]][name] for q in at]
        text = (names or {}).get(name, name)
        axes.bar(places, heights, width, color=COLOURS[name], label=text)
    axes.set_xticks(range(len(queries)), [query.upper() for query in queries])
    if logarithmic:
        axes.set_yscale("log")
    axes.legend(fontsize=7, frameon=False)
