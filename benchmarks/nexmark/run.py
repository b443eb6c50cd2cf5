"""B13: NEXMark's 23 queries as plain views over streaming tables, each alone and all together.

Events are 2 % persons, 6 % auctions, 92 % bids (`data.py`) and come in chunks, each durable in one commit.
`alone` and `together`: after every chunk the views are read as a whole, and DuckDB computes the queries anew.
`peers`: Flink SQL and Pathway, which push changes and are never asked, beside ours without reads until
everything has been processed. Answers of DuckDB are compared at the end of each run, those of Flink and
Pathway after a smaller number of events.

`--quick` takes a minute or two; the full size (1 and 10 million events) some hours. With
`HEADWATER_NEXMARK_EVENTS=n` there are n events instead of these; `--part` runs some of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks import report
from benchmarks.bags import difference
from benchmarks.installed import Missing
from benchmarks.nexmark import measure, outside, plots, sizes, systems, tell
from benchmarks.nexmark.sizes import ALL, Sizes
from benchmarks.nexmark.systems import Duck, Headwater
from benchmarks.nexmark.targets import targets

PARTS = ("alone", "together", "peers")
OURS_ALONE = "Headwater, read at the end"
Figures = dict[str, Any]


def main(quick: bool, parts: Sequence[str] = PARTS) -> int:
    """Measures, prints and keeps the figures; 1 if two systems disagree."""
    return measured(sizes.of(quick), quick, parts)


def measured(given: Sizes, quick: bool, parts: Sequence[str] = PARTS) -> int:
    """The same at any sizes."""
    found: Figures = {"quick": quick, "sizes": [list(given.events), list(given.chunks)]}
    found |= {"parts_s": {}, **{part: {} for part in PARTS}}
    before = report.kept("nexmark")
    if (before.get("quick"), before.get("sizes")) == (quick, found["sizes"]):
        found |= {name: before[name] for name in ("parts_s", *PARTS)}
    with systems.ours() as mine, systems.duck() as peer:
        for part, step in _steps(given, quick, mine, peer).items():
            if part in parts:
                started = time.perf_counter()
                found[part] = step()
                found["parts_s"][part] = round(time.perf_counter() - started, 1)
    found["targets"] = [target.row() for target in targets(found)]
    tell.everything(found)
    path = report.keep("nexmark", found)
    picture = plots.draw(found, path.with_suffix(".png"))
    print(f"\nkept in {path}, drawn in {picture or '(matplotlib is not installed)'}")
    return 1 if list(report.voids(found)) else 0


def _steps(
    given: Sizes, quick: bool, mine: Headwater, peer: Duck
) -> dict[str, Callable[[], Figures]]:
    return {
        "alone": lambda: _points(given, mine, peer, {name: (name,) for name in ALL}, given.seconds),
        "together": lambda: _points(given, mine, peer, {"all 23": ALL}, given.together_seconds),
        "peers": lambda: _peers(given, quick, mine),
    }


def _points(
    given: Sizes, mine: Headwater, peer: Duck, asked: dict[str, tuple[str, ...]], seconds: float
) -> Figures:
    """By number of events and size of chunks, then by query."""
    found: Figures = {}
    for events in given.events:
        for size in given.chunks:
            point: Figures = {}
            for name, names in asked.items():
                print(f"{name}, {events:,} events in chunks of {size:,} …", flush=True)
                try:
                    point[name] = measure.beside(mine, peer, names, events, size, seconds)
                except Missing as error:
                    point[name] = {"Headwater": {"missing": str(error)}}
            found[f"{events:,} events, chunks of {size:,}"] = point
    return found


def _peers(given: Sizes, quick: bool, mine: Headwater) -> Figures:
    """Flink and Pathway, each query alone and all of theirs together, and ours without reads."""
    found: Figures = {}
    asked: dict[str, tuple[str, ...]] = {name: (name,) for name in given.peer_queries}
    for name, run in (("Flink SQL", outside.flink), ("Pathway", outside.pathway)):
        print(f"{name} …", flush=True)
        try:
            found[name] = run(given.peer_queries, given.peer_events, given.checked, not quick)
        except Missing as error:
            found[name] = {"missing": str(error)}
            continue
        _check(found[name], mine, given.checked)
        if "together" in found[name]:
            asked[f"all of {name}"] = tuple(found[name]["together"]["queries"])
    size = max(given.chunks)
    found[OURS_ALONE] = {}
    for name, names in asked.items():
        print(f"{OURS_ALONE}: {name} …", flush=True)
        seconds = given.together_seconds if len(names) > 1 else given.seconds
        run_ = measure.follow(mine, names, given.peer_events, size, seconds, read=False)
        found[OURS_ALONE][name] = run_.figures()
    return found


def _check(found: Figures, mine: Headwater, events: int) -> None:
    """Compares a peer's answers with ours, and keeps the verdict in their place."""
    for name, figures in found.items():
        rows = figures.pop("answers", None)
        if rows is not None:
            run = measure.follow(mine, (name,), events, events, float("inf"), read=False)
            answer = run.answers[name]
            figures["void"] = difference(answer, outside.as_table(rows, answer.num_columns))
