"""The targets of B1 to B4 beside what was reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from benchmarks.targets import Target

Figures = Mapping[str, Any]
FASTER_THAN_REEVALUATION = 10.0
FLAT = 1.3
FASTER_THAN_FLINK = 20.0
FASTER_THAN_STREAMING = 500.0
FASTER_JOIN = 3.0
NOT_SLOWER = 1.1
LANDMARK_FLAT = 1.2


def _ratio(figures: Figures) -> float | None:
    wrong = figures.get("void") is not None or "missing" in figures
    return None if wrong else figures["ratio"]


def targets(all_figures: Mapping[str, Any]) -> Iterator[Target]:
    """All of them, from the figures of one run."""
    for groups, systems in all_figures["B1"].items():
        what = f"B1 {groups}: times as fast as"
        re = _ratio(systems["DuckDB re-evaluation"])
        yield Target(f"{what} DuckDB re-evaluation", re, FASTER_THAN_REEVALUATION)
        yield Target(f"{what} DuckDB by hand", _ratio(systems["DuckDB by hand"]), 1.0)
    points = all_figures["flatness"]
    for small, large in pairwise(points):
        grown = large["median_ms"] / small["median_ms"]
        what = f"B1 |W| {small['window']:,} → {large['window']:,}: response grows by"
        yield Target(what, grown, FLAT, at_least=False)
    streams = all_figures["B2"]
    yield Target("B2 times Flink HOP", _ratio(streams["Flink HOP"]), FASTER_THAN_FLINK)
    plain = _ratio(streams["Structured Streaming"])
    yield Target("B2 times Structured Streaming", plain, FASTER_THAN_STREAMING)
    yield from _join_targets(all_figures["B3"])
    landmark = all_figures["B4"]
    last = None if landmark["void"] is not None else landmark["last_over_second"]
    yield Target("B4 last / second response", last, LANDMARK_FLAT, at_least=False)


def _join_targets(joins: Mapping[str, Figures]) -> Iterator[Target]:
    largest = max(systems["window"] for systems in joins.values())
    for name, systems in joins.items():
        if systems["window"] == largest:
            ratio = _ratio(systems["DuckDB re-evaluation"])
            yield Target(f"B3 {name}: times DuckDB re-evaluation", ratio, FASTER_JOIN)
    for name, systems in joins.items():
        own = _ratio(systems["own re-evaluation"])
        yield Target(
            f"B3 {name}: ours / own re-evaluation",
            None if own is None else 1 / own,
            NOT_SLOWER,
            at_least=False,
        )
