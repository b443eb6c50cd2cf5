"""The targets of B7 and B8 beside what was reached; the paper's figures are those of Tables III to V."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.targets import Target

Figures = Mapping[str, Any]
LEAST_RATING, WANTED_RATING = 10, 50
AVERAGE_AT_L1_S = 0.6
WHOLE = {False: "all three hours", True: "the growth of three hours in ten minutes"}
TABLE_V_S = {"high": 0.056, "medium": 0.173, "low": 0.322}  # L1++, high load, averages


def rating(runs: Sequence[Figures]) -> int:
    """The largest number of expressways of which every answer came in time, and of all smaller runs."""
    failed = [int(run["expressways"]) for run in runs if not run.get("passed")]
    passed = [int(run["expressways"]) for run in runs if run.get("passed")]
    return max((n for n in passed if n < min(failed, default=n + 1)), default=0)


def first_failed(runs: Sequence[Figures]) -> Figures | None:
    """The smallest run that was too slow and told why; else the largest run."""
    told = sorted((run for run in runs if "profile" in run), key=lambda run: run["expressways"])
    return next((run for run in told if not run["passed"]), told[-1] if told else None)


def targets(figures: Figures) -> Iterator[Target]:
    """All of them, from the figures of one run."""
    if figures["runs"]:
        reached = float(rating([*figures["whole"], *figures["runs"]]))
        yield Target("L-rating", reached, LEAST_RATING)
        yield Target("L-rating, the goal", reached, WANTED_RATING)
    yield from _averages("L1, the peak", figures["runs"])
    yield from _averages(f"L1, {WHOLE[bool(figures['quick'])]}", figures["whole"])
    for run in figures["with_questions"]:
        if not run.get("indexed") or run.get("expressways") != 1:
            continue
        for name, bound in TABLE_V_S.items():
            found = run["questions"].get(name)
            what = f"L1++, {run['questions_per_minute']} a minute, {name} selectivity: average s"
            yield Target(what, None if found is None else found["average_s"], bound, False)


def _averages(name: str, runs: Sequence[Figures]) -> Iterator[Target]:
    """The average response of one expressway, by output."""
    first = next((run for run in runs if run["expressways"] == 1 and "outputs" in run), None)
    for output, found in {} if first is None else first["outputs"].items():
        if found["answers"]:
            yield Target(f"{name}, {output}: average s", found["average_s"], AVERAGE_AT_L1_S, False)
