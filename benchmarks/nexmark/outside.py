"""Flink and Pathway, each in a virtualenv and a process of its own: what a query reaches, what it answers."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from benchmarks import installed
from benchmarks.datacell.outside import FLINK, java_for_flink
from benchmarks.nexmark import data
from tests.harness.workloads.queries import read_queries

HERE = Path(__file__).parent
PATHWAY = "pathway==0.33.0"
PATHWAY_QUERIES = ("q0", "q1", "q2", "q3", "q4", "q8", "q12", "q17", "q18", "q20")
FEW = 50
RUN_TIMEOUT_S = 7200
Figures = dict[str, Any]


def flink(queries: Sequence[str], events: int, checked: int, install: bool) -> Figures:
    """By query, and of all that run together; Missing if Flink is not there."""
    python = installed.python_of(FLINK, install=install, size="850 MB")
    texts = {one.name: one.text for one in read_queries("flink", HERE)}
    work: Figures = {"queries": {name: [texts[name]] for name in queries}, "events": events}
    work |= {"checked": checked, "begin": data.BEGIN, "multipliers": data.MULTIPLIERS}
    work |= {"side": data.SIDE_ROWS, "names": data.NAMES, "cities": data.CITIES}
    work |= {"states": data.STATES, "channels": data.CHANNELS, "letters": data.LETTERS}
    work |= {"extra": data.EXTRA, "extras": data.EXTRAS}

    def run(work: Figures) -> Figures:
        command = [str(python), str(HERE / "flink_peer.py"), json.dumps(work)]
        return dict(installed.answer_of(command, java_for_flink(), RUN_TIMEOUT_S))

    return _alone_and_together(run, work)


def pathway(queries: Sequence[str], events: int, checked: int, install: bool) -> Figures:
    """The same of the queries that are written for Pathway."""
    python = installed.python_of(PATHWAY, install=install, size="700 MB")
    environment = {**os.environ, "PATHWAY_THREADS": str(os.cpu_count() or 1)}
    environment.pop("PYTHONPATH", None)

    def run(work: Figures) -> Figures:
        command = [str(python), str(HERE / "pathway_peer.py"), json.dumps(work)]
        return dict(installed.answer_of(command, environment, RUN_TIMEOUT_S))

    with tempfile.TemporaryDirectory(dir=".") as folder:
        for size, count in (("few", FEW), ("checked", checked), ("events", events)):
            _write(Path(folder) / size, count)
        names = [name for name in queries if name in PATHWAY_QUERIES]
        work: Figures = {"queries": {name: [name] for name in names}, "events": events}
        work |= {"checked": checked, "folder": str(Path(folder).resolve()), "columns": _columns()}
        return _alone_and_together(run, work)


def _alone_and_together(run: Any, work: Figures) -> Figures:
    """Each query, then all that ran, in one job."""
    found: Figures = run(work)
    able = [name for name, figures in found.items() if "missing" not in figures]
    texts = [work["queries"][name][0] for name in able]
    together = run({**work, "queries": {"together": texts}, "checked": 0}) if able else {}
    return {**found, **{name: {**f, "queries": able} for name, f in together.items()}}


def _columns() -> dict[str, dict[str, str]]:
    """Names and types of a CSV file."""
    return {
        name: {
            _name(field.name): "str" if pa.types.is_string(field.type) else "int"
            for field in rows.schema
        }
        for name, rows in data.chunk(0, FEW).items()
    }


def _name(column: str) -> str:
    return "id_" if column == "id" else column


def _write(folder: Path, events: int) -> None:
    """The events as CSV, times as microseconds."""
    folder.mkdir()
    for name, rows in data.chunk(0, events).items():
        columns: Mapping[str, Any] = {
            _name(c): pc.cast(rows.column(c), pa.int64())
            if pa.types.is_timestamp(rows.schema.field(c).type)
            else rows.column(c)
            for c in rows.column_names
        }
        pacsv.write_csv(pa.table(columns), folder / f"{name}.csv")


def as_table(rows: Sequence[Sequence[Any]], columns: int) -> pa.Table:
    """A peer's rows, one list each."""
    values = list(zip(*rows, strict=True)) if rows else [()] * columns
    return pa.table({str(n): pa.array(list(column)) for n, column in enumerate(values)})
