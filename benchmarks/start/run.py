"""B12: cold start beside plain PySpark, with the bundled Java and with a system Java.

Target: to the first result of a join and grouping ≤ 0.6 × plain PySpark with the bundled Java 25,
≤ 1.05 × with a system Java 17; to the first acknowledged insert ≤ 1 s.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import headwater
from benchmarks import report
from benchmarks.targets import Target
from headwater.kernel import aot
from headwater.kernel.java import find_java, spark_java_home
from headwater.kernel.spark_settings import default_memory_mb

HERE = Path(__file__).parent
BUNDLED, SYSTEM = 0.6, 1.05  # of plain PySpark


def main(quick: bool) -> int:
    """Measures, prints and keeps the figures; 1 if an answer was wrong."""
    runs = 3 if quick else 7
    bundled = find_java({})
    print("making the class cache (once) …", flush=True)
    aot.train(bundled, default_memory_mb())
    with tempfile.TemporaryDirectory() as folder:
        _fill(folder)
        cases = {"bundled Java": (_environment(None), _environment(spark_java_home(bundled)))}
        system = shutil.which("java")
        if system is not None:
            home = _environment(Path(system).resolve().parent.parent)
            cases["system Java"] = (home, home)
        figures = {name: _case(folder, runs, *envs) for name, envs in cases.items()}
    return _tell(figures, quick)


def _environment(java_home: Path | None) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if k != "JAVA_HOME"}
    return env if java_home is None else {**env, "JAVA_HOME": str(java_home)}


def _fill(folder: str) -> None:
    with headwater.connect(folder) as db:
        db.sql("CREATE TABLE f (k INT, v BIGINT); CREATE TABLE d (k INT, name STRING)")
        db.insert("f", [(i % 10, i) for i in range(10_000)])
        db.insert("d", [(i, f"name {i}") for i in range(10)])


def _case(folder: str, runs: int, ours: dict[str, str], plain: dict[str, str]) -> dict[str, Any]:
    """Runs in turn, so that both meet the same weather; the first of each is not counted."""
    query: list[float] = []
    peer: list[float] = []
    insert: list[float] = []
    same = True
    for number in range(runs + 1):
        mine = _start("ours.py", ours, folder, "query")
        other = _start("plain.py", plain, folder)
        insert_only = _start("ours.py", ours, folder, "insert")
        same &= number > 0 or mine["rows"] == other["rows"]
        if number:
            query.append(mine["seconds"])
            peer.append(other["seconds"])
            insert.append(insert_only["seconds"])
    return {
        "first_result": report.spread(query),
        "plain_pyspark": report.spread(peer),
        "first_insert": report.spread(insert),
        "ratio": report.spread(query)["median"] / report.spread(peer)["median"],
        "answers_equal": same,
    }


def _start(script: str, env: dict[str, str], *arguments: str) -> dict[str, Any]:
    command = [sys.executable, str(HERE / script), str(time.time()), *arguments]
    run = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    if run.returncode:
        raise RuntimeError(run.stderr[-2000:])
    found: dict[str, Any] = json.loads(run.stdout.strip().splitlines()[-1])
    return found


def _targets(figures: dict[str, dict[str, Any]]) -> Iterator[Target]:
    for name, f in figures.items():
        bound = BUNDLED if name == "bundled Java" else SYSTEM
        yield Target(f"B12 {name}: first result / plain PySpark", f["ratio"], bound, False)
        insert = f["first_insert"]["median"]
        yield Target(f"B12 {name}: seconds to the first insert", insert, 1.0, False)


def _tell(figures: dict[str, dict[str, Any]], quick: bool) -> int:
    rows = []
    for name, f in figures.items():
        rows.append(
            (
                name,
                f"{f['first_result']['median']:.2f} s",
                f"{f['plain_pyspark']['median']:.2f} s",
                f"{f['ratio']:.2f}",
                f"{f['first_insert']['median']:.2f} s (worst {f['first_insert']['worst']:.2f})",
            )
        )
    columns = ("start with", "first result", "plain PySpark", "ratio", "first insert")
    report.table("B12 cold start (medians; process start included)", columns, rows)
    reached = [target.row() for target in _targets(figures)]
    report.table("targets", ("target", "reached", "bound", ""), reached)
    kept = report.keep("start", {"quick": quick, "cases": figures, "targets": reached})
    print(f"\nkept in {kept}")
    return 0 if all(f["answers_equal"] for f in figures.values()) else 1
