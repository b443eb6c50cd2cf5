"""Prints the figures of a run: response times by expressways and output, questions, targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import report

Figures = Mapping[str, Any]
RUN = ("L", "reports/s", "work s, average … worst", "slowest answer s", "CPU", "memory MB", "")
RESPONSES = ("L", "output", "answers", "average s", "worst s", "over 5 s")
QUESTIONS = ("L", "a minute", "index", "selectivity", "count", "best s", "average s", "worst s")


def everything(figures: Figures) -> None:
    """All tables."""
    runs = [*figures["runs"], *figures["with_questions"]]
    report.table("Linear Road at its peak", RUN, [_run(run) for run in runs])
    rows = [row for run in figures["runs"] for row in _responses(run)]
    report.table("response times (Table III)", RESPONSES, rows)
    asked = [row for run in figures["with_questions"] for row in _questions(run)]
    report.table("one-time questions while it runs (Table V)", QUESTIONS, asked)
    title = "targets of the full size, at small sizes" if figures["quick"] else "targets"
    report.table(title, ("target", "reached", "bound", ""), figures["targets"])


def _name(run: Figures) -> str:
    asked = run.get("questions_per_minute")
    return f"{run['expressways']}" + (f"++ {asked}" if asked else "")


def _run(run: Figures) -> Sequence[str]:
    if "missing" in run:
        return (_name(run), "", run["missing"], "", "", "", "failed")
    return (
        _name(run),
        f"{run['rows'] / len(run['work_s']):,.0f}",
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
