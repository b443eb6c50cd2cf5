"""A process that feeds two streams, whose epochs go into materialized views; somebody kills it.

    python -m tests.crash.epoch_child FOLDER LOGS SECONDS

It follows both views by subscriptions, each with a log of its own: a line is a token, the number of the
epoch, its end and its rows. The next process goes on with the token of the last whole line.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

import headwater

LAST_SECOND = 150
CHUNK = 3  # seconds
ROWS = 4  # of a chunk by rows
SILENT = range(60, 90)  # seconds in which b has no rows and is carried by advances
DISORDER = 2
VIEWS = {
    "joined": "SELECT x.k, count(*) AS n, sum(x.v) AS v, max(y.w) AS w"
    f" FROM a CUT ON ts BY INTERVAL '{CHUNK}' SECOND x,"
    f" STREAM(b, 'CUT ON ts BY {CHUNK} SECS', 'BLOCK', 2) y WHERE x.k = y.k GROUP BY x.k",
    "counted": f"SELECT k, count(*) AS n, min(v) AS v FROM a CUT BY {ROWS} ROWS GROUP BY k",
}
SETTINGS = {"snapshot_s": 0.1, "block_age_s": 0.2, "eager_spark": False}


def rows_of(table: str, second: int) -> list[tuple[int, str | None, int]]:
    """What is inserted in one second, the same in every process; b's rows come out of order."""
    if table == "a":
        return [
            (second, ("x", "y", None)[(second * 7 + n) % 3], (second * 31 + n) % 17)
            for n in range(second % 4)
        ]
    if second in SILENT:
        return []
    times = [max(second - (second * 5 + n) % (DISORDER + 1), 0) for n in range(second % 3)]
    return [(t, "xyz"[(t + n) % 3], (second * 13 + n) % 11) for n, t in enumerate(times)]


def open_database(folder: Path) -> headwater.Database:
    """The database, with its streams and views."""
    db = headwater.connect(folder, settings=SETTINGS)
    db.sql("CREATE STREAM IF NOT EXISTS a (ts INT, k STRING, v INT) TIMESTAMP BY ts")
    db.sql(
        "CREATE STREAM IF NOT EXISTS b (ts INT, k STRING, w INT) TIMESTAMP BY ts"
        f" WATERMARK INTERVAL '{DISORDER}' SECOND"
    )
    for name, text in VIEWS.items():
        db.sql(f"CREATE MATERIALIZED VIEW IF NOT EXISTS {name} AS {text}")
    return db


def feed(db: headwater.Database) -> None:
    """All seconds again; a batch id makes a repeated one harmless."""
    for second in range(LAST_SECOND):
        for table in ("a", "b"):
            rows = rows_of(table, second)
            if rows:
                db.insert(table, rows, batch_id=f"second {second}")
        if second in SILENT:
            db.advance("b", second - DISORDER - 1)
    for table in ("a", "b"):
        db.advance(table, LAST_SECOND)


def lines_of(log: Path) -> list[dict[str, object]]:
    """The whole lines of a log."""
    text = log.read_text() if log.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def follow(db: headwater.Database, name: str, log: Path, seconds: float) -> None:
    """Writes down every result that comes, until none comes for so many seconds."""
    kept = lines_of(log)
    log.write_text("".join(json.dumps(line) + "\n" for line in kept))
    after = str(kept[-1]["token"]) if kept else "earliest"
    with log.open("a") as file:
        for out in db.subscribe(name, after=after, timeout=seconds):
            line = {"token": out.token, "epoch": out.epoch, "time": out.time, "rows": out.rows()}
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())


def main(folder: str, logs: str, seconds: str) -> None:
    """Feeds and follows until nothing comes for so many seconds."""
    db = open_database(Path(folder))
    threads = [
        threading.Thread(target=follow, args=(db, name, Path(logs) / name, float(seconds)))
        for name in VIEWS
    ]
    for thread in threads:
        thread.start()
    feed(db)
    for thread in threads:
        thread.join()
    db.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
