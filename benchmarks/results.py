"""`benchmarks/RESULTS.md` from the figures in `reports/`: targets, tables and plots of every benchmark.

Written by `make bench` once all benchmarks have run, by `python -m benchmarks.results` at any time.
A benchmark whose figures are missing, or of another commit than the rest, is named as such.
Must never: compute a figure; each benchmark keeps its own targets.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import report

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"
PLOTS = HERE / "results"
ABOUT = {
    "start": "B12: process start to the first result, beside plain PySpark",
    "write": "B11: acknowledged rows per second, beside SQLite, PostgreSQL and DuckDB",
    "history": "B8: questions about the past during ingest, beside PostgreSQL and DuckDB",
    "datacell": "B1–B4: windows and joins, beside DuckDB, Flink and Structured Streaming",
    "ecq": "B9: epochs and stream joins, beside iterated one-time queries and DuckDB",
    "aim": "B5: six continuous views, beside DuckDB, ClickHouse and PostgreSQL",
    "tpch": "B6: TPC-H views over a stream, beside DuckDB",
    "queue": "Fig. 13 of the views paper: a spike of inserts",
    "upstream": "B10: freshness under overload",
    "streaming": "windows over files, beside plain Structured Streaming",
    "linearroad": "B7, B8: Linear Road",
    "nexmark": "B13: NEXMark's 23 queries as kept views, beside DuckDB, Flink SQL and Pathway",
    "reads": "B14: reads after a change of one row, beside Spark and DuckDB again each time",
    "factories": "B15: the same work with more factories",
    "serve": "an unchanged view and COPY over the wire, beside PostgreSQL",
}
Figures = dict[str, Any]


def write(names: Sequence[str]) -> Path:
    """The page, from what `reports/` has."""
    found = {name: _read(name) for name in names}
    commits = {f["commit"] for f in found.values() if f is not None}
    lines = ["# Results", "", *_conditions(found, commits), "", *_overview(found)]
    for name, figures in found.items():
        lines += [f"## {name}", "", ABOUT.get(name, ""), ""]
        lines += _section(name, figures, len(commits) > 1)
    RESULTS.write_text("\n".join(lines).rstrip() + "\n")
    return RESULTS


def _read(name: str) -> Figures | None:
    path = report.FOLDER / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def _conditions(found: dict[str, Figures | None], commits: set[str]) -> list[str]:
    """What all figures have in common."""
    known = [figures for figures in found.values() if figures is not None]
    counts = [figures["cores"] for figures in known]
    cores = sorted({count for count in counts if isinstance(count, int)})  # tpch varies them
    sizes = {bool(figures.get("quick")) for figures in known}
    size = {frozenset({True}): "small sizes (`--quick`)", frozenset({False}): "full sizes"}
    which = "one commit" if len(commits) == 1 else f"{len(commits)} commits, named below"
    of = ", ".join(sorted(commit[:10] for commit in commits))
    on = "/".join(map(str, cores))
    return [
        f"Measured on {on} cores, {size.get(frozenset(sizes), 'mixed sizes')}, {which} ({of}).",
        "Figures are ratios measured side by side in one run; a target that was missed says so.",
        "`make bench` makes this page anew.",
    ]


def _overview(found: dict[str, Figures | None]) -> list[str]:
    """Every target of every benchmark in one table."""
    rows = [
        [f"[{name}](#{name})", *row]
        for name, figures in found.items()
        if figures is not None
        for row in figures.get("targets", ())
    ]
    met = sum(row[-1] == "met" for row in rows)
    columns = ["benchmark", "target", "reached", "bound", ""]
    return ["## Targets", "", f"{met} of {len(rows)} met.", "", *_table(columns, rows)]


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    lines = [columns, ["---"] * len(columns), *rows]
    return ["| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines] + [""]


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def _section(name: str, figures: Figures | None, named: bool) -> list[str]:
    if figures is None:
        return ["Not run.", ""]
    size = "small sizes" if figures.get("quick") else "full size"
    commit = f", commit {figures['commit'][:10]}" if named else ""
    took = f", {_duration(figures)}" if "took_s" in figures else ""
    lines = [f"{figures['at'][:10]}, {size}{commit}{took}.", ""]
    notes = HERE / name / "NOTES.md"
    if notes.exists():
        lines += [notes.read_text().strip(), ""]
    lines += [f"![{plot.stem}](results/{plot.name})\n" for plot in _plots(name)]
    return lines + _tables(figures.get("tables", ()))


def _duration(figures: Figures) -> str:
    """How long it took, all parts of it together."""
    seconds = sum(figures.get("parts_s", {}).values()) or figures["took_s"]
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"


def _tables(tables: Sequence[Figures]) -> list[str]:
    """What the benchmark printed, folded away."""
    if not tables:
        return []
    lines = ["<details><summary>All figures</summary>", ""]
    for one in tables:
        lines += [f"{_cell(one['title'])}:", "", *_table(one["columns"], one["rows"])]
    return [*lines, "</details>", ""]


def _plots(name: str) -> list[Path]:
    """The pictures of a benchmark, copied beside the page."""
    PLOTS.mkdir(exist_ok=True)
    kept = []
    for picture in sorted(report.FOLDER.glob(f"{name}*.png")):
        kept.append(Path(shutil.copy(picture, PLOTS / picture.name)))
    return kept


if __name__ == "__main__":
    print(write(list(ABOUT)))
