"""A process that feeds a table, follows a query, and writes down what it got; somebody kills it.

    python -m tests.crash.query_child FOLDER LOG SECONDS

Each line of the log is a token, an instant and the result's rows. The next process goes on with the token
of the last whole line.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

import headwater

LAST_SECOND = 400
VIEW = (
    "CREATE MATERIALIZED VIEW m AS SELECT k, count(*) n, sum(v) t FROM s [INTERVAL 4 SECONDS]"
    " GROUP BY k SAMPLE INTERVAL 2 SECONDS"
)
QUERY = (
    "CREATE CONTINUOUS QUERY q AS SELECT k, sum(n) n, max(t) t FROM m [INTERVAL 6 SECONDS BEFORE]"
    " GROUP BY k SAMPLE INTERVAL 3 SECONDS"
)
SETTINGS = {"snapshot_s": 0.1, "block_age_s": 0.2, "eager_spark": False}


def rows_at(second: int) -> list[tuple[int, str, int]]:
    """The rows of one second, the same in every process."""
    return [
        (second, "abc"[(second * 7 + n) % 3], (second * 31 + n) % 17) for n in range(second % 4)
    ]


def open_database(folder: Path) -> headwater.Database:
    """The database, with its table and queries."""
    db = headwater.connect(folder, settings=SETTINGS)
    db.sql("CREATE STREAMING TABLE IF NOT EXISTS s (ts INT, k STRING, v INT) TIMESTAMP BY ts")
    db.sql(VIEW.replace("VIEW m", "VIEW IF NOT EXISTS m"))
    db.sql(QUERY.replace("QUERY q", "QUERY IF NOT EXISTS q"))
    return db


def feed(db: headwater.Database) -> None:
    """Rows from where the table stands; a batch id makes a repeated second harmless."""
    for second in range(LAST_SECOND):
        db.insert("s", rows_at(second), batch_id=f"second {second}")
    db.advance("s", LAST_SECOND)


def lines_of(log: Path) -> list[dict[str, object]]:
    """The whole lines of a log."""
    text = log.read_text() if log.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def main(folder: str, log: str, seconds: str) -> None:
    """Feeds and follows until nothing comes for so many seconds."""
    follow(open_database(Path(folder)), Path(log), seconds)


def follow(db: headwater.Database, path: Path, seconds: str) -> None:
    """Feeds table s, and writes down the results of query q after those that the log has."""
    kept = lines_of(path)
    path.write_text("".join(json.dumps(line) + "\n" for line in kept))
    after = str(kept[-1]["token"]) if kept else "earliest"
    threading.Thread(target=feed, args=(db,), daemon=True).start()
    with path.open("a") as file:
        for out in db.subscribe("q", after=after, timeout=float(seconds)):
            line = {"token": out.token, "time": out.time, "rows": sorted(out.rows())}
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
    db.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
