"""The paper's two figures: many chunks (Fig. 6), and chunks that grow (Fig. 7)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

from benchmarks.datacell.plots import OURS, PEER, THIRD, _label

Figures = Mapping[str, Any]
STYLES = {
    "Headwater": (OURS, "-"),
    "Headwater, all on Spark": (OURS, "--"),
    "Headwater, avg − avg": (OURS, ":"),
    "iterated, streaming table": (PEER, "-"),
    "iterated, table": (PEER, "--"),
    "DuckDB, load and query": (THIRD, "-"),
    "DuckDB, query alone": (THIRD, "--"),
    "plain Spark SQL, Parquet": ("#b08bc0", "-"),
}


def draw(figures: Figures, folder: Path) -> list[Path]:
    """Writes both pictures; none where matplotlib is not installed."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        return []
    written = []
    for name, panel in (("fig6", _many), ("fig7", _growing)):
        found = figures[name]
        share = name == "fig7"
        picture, places = plt.subplots(
            1,
            len(found),
            figsize=(5.6 * len(found), 4.4),
            sharey=share,
            squeeze=False,
            constrained_layout=True,
        )
        for axes, (query, experiment) in zip(places.flat, found.items(), strict=True):
            panel(axes, query, experiment)
            axes.grid(True, which="major", color="#e6e6e6", linewidth=0.6)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
        written.append(folder / f"ecq_{name}.png")
        picture.savefig(written[-1], dpi=110)
        plt.close(picture)
    return written


def _many(axes: Any, query: str, found: Figures) -> None:
    """Seconds so far, chunk by chunk."""
    for name, times in found["series"].items():
        colour, style = STYLES[name]
        for key, width, label in (("slide_ms", 1.6, f"{name}: all"), ("response_ms", 0.9, None)):
            sums = [sum_ms / 1000 for sum_ms in accumulate(times[key])]
            if label is None:
                label = f"{name}: post-cut"
            chunks = range(1, len(sums) + 1)
            axes.plot(chunks, sums, color=colour, linestyle=style, linewidth=width, label=label)
    _label(axes, f"Fig. 6: {query}, {found['size']:,} rows a chunk", "chunks", "seconds in all")


def _growing(axes: Any, query: str, points: list[Figures]) -> None:
    """Post-cut times by the size of a chunk."""
    names = list(dict.fromkeys(name for point in points for name in point["systems"]))
    for name in names:
        colour, style = STYLES[name]
        there = [p for p in points if "median_ms" in p["systems"].get(name, {})]
        sizes = [point["size"] for point in there]
        heights = [point["systems"][name]["median_ms"] for point in there]
        axes.plot(sizes, heights, color=colour, linestyle=style, marker=".", label=name)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    _label(axes, f"Fig. 7: {query}", "rows of a chunk", "median post-cut time, ms")
