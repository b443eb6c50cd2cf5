"""Prints what was found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks import report

Figures = Mapping[str, Any]


def everything(figures: Figures) -> None:
    """All tables."""
    scale = f"SF {figures['scale']:g}, batches of {figures['batch']:,}"
    rates = ("query", "system", "rows/s", "least … most", "ours / theirs", "where")
    for key, how in (("durable", "durable on both sides"), ("memory", "without durability")):
        title = f"B6, Fig. 10: lineitem with one refresh, {scale}, {how}"
        report.table(title, rates, _rates(figures[key]))
    print("\nwithout durability: DuckDB in memory, our data folder in /dev/shm")
    columns = ("query", "strategy", "rows/s", "refreshes/s")
    report.table("Fig. 11: chunks of 1 000", columns, _chunks(figures["chunks"]))
    report.table("Fig. 12: cores", ("query", "system", "rows/s", "times one core"), _cores(figures))
    report.table("Targets", ("", "reached", "target", ""), figures["targets"])


def _rates(queries: Figures) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for query, systems in queries.items():
        for name, f in systems.items():
            if "missing" in f:
                rows.append((query, name, f"missing: {f['missing']}", "", "", ""))
                continue
            rate = f["per_s"]
            least = f"{rate['best']:,.0f} … {rate['worst']:,.0f}"  # of rates: least and most
            ratio = "void" if f.get("void") else f"{f['ratio']:.2f}" if "ratio" in f else ""
            rows.append((query, name, f"{rate['median']:,.0f}", least, ratio, f.get("tier", "")))
    return rows


def _chunks(queries: Figures) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for query, strategies in queries.items():
        for name, f in strategies.items():
            if "missing" in f:
                rows.append((query, name, f"missing: {f['missing']}", ""))
            else:
                refreshes = "void" if f["void"] else f"{f['refreshes_per_s']:,.1f}"
                rows.append((query, name, f"{f['rows_per_s']:,.0f}", refreshes))
    return rows


def _cores(figures: Figures) -> list[tuple[str, ...]]:
    return [
        (query, name, " → ".join(f"{r:,.0f}" for r in rates), f"{rates[-1] / rates[0]:.2f}")
        for name, queries in figures["cores"]["per_s"].items()
        for query, rates in queries.items()
    ]
