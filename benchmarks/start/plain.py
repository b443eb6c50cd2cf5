"""One cold start of plain PySpark on the same Parquet files, in a process of its own."""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

began, folder = float(sys.argv[1]), Path(sys.argv[2])
QUERY = "SELECT d.name, sum(f.v) AS v FROM f JOIN d ON f.k = d.k GROUP BY d.name ORDER BY d.name"

spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
for name in ("f", "d"):
    files = [str(p) for p in (folder / "tables").glob(f"{name}-*/*.parquet")]
    spark.read.parquet(*files).createOrReplaceTempView(name)
rows = [list(row) for row in spark.sql(QUERY).collect()]
print(json.dumps({"seconds": time.time() - began, "rows": rows}))
