"""Prints what was found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks import report

Figures = Mapping[str, Any]
SYSTEMS = ("Headwater", "own re-evaluation", "DuckDB re-evaluation")


def everything(figures: Figures) -> None:
    """All tables."""
    columns = ["view", "result", "ours ms", "worst"]
    for name in SYSTEMS[1:]:
        columns += [f"{name} ms", "worst", "theirs / ours"]
    rows = [_row(name, systems) for name, systems in figures["views"].items()]
    if figures["point"]:
        groups = figures["point"]["groups"]
        rows.append(_row(f"one key of {groups:,}", figures["point"]))
    title = f"B14: a read after one row, {figures['rows']:,} rows stored"
    report.table(title, columns, rows)
    if figures["instants"]:
        _instants(figures["instants"])
    report.table("Targets", ("", "reached", "target", ""), figures["targets"])


def _row(name: str, systems: Figures) -> tuple[str, ...]:
    mine = systems["Headwater"]
    cells = [f"{mine['rows']:,}", f"{mine['median_ms']:.2f}", f"{mine['worst_ms']:.2f}"]
    for peer in SYSTEMS[1:]:
        found = systems.get(peer)
        if found is None:
            cells += ["–", "", ""]
            continue
        verdict = f"void: {found['void']}" if found.get("void") else f"{found['ratio']:,.1f}"
        cells += [f"{found['median_ms']:.2f}", f"{found['worst_ms']:.2f}", verdict]
    return (name, *cells)


def _instants(instants: Figures) -> None:
    rows = [
        (
            count,
            f"{found['median_ms']:.2f}",
            f"{found['worst_ms']:.2f}",
            f"{found['cpu_ms']:.2f}",
            found["rows_told"],
            f"void: {found['void']}" if found.get("void") else "",
        )
        for count, found in instants.items()
    ]
    columns = (
        "rows of the result",
        "ms an instant",
        "worst",
        "CPU ms of the driver",
        "rows told",
        "",
    )
    report.table("B14: one row of a result changes at each instant", columns, rows)
