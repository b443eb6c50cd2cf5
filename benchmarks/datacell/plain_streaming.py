"""Run as a process of its own: Q1 in plain Structured Streaming. Prints one line of JSON.

Spark's sliding `window()` copies every row into every window that it lies in, so only few rows are
given to it. All of them come in one micro-batch, which is the best case, and what a run over rows of
which none pass takes is not counted.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

SCHEMA = "x1 INT, x2 INT, t BIGINT"
NONE_PASS = 1 << 30


def main(folder: str, rows: int, bound: int, seconds: int) -> None:
    """A warm-up and a run over rows of which none pass, then one where some do."""
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    spark = (
        builder.master("local[2]")
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.ui.enabled", False)
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        .config("spark.driver.memory", "4g")
        .getOrCreate()
    )
    sliding(spark, folder, NONE_PASS, seconds, "warm")
    empty, _ = sliding(spark, folder, NONE_PASS, seconds, "empty")
    elapsed, answers = sliding(spark, folder, bound, seconds, "run")
    work = elapsed - empty if elapsed > empty else elapsed
    print(json.dumps({"rows_per_s": rows / work, "answers": answers}))
    spark.stop()


def sliding(
    spark: Any, folder: str, bound: int, seconds: int, name: str
) -> tuple[float, dict[int, list[int]]]:
    """Seconds from start to end, and what each window held."""
    from pyspark.sql import functions as f

    answers: dict[int, list[int]] = {}

    def keep(batch: Any, _: int) -> None:
        sums = batch.groupBy("window").agg(
            f.count("*"), f.sum("total"), f.sum(f.col("x1") * f.col("total"))
        )
        ended = sums.select(f.unix_timestamp("window.end"), *sums.columns[1:])
        answers.update({row[0]: list(row[1:]) for row in ended.collect()})

    stream = spark.readStream.schema(SCHEMA).parquet(f"{folder}/rows")
    window = f.window(f.timestamp_seconds("t"), f"{seconds} seconds", "1 second")
    grouped = stream.where(f.col("x1") > bound).groupBy(window.alias("window"), "x1")
    query = grouped.agg(f.sum("x2").alias("total")).writeStream.outputMode("complete")
    query = query.option("checkpointLocation", f"{folder}/{name}").foreachBatch(keep)
    started = time.perf_counter()
    query.trigger(availableNow=True).start().awaitTermination()
    return time.perf_counter() - started, answers


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
