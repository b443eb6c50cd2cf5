"""A process that feeds a table, follows a query, and writes down what it got; somebody kills it.

    python -m tests.crash.query_child FOLDER LOG LAST

It feeds the rows before second LAST. Each line of the log is a token, an instant and the result's rows. The
next process goes on with the token of the last whole line; one that has written the last result ends.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

import headwater
from tests.harness.patience import PATIENCE_S

LAST_SECOND = 400
EVERY = 3  # seconds between two results
RESULTS = LAST_SECOND // EVERY
VIEW = (
    "CREATE MATERIALIZED VIEW m AS SELECT k, count(*) n, sum(v) t FROM s [INTERVAL 4 SECONDS]"
    " GROUP BY k SAMPLE INTERVAL 2 SECONDS"
)
QUERY = (
    "CREATE CONTINUOUS QUERY q AS SELECT k, sum(n) n, max(t) t FROM m [INTERVAL 6 SECONDS BEFORE]"
    f" GROUP BY k SAMPLE INTERVAL {EVERY} SECONDS"
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


def feed(db: headwater.Database, last: int) -> None:
    """All rows before a second; a batch id makes a repeated second harmless."""
    for second in range(last):
        db.insert("s", rows_at(second), batch_id=f"second {second}")
    if last == LAST_SECOND:
        db.advance("s", last)


def lines_of(log: Path) -> list[dict[str, object]]:
    """The whole lines of a log."""
    text = log.read_text() if log.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def main(folder: str, log: str, last: str) -> None:
    """Feeds and follows."""
    follow(open_database(Path(folder)), Path(log), int(last))


def follow(db: headwater.Database, path: Path, last: int) -> None:
    """Feeds table s, and writes down the results of query q after those that the log has."""
    kept = lines_of(path)
    path.write_text("".join(json.dumps(line) + "\n" for line in kept))
    after = str(kept[-1]["token"]) if kept else "earliest"
    feeder = threading.Thread(target=feed, args=(db, last), daemon=True)
    feeder.start()
    with (
        path.open("a") as file,
        db.subscribe("q", after=after, timeout=PATIENCE_S) as results,
    ):
        for out in results:
            line = {"token": out.token, "time": out.time, "rows": sorted(out.rows())}
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
            if out.time == RESULTS * EVERY:
                break
    feeder.join()
    db.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
