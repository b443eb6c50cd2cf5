"""The targets of B7 and B8 beside what was reached; the paper's figures are those of Tables III to V."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.targets import Target

Figures = Mapping[str, Any]
LEAST_RATING, WANTED_RATING = 10, 50
AVERAGE_AT_L1_S = 0.6
TABLE_V_S = {"high": 0.056, "medium": 0.173, "low": 0.322}  # L1++, high load, averages


def rating(runs: Sequence[Figures]) -> int:
    """The largest number of expressways of which every answer came in time, and of all smaller runs."""
    found = 0
    for run in sorted(runs, key=lambda run: int(run["expressways"])):
        if not run.get("passed"):
            break
        found = int(run["expressways"])
    return found


def targets(figures: Figures) -> Iterator[Target]:
    """All of them, from the figures of one run."""
    reached = float(rating(figures["runs"]))
    yield Target("L-rating", reached, LEAST_RATING)
    yield Target("L-rating, the goal", reached, WANTED_RATING)
    first = next((run for run in figures["runs"] if run["expressways"] == 1), None)
    if first is not None and "outputs" in first:
        for output, found in first["outputs"].items():
            if found["answers"]:
                yield Target(f"L1 {output}: average s", found["average_s"], AVERAGE_AT_L1_S, False)
    for run in figures["with_questions"]:
        if not run.get("indexed") or run.get("expressways") != 1:
            continue
        for name, bound in TABLE_V_S.items():
            found = run["questions"].get(name)
            what = f"L1++, {run['questions_per_minute']} a minute, {name} selectivity: average s"
            yield Target(what, None if found is None else found["average_s"], bound, False)
