"""What becomes of statements, queries, views and sources when Spark's Java process is killed.

Each test has a process of its own: the Spark of the run is not disturbed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernel.test_spark_ends import NOTICED_S, run

pytestmark = pytest.mark.timeout(600)

STATEMENTS = """
db = headwater.connect(":memory:")
def plus(x: int) -> int:
    return x + 1
db.create_function("plus", plus, returns="BIGINT")
db.sql("CREATE FUNCTION twice(x BIGINT) RETURNS BIGINT RETURN x * 2")
db.sql("CREATE TABLE t AS SELECT id AS a FROM range(10)")
db.sql("CREATE TABLE none (a BIGINT)")
ask = "SELECT sum(plus(twice(a))) FROM t WHERE a NOT IN (SELECT a FROM none)"
found = {"first": db.sql(ask).rows(), "state": db.spark_status.state}
kill()
found["noticed"] = noticed()
found["ended"] = db.sql("SELECT state, last_end FROM headwater.spark").rows()
found["plain"] = db.sql("SELECT count(*) FROM t").rows()  # whether or not it needs Spark
found["second"] = db.sql(ask).rows()
db.sql("INSERT INTO t SELECT a + 10 FROM t")

# Under a statement, which had no effect yet and runs again.
slow = "SELECT count(*) FROM range(60000000) WHERE id * id % 7 = 9"
jobs = spark._process.session.sparkContext.statusTracker()
def kill_in_a_job():
    until(jobs.getActiveJobsIds)
    kill()
threading.Thread(target=kill_in_a_job).start()
found["insert"] = db.sql(f"INSERT INTO t {slow.replace('count(*)', '100 + count(*)')}").row_count
found["rows"] = db.sql("SELECT count(*), max(a) FROM t").rows()
found["restarts"] = db.sql("SELECT state, restarts FROM headwater.spark").rows()
db.close()
spark._process.session.stop()  # by a program that has no database open: nobody needs another
until(lambda: spark._process is None)
print(json.dumps(found))
"""


def test_statements_run_again_with_all_that_was_registered() -> None:
    found, errors = run(STATEMENTS)
    assert found["first"] == [[100]]
    assert found["state"] == "running"
    assert found["noticed"] < NOTICED_S
    assert found["ended"] == [["restarting", "exit code -9"]]
    assert found["plain"] == [[10]]
    assert found["second"] == [[100]]
    assert found["insert"] == 1
    assert found["rows"] == [[21, 100]]
    assert found["restarts"] == [["running", 2]]
    said = [line for line in errors.splitlines() if line.strip()]
    assert len([line for line in said if "Spark has ended (exit code -9)" in line]) == 2
    assert len([line for line in said if "Spark runs again" in line]) == 2
    assert "Traceback" not in errors


CONTINUOUS = """
from pathlib import Path
folder = Path(sys.argv[1])
incoming = folder / "incoming"
incoming.mkdir()
db = headwater.connect(folder / "data", settings={"engine_threads": 1})

def file(name, rows):
    (incoming / f".{name}").write_text("".join(f"{t},{v}\\n" for t, v in rows))
    (incoming / f".{name}").rename(incoming / name)

def counted():
    return db.sql("SELECT row_count FROM headwater.sources").rows()[0][0]

