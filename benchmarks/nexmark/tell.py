"""Prints what was found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks import report
from benchmarks.nexmark.targets import DUCK, OURS_ALONE, PEERS, ratio, times

Figures = Mapping[str, Any]


def everything(figures: Figures) -> None:
    """All tables."""
    for part in ("alone", "together"):
        for place, queries in figures[part].items():
            columns = (
                "query",
                "events",
                "events/s",
                "read ms",
                "worst",
                "DuckDB events/s",
                "read ms",
                "worst",
                "×",
            )
            rows = [_row(query, systems) for query, systems in queries.items()]
            report.table(f"B13 {part}, read after every chunk: {place}", columns, rows)
    if figures["peers"]:
        _peers(figures["peers"])
    report.table("Targets", ("", "reached", "target", ""), figures["targets"])


def _row(query: str, systems: Figures) -> tuple[str, ...]:
    mine, theirs = systems["Headwater"], systems.get(DUCK)
    if theirs is None:
        return (query, f"missing: {mine['missing']}", *[""] * 7)
    found = ratio(systems)
    verdict = f"void: {theirs['void']}" if found is None else f"{found:,.1f}"
    return (query, f"{mine['events']:,}", *_cells(mine), *_cells(theirs), verdict)


def _cells(figures: Figures) -> tuple[str, str, str]:
    return f"{figures['per_s']:,.0f}", f"{figures['read_ms']:.2f}", f"{figures['worst_ms']:.2f}"


def _peers(peers: Figures) -> None:
    mine = peers[OURS_ALONE]
    rows = []
    for query, figures in mine.items():
        cells = [cell for name in PEERS for cell in _cell(peers, name, query)]
        rows.append((query, f"{figures['per_s']:,.0f}", *cells))
    columns = ("query", "ours", *[c for name in PEERS for c in (name, "ours / theirs")])
    report.table("B13 beside systems that push, events/s, ours read at the end", columns, rows)
    for name in PEERS:
        if "missing" in peers[name]:
            print(f"{name} is missing: {peers[name]['missing']}")


def _cell(peers: Figures, name: str, query: str) -> tuple[str, str]:
    key = "together" if query == f"all of {name}" else query
    found = peers[name].get(key)
    if found is None or "missing" in peers[name]:
        return "–", ""
    if "missing" in found:
        return f"missing: {found['missing'][:60]}", ""
    if found.get("void") is not None:
        return f"{found['per_s']:,.0f}", f"void: {found['void'][:60]}"
    return f"{found['per_s']:,.0f}", f"{times(peers, name, key):,.2f}"
