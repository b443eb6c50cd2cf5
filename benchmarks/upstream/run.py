"""B10: UpStream's Fig. 5, 7, 9, 13, 14, 16 and 17, the rate of enqueues, and a database under overload.

A discrete-event simulation drives the engine's own update queue; in Fig. 13 and 14 the engine itself
processes rows and windows, and says how many rows it put through the query. The clock is the trace's, so
the figures do not depend on the machine; what does is the rate of enqueues and the close of a window, by
processor time, and the last part, which runs a slow Python function over a live table. `--quick` simulates
fewer results and points and takes a minute of processor time, the full size some ten.

In Fig. 14 the unit of T is the time in which each key gets one row on average: without gaps where
keys come in turn. Our EAGER finishes a committed window as soon as a later row or the clock closes
it; the paper's waits for a later row of its key, hence it is behind LAZY under Zipf. A page
holds two rows in Fig. 16 and 17, where a hundred keys wait at most.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks import report
from benchmarks.upstream import figures, overload, plots
from benchmarks.upstream.figures import FULL, QUICK, Sizes
from benchmarks.upstream.targets import targets

Figures = dict[str, Any]


def main(quick: bool) -> int:
    """Simulates, prints, keeps and draws; what was missed is in the table."""
    sizes = QUICK if quick else FULL
    found: Figures = {"quick": quick, "seconds": {}}
    for name, step in _experiments(sizes).items():
        print(f"{name} …", flush=True)
        started = time.perf_counter()
        found |= step()
        found["seconds"][name] = round(time.perf_counter() - started, 1)
    reached = list(targets(found))
    found["targets"] = [target.row() for target in reached]
    report.table("B10 UpStream", ("target", "reached", "bound", ""), found["targets"])
    rates = ", ".join(f"{name} {rate:,.0f}" for name, rate in found["enqueue"].items())
    print(f"\nenqueued rows per second of processor time: {rates}")
    path = report.keep("upstream", found)
    picture = plots.draw(found, path.with_suffix(".png"))
    print(f"kept in {path}, drawn in {picture or '(matplotlib is not installed)'}")
    return 0


def _experiments(sizes: Sizes) -> Mapping[str, Callable[[], Figures]]:
    return {
        "Fig. 5, 7: one key": lambda: {"fig7_single": figures.load_sweep(sizes, 1)},
        "Fig. 5, 7: ten keys": lambda: {"fig7_multiple": figures.load_sweep(sizes, figures.KEYS)},
        "Fig. 9": lambda: {"fig9": figures.linecutting(sizes)},
        "Fig. 13": lambda: {"fig13": figures.window_sizes(sizes)},
        "the close of a window": lambda: {"closes": figures.closes(sizes)},
        "Fig. 14": lambda: {"fig14": figures.patterns(sizes)},
        "Fig. 16, 17": lambda: _memory(sizes),
        "enqueue": lambda: {"enqueue": figures.enqueue_rates(sizes)},
        "overload": lambda: {"overload": overload.measured(8.0 if sizes is QUICK else 60.0)},
    }


def _memory(sizes: Sizes) -> Figures:
    points = figures.memory(sizes)
    by_skew, by_rate = (figures.averaged(points, axis) for axis in ("theta", "rate"))
    return {"memory": points, "fig16": by_skew, "fig17": by_rate}
