"""B15: what factories bring: the same work with 0, 1, 2 and 4 of them, each in a process of its own.

AIM's six views, the statistics of Linear Road (average speed of cars, then of segments, each minute), 8 and
64 views over one table that share nothing, and the response to a slide of B1. Told are events per second and
the processor time of the driver and of each factory. Answers must be the same with every number of factories.

`--quick` takes a minute or two, the full size about an hour on two quiet cores.
`HEADWATER_FACTORIES_EVENTS=n` feeds n events a repetition; `--part` runs one piece of the work.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from benchmarks import report
from benchmarks.aim.systems import same
from benchmarks.factories import measure, plots, sizes, tell
from benchmarks.factories.measure import Task
from benchmarks.factories.sizes import Sizes
from benchmarks.factories.targets import targets
from benchmarks.installed import Missing

PARTS = ("aim", "statistics", "queries", "B1")
RESPONSES = (0, 2)  # the numbers of factories with which B1 is asked
Figures = dict[str, Any]


def main(quick: bool, parts: Sequence[str] = PARTS) -> int:
    """Measures, prints and keeps the figures; 1 if two numbers of factories disagree."""
    return measured(sizes.of(quick), quick, parts)


def measured(given: Sizes, quick: bool, parts: Sequence[str] = PARTS) -> int:
    """The same at any sizes."""
    size = {name: value for name, value in asdict(given).items() if name != "factories"}
    found: Figures = {"quick": quick, "sizes": _json(size), "works": {}, "parts_s": {}}
    before = report.kept("factories")
    if (before.get("quick"), before.get("sizes")) == (quick, found["sizes"]):
        found |= {name: before[name] for name in ("works", "parts_s")}
    for part in parts:
        started = time.perf_counter()
        for name in _names(part, given):
            found["works"][name] = with_each(name, given)
        found["parts_s"][part] = round(time.perf_counter() - started, 1)
    found["targets"] = [target.row() for target in targets(found["works"])]
    tell.everything(found)
    path = report.keep("factories", found)
    picture = plots.draw(found, path.with_suffix(".png"))
    print(f"\nkept in {path}, drawn in {picture or '(matplotlib is not installed)'}")
    return 1 if list(report.voids(found)) else 0


def _names(part: str, given: Sizes) -> list[str]:
    return [f"{count} queries" for count in given.queries] if part == "queries" else [part]


def _json(size: dict[str, Any]) -> dict[str, Any]:
    """As it comes back from a file."""
    return {n: list(value) if isinstance(value, tuple) else value for n, value in size.items()}


def with_each(name: str, given: Sizes) -> Figures:
    """One piece of work, by number of factories; the first is what the others are compared with."""
    numbers = [n for n in given.factories if n in RESPONSES] if name == "B1" else given.factories
    size = {field: value for field, value in asdict(given).items() if field in _FIELDS}
    found: Figures = {}
    right: list[Any] | None = None
    for number in numbers:
        print(f"{name}, {number} factories …", flush=True)
        try:
            figures = measure.alone(Task(name=name, factories=number, **size))
        except Missing as error:
            found[str(number)] = {"missing": str(error)}
            continue
        answers = figures.pop("answers")
        right = answers if right is None else right
        figures["void"] = None if _equal(right, answers) else "answers differ"
        found[str(number)] = figures
    return found


_FIELDS = set(Task.__dataclass_fields__) - {"factories"}


def _equal(one: list[Any], other: list[Any]) -> bool:
    """Whether all answers are the same bags of rows."""
    pairs = zip(one, other, strict=True)
    return all(same([tuple(r) for r in a], [tuple(r) for r in b]) for a, b in pairs)
