"""B5: AIM's six views over calls of ten million customers (split maintenance §4.1): Fig. 8, 9, Table 3.

Ours: `CREATE STREAM`, six views with `volatile = 'at insert'`, the log synced at every insert. Peers:
DuckDB appends calls and runs the query when a view is read (deferred); PostgreSQL keeps aggregates by
upserts as the paper's pg-cv does; ClickHouse (chdb, in a virtualenv of its own) keeps them by
materialized views. Calls come in batches of 10 000 to all of them. Two rates are told: calls alone, and
calls with all views read after every so many. All answers are compared after the same calls.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks import report
from benchmarks.aim import data, ours, plots, tell
from benchmarks.aim.measure import Experiment, Figures, Step, Work
from benchmarks.aim.outside import performed
from benchmarks.aim.queries import ALL
from benchmarks.aim.sizes import BATCH, CHECKED_CUSTOMERS, FULL, QUICK, RATES, TABLE_3, Sizes
from benchmarks.aim.systems import same
from benchmarks.aim.targets import targets
from benchmarks.installed import Missing

FAST = ("Headwater", "DuckDB deferred")
SLOW = ("ClickHouse", "PostgreSQL")
OTHERS = (
    "ClickHouse without syncs",
    "PostgreSQL, plain",
)  # no target stands on them: not in --quick


def main(quick: bool) -> int:
    """Measures, prints and keeps the figures; 1 if two systems disagree."""
    sizes = QUICK if quick else FULL
    found: dict[str, Any] = {"quick": quick, "customers": sizes.customers, "seconds": {}}
    names = (*FAST, *SLOW) if quick else (*FAST, *SLOW, *OTHERS)
    wrong = _timed(found, "answers", lambda: checked(sizes.checked, not quick, names))
    found["systems"] = {}
    for name in names:
        if "missing" in wrong[name]:
            found["systems"][name] = wrong[name]
            continue
        figures = _timed(found, name, lambda n=name: _measured(n, sizes, not quick))
        found["systems"][name] = {**figures, "void": wrong[name].get("void")}
    found["alone"] = _timed(found, "views alone", lambda: _alone(sizes))
    found["targets"] = [target.row() for target in targets(found)]
    tell.everything(found)
    path = report.keep("aim", found)
    picture = plots.draw(found, path.with_suffix(".png"))
    print(f"\nkept in {path}, drawn in {picture or '(matplotlib is not installed)'}")
    return 1 if any(figures.get("void") for figures in found["systems"].values()) else 0


def _timed(found: dict[str, Any], name: str, step: Any) -> Any:
    print(f"{name} …", flush=True)
    started = time.perf_counter()
    result = step()
    found["seconds"][name] = round(time.perf_counter() - started, 1)
    return result


def checked(events: int, install: bool, names: Sequence[str]) -> Figures:
    """By system: nothing if its answers are ours, else which differ, or why it is not there."""
    work = (Step("answers", events=events, batch=events // 4),)
    found: dict[str, Any] = {}
    for name in names:
        try:
            found[name] = performed(Work(name, CHECKED_CUSTOMERS, ALL, work), install)[0]
        except Missing as error:
            found[name] = {"missing": str(error)}
    return {name: _verdict(found[FAST[0]], answers) for name, answers in found.items()}


def _verdict(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    if "missing" in theirs:
        return dict(theirs)
    differ = [v for v in ALL if not same(_rows(mine[v]), _rows(theirs[v]))]
    return {"void": f"{', '.join(differ)} differ" if differ else None}


def _rows(rows: list[list[Any]]) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in rows]


def _measured(name: str, sizes: Sizes, install: bool) -> Figures:
    """Table 3, Fig. 8 and Fig. 9 on one system, in this order: calls pile up."""
    reads = [Step("reads", per_second=rate, seconds=sizes.seconds) for rate in RATES]
    steps = (
        Step("unchanged", events=TABLE_3, batch=BATCH, seconds=sizes.alone_seconds),
        *reads,
        _insert(name, sizes, 0),
        _insert(name, sizes, sizes.read_every),
    )
    table_3, *beside, insert, with_reads = performed(
        Work(name, sizes.customers, ALL, steps), install
    )
    return {
        "table_3": table_3,
        "reads": {str(rate): figures for rate, figures in zip(RATES, beside, strict=True)},
        "insert": insert,
        "with_reads": with_reads,
    }


def _insert(name: str, sizes: Sizes, read_every: int) -> Step:
    fast = name in FAST
    events = sizes.segment if fast else sizes.slow_segment
    return Step(
        "insert",
        events=events,
        batch=BATCH,
        segments=sizes.segments if fast else sizes.slow_segments,
        warm_up=1,
        read_every=min(read_every, events),
    )


def _alone(sizes: Sizes) -> Figures:
    """Ours with one view at a time, and with none."""
    found = {}
    with ours.opened(data.customers(sizes.customers), ()) as system:
        for views in ((), *((view,) for view in ALL)):
            system.make(views)
            step = Step("insert", events=sizes.alone_segment, batch=BATCH, segments=3, warm_up=1)
            run = Experiment(system, sizes.customers, views)
            found[views[0] if views else "none"] = run.run((step,))[0]
            system.drop(views)
    return found
