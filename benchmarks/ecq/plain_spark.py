"""Run as a process of its own: plain Spark SQL over each chunk as a Parquet file.

Reads `work.json` in its folder (the text, the names of the files, how many chunks); writes each result
as an Arrow file and prints the milliseconds of every chunk as one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any


def main(folder: str) -> None:
    """The query once per chunk, from reading the file's schema to the rows in this process."""
    from pyspark.sql import SparkSession

    work = json.loads(Path(folder, "work.json").read_text())
    builder: Any = SparkSession.builder
    spark = (
        builder.master("local[2]")
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.ui.enabled", False)
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        .config("spark.driver.memory", "4g")
        .getOrCreate()
    )
    spark.read.parquet(f"{folder}/hosts.parquet").createOrReplaceTempView("hosts")
    times = []
    for number in range(work["chunks"]):
        started = time.perf_counter()
        for name in work["streams"]:
            path = f"{folder}/{name}-{number}.parquet"
            spark.read.parquet(path).createOrReplaceTempView(name)
        found = spark.sql(work["text"]).toArrow()
        times.append((time.perf_counter() - started) * 1000)
        keep(found, f"{folder}/result-{number}.arrow")
    print(json.dumps(times))
    spark.stop()


def keep(rows: Any, path: str) -> None:
    """Writes an Arrow file."""
    import pyarrow as pa

    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)


if __name__ == "__main__":
    main(sys.argv[1])
