"""B9: epochs beside one-time queries over temporary tables; Fig. 6 and 7 of the paper on stream joins.

Q_b joins packets with a table of hosts twice, Q_c joins two streams, Q_d has no join. What is measured
is the post-cut time: from the acknowledged ADVANCE that ends a chunk to the result in a subscriber's hands.
For one-time queries it begins with the last row at hand and ends with the result: make a table, load
the chunk, run the query; the query alone stands beside it. Every answer of a peer is compared with
ours, and a row that differs is void. Systems run one after the other in one process; only plain Spark has
a process of its own.

`--quick` takes up to 90 s, the full size up to ten minutes. The targets are meant for the full size.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks import report
from benchmarks.datacell.series import Series, compared
from benchmarks.ecq import duck, ours, outside, plots, tell
from benchmarks.ecq.ours import Work
from benchmarks.ecq.queries import Q_B, Q_C, Q_D, Query
from benchmarks.ecq.sizes import FULL, QUICK, Sizes
from benchmarks.ecq.targets import ON_SPARK, OURS, targets
from benchmarks.installed import Missing

Figures = dict[str, Any]


def main(quick: bool) -> int:
    """Measures, prints and keeps the figures; 1 if two systems disagree."""
    return measure(QUICK if quick else FULL, quick)


def measure(sizes: Sizes, quick: bool) -> int:
    """The same at any sizes."""
    found: Figures = {"quick": quick, "seconds": {}, "fig6": {}, "fig7": {}}
    for name, step in _experiments(sizes, found).items():
        print(f"{name} …", flush=True)
        started = time.perf_counter()
        step()
        found["seconds"][name] = round(time.perf_counter() - started, 1)
    found["targets"] = [target.row() for target in targets(found)]
    tell.everything(found)
    path = report.keep("ecq", found)
    pictures = plots.draw(found, path.parent)
    drawn = ", ".join(map(str, pictures)) or "(matplotlib is not installed)"
    print(f"\nkept in {path}, drawn in {drawn}")
    return 1 if list(report.voids(found)) else 0


def _experiments(sizes: Sizes, found: Figures) -> Mapping[str, Callable[[], None]]:
    steps: dict[str, Callable[[], None]] = {}
    for query in (Q_B, Q_C):

        def many(query: Query = query) -> None:
            found["fig6"][query.name] = _many(query, sizes)

        steps[f"Fig. 6, {query.name}"] = many
    for query in (Q_C, Q_D):
        for size in sizes.chunk_sizes:

            def point(query: Query = query, size: int = size) -> None:
                points = found["fig7"].setdefault(query.name, [])
                points.append({"size": size, "systems": _point(query, size, sizes)})

            steps[f"Fig. 7, {query.name}, {size:,} rows"] = point
    return steps


def _many(query: Query, sizes: Sizes) -> Figures:
    """Fig. 6: more and more chunks, the long-lived query beside iterated ones."""
    mine = Work(query, sizes.many_size, sizes.many_chunks, sizes.warm_up)
    peers = Work(query, sizes.many_size, sizes.many_chunks, sizes.slow_warm_up)
    systems = {
        OURS: ours.epochs(mine),
        "iterated, streaming table": ours.iterated(peers, "STREAMING TABLE"),
        "iterated, table": ours.iterated(peers, "TABLE"),
    }
    times = {
        name: {"response_ms": series.response_ms, "slide_ms": series.slide_ms}
        for name, series in systems.items()
    }
    return {"size": sizes.many_size, "systems": _compared(systems), "series": times}


def _point(query: Query, size: int, sizes: Sizes) -> Figures:
    """Fig. 7: one size of a chunk, all systems."""
    peer = sizes.peer(query, size)
    duck_query, duck_whole = duck.one_time(peer)
    systems = {OURS: ours.epochs(sizes.ours(query, size))}
    if size in sizes.spark_sizes:
        systems[ON_SPARK] = ours.epochs(sizes.on_spark(query, size), spark_sql_only=True)
    systems["iterated, streaming table"] = ours.iterated(peer, "STREAMING TABLE")
    systems["DuckDB, load and query"] = duck_whole
    systems["DuckDB, query alone"] = duck_query
    missing: Figures = {}
    if size in sizes.plain_sizes:
        try:
            systems["plain Spark SQL, Parquet"] = outside.plain_spark(peer)
        except Missing as error:
            missing["plain Spark SQL, Parquet"] = {"missing": str(error)}
    return {**_compared(systems), **missing}


def _compared(systems: Mapping[str, Series]) -> Figures:
    """The figures of all systems, with the best times too."""
    found = compared(dict(systems), OURS)
    for name, series in systems.items():
        found[name]["best_ms"] = min(series.response_ms)
    return found
