"""B7 and B8: Linear Road in SQL at the peak of its three hours; Tables III to V of streaming tables.

All four outputs, with the history of reports kept. For more and more expressways the last minutes of the
three hours are replayed against a virtual clock (`replay.py`), until an answer takes longer than five
seconds: the rating is the last number before. Then one-time questions are asked while it runs (L++). Each
run has a process of its own; questions beside PostgreSQL and DuckDB are in `headwater bench history`.

`--quick` takes up to two minutes, the full size up to an hour. The targets are meant for the full size.
"""

from __future__ import annotations

from typing import Any

from benchmarks import report
from benchmarks.installed import Missing
from benchmarks.linearroad import plots, tell
from benchmarks.linearroad.replay import Ride, replay_alone
from benchmarks.linearroad.sizes import FULL, LAST_MINUTE, QUICK, Sizes
from benchmarks.linearroad.targets import rating, targets

Figures = dict[str, Any]


def main(quick: bool) -> int:
    """Measures, prints and keeps the figures; 1 if not even one expressway passes."""
    return measure(QUICK if quick else FULL, quick)


def measure(sizes: Sizes, quick: bool) -> int:
    """The same at any sizes."""
    found: Figures = {"quick": quick, "runs": [], "with_questions": []}
    for number in sizes.expressways:
        found["runs"].append(_ridden(Ride(number, sizes.start_minute, sizes.minutes)))
        if not found["runs"][-1].get("passed"):
            break
    for ride in _question_rides(sizes):
        found["with_questions"].append(_ridden(ride))
    found["rating"] = rating(found["runs"])
    found["targets"] = [target.row() for target in targets(found)]
    tell.everything(found)
    path = report.keep("linearroad", found)
    picture = plots.draw(found, path.with_suffix(".png"))
    print(f"\nL-rating {found['rating']}; kept in {path}, drawn in {picture or '(no matplotlib)'}")
    return 0 if found["rating"] else 1


def _question_rides(sizes: Sizes) -> list[Ride]:
    start, minutes = LAST_MINUTE - sizes.question_minutes, sizes.question_minutes
    rides = [
        Ride(number, start, minutes, questions_per_minute=asked)
        for number in sizes.question_expressways
        for asked in sizes.questions_per_minute
    ]
    without = sizes.questions_per_minute[0]
    return [*rides, Ride(1, start, minutes, questions_per_minute=without, indexed=False)]


def _ridden(ride: Ride) -> Figures:
    asked = f", {ride.questions_per_minute} questions a minute" if ride.questions_per_minute else ""
    print(f"L = {ride.expressways}, {ride.minutes} minutes{asked} …", flush=True)
    try:
        return replay_alone(ride)
    except Missing as error:
        return {"expressways": ride.expressways, "missing": str(error)}
