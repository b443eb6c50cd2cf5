"""B7 and B8: Linear Road in SQL; Tables III to VI and Fig. 5 to 8 of streaming tables.

All four outputs, with the history of reports kept, against a virtual clock (`replay.py`), in three parts:
`whole` replays the three hours from the first second to the last; `peak` replays their last minutes for more
and more expressways until an answer takes longer than five seconds, and tells where the time goes then: the
rating is the last number before; `questions` asks one-time questions while it runs (L++). Each run has a
process of its own; questions beside PostgreSQL and DuckDB are in `headwater bench history`.

On two quiet cores `--quick` takes up to three minutes, the full size three quarters of an hour, most of it
`whole`; `--part` runs some of it, and keeps what was measured of the other parts at the same commit. The
targets are meant for the full size.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks import report
from benchmarks.installed import Missing
from benchmarks.linearroad import plots, tell
from benchmarks.linearroad.replay import Ride, replay_alone
from benchmarks.linearroad.sizes import FULL, QUICK, Sizes
from benchmarks.linearroad.targets import rating, targets

PARTS = ("whole", "peak", "questions")
MEMORY_SHARE = 0.8  # of the machine's memory that a run may be expected to need
Figures = dict[str, Any]


def main(quick: bool, parts: Sequence[str] = PARTS) -> int:
    """Measures, prints and keeps the figures; 1 if not even one expressway passes."""
    return measure(QUICK if quick else FULL, quick, parts)


def measure(sizes: Sizes, quick: bool, parts: Sequence[str] = PARTS) -> int:
    """The same at any sizes."""
    found: Figures = {"quick": quick, "whole": [], "runs": [], "with_questions": [], "parts_s": {}}
    before = report.kept("linearroad")
    if before.get("quick") == quick and set(parts) != set(PARTS):
        found |= {name: before[name] for name in found if name in before}
    for part, (name, run) in _measurements(sizes).items():
        if part in parts:
            started = time.perf_counter()
            found[name] = run()
            found["parts_s"][part] = round(time.perf_counter() - started, 1)
    every = [*found["whole"], *found["runs"]]
    found["rating"] = rating(every)
    found["targets"] = [target.row() for target in targets(found)]
    tell.everything(found)
    path = report.keep("linearroad", found)
    picture = plots.draw(found, path.with_suffix(".png"))
    print(f"\nL-rating {found['rating']}; kept in {path}, drawn in {picture or '(no matplotlib)'}")
    return 0 if found["rating"] or not every else 1


def _measurements(sizes: Sizes) -> Mapping[str, tuple[str, Callable[[], list[Figures]]]]:
    """By part: where its figures stand, and how they are made."""
    return {
        "whole": ("whole", lambda: [_ridden(ride) for ride in sizes.whole_rides()]),
        "peak": ("runs", lambda: search(sizes.peak_rides(), sizes.search_s)),
        "questions": (
            "with_questions",
            lambda: [_ridden(ride) for ride in sizes.question_rides()],
        ),
    }


def search(
    rides: Sequence[Ride], most_s: float, ridden: Callable[[Ride], Figures] | None = None
) -> list[Figures]:
    """Larger and larger runs, until one fails, or the next would take too much time or memory."""
    started, found = time.monotonic(), list[Figures]()
    for ride in rides:
        reason = None
        if time.monotonic() - started > most_s:
            reason = f"not run: the runs before took {most_s:g} s"
        elif found and not fits(found[-1], ride.expressways, memory_of_machine_mb()):
            reason = "not run: it may need more memory than there is"
        if reason is not None:
            found.append({"expressways": ride.expressways, "missing": reason})
            return found
        found.append((ridden or _ridden)(ride))
        if not found[-1].get("passed"):
            return found
    return found


def fits(before: Figures, expressways: int, memory_mb: float) -> bool:
    """Whether a larger run needs no more memory than may be expected of it, by a smaller one."""
    expected: float = before["memory_mb"] * expressways / before["expressways"]
    return expected <= MEMORY_SHARE * memory_mb


def memory_of_machine_mb() -> float:
    """How much memory there is."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**20


def _ridden(ride: Ride) -> Figures:
    asked = ""
    if ride.questions_per_minute:
        index = "with an index" if ride.indexed else "without an index"
        asked = f", {ride.questions_per_minute} questions a minute {index}"
    minutes = f"minute {ride.start_minute} to {ride.start_minute + ride.minutes}"
    print(f"L = {ride.expressways}, {minutes}{asked} …", flush=True)
    try:
        return replay_alone(ride)
    except Missing as error:
        return {
            "expressways": ride.expressways,
            "questions_per_minute": ride.questions_per_minute,
            "indexed": ride.indexed,
            "missing": str(error),
        }
