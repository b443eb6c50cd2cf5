"""Prints what was found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks import report

Figures = Mapping[str, Any]


def everything(figures: Figures) -> None:
    """All tables."""
    systems = figures["systems"]
    customers = f"{figures['customers']:,} customers"
    for key, title in (
        ("insert", f"B5, Fig. 9: calls alone, six views, {customers}"),
        ("with_reads", "B5: calls, all views read after every 100 000 at most"),
    ):
        columns = ("system", "events/s", "least … most", "ours / theirs")
        report.table(title, columns, _inserts(systems, key))
    report.table("B5: one view at a time", ("view", "events/s", "least … most"), _alone(figures))
    _reads(systems)
    _table_3(systems)
    report.table("Targets", ("", "reached", "target", ""), figures["targets"])
    print("\nover the wire: not measured here")


def _inserts(systems: Figures, key: str) -> list[tuple[str, ...]]:
    mine = systems["Headwater"][key]["per_s"]
    rows: list[tuple[str, ...]] = []
    for name, system in systems.items():
        if "missing" in system:
            rows.append((name, f"missing: {system['missing']}", "", ""))
            continue
        f = system[key]
        ratio = "void" if system.get("void") else f"{mine / f['per_s']:.2f}"
        rows.append((name, f"{f['per_s']:,.0f}", f"{f['least']:,.0f} … {f['most']:,.0f}", ratio))
    return rows


def _alone(figures: Figures) -> list[tuple[str, ...]]:
    return [
        (view, f"{f['per_s']:,.0f}", f"{f['least']:,.0f} … {f['most']:,.0f}")
        for view, f in figures["alone"].items()
    ]


def _there(systems: Figures) -> dict[str, Any]:
    return {name: system for name, system in systems.items() if "missing" not in system}


def _reads(systems: Figures) -> None:
    rows = [
        (
            name,
            f"{int(rate):,}",
            f"{f['events_per_s']:,.0f}",
            "void" if system.get("void") else f"{f['queries_per_s']:,.1f}",
        )
        for name, system in _there(systems).items()
        for rate, f in system["reads"].items()
    ]
    columns = ("system", "events/s wanted", "events/s taken", "queries/s")
    report.table("B5, Fig. 8: queries beside calls", columns, rows)


def _table_3(systems: Figures) -> None:
    views = list(systems["Headwater"]["table_3"])
    for key, title, form in (
        ("queries_per_s", "B5, Table 3: unchanged queries/s after 10 000 calls", "{:,.0f}"),
        ("first_ms", "B5: ms of the first read after 10 000 calls", "{:,.2f}"),
    ):
        rows = [
            (name, *(form.format(system["table_3"][view][key]) for view in views))
            for name, system in _there(systems).items()
        ]
        report.table(title, ("system", *views), rows)
