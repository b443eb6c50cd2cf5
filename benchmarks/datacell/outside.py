"""Peers in processes of their own: Flink in a virtualenv made on demand, and plain Spark."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from shutil import which

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import installed
from benchmarks.datacell.series import Answers
from headwater.kernel.java import find_java, spark_java_home

HERE = Path(__file__).parent
FLINK = "apache-flink==2.3.0"  # its pins conflict with ours: it gets a virtualenv of its own
RUN_TIMEOUT_S = 900


@dataclass(frozen=True)
class Rate:
    """What a peer reached."""

    rows_per_s: float
    answers: Answers
    note: str = ""  # what our engine says about the query's mode


def flink(rows: int, per_second: int, groups: int, bound: int, seconds: int, install: bool) -> Rate:
    """Flink's HOP; Missing if it is not installed, or cannot be."""
    python = installed.python_of(FLINK, install=install, size="850 MB")
    arguments = [str(n) for n in (rows, per_second, groups, bound, seconds)]
    return _run([str(python), str(HERE / "flink_hop.py"), *arguments], java_for_flink())


def java_for_flink() -> dict[str, str]:
    """Flink 2.3 runs on Java 11 to 21; a Java of the machine is preferred to the bundled 25."""
    if "JAVA_HOME" in os.environ or which("java") is not None:
        return dict(os.environ)
    return {**os.environ, "JAVA_HOME": str(spark_java_home(find_java({})))}


def structured_streaming(rows: pa.Table, bound: int, seconds: int) -> Rate:
    """Plain Structured Streaming over one Parquet file."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        (Path(folder) / "rows").mkdir()
        pq.write_table(rows, f"{folder}/rows/part.parquet")
        home = spark_java_home(find_java({}))
        arguments = [str(n) for n in (rows.num_rows, bound, seconds)]
        script = str(HERE / "plain_streaming.py")
        return _run(
            [sys.executable, script, str(Path(folder).resolve()), *arguments],
            {**os.environ, "JAVA_HOME": str(home)},
        )


def _run(command: list[str], environment: dict[str, str]) -> Rate:
    found = installed.answer_of(command, environment, RUN_TIMEOUT_S)
    answers = {int(instant): tuple(values) for instant, values in found["answers"].items()}
    return Rate(found["rows_per_s"], answers)