db.sql("CREATE STREAMING TABLE s (t BIGINT NOT NULL, v INT) TIMESTAMP BY t")
db.sql("CREATE STREAMING TABLE o (t BIGINT NOT NULL, v INT) TIMESTAMP BY t")
db.sql("CREATE SOURCE f INTO s FROM 'csv:" + str(incoming) + "'")
on_spark = "SELECT count(*) AS n, sum(v) AS s, max_by(v, hash(v)) AS m FROM s [INTERVAL 10 SECONDS BEFORE]"
db.sql(f"CREATE CONTINUOUS QUERY spark_q AS {on_spark} SAMPLE INTERVAL 10 SECONDS")
by_operators = "SELECT count(*) AS n FROM o [INTERVAL 10 SECONDS BEFORE]"
db.sql(f"CREATE CONTINUOUS QUERY here_q AS {by_operators} SAMPLE INTERVAL 10 SECONDS")
db.sql("CREATE VIEW v AS SELECT v % 3 AS k, count(*) AS n, max_by(v, hash(v)) AS m FROM s GROUP BY v % 3")
file("a.csv", [(t, t) for t in range(1, 101)])
until(lambda: counted() == 100)
db.advance("s", 100)
db.flush()
found = {"tier": db.sql("SELECT name, tier FROM headwater.queries ORDER BY name").rows()}
kill()
noticed()
# What needs no Spark goes on, though one engine thread has all the work.
db.insert("s", [(t, t) for t in range(101, 151)])
db.advance("s", 150)
db.insert("o", [(t, t) for t in range(1, 51)])
db.advance("o", 50)
until(lambda: db.sql("SELECT results FROM headwater.queries WHERE name = 'here_q'").rows() == [(5,)], 60.0)
found["while_away"] = db.spark_ready
file("b.csv", [(t, t) for t in range(151, 201)])
until(lambda: counted() == 150)
db.advance("s", 200)
db.flush()
kill()
file("c.csv", [(t, t) for t in range(201, 301)])
until(lambda: counted() == 250)
db.advance("s", 300)
db.flush()
found["states"] = db.sql("SELECT name, state, error FROM headwater.queries ORDER BY name").rows()
found["source"] = db.sql("SELECT state, last_error FROM headwater.sources").rows()
results = [out.rows() for out in db.subscribe("spark_q", after="earliest", timeout=0.2)]
found["results"] = [[row[:2] for row in rows] for rows in results]
found["stored"] = db.sql("SELECT count(*), count(DISTINCT t), sum(v) FROM s").rows()
found["view"] = db.sql("SELECT k, n FROM v ORDER BY k").rows()
db.close()
print(json.dumps(found, default=str))
"""


def test_continuous_work_goes_on_and_nothing_is_doubled(tmp_path: Path) -> None:
    found, _ = run(CONTINUOUS, tmp_path)
    tiers = dict(found["tier"])
    assert "Spark" in tiers["spark_q"]
    assert tiers["here_q"] == "operators"
    assert found["while_away"] is False
    assert [state for _, state, _ in found["states"]] == ["running", "running"]
    assert [error for _, _, error in found["states"]] == [None, None]
    assert found["source"] == [["running", None]]
    assert found["stored"] == [[300, 300, sum(range(1, 301))]]
    assert found["view"] == [[0, 100], [1, 100], [2, 100]]
    expected = [
        [[len(window), sum(window)]]
        for end in range(10, 301, 10)
        for window in [range(max(end - 10, 1), end)]
    ]
    assert found["results"] == expected


GIVEN_UP = """
db = headwater.connect(":memory:", settings={"spark_restarts": 1})
db.sql("SELECT sum(id) FROM range(10)")
spark._process.session.stop()  # somebody stops the context, the Java process lives on
found = {"noticed": noticed()}
found["stopped"] = db.sql("SELECT sum(id) FROM range(10)").rows()
db.sql("SET spark_restarts = 0")
kill()
noticed()
try:
    db.sql("SELECT sum(id) FROM range(10)")
except headwater.Error as error:
    found["error"] = [error.sqlstate, error.message, error.detail]
found["state"] = db.spark_status.state
db.close()
with headwater.connect(":memory:") as db:  # another database begins anew
    found["other"] = db.sql("SELECT sum(id) FROM range(10)").rows()
print(json.dumps(found))
"""


@pytest.mark.large
def test_a_context_that_is_stopped_and_the_end_of_restarts() -> None:
    found, _ = run(GIVEN_UP)
    assert found["noticed"] < NOTICED_S
    assert found["stopped"] == [[45]]
    assert found["error"] == ["58000", "Spark has ended", "exit code -9"]
    assert found["state"] == "ended"
    assert found["other"] == [[45]]
