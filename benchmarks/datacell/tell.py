"""Prints the figures of a run: a table per experiment, and the targets at the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks import report

Figures = Mapping[str, Any]
COLUMNS = ("system", "slides", "median ms", "p99", "worst", "slide ms", "theirs / ours")
SWEEPS = {
    "fig5_selectivity": "Fig. 5(a) Q1, per cent that pass",
    "fig5_join": "Fig. 5(b) Q2, per cent of pairs",
    "fig6_window": "Fig. 6(a) Q1, |W|",
    "fig7_step": "Fig. 7(a) Q1, panes",
}


def everything(figures: Figures) -> None:
    """All tables."""
    for groups, systems in figures["B1"].items():
        report.table(f"B1 Q1, {groups}: response to a slide", COLUMNS, _rows(systems))
    flat = [
        (f"{p['window']:,}", f"{p['median_ms']:.2f}", f"{p['p99_ms']:.2f}", f"{p['worst_ms']:.2f}")
        for p in figures["flatness"]
    ]
    report.table("B1 Q1 under longer windows", ("|W|", "median ms", "p99", "worst"), flat)
    _rates(figures["B2"])
    for name, systems in figures["B3"].items():
        only = {n: f for n, f in systems.items() if n != "window"}
        report.table(f"B3 Q2, |W| = {name}", COLUMNS, _rows(only))
    _landmark(figures["B4"])
    _sweeps(figures)
    report.table("one table, many queries", COLUMNS, _rows(figures["many"]))
    for name, one in figures["many"].items():
        if "ms_per_query" in one:
            print(f"  {name}: {one['ms_per_query']:.2f} ms per query and slide")
    columns = ("target", "reached", "bound", "")
    title = "targets of the full size, at small sizes" if figures["quick"] else "targets"
    report.table(title, columns, figures["targets"])
    for name, void in report.voids(figures):
        print(f"void: {name}: {void}")


def _rows(systems: Figures) -> list[tuple[str, ...]]:
    return [
        (
            name,
            str(f["slides"]),
            f"{f['median_ms']:.2f}",
            f"{f['p99_ms']:.2f}",
            f"{f['worst_ms']:.2f}",
            f"{f['slide_median_ms']:.2f}",
            "void" if f.get("void") is not None else f"{f['ratio']:.2f}",
        )
        for name, f in systems.items()
    ]


def _rates(systems: Figures) -> None:
    rows = []
    for name, f in systems.items():
        if "missing" in f:
            rows.append((name, f"missing: {f['missing']}", "", ""))
            continue
        ratio = "void" if f.get("void") is not None else f"{f.get('ratio', 1.0):.1f}"
        rates = f"{f['least']:,.0f} … {f['most']:,.0f}"
        rows.append((name, f"{f['rows_per_s']:,.0f}", rates, ratio))
    columns = ("system", "rows/s", "least … most", "ours / theirs")
    report.table("B2 Q1 from a stream", columns, rows)


def _landmark(f: Figures) -> None:
    rows = [
        (name, f"{f[key]['median']:.2f}", f"{f[key]['best']:.2f} … {f[key]['worst']:.2f}")
        for name, key in (("second window", "second_ms"), ("last window", "last_ms"))
    ]
    columns = ("Headwater", "median ms", "best … worst")
    report.table(f"B4 Q3, landmark, {len(f['ours_ms'])} windows", columns, rows)


def _sweeps(figures: Figures) -> None:
    for key, title in SWEEPS.items():
        rows = []
        for p in figures[key]:
            ratio = "void" if p["void"] is not None else f"{p['duckdb_ms'] / p['ours_ms']:.1f}"
            row = [_number(p["x"]), f"{p['ours_ms']:.2f}", f"{p['duckdb_ms']:.2f}", ratio]
            if "merging_ms" in p:
                row += [f"{p['processing_ms']:.2f}", f"{p['merging_ms']:.2f}"]
            rows.append(row)
        columns = ["", "ours ms", "DuckDB ms", "theirs / ours", "processing", "merging"]
        report.table(title, columns[: len(rows[0])], rows)
    print(f"\nFig. 8: m went {_path([point['m'] for point in figures['fig8_early']])}")
    _csv(figures["fig9_csv"])


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:.0e}"


def _csv(points: list[Figures]) -> None:
    rows = [
        (
            f"{p['x']:,}",
            f"{p['ours_s']:.2f}",
            f"{p['loading_s']:.2f}",
            f"{p['duckdb_s']:.2f}",
            "void" if p["void"] is not None else f"{p['duckdb_s'] / p['ours_s']:.1f}",
        )
        for p in points
    ]
    columns = ("|W|", "ours s", "of it loading", "DuckDB s", "theirs / ours")
    report.table("Fig. 9 Q2 from CSV files", columns, rows)


def _path(numbers: list[int]) -> str:
    """Numbers without repetitions: 1 → 2 → 4."""
    kept = [n for place, n in enumerate(numbers) if place == 0 or n != numbers[place - 1]]
    return " → ".join(map(str, kept))
