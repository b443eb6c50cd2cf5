"""A program with a Spark session of its own: it is used, and nothing of it is changed or stopped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

TIMEOUT_S = 570.0  # on a machine where much else runs
pytestmark = pytest.mark.timeout(600)

PROGRAM = """
import faulthandler, json, os, sys, time, psutil
faulthandler.dump_traceback_later(250, exit=True)
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local[2]").appName("mine")
    .config("spark.ui.enabled", "false")
    .config("spark.driver.memory", "1g")
    .config("spark.sql.session.timeZone", "America/New_York")
    .config("spark.sql.ansi.enabled", "false")
    .config("spark.sql.shuffle.partitions", "7")
    .getOrCreate()
)
context = spark.sparkContext
spark.createDataFrame([(1, "a"), (2, "b")], "x INT, y STRING").createOrReplaceTempView("t")
spark.udf.register("f", lambda x: x * 100, "INT")
context.setJobGroup("mine", "my jobs")

def look():
    # What the program sees of its session.
    return {
        "conf": sorted(spark.conf.getAll.items()),
        "context": sorted(context.getConf().getAll()),
        "active": SparkSession.getActiveSession() is spark,
        "made": SparkSession.builder.getOrCreate() is spark,
        "rows": [list(map(str, row)) for row in spark.sql(
            "SELECT x, y, f(x), CAST('z' AS INT), timestamp '2024-01-01 00:00:00', 1 / 0 FROM t"
        ).collect()],
        "partitions": spark.range(10).groupBy("id").count().rdd.getNumPartitions(),
        "zone": spark.sql("SELECT current_timezone()").first()[0],
        "group": context.getLocalProperty("spark.jobGroup.id"),
        "tags": sorted(context.getJobTags()),
        "views": sorted(t.name for t in spark.catalog.listTables()),
        "stopped": context._jsc is None,
    }

def javas():
    return len([c for c in psutil.Process().children(recursive=True) if "java" in c.name()])

def until(condition):
    end = time.monotonic() + 120  # seconds
    while not condition():
        assert time.monotonic() < end, db.sql("SELECT * FROM headwater.sources").rows()
        time.sleep(0.01)  # not a wait for progress: a state of Spark's, which tells nobody

import headwater
found = {"before": look()}
db = headwater.connect(":memory:", **({"spark": spark} if sys.argv[1] == "given" else {}))
db.sql("CREATE TABLE t (a INT, b TIMESTAMP)")
db.sql("CREATE TABLE nothing (a INT)")
db.sql("INSERT INTO t VALUES (7, TIMESTAMP '2024-01-01 00:00:00')")
db.create_function("f", lambda x: x, returns="INT")
found["ours"] = [list(map(str, row)) for row in db.sql(
    "SELECT a, current_timezone(), unix_timestamp(b) FROM t WHERE a NOT IN (SELECT a FROM nothing)").rows()]
try:
    db.sql("SELECT CAST(concat('z', a) AS INT) FROM t")
except headwater.Error as error:
    found["ansi"] = error.sqlstate
db.sql("CREATE STREAMING TABLE s (value BIGINT, timestamp TIMESTAMP) TIMESTAMP BY timestamp")
db.sql("CREATE SOURCE r INTO s FROM 'spark:rate' WITH (rows_per_second = 20)")
until(lambda: db.sql("SELECT row_count FROM headwater.sources").rows()[0][0])
found["during"] = look()
found["javas"] = javas()
try:
    headwater.connect(":memory:", master="local[1]")
except headwater.Error as error:
    found["master"] = error.sqlstate
db.close()
found["after"] = look()

with headwater.connect(":memory:") as db:
    db.sql("SELECT sum(id) FROM range(10)")
    spark.stop()
    until(lambda: not db.spark_ready)
    found["state"] = db.spark_status.state
    try:
        db.sql("SELECT sum(id) FROM range(10)")
    except headwater.Error as error:
        found["gone"] = error.message
    found["javas_after"] = javas()
    other = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    found["next"] = db.sql("SELECT sum(id) FROM range(10)").rows()
    found["next_is_theirs"] = not other.sparkContext._jsc is None and javas() == 1
print(json.dumps(found))
"""


def run(how: str) -> dict[str, Any]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYSPARK_GATEWAY")}
    from headwater.kernel.java import find_java, spark_java_home

    environment["PYSPARK_PYTHON"] = sys.executable
    environment["JAVA_HOME"] = str(
        spark_java_home(find_java())
    )  # the program's own Spark needs one
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def check(found: dict[str, Any]) -> None:
    before = found["before"]
    assert before["active"]
    assert before["made"]
    assert before["zone"] == "America/New_York"
    assert before["rows"][0][:4] == ["1", "a", "100", "None"]
    assert found["during"] == before
    assert found["after"] == before
    assert found["ours"] == [["7", "UTC", "1704067200"]]
    assert found["ansi"] == "22018"
    assert found["javas"] == 1
    assert found["master"] == "55006"
    assert found["state"] == "ended"
    assert found["gone"] == "the Spark session of the program has ended"
    assert found["javas_after"] == 1  # PySpark keeps its Java process; none of ours was started
    assert found["next"] == [[45]]
    assert found["next_is_theirs"]


def test_a_session_that_is_there_is_used_and_left_as_it_is() -> None:
    check(run("found"))


@pytest.mark.large
def test_a_session_that_is_given_is_used_and_left_as_it_is() -> None:
    check(run("given"))
