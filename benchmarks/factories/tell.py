"""Prints what was found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks import report
from benchmarks.factories.targets import gain

Figures = Mapping[str, Any]


def everything(figures: Figures) -> None:
    """All tables."""
    works = figures["works"]
    rows = [
        _row(name, numbers, number)
        for name, numbers in works.items()
        if name != "B1"
        for number in numbers
    ]
    columns = (
        "work",
        "factories",
        "events/s",
        "least … most",
        "× none",
        "driver CPU s",
        "factories' CPU s",
    )
    report.table("B15: the same work with more factories", columns, rows)
    if "B1" in works:
        _responses(works["B1"])
    report.table("Targets", ("", "reached", "target", ""), figures["targets"])


def _row(name: str, numbers: Figures, number: str) -> tuple[str, ...]:
    found = numbers[number]
    if "missing" in found:
        return (name, number, f"missing: {found['missing']}", "", "", "", "")
    cpu = {host: f"{seconds:.2f}" for host, seconds in found["cpu_s"].items()}
    here = cpu.pop("here", "–")
    times = gain(numbers, number)
    verdict = (
        f"void: {found['void']}" if found["void"] else "–" if times is None else f"{times:.2f}"
    )
    here += "" if found["settled"] else " (not all had moved)"
    spread = f"{found['least']:,.0f} … {found['most']:,.0f}"
    return (name, number, f"{found['per_s']:,.0f}", spread, verdict, here, " ".join(cpu.values()))


def _responses(numbers: Figures) -> None:
    rows = [
        (number, f"missing: {found['missing']}", "", "", "")
        if "missing" in found
        else (
            number,
            f"{found['median_ms']:.2f}",
            f"{found['p99_ms']:.2f}",
            f"{found['worst_ms']:.2f}",
            found["void"] or "",
        )
        for number, found in numbers.items()
    ]
    columns = ("factories", "median ms", "p99", "worst", "")
    report.table("B15: response of B1, last row acknowledged to result there", columns, rows)
