"""The same windows over the same files as plain Structured Streaming: processor time, latency, answers.

A file of rows for each slide of 10 s; 100 groups, count and sum, tumbling windows and overlapping ones. Each
system runs in a process of its own, and all that its processes spend is counted: the source, the windows,
their results in the program's hands. Headwater keeps the rows besides; plain Structured Streaming does not.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import Any

from benchmarks import report
from benchmarks.targets import Target

PLAIN, OPERATORS, SPARK, ASKED = "plain", "operators", "spark", "asked"
NAMES = {
    PLAIN: "plain Structured Streaming",
    OPERATORS: "Headwater",
    SPARK: "Headwater, spark_sql_only",
    ASKED: "the question asked again",
}


@dataclass(frozen=True)
class Shape:
    """One kind of window."""

    name: str
    overlaps: int
    rows: int  # of a slide
    slides: int


QUICK = (Shape("tumbling", 1, 20_000, 20), Shape("6 overlaps", 6, 20_000, 20))
FULL = (
    Shape("tumbling", 1, 20_000, 60),
    Shape("6 overlaps", 6, 20_000, 60),
    Shape("512 overlaps", 512, 2_000, 40),  # Spark makes 512 rows of each
)
WARM = 10  # slides that are not counted


def main(quick: bool) -> int:
    """Measures, prints and keeps the figures; 1 if answers differ."""
    shapes = QUICK if quick else FULL
    runs = {shape.name: {way: measure(way, shape) for way in NAMES} for shape in shapes}
    rows = [
        (
            shape,
            NAMES[way],
            f"{run['processor_ms']:,.0f}",
            f"{run['processor_ms'] / found[PLAIN]['processor_ms']:.2f} ×",
            f"{run['slide_ms']:,.0f}",
        )
        for shape, found in runs.items()
        for way, run in found.items()
    ]
    columns = ("windows", "system", "processor ms a slide", "of plain", "ms a slide")
    report.table("The same windows over the same files", columns, rows)
    targets = [target for shape, found in runs.items() for target in targets_of(shape, found)]
    report.table(
        "Targets", ("what", "reached", "bound", "met"), [target.row() for target in targets]
    )
    same = all(_same(found) for found in runs.values())
    path = report.keep("streaming", {"quick": quick, "runs": runs, "answers_equal": same})
    print(f"\nkept in {path}" + ("" if same else "; ANSWERS DIFFER"))
    return 0 if same else 1


def measure(way: str, shape: Shape) -> dict[str, Any]:
    """One system over one kind of window, in a process of its own."""
    module = "plain" if way == PLAIN else "ours"
    head = [sys.executable, "-m", f"benchmarks.streaming.{module}"]
    with tempfile.TemporaryDirectory(dir=".") as folder:
        numbers = (shape.overlaps, shape.rows, shape.slides, WARM)
        command = [*head, folder, *([] if way == PLAIN else [way]), *map(str, numbers)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    if run.returncode:
        raise RuntimeError(run.stderr[-2000:])
    found: dict[str, Any] = json.loads(run.stdout.strip().splitlines()[-1])
    return found


def targets_of(shape: str, found: dict[str, dict[str, Any]]) -> list[Target]:
    """Never dearer than plain Structured Streaming, never slower than the question asked again."""

    def ratio(way: str, other: str, what: str) -> float:
        return float(found[way][what] / found[other][what])

    return [
        Target(
            f"{shape}: {NAMES[way]}, processor time of plain",
            ratio(way, PLAIN, "processor_ms"),
            1.0,
            at_least=False,
        )
        for way in (OPERATORS, SPARK)
    ] + [
        Target(
            f"{shape}: {NAMES[SPARK]}, time of the question asked again",
            ratio(SPARK, ASKED, "slide_ms"),
            1.0,
            at_least=False,
        )
    ]


def _same(found: dict[str, dict[str, Any]]) -> bool:
    """Whether the windows that all have told are equal, and there are some."""
    answers = [run["answers"] for run in found.values()]
    ends = set.intersection(*(set(one) for one in answers))
    return len(ends) > WARM and all(one[end] == answers[0][end] for one in answers for end in ends)
