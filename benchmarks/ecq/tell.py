"""Prints the figures of a run: a table per query and size, and the targets at the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks import report

Figures = Mapping[str, Any]
COLUMNS = (
    "system",
    "chunks",
    "post-cut ms",
    "best … worst",
    "with ADVANCE",
    "query alone",
    "chunk in all",
    "theirs / ours",
)


def everything(figures: Figures) -> None:
    """All tables."""
    for name, found in figures["fig6"].items():
        title = f"Fig. 6 {name}, many chunks of {found['size']:,} rows"
        report.table(title, COLUMNS, _rows(found["systems"]))
    for name, points in figures["fig7"].items():
        for point in points:
            title = f"Fig. 7 {name}, chunks of {point['size']:,} rows"
            report.table(title, COLUMNS, _rows(point["systems"]))
    title = "targets of the full size, at small sizes" if figures["quick"] else "targets"
    report.table(title, ("target", "reached", "bound", ""), figures["targets"])
    for name, void in report.voids(figures):
        print(f"void: {name}: {void}")


def _rows(systems: Figures) -> list[tuple[str, ...]]:
    return [_row(name, found) for name, found in systems.items()]


def _row(name: str, found: Figures) -> tuple[str, ...]:
    if "missing" in found:
        return (name, "", f"missing: {found['missing']}", "", "", "", "", "")
    return (
        name,
        str(found["slides"]),
        f"{found['median_ms']:.2f}",
        f"{found['best_ms']:.2f} … {found['worst_ms']:.2f}",
        *(f"{found[key]:.2f}" if key in found else "" for key in ("with_cut_ms", "query_ms")),
        f"{found['slide_median_ms']:.2f}",
        "void" if found["void"] is not None else f"{found['ratio']:.2f}",
    )
