"""One picture of the whole run: response by slide, the paper's figures, and rates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

Figures = Mapping[str, Any]
OURS, PEER, THIRD = "#1f6f8b", "#c65d2e", "#7a7a7a"


def draw(figures: Figures, path: Path) -> Path | None:
    """Writes the picture; None where matplotlib is not installed."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        return None
    picture, places = plt.subplots(3, 3, figsize=(15, 11), constrained_layout=True)
    panels = (_slides, _selectivity, _join, _window, _landmark, _step, _early, _csv, _rates)
    for panel, axes in zip(panels, places.flat, strict=True):
        panel(axes, figures)
        axes.grid(True, which="major", color="#e6e6e6", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    picture.savefig(path, dpi=110)
    plt.close(picture)
    return path


def _slides(axes: Any, figures: Figures) -> None:
    """Response times by slide."""
    for name, colour in (("Headwater", OURS), ("DuckDB re-evaluation", PEER)):
        axes.plot(figures["series"][name], color=colour, linewidth=0.7, label=name)
    axes.set_yscale("log")
    _label(axes, "B1, Fig. 4(a): Q1, 1 000 groups", "slide after the first window", "response, ms")


def _selectivity(axes: Any, figures: Figures) -> None:
    _pair(axes, figures["fig5_selectivity"])
    _label(axes, "Fig. 5(a): Q1, rows that pass", "per cent of the rows", "median response, ms")


def _join(axes: Any, figures: Figures) -> None:
    _pair(axes, figures["fig5_join"])
    axes.set_xscale("log")
    _label(axes, "Fig. 5(b): Q2, pairs that match", "per cent of all pairs", "median response, ms")


def _window(axes: Any, figures: Figures) -> None:
    _pair(axes, figures["fig6_window"])
    axes.set_xticks([p["x"] for p in figures["fig6_window"]])
    axes.xaxis.set_major_formatter("{x:,.0f}")
    _label(axes, "Fig. 6(a): Q1, |W| at a fixed pane count", "|W|, rows", "median response, ms")


def _landmark(axes: Any, figures: Figures) -> None:
    landmark = figures["B4"]
    windows = range(1, len(landmark["ours_ms"]) + 1)
    axes.plot(windows, landmark["ours_ms"], color=OURS, marker=".", label="Headwater")
    axes.plot(windows, landmark["duckdb_ms"], color=PEER, marker=".", label="DuckDB re-evaluation")
    axes.set_yscale("log")
    _label(axes, "B4, Fig. 6(b): Q3, landmark", "window", "response, ms")


def _step(axes: Any, figures: Figures) -> None:
    points = figures["fig7_step"]
    _pair(axes, points)
    for part, style in (("processing", "--"), ("merging", ":")):
        label = f"of ours: {part}"
        heights = [point[f"{part}_ms"] for point in points]
        axes.plot([p["x"] for p in points], heights, color=OURS, linestyle=style, label=label)
    axes.set_xscale("log", base=2)
    _label(axes, "Fig. 7(a): Q1, more panes in one window", "panes", "median response, ms")


def _early(axes: Any, figures: Figures) -> None:
    points = figures["fig8_early"]
    numbers = [point["x"] for point in points]
    axes.plot(numbers, [p["ours_ms"] for p in points], color=OURS, linewidth=0.8, label="response")
    axes.set_yscale("log")
    other = axes.twinx()
    other.step(numbers, [p["m"] for p in points], color=THIRD, where="post", label="m")
    other.set_ylabel("m", color=THIRD)
    other.set_ylim(bottom=0)
    _label(axes, "Fig. 8: m early chunks", "slide", "response, ms")


def _csv(axes: Any, figures: Figures) -> None:
    points = figures["fig9_csv"]
    numbers = [point["x"] for point in points]
    for key, colour, style, label in (
        ("ours_s", OURS, "-", "Headwater, total"),
        ("loading_s", OURS, ":", "of ours: loading"),
        ("duckdb_s", PEER, "-", "DuckDB re-evaluation"),
    ):
        heights = [point[key] for point in points]
        axes.plot(numbers, heights, color=colour, linestyle=style, marker=".", label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    _label(axes, "Fig. 9: Q2 from CSV, 164 windows", "|W|, rows", "seconds in all")


def _rates(axes: Any, figures: Figures) -> None:
    rates = {n: f["rows_per_s"] for n, f in figures["B2"].items() if "rows_per_s" in f}
    names = list(rates)[::-1]
    colours = [OURS if name.startswith("Headwater") else PEER for name in names]
    bars = axes.barh(names, [rates[name] for name in names], color=colours)
    axes.bar_label(bars, [f" {rates[name]:,.0f}" for name in names], fontsize=8)
    axes.set_xscale("log")
    axes.set_xlim(right=max(rates.values()) * 12)
    axes.set_title("B2: Q1 as fast as possible, rows/s", fontsize=11)


def _pair(axes: Any, points: list[dict[str, Any]]) -> None:
    numbers = [point["x"] for point in points]
    for key, colour, label in (
        ("ours_ms", OURS, "Headwater"),
        ("duckdb_ms", PEER, "DuckDB re-evaluation"),
    ):
        heights = [point[key] for point in points]
        axes.plot(numbers, heights, color=colour, marker=".", label=label)
    axes.set_yscale("log")


def _label(axes: Any, title: str, across: str, up: str) -> None:
    axes.set_title(title, fontsize=11)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.margins(y=0.3)
    axes.legend(fontsize=8, framealpha=0.8, edgecolor="none")
    if axes.get_yscale() == "log":
        _plain_numbers(axes.yaxis)


def _plain_numbers(axis: Any) -> None:
    """1, 2, 5, 10 … instead of powers."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())
