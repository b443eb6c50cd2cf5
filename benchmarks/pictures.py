"""How pictures of benchmarks are drawn: panels with one look."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

OURS, PEER, THIRD = "#1f6f8b", "#c65d2e", "#7a7a7a"

Panel = Callable[[Any, Mapping[str, Any]], None]


def picture(
    path: Path,
    shape: tuple[int, int],
    panels: Sequence[Panel],
    figures: Mapping[str, Any],
    size: tuple[float, float],
) -> Path | None:
    """Writes panels side by side; None where matplotlib is not installed."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        return None
    drawn, places = plt.subplots(*shape, figsize=size, constrained_layout=True, squeeze=False)
    for panel, axes in zip(panels, places.flat, strict=True):
        panel(axes, figures)
        axes.grid(True, which="major", color="#e6e6e6", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    drawn.savefig(path, dpi=110)
    plt.close(drawn)
    return path


def bars(axes: Any, rates: Mapping[str, float], colours: Sequence[str]) -> None:
    """One bar a name, the first on top, with its number; logarithmic."""
    names = list(rates)[::-1]
    drawn = axes.barh(names, [max(rates[n], 0.1) for n in names], color=colours[::-1])
    axes.bar_label(drawn, [f"{rates[n]:,.0f}" for n in names], padding=3, fontsize=7)
    axes.set_xscale("log")
    axes.margins(x=0.25)
    axes.tick_params(axis="y", labelsize=8)


def label(axes: Any, title: str, x: str, y: str) -> None:
    """The words of a panel."""
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
