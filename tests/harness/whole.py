"""One streaming table, one continuous query, one view and one join, before and after a restart.

The same steps run on any Spark: what they return is compared between two of them. As a program it runs
them on the master that it is told, and prints what came out and where Spark's tasks ran, as JSON.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import headwater
from headwater.kernel import spark
from tests.harness.patience import PATIENCE_S

TABLES = """
CREATE STREAMING TABLE readings (at BIGINT, sensor STRING, value INT) TIMESTAMP BY at;
CREATE TABLE sensors (sensor STRING, room STRING);
INSERT INTO sensors VALUES ('a', 'hall'), ('b', 'hall'), ('c', 'attic');
CREATE CONTINUOUS QUERY sums AS SELECT sensor, sum(value) AS total, count(*) AS n
  FROM readings [INTERVAL '10' SECOND BEFORE] r GROUP BY sensor SAMPLE INTERVAL '10' SECOND;
CREATE CONTINUOUS QUERY rooms AS SELECT s.room, max(r.value) AS highest
  FROM readings [INTERVAL '10' SECOND BEFORE] r JOIN sensors s ON r.sensor = s.sensor
  GROUP BY s.room SAMPLE INTERVAL '10' SECOND;
CREATE VIEW totals AS SELECT sensor, sum(value) AS total FROM readings GROUP BY sensor
"""
ROWS = 60
TWO_TASKS = "SELECT sum(id) FROM range(0, 1000, 1, 4)"  # as many at once as there are executors
SUBSCRIBE_S = 120.0
COUNTED_S = 60.0


def rows_from(start: int) -> list[tuple[int, str, int]]:
    """One reading in each second, of three sensors in turn."""
    return [(at, "abc"[at % 3], at * 7 % 50) for at in range(start, start + ROWS)]


def results(db: headwater.Database, query: str, after: str, count: int) -> list[Any]:
    """So many results of a query, each with its sorted rows; and the token of the last."""
    found: list[Any] = []
    for out in db.subscribe(query, after=after, timeout=SUBSCRIBE_S):
        found.append([out.time, sorted(map(list, out.rows())), out.token])
        if len(found) == count:
            break
    return found


def everything(db: headwater.Database, after: dict[str, str]) -> dict[str, Any]:
    """What the queries and the view say, and where a subscriber of each query stands."""
    db.flush()
    told = {name: results(db, name, after[name], 6) for name in ("sums", "rooms")}
    after.update({name: found[-1][2] for name, found in told.items()})
    seen: dict[str, Any] = {n: [part[:2] for part in found] for n, found in told.items()}
    seen["totals"] = sorted(map(list, db.sql("SELECT * FROM totals").rows()))
    seen["ranked"] = [list(row) for row in db.sql(RANKED).rows()]
    return seen


RANKED = """
SELECT s.room, r.sensor, count(*) AS n, rank() OVER (ORDER BY sum(r.value) DESC) AS place
FROM readings r JOIN sensors s ON r.sensor = s.sensor GROUP BY s.room, r.sensor ORDER BY place, 2
"""


def run(folder: Path, **options: Any) -> list[dict[str, Any]]:
    """All steps on a new folder: what was seen before the restart, and after it."""
    after = {"sums": "earliest", "rooms": "earliest"}
    with headwater.connect(folder, **options) as db:
        for statement in TABLES.split(";"):
            db.sql(statement)
        db.insert("readings", rows_from(1))
        db.advance("readings", ROWS)
        first = everything(db, after)
    with headwater.connect(folder, **options) as db:
        db.insert("readings", rows_from(ROWS + 1))
        db.advance("readings", 2 * ROWS)
        return [first, everything(db, after)]


def tasks() -> dict[str, int]:
    """How many tasks each executor of this process's Spark has completed, the driver too.

    Spark counts a little later than it answers: it is asked until every executor has some.
    """
    process = spark._process
    assert process is not None
    assert process.session is not None
    context = process.session.sparkContext
    address = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/executors"
    until = time.monotonic() + COUNTED_S
    while True:
        with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:
            found = {each["id"]: each["completedTasks"] for each in json.load(answer)}
        idle = [name for name, count in found.items() if not count and name != "driver"]
        if not idle or time.monotonic() > until:
            return found
        time.sleep(0.1)  # not a wait for progress: Spark does not say when it has counted


def main(folder: str, master: str, settings: str) -> None:
    """On a cluster."""
    options: dict[str, Any] = {"master": master, "settings": json.loads(settings)}
    seen = run(Path(folder), **options)
    with headwater.connect(folder, **options) as db:
        tiers = db.sql("SELECT name, tier FROM headwater.queries").rows()
        tiers += db.sql("SELECT name, tier FROM headwater.views").rows()
        db.sql(TWO_TASKS)
    print(json.dumps({"seen": seen, "tasks": tasks(), "tiers": dict(tiers)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
