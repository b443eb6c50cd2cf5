"""Pictures: response times by expressways and by minute, work, memory and processor, questions.

Table III and Fig. 5 to 8 of streaming tables, in six panels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.pictures import OURS, PEER, THIRD, label, picture

Figures = Mapping[str, Any]
DEADLINE_S = 5.0
SIZE = (15.0, 8.0)
COLOURS = {"tolls": OURS, "alerts": PEER, "balances": THIRD, "expenditures": "#6a4c93"}
STYLES = ("-", "--", ":", "-.")


def draw(figures: Figures, path: Path) -> Path | None:
    """Writes the picture; None where matplotlib is not installed."""
    panels = (_by_expressways, _by_second, _questions, _by_minute, _memory, _processor)
    return picture(path, (2, 3), panels, figures, SIZE)


def _by_expressways(axes: Any, figures: Figures) -> None:
    runs = [run for run in figures["runs"] if "outputs" in run]
    numbers = [run["expressways"] for run in runs]
    axes.plot(numbers, [run["slowest_s"] for run in runs], "o-", color=OURS, label="slowest answer")
    averages = [run["work_average_s"] for run in runs]
    axes.plot(numbers, averages, "o--", color=OURS, label="work of a second, average")
    axes.axhline(DEADLINE_S, color=PEER, linewidth=1, label="deadline")
    _logarithmic(axes)
    label(axes, "response times at the peak", "expressways", "seconds")
    axes.legend(fontsize=8, frameon=False)


def _by_second(axes: Any, figures: Figures) -> None:
    for run in figures["runs"]:
        if run.get("work_s"):
            axes.plot(run["work_s"], linewidth=0.8, label=f"L = {run['expressways']}")
    _logarithmic(axes)
    label(axes, "work of each second at the peak", "second of the run", "seconds of work")
    _legend(axes)


def _questions(axes: Any, figures: Figures) -> None:
    """Average times of one expressway, by how many are asked a minute."""
    runs = [run for run in figures["with_questions"] if "questions" in run]
    first = [run for run in runs if run["expressways"] == 1]
    for indexed, style in ((True, "o-"), (False, "o--")):
        asked = [run for run in first if run["indexed"] is indexed]
        for name, colour in zip(("high", "medium", "low"), (OURS, PEER, THIRD), strict=True):
            told = [run for run in asked if name in run["questions"]]
            times = [run["questions"][name]["average_s"] for run in told]
            numbers = [run["questions_per_minute"] for run in told]
            name = f"{name} selectivity{'' if indexed else ', no index'}"
            axes.plot(numbers, times, style, color=colour, label=name)
    axes.set_ylim(bottom=0)
    label(axes, "one-time questions, L = 1", "questions a minute", "seconds, average")
    _legend(axes)


def _by_minute(axes: Any, figures: Figures) -> None:
    for run, style in zip(_whole(figures), STYLES, strict=False):
        for output, times in run["minutes_of_run"]["outputs"].items():
            name = f"L = {run['expressways']}, {output}"
            colour = COLOURS[output]
            _minutes(axes, times["average_s"], style, colour, name)
            _minutes(axes, times["worst_s"], style, colour, None)
    axes.axhline(DEADLINE_S, color=PEER, linewidth=1)
    _logarithmic(axes)
    label(axes, "whole run: average and worst of each minute", "minute", "response s")
    _legend(axes)


def _memory(axes: Any, figures: Figures) -> None:
    _use_by_minute(axes, figures, "memory_mb", "memory", "MB")


def _processor(axes: Any, figures: Figures) -> None:
    unit = "seconds of processor a second of traffic"
    _use_by_minute(axes, figures, "cpu_share", "processor", unit)


def _use_by_minute(axes: Any, figures: Figures, key: str, what: str, unit: str) -> None:
    """What the whole runs needed of the machine."""
    for run, style in zip(_whole(figures), STYLES, strict=False):
        _minutes(axes, run["minutes_of_run"][key], style, OURS, f"L = {run['expressways']}")
    axes.set_ylim(bottom=0)
    label(axes, f"whole run: {what}", "minute", unit)
    _legend(axes)


def _whole(figures: Figures) -> list[Figures]:
    return [run for run in figures["whole"] if "minutes_of_run" in run]


def _minutes(
    axes: Any, values: Sequence[float | None], style: str, colour: str, name: str | None
) -> None:
    """A line over the minutes; the worst of each, without a name, is thin."""
    known = [(minute, value) for minute, value in enumerate(values, 1) if value is not None]
    width = 0.6 if name is None else 1.4
    axes.plot(*zip(*known, strict=True) if known else ([], []), style, color=colour,
              linewidth=width, label=name)  # fmt: skip


def _logarithmic(axes: Any) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")


def _legend(axes: Any) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=7, frameon=False)
