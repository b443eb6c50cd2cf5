"""Queries of an unchanged view per second over the wire, and rows per second by COPY.

1 and 8 connections, one query at a time or 32 under way, simple or prepared; every answer is compared with
the first. The loader runs in this process, the server in another. PostgreSQL is asked for a materialized
view of the same rows, over a socket file. Target: 10 000 queries/s each way, and as many rows by COPY as
PostgreSQL takes.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv

from benchmarks import postgres, report, reports
from benchmarks.pictures import OURS, PEER, THIRD, bars, label, picture
from benchmarks.serve import systems
from benchmarks.serve.loader import load
from benchmarks.serve.systems import ASKED, System
from benchmarks.targets import Target

QUERIES_PER_S = 10_000.0
CONNECTIONS = (1, 8)
DEPTHS = (1, 32)
KINDS = ("simple", "prepared")
Figures = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    seconds: float  # of one load
    repetitions: int
    pgbench_s: int
    copies: tuple[tuple[int, int], ...]  # rows of a COPY, and how many


QUICK = Sizes(0.7, 1, 1, ((1_000, 100), (100_000, 6)))
FULL = Sizes(1.5, 3, 4, ((1_000, 1_000), (100_000, 50)))


def main(quick: bool) -> int:
    """Measures, prints and keeps the figures; 1 if rows were missing."""
    sizes = QUICK if quick else FULL
    runs = {"Headwater": measure(systems.headwater(), sizes)}
    missing = postgres.why_missing()
    if missing is None:
        runs["PostgreSQL"] = measure(systems.postgresql(), sizes)
    else:
        print(f"PostgreSQL is left out: {missing}")
    _tell(runs)
    reached = [target.row() for target in targets(runs)]
    report.table("targets", ("target", "reached", "bound", ""), reached)
    path = report.keep("serve", {"quick": quick, "systems": runs, "targets": reached})
    drawn = draw(runs, path.with_suffix(".png"))
    print(f"\nkept in {path}, drawn in {drawn or '(matplotlib is not installed)'}")
    return 0 if all(run["right"] for run in runs.values()) else 1


def way(connections: int, depth: int, kind: str) -> str:
    """A way to ask, in words."""
    many = "1 connection" if connections == 1 else f"{connections} connections"
    return f"{kind}, {many}{f', {depth} under way' if depth > 1 else ''}"


def measure(started: contextlib.AbstractContextManager[System], sizes: Sizes) -> Figures:
    """Everything about one system."""
    with started as system, tempfile.TemporaryDirectory() as folder:
        system.prepare()
        queries, bench = {}, {}
        for connections in CONNECTIONS:
            for depth in DEPTHS:
                for kind in KINDS:
                    name = way(connections, depth, kind)
                    queries[name] = _queries(system, connections, depth, kind, sizes)
                    if depth == 1 or kind == "prepared":  # pgbench cannot pipeline the other
                        bench[name] = systems.pgbench(
                            system, connections, kind, depth, sizes.pgbench_s, Path(folder)
                        )
        copies, stored = {}, 0
        for rows, count in sizes.copies:
            copies[f"{rows:,} rows"] = _copied(system, rows, count, stored)
            stored += rows * count
        right = _stored(system) == stored
    known = {name: rate for name, rate in bench.items() if rate is not None}
    return {"queries": queries, "pgbench": known, "copies": copies, "right": right}


def _queries(
    system: System, connections: int, depth: int, kind: str, sizes: Sizes
) -> dict[str, float]:
    rates = []
    for _ in range(sizes.repetitions):
        with contextlib.ExitStack() as open_:
            clients = [open_.enter_context(system.client()) for _ in range(connections)]
            rates.append(load(clients, ASKED, kind, depth, sizes.seconds))
    return report.spread(rates)


def _copied(system: System, rows: int, count: int, first: int) -> float:
    """Rows per second of one connection, each COPY acknowledged before the next; text made before."""
    texts = [
        _csv(reports.batch(first + n * rows, rows, per_second=1000, cars=5000))
        for n in range(count)
    ]
    with system.client() as client:
        started = time.perf_counter()
        for text in texts:
            client.copy("p", text)
        return rows * count / (time.perf_counter() - started)


def _csv(rows: pa.Table) -> bytes:
    buffer = io.BytesIO()
    csv.write_csv(rows, buffer, csv.WriteOptions(include_header=False))
    return buffer.getvalue()


def _stored(system: System) -> int:
    """The rows of the table that was copied into, counted without Spark."""
    with system.client() as client:
        return client.run("SELECT t FROM p").count(b"D\0\0\0")


def targets(runs: Mapping[str, Figures]) -> Iterator[Target]:
    """All of them, from the figures of one run."""
    ours, theirs = runs["Headwater"], runs.get("PostgreSQL")
    for name, rate in ours["queries"].items():
        yield Target(f"queries/s of an unchanged view: {name}", rate["median"], QUERIES_PER_S)
    for size, rows in ours["copies"].items():
        ratio = None if theirs is None else rows / theirs["copies"][size]
        yield Target(f"COPY of {size}: times PostgreSQL", ratio, 1.0)


def _tell(runs: Mapping[str, Figures]) -> None:
    names = list(runs["Headwater"]["queries"])
    rows = [
        (
            name,
            *(f"{run['queries'][name]['median']:,.0f}" for run in runs.values()),
            _bench(runs, name),
        )
        for name in names
    ]
    report.table("queries/s", ("way", *runs, "pgbench to Headwater"), rows)
    copies = [
        (size, *(f"{run['copies'][size]:,.0f}" for run in runs.values()))
        for size in runs["Headwater"]["copies"]
    ]
    report.table("rows/s by COPY, durable", ("each", *runs), copies)


def _bench(runs: Mapping[str, Figures], name: str) -> str:
    rate = runs["Headwater"]["pgbench"].get(name)
    return "–" if rate is None else f"{rate:,.0f}"


def draw(runs: Mapping[str, Figures], path: Path) -> Path | None:
    """Queries per second by way, one panel for each system."""

    def panel(system: str, colour: str) -> Any:
        def drawn(axes: Any, _: Any) -> None:
            rates = {n: rate["median"] for n, rate in runs[system]["queries"].items()}
            bars(axes, rates, [colour] * len(rates))
            axes.axvline(QUERIES_PER_S, color=THIRD, linewidth=0.8)
            label(axes, system, "queries/s of an unchanged view", "")

        return drawn

    colours = dict(zip(runs, (OURS, PEER), strict=False))
    panels = [panel(system, colour) for system, colour in colours.items()]
    return picture(path, (1, len(panels)), panels, runs, size=(7.0 * len(panels), 3.6))
