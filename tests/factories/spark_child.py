"""A program as a user writes it, with default settings, and Spark's event log switched on.

Prints, as JSON: where each query and view lives, what the hosts did before and after rows came, when
that was, and what came of it.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import headwater

PATIENCE_S = 120.0
ROOT = Path(__file__).parents[2]

TABLES = (
    "CREATE TABLE vans (van INT NOT NULL, depot STRING)",
    "INSERT INTO vans VALUES (1, 'north'), (2, 'south')",
    "CREATE STREAMING TABLE reports (van INT, speed INT, at INT NOT NULL) TIMESTAMP BY at UPDATE KEY (van)",
    "CREATE STREAM calls (van INT, at INT NOT NULL) TIMESTAMP BY at",
)
# What a reader of the docs finds, by the words of docs/internals/spark.md.
QUERIES = {
    "window query": "CREATE CONTINUOUS QUERY pace AS SELECT depot, avg(speed) AS speed FROM reports"
    " [INTERVAL '30' SECOND BEFORE] JOIN vans USING (van) GROUP BY depot SAMPLE INTERVAL '10' SECOND",
    "materialized view": "CREATE MATERIALIZED VIEW slow AS SELECT van, min(speed) AS speed FROM reports"
    " [ROWS 20] GROUP BY van SAMPLE INTERVAL '10' SECOND",
    "epoch join": "CREATE CONTINUOUS QUERY asked AS SELECT r.van, count(*) AS n FROM reports CUT ON at BY"
    " INTERVAL '10' SECOND r JOIN calls CUT ON at BY INTERVAL '10' SECOND c ON r.van = c.van GROUP BY r.van",
    "update query": "CREATE CONTINUOUS QUERY newest AS SELECT van, speed FROM reports WITH UPDATES",
    "view": "CREATE VIEW rounds AS SELECT van, count(*) AS n, max(speed) AS top FROM reports GROUP BY van",
}


def numbers(db: headwater.Database) -> dict[str, int]:
    """What each host has done."""
    return {
        name: value
        for name, value in db.sql("SELECT name, value FROM headwater.metrics").rows()
        if name.startswith(("here.", "factory."))
    }


def hosts(db: headwater.Database) -> dict[str, str]:
    """Where each query and view lives."""
    queries = db.sql("SELECT name, host FROM headwater.queries").rows()
    views = db.sql("SELECT name, host FROM headwater.views").rows()
    return dict([*queries, *views])


def feed(db: headwater.Database, first: int, end: int) -> None:
    """Rows of some seconds."""
    for second in range(first, end):
        db.insert("reports", [(1 + second % 2, second % 90, second)])
        db.insert("calls", [(1, second)])
    db.flush()


def scripts() -> dict[str, list[str]]:
    """What a user sees first: the example of the README, and the statements of the demo."""
    example = re.search(r"^```sql\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    assert example is not None
    demo = sorted((ROOT / "examples" / "linearroad").glob("*.sql"))
    return {"README": [example[1]], "demo": [path.read_text() for path in demo]}


def settled_hosts(db: headwater.Database) -> dict[str, str]:
    """Where each query and view lives, once Spark runs."""
    db.sql("SELECT sum(id) FROM range(10)")
    assert db._factories.settle(PATIENCE_S)
    return hosts(db)


def milliseconds() -> int:
    """Now, as Spark's events have it."""
    return time.time_ns() // 1_000_000


def main(log: str) -> None:
    """Runs everything."""
    settings = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": log}
    settings |= {"spark.eventLog.rolling.enabled": "false", "spark.eventLog.compress": "false"}
    with headwater.connect(":memory:", settings=settings) as db:
        for statement in (*TABLES, *QUERIES.values()):
            db.sql(statement)
        said: dict[str, Any] = {"hosts": settled_hosts(db)}
        before, began = numbers(db), milliseconds()
        feed(db, 0, 100)
        said["fed"] = [began, milliseconds()]
        said |= {"before": before, "after": numbers(db)}
        said["rounds"] = sorted(db.sql("SELECT van, n FROM rounds").rows())
        said["pace"] = len(list(db.subscribe("pace", after="earliest", timeout=0.1)))
        said["newest"] = sorted(db.sql("SELECT van, speed FROM newest").rows())
        said["asked"] = len(list(db.subscribe("asked", after="earliest", timeout=0.1)))
    said["scripts"] = {}
    for name, texts in scripts().items():
        with headwater.connect(":memory:", settings=settings) as db:
            for text in texts:
                db.sql(text)
            said["scripts"][name] = settled_hosts(db)
    print(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1])
