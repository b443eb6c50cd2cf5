"""B6: TPC-H Q1, Q3, Q6, Q15 and Q20 as views over a stream of lineitem (split maintenance §4.2): Fig. 10–12.

lineitem is a stream, the other tables are standard; ORDER BY and LIMIT are left out, as in the paper. A rate
is all rows of lineitem over the time of their inserts and one read of the view. DuckDB is deferred: it
appends, and a refresh is the query; on a file with a checkpoint where we write our log, in memory where
our folder lies in memory. Data come from tpcgen-cli. `HEADWATER_TPCH_SCALE=10` runs the larger scale.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks import report
from benchmarks.installed import Missing
from benchmarks.tpch import chunks, cores, data, plots, tell, throughput
from benchmarks.tpch.sizes import FULL, QUICK, Sizes
from benchmarks.tpch.targets import targets

Figures = dict[str, Any]


def main(quick: bool) -> int:
    """Measures, prints and keeps the figures; 1 if two systems disagree."""
    sizes = _sizes(quick)
    try:
        data.folder(sizes.scale)
    except Missing as error:
        print(f"tpcgen-cli is missing: {error}")
        return 1
    found: Figures = {"quick": quick, "scale": sizes.scale, "batch": sizes.batch, "seconds": {}}
    for name, step in _experiments(sizes).items():
        print(f"{name} …", flush=True)
        started = time.perf_counter()
        found[name] = step()
        found["seconds"][name] = round(time.perf_counter() - started, 1)
    found["targets"] = [target.row() for target in targets(found)]
    tell.everything(found)
    path = report.keep("tpch", found)
    picture = plots.draw(found, path.with_suffix(".png"))
    print(f"\nkept in {path}, drawn in {picture or '(matplotlib is not installed)'}")
    return 1 if list(report.voids(found)) else 0


def _sizes(quick: bool) -> Sizes:
    given = os.environ.get("HEADWATER_TPCH_SCALE")
    sizes = QUICK if quick else FULL
    return replace(sizes, scale=float(given)) if given else sizes


def _experiments(s: Sizes) -> dict[str, Callable[[], Any]]:
    return {
        "durable": lambda: throughput.measure(s.scale, s.batch, s.repetitions, durable=True),
        "memory": lambda: throughput.measure(s.scale, s.batch, s.memory_repetitions, durable=False),
        "chunks": lambda: chunks.measure(s.scale, s.chunk_rows, s.reads),
        "cores": lambda: cores.measure(s.scale, s.batch, s.core_rows),
    }
