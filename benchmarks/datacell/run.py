"""B1 to B4: DataCell's Q1, Q2, Q3 and Fig. 4 to 9, two hundred queries at once, and the peers.

Q1 by count (`[ROWS]`) as in the paper and by time; Q2 by time; Q3 by count. Every answer of a peer
is compared with ours, and a row that differs is void.
Slides of a system follow each other, systems run one after the other in one process; only Flink
and plain Structured Streaming have processes of their own. Peers get fewer slides than we do.

`--quick` takes 95 s of processor time, the full size an estimated twenty minutes on two quiet cores.
The first full run also installs Flink into a virtualenv of its own (under the cache folder);
`--quick` uses it if it is there. The targets are meant for the full size.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks import report
from benchmarks.datacell import figures as sweeps
from benchmarks.datacell import many, plots, q1, q2, q3, tell, throughput
from benchmarks.datacell.data import Keys
from benchmarks.datacell.q1 import Q1
from benchmarks.datacell.series import Series, compared, difference
from benchmarks.datacell.sizes import FULL, QUICK, Sizes
from benchmarks.datacell.targets import targets

GROUPS = (1_000, 100_000)
SKEW = 0.8
JOIN_PANES = 64
JOIN_WINDOWS = 100

Figures = dict[str, Any]


def main(quick: bool) -> int:
    """Measures, prints and keeps the figures; 1 if two systems disagree."""
    sizes = QUICK if quick else FULL
    found: Figures = {"quick": quick, "seconds": {}}
    for name, step in _experiments(sizes, quick).items():
        print(f"{name} …", flush=True)
        started = time.perf_counter()
        found |= step()
        found["seconds"][name] = round(time.perf_counter() - started, 1)
    found["targets"] = [target.row() for target in targets(found)]
    tell.everything(found)
    path = report.keep("datacell", found)
    picture = plots.draw(found, path.with_suffix(".png"))
    print(f"\nkept in {path}, drawn in {picture or '(matplotlib is not installed)'}")
    return 1 if list(report.voids(found)) else 0


def _experiments(sizes: Sizes, quick: bool) -> Mapping[str, Callable[[], Figures]]:
    s, slides = sizes, sizes.sweep_slides
    return {
        "B1": lambda: _response(sizes),
        "B1, flatness": lambda: {"flatness": _flatness(sizes)},
        "B2": lambda: {"B2": throughput.measure(sizes.throughput, quick)},
        "B3": lambda: {"B3": _joins(sizes)},
        "B4": lambda: {"B4": _landmark(sizes)},
        "Fig. 5(a)": lambda: {
            "fig5_selectivity": sweeps.fig5_selectivity(s.panes, s.step, s.percents, slides)
        },
        "Fig. 5(b)": lambda: {"fig5_join": sweeps.fig5_join(s.join_step, s.join_keys, slides)},
        "Fig. 6": lambda: {"fig6_window": sweeps.fig6_window(s.panes, s.window_steps, slides)},
        "Fig. 7": lambda: {
            "fig7_step": sweeps.fig7_step(s.panes * s.step, s.step_panes, min(slides, 12))
        },
        "Fig. 8": lambda: {
            "fig8_early": sweeps.fig8_early(s.early_step, s.early_inserts, s.early_slides)
        },
        "Fig. 9": lambda: {"fig9_csv": sweeps.fig9_csv(s.csv_steps)},
        "many queries": lambda: {"many": many.measure(s.queries, 8, 2_000, 8)},
    }


def _response(sizes: Sizes) -> Figures:
    """B1: the response to a slide, for few and many groups."""
    found: Figures = {}
    kept: dict[str, list[float]] = {}
    for groups in GROUPS:
        work = Q1(sizes.panes, sizes.step, groups)
        peer, expected = q1.duck_reevaluation(work, sizes.peer_slides)
        systems = {
            "Headwater": q1.incremental(work, "rows", sizes.slides),
            "Headwater, by time": q1.incremental(work, "interval", sizes.slides),
            "DuckDB re-evaluation": peer,
            "DuckDB by hand": q1.duck_incremental(work, sizes.peer_slides),
        }
        if groups == GROUPS[0]:
            systems |= _slow_modes(work, sizes.slow_slides)
        figures = compared(systems, "Headwater", references=("Headwater, by time",))
        by_time = systems["Headwater, by time"]
        figures["Headwater, by time"]["void"] = difference(expected.answers, by_time.answers)
        found[f"{groups:,} groups"] = figures
        kept = kept or {name: series.response_ms for name, series in systems.items()}
    return {"B1": found, "series": {n: kept[n] for n in ("Headwater", "DuckDB re-evaluation")}}


def _slow_modes(work: Q1, slides: int) -> dict[str, Series]:
    return {
        "own re-evaluation": q1.prefilled(work, "rows", slides, "reevaluate"),
        "own, all on Spark": q1.prefilled(work, "rows", slides, "fold", spark_sql_only=True),
    }


def _flatness(sizes: Sizes) -> list[Figures]:
    """B1: the same slide under windows of different lengths."""
    points = []
    for panes in sizes.flat_panes:
        work = Q1(panes, sizes.step, GROUPS[0])
        series = q1.incremental(work, "rows", sizes.flat_slides)
        points.append({"window": work.window, **series.figures()})
    return points


def _joins(sizes: Sizes) -> Figures:
    """B3: windowed joins of three sizes, uniform and skewed keys."""
    found: Figures = {}
    for step in sizes.join_steps:
        for skew, name in ((0.0, "uniform"), (SKEW, "skewed")):
            work = _q2(step, skew)
            found[f"{work.window:,}, {name}"] = {"window": work.window, **_join(work, sizes)}
    return found


def _q2(step: int, skew: float) -> q2.Q2:
    """Q2 with as many keys as a window has rows."""
    return q2.Q2(JOIN_PANES, step, Keys(JOIN_PANES * step, skew))


def _join(work: q2.Q2, sizes: Sizes) -> Figures:
    systems = {
        "Headwater": q2.headwater(work, "interval", JOIN_WINDOWS),
        "DuckDB re-evaluation": q2.duck_reevaluation(work, "interval", JOIN_WINDOWS),
        "own re-evaluation": q2.headwater(work, "interval", sizes.slow_slides, "reevaluate"),
    }
    return compared(systems, "Headwater")


def _landmark(sizes: Sizes) -> Figures:
    """B4: the response must not grow with what lies behind."""
    work = q3.Q3(sizes.landmark_step, sizes.landmark_windows)
    runs: list[Series] = [q3.headwater(work) for _ in range(sizes.landmark_repetitions)]
    peer = q3.duck_reevaluation(work)
    second = report.spread([run.response_ms[1] for run in runs])
    last = report.spread([run.response_ms[-1] for run in runs])
    return {
        "ours_ms": runs[0].response_ms,
        "duckdb_ms": peer.response_ms,
        "second_ms": second,
        "last_ms": last,
        "last_over_second": last["median"] / second["median"],
        "void": difference(runs[0].answers, peer.answers),
    }
