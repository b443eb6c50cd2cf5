"""Pictures: response times by expressways (Table III), and the work of each second (Fig. 5)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.pictures import OURS, PEER, picture

Figures = Mapping[str, Any]
DEADLINE_S = 5.0
SIZE = (11.0, 4.2)


def draw(figures: Figures, path: Path) -> Path | None:
    """Writes the picture; None where matplotlib is not installed."""
    return picture(path, (1, 2), (_by_expressways, _by_second), figures, SIZE)


def _by_expressways(axes: Any, figures: Figures) -> None:
    runs = [run for run in figures["runs"] if "outputs" in run]
    numbers = [run["expressways"] for run in runs]
    axes.plot(numbers, [run["slowest_s"] for run in runs], "o-", color=OURS, label="slowest answer")
    averages = [run["work_average_s"] for run in runs]
    axes.plot(numbers, averages, "o--", color=OURS, label="work of a second, average")
    axes.axhline(DEADLINE_S, color=PEER, linewidth=1, label="deadline")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("expressways")
    axes.set_ylabel("seconds")
    axes.set_title("response times at the peak")
    axes.legend(fontsize=8, frameon=False)


def _by_second(axes: Any, figures: Figures) -> None:
    for run in figures["runs"]:
        if "work_s" in run:
            axes.plot(run["work_s"], linewidth=0.8, label=f"L = {run['expressways']}")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("second of the run")
    axes.set_ylabel("seconds of work")
    axes.set_title("work of each second")
    axes.legend(fontsize=8, frameon=False)
