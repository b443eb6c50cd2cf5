"""Prints the figures of a run: response times by expressways and output, minutes, questions, targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import report
from benchmarks.linearroad.targets import first_failed

Figures = Mapping[str, Any]
RUN = ("L", "reports/s", "work s, average … worst", "slowest answer s", "CPU", "memory MB", "")
RESPONSES = ("L", "output", "answers", "average s", "worst s", "over 5 s")
MINUTES = ("L", "minute", "reports/s", "tolls s, average … worst", "slowest s", "CPU", "memory MB")
QUESTIONS = ("L", "a minute", "index", "selectivity", "count", "best s", "average s", "worst s")
STEPS = ("of", "step, without those inside it", "s", "CPU s")
SHOWN_MINUTES = 10


def everything(figures: Figures) -> None:
    """All tables."""
    runs = [*figures["whole"], *figures["runs"], *figures["with_questions"]]
    report.table("Linear Road", RUN, [_run(run) for run in runs])
    rows = [row for run in (*figures["whole"], *figures["runs"]) for row in _responses(run)]
    report.table("response times (Table III)", RESPONSES, rows)
    minutes = [row for run in figures["whole"] for row in _minutes(run)]
    report.table("the whole run, minute by minute (Fig. 5 to 8)", MINUTES, minutes)
    asked = [row for run in figures["with_questions"] for row in _questions(run)]
    report.table("one-time questions while it runs (Table V)", QUESTIONS, asked)
    _profile(first_failed(figures["runs"]))
    title = "targets of the full size, at small sizes" if figures["quick"] else "targets"
    report.table(title, ("target", "reached", "bound", ""), figures["targets"])


def _name(run: Figures) -> str:
    asked = run.get("questions_per_minute")
    index = "" if run.get("indexed", True) else ", no index"
    return f"{run['expressways']}" + (f"++ {asked}{index}" if asked else _stretch(run))


def _stretch(run: Figures) -> str:
    """Which minutes a run has, where it is not at the peak."""
    return ", whole" if run.get("start_minute") == 0 else ""


def _run(run: Figures) -> Sequence[str]:
    if "missing" in run:
        return (_name(run), "", run["missing"], "", "", "", "")
    return (
        _name(run),
        f"{run['rows'] / run['seconds']:,.0f}",
        f"{run['work_average_s']:.3f} … {run['work_worst_s']:.3f}",
        f"{run['slowest_s']:.3f}",
        f"{run['cpu_share']:.0%}",
        f"{run['memory_mb']:,.0f}",
        "passed" if run["passed"] else "failed",
    )


def _responses(run: Figures) -> list[Sequence[str]]:
    return [
        (
            _name(run),
            output,
            f"{found['answers']:,}",
            f"{found['average_s']:.3f}",
            f"{found['worst_s']:.3f}",
            f"{found['late']:.3%}",
        )
        for output, found in run.get("outputs", {}).items()
        if found["answers"]
    ]


def _minutes(run: Figures) -> list[Sequence[str]]:
    """Some minutes of a run, evenly."""
    found = run.get("minutes_of_run")
    if found is None or not found["reports"]:
        return []
    count = len(found["reports"])
    shown = sorted({count * part // SHOWN_MINUTES for part in range(1, SHOWN_MINUTES + 1)} - {0})
    return [_minute(run, found, number - 1) for number in shown]


def _minute(run: Figures, found: Figures, place: int) -> Sequence[str]:
    tolls = found["outputs"]["tolls"]
    worst = [times["worst_s"][place] for times in found["outputs"].values()]
    return (
        f"{run['expressways']}",
        f"{place + 1}",
        f"{found['reports'][place] / 60:,.0f}",
        f"{_seconds(tolls['average_s'][place])} … {_seconds(tolls['worst_s'][place])}",
        _seconds(max((s for s in worst if s is not None), default=None)),
        f"{found['cpu_share'][place]:.0%}",
        f"{found['memory_mb'][place]:,.0f}",
    )


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _questions(run: Figures) -> list[Sequence[str]]:
    asked = {n: f for n, f in run.get("questions", {}).items() if isinstance(f, Mapping)}
    return [
        (
            f"{run['expressways']}",
            f"{run['questions_per_minute']}",
            "yes" if run["indexed"] else "no",
            name,
            f"{found['count']}",
            f"{found['best_s']:.4f}",
            f"{found['average_s']:.4f}",
            f"{found['worst_s']:.4f}",
        )
        for name, found in asked.items()
    ]


def _profile(run: Figures | None) -> None:
    """Where the time of a run goes: the first that failed, or the largest."""
    if run is None:
        return
    profile, number = run["profile"], run["expressways"]
    which = f"the largest run, L = {number}, which passed"
    if not run["passed"]:
        which = f"the first run that failed, L = {number}"
    second = f"second {profile['slowest_second']}, {profile['slowest_work_s']:.2f} s until answered"
    average = f"an average second, {run['work_average_s']:.2f} s until answered"
    for title, steps in ((second, profile["slowest"]), (average, profile["average"])):
        rows = [(s["of"], s["step"], f"{s['s']:.3f}", f"{s['cpu_s']:.3f}") for s in steps]
        report.table(f"profile of {which}: {title}", STEPS, rows)
