"""Run as a process of its own: the windows in plain Structured Streaming. Prints one line of JSON."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.streaming.work import SLIDE_S, Answers, measured, put


def main(folder: Path, overlaps: int, rows: int, slides: int, warm: int) -> None:
    """One file is one micro-batch; what is final is taken as Arrow, as a program would take it."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as f

    builder: Any = SparkSession.builder
    spark = (
        builder.master("local[2]")
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", False)
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        .config("spark.driver.memory", "2g")
        .getOrCreate()
    )
    (folder / "rows").mkdir()
    answers: Answers = {}

    def keep(batch: Any, _number: int) -> None:
        for end, count, total in zip(*batch.toArrow().to_pydict().values(), strict=True):
            known = answers.setdefault(int(end.timestamp()), [0, 0])
            answers[int(end.timestamp())] = [known[0] + count, known[1] + total]

    files = spark.readStream.schema("at TIMESTAMP, k INT, v INT").option("maxFilesPerTrigger", 1)
    window = f.window("at", f"{SLIDE_S * overlaps} seconds", f"{SLIDE_S} seconds")
    stream = files.parquet(f"{folder}/rows").withWatermark("at", "0 seconds")
    groups = stream.groupBy(window, "k").agg(f.count("*").alias("n"), f.sum("v").alias("total"))
    shown = groups.select(f.col("window.end").alias("end"), "n", "total")
    query = (
        shown.writeStream.outputMode("append")
        .option("checkpointLocation", f"{folder}/checkpoint")
        .foreachBatch(keep)
        .start()
    )

    def step(slide: int) -> None:
        put(folder / "rows", slide, rows)
        while sum(p["numInputRows"] > 0 for p in query.recentProgress) <= slide:
            time.sleep(0.002)

    found: dict[str, Any] = dict(measured(slides, warm, step))
    query.stop()
    print(json.dumps({**found, "answers": answers}))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
