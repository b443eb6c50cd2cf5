"""One picture of the whole run: the paper's figures side by side."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

Figures = Mapping[str, Any]
COLOURS = {
    "append": "#7a7a7a",
    "shedding": "#b9a23f",
    "fifo": "#c65d2e",
    "inplace": "#1f6f8b",
    "lazy": "#c65d2e",
    "eager": "#1f6f8b",
}
NAMES = {
    "append": "append",
    "shedding": "random shedding",
    "fifo": "FIFO",
    "inplace": "IN-PLACE",
    "lazy": "LAZY",
    "eager": "EAGER",
}


def draw(figures: Figures, path: Path) -> Path | None:
    """Writes the picture; None where matplotlib is not installed."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        return None
    picture, places = plt.subplots(3, 4, figsize=(19, 12), constrained_layout=True)
    panels = (
        _both_single,
        _both_multiple,
        _queues_single,
        _queues_multiple,
        _linecutting,
        _tumbling,
        _sliding,
        _patterns,
        _effective_by_skew,
        _taken_by_skew,
        _effective_by_rate,
        _taken_by_rate,
    )
    for panel, axes in zip(panels, places.flat, strict=True):
        panel(axes, figures)
        axes.grid(True, which="major", color="#e6e6e6", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(fontsize=8, framealpha=0.8, edgecolor="none")
    picture.savefig(path, dpi=100)
    plt.close(picture)
    return path


def _both_single(axes: Any, figures: Figures) -> None:
    _both(axes, figures["fig7_single"], "Fig. 5(a): one key, IN-PLACE")


def _both_multiple(axes: Any, figures: Figures) -> None:
    _both(axes, figures["fig7_multiple"], "Fig. 5(b): ten keys, IN-PLACE")


def _both(axes: Any, points: list[dict[str, Any]], title: str) -> None:
    loads = [p["load"] for p in points]
    for key, label in (("inplace", "application"), ("inplace, queue", "queue")):
        style = "-" if key == "inplace" else "--"
        axes.plot(
            loads, [p[key] for p in points], color=COLOURS["inplace"], linestyle=style,
            marker=".", label=f"{label} staleness",
        )  # fmt: skip
    axes.set_ylim(bottom=0)
    _label(axes, title, "load", "mean staleness, costs of a row")


def _queues_single(axes: Any, figures: Figures) -> None:
    _queues(axes, figures["fig7_single"], "Fig. 7(a): one key")


def _queues_multiple(axes: Any, figures: Figures) -> None:
    _queues(axes, figures["fig7_multiple"], "Fig. 7(b): ten keys")


def _queues(axes: Any, points: list[dict[str, Any]], title: str) -> None:
    _lines(axes, points, "load", ("append", "shedding", "fifo", "inplace"))
    axes.set_yscale("log")
    _label(axes, title, "load", "mean application staleness")


def _linecutting(axes: Any, figures: Figures) -> None:
    points = figures["fig9"]
    slow = [p["slow"] for p in points]
    ratios = [p["ratio"] for p in points]
    axes.plot(slow, ratios, color=COLOURS["inplace"], marker=".", label="LINECUTTING")
    alone = [p["formula alone"] for p in points]
    axes.plot(
        slow, alone, color=COLOURS["append"], linestyle=":", marker=".", label="formula alone"
    )
    axes.axhline(1, color="#404040", linewidth=0.8)
    _label(
        axes,
        "Fig. 9: load 5, slow keys",
        "keys that update 10 × slower",
        "queue staleness, IN-PLACE / …",
    )


def _tumbling(axes: Any, figures: Figures) -> None:
    _lines(axes, figures["fig13"]["tumbling"], "size", ("lazy", "eager"))
    _label(axes, "Fig. 13(a): tumbling windows", "ω, ticks", "mean application staleness, ticks")


def _sliding(axes: Any, figures: Figures) -> None:
    names = ("append", "shedding", "lazy", "eager")
    _lines(axes, figures["fig13"]["sliding"], "size", names)
    axes.set_yscale("log")
    _label(axes, "Fig. 13(b): δ = 1", "ω, ticks", "mean application staleness, ticks")


def _patterns(axes: Any, figures: Figures) -> None:
    colours = ("#9fc5d1", "#5b9bb0", "#1f6f8b", "#c65d2e")
    for (name, points), colour in zip(figures["fig14"].items(), colours, strict=True):
        ratios = [p["ratio"] for p in points]
        axes.plot([p["size"] for p in points], ratios, color=colour, marker=".", label=name)
    axes.axhline(1, color="#404040", linewidth=0.8)
    axes.set_ylim(bottom=0)
    _label(axes, "Fig. 14: ten keys, arrival patterns", "ω", "EAGER / LAZY")


def _effective_by_skew(axes: Any, figures: Figures) -> None:
    _memory(axes, figures["fig16"], "theta", "effective")
    axes.set_ylim(0, 1.05)
    _label(axes, "Fig. 16(a): memory in use of memory taken", "Zipf θ", "effective use")


def _taken_by_skew(axes: Any, figures: Figures) -> None:
    _memory(axes, figures["fig16"], "theta", "allocated")
    axes.set_ylim(bottom=0)
    _label(axes, "Fig. 16(b): memory taken", "Zipf θ", "rows, 100 keys")


def _effective_by_rate(axes: Any, figures: Figures) -> None:
    _memory(axes, figures["fig17"], "rate", "effective")
    axes.set_xscale("log")
    axes.set_ylim(0, 1.05)
    _label(axes, "Fig. 17(a): memory in use of memory taken", "rows/s, 10 served", "effective use")


def _taken_by_rate(axes: Any, figures: Figures) -> None:
    _memory(axes, figures["fig17"], "rate", "allocated")
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    _label(axes, "Fig. 17(b): memory taken", "rows/s, 10 served", "rows, 100 keys")


def _memory(axes: Any, points: list[dict[str, Any]], across: str, name: str) -> None:
    numbers = [p[across] for p in points]
    axes.plot(
        numbers, [p[name] for p in points], color=COLOURS["eager"], marker=".", label="by need"
    )
    naive = [p[f"{name}, naive"] for p in points]
    axes.plot(numbers, naive, color=COLOURS["append"], marker=".", label="a place for each key")


def _lines(axes: Any, points: list[dict[str, Any]], across: str, names: tuple[str, ...]) -> None:
    numbers = [p[across] for p in points]
    for name in names:
        heights = [p[name] for p in points]
        width = 4 if name == "fifo" else 1.5  # seen below IN-PLACE where both are the same
        colour = COLOURS[name]
        axes.plot(numbers, heights, color=colour, marker=".", linewidth=width, label=NAMES[name])


def _label(axes: Any, title: str, across: str, up: str) -> None:
    axes.set_title(title, fontsize=11)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            axis.set_major_formatter("{x:g}")
