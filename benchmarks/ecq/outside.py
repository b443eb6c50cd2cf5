"""Plain Spark SQL over Parquet files, started as a process of its own."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.datacell.outside import RUN_TIMEOUT_S
from benchmarks.datacell.series import Series
from benchmarks.ecq.data import chunk, end_of, hosts
from benchmarks.ecq.ours import Work
from benchmarks.installed import answer_of
from headwater.kernel.java import find_java, spark_java_home

SCRIPT = Path(__file__).with_name("plain_spark.py")


def plain_spark(work: Work) -> Series:
    """The files are there before it starts: only reading and the query are counted."""
    query = work.query
    with tempfile.TemporaryDirectory(dir=".") as folder:
        here = Path(folder).resolve()
        pq.write_table(hosts(), here / "hosts.parquet")
        for number in work.numbers():
            for name, rows in chunk(number, work.size).items():
                if name in query.streams:
                    pq.write_table(rows, here / f"{name}-{number}.parquet")
        asked = {"text": query.one_time(), "streams": query.streams, "chunks": len(work.numbers())}
        (here / "work.json").write_text(json.dumps(asked))
        times = _run(here)
        series = Series()
        for number in work.numbers():
            rows = pa.ipc.open_file(here / f"result-{number}.arrow").read_all()
            series.answers[end_of(number)] = query.answer(rows)
            if number >= work.warm_up:
                series.add(times[number] / 1000, times[number] / 1000)
    return series


def _run(folder: Path) -> list[float]:
    environment = {**os.environ, "JAVA_HOME": str(spark_java_home(find_java({})))}
    command = [sys.executable, str(SCRIPT), str(folder)]
    times: list[float] = answer_of(command, environment, RUN_TIMEOUT_S)
    return times
