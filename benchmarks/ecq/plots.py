"""The paper's two figures: many chunks (Fig. 6), and chunks that grow (Fig. 7)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

from benchmarks.datacell.plots import OURS, PEER, THIRD

Figures = Mapping[str, Any]
SPARK = "#8e6bb0"
STYLES = {  # colour, line, marker
    "Headwater": (OURS, "-", "o"),
    "Headwater, all on Spark": (OURS, "--", "s"),
    "iterated, streaming table": (PEER, "-", "o"),
    "iterated, table": (PEER, "--", "o"),
    "DuckDB, load and query": (THIRD, "-", "o"),
    "DuckDB, query alone": (THIRD, "--", "o"),
    "plain Spark SQL, Parquet": (SPARK, "-", "D"),
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
        size = (4.6 * len(found) + 2.4, 4.2)
        picture, places = plt.subplots(
            1, len(found), figsize=size, sharey=name == "fig7", squeeze=False, layout="constrained"
        )
        for axes, (query, experiment) in zip(places.flat, found.items(), strict=True):
            panel(axes, query, experiment)
            axes.grid(True, which="major", color="#e6e6e6", linewidth=0.6)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
        _legend(picture, places.flat)
        written.append(folder / f"ecq_{name}.png")
        picture.savefig(written[-1], dpi=110)
        plt.close(picture)
    return written


def _legend(picture: Any, panels: Any) -> None:
    """One for all panels, beside them."""
    lines: dict[str, Any] = {}
    for axes in panels:
        for line, label in zip(*axes.get_legend_handles_labels(), strict=True):
            lines.setdefault(label, line)
    picture.legend(
        lines.values(), lines.keys(), loc="outside right upper", fontsize=8, frameon=False
    )


def _many(axes: Any, query: str, found: Figures) -> None:
    """Seconds so far, chunk by chunk: with loading, and of ours the post-cut time alone."""
    for name, times in found["series"].items():
        colour, style, _ = STYLES[name]
        kinds = {f"{name}, with loading": ("slide_ms", style)}
        if name == "Headwater":
            kinds["Headwater, post-cut"] = ("response_ms", ":")
        for label, (key, line) in kinds.items():
            sums = [so_far / 1000 for so_far in accumulate(times[key])]
            axes.plot(range(1, len(sums) + 1), sums, color=colour, linestyle=line, label=label)
    axes.set_ylim(bottom=0)
    _label(axes, f"Fig. 6: {query}, chunks of {found['size']:,} rows", "chunks", "seconds in all")


def _growing(axes: Any, query: str, points: list[Figures]) -> None:
    """Post-cut times by the size of a chunk."""
    for name, (colour, style, marker) in STYLES.items():
        there = [p for p in points if "median_ms" in p["systems"].get(name, {})]
        if there:
            axes.plot(
                [point["size"] for point in there],
                [point["systems"][name]["median_ms"] for point in there],
                color=colour,
                linestyle=style,
                marker=marker,
                markersize=4,
                label=name,
            )
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    _label(axes, f"Fig. 7: {query}", "rows of a chunk", "median post-cut time, ms")


def _label(axes: Any, title: str, across: str, up: str) -> None:
    axes.set_title(title, fontsize=11)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
