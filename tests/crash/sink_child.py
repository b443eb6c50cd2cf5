"""A process that feeds a table whose query a sink writes to files; somebody kills it.

    python -m tests.crash.sink_child FOLDER OUT

It prints how many rows the sink has written, whenever there are more, and ends when all are.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import headwater
from tests.harness.patience import PATIENCE_S

LAST = 120
RESULTS = LAST + 1  # one at each second, the first row's own among them
SETTINGS = {"eager_spark": False}


def run(folder: Path, out: Path) -> None:
    """Feeds instant after instant, from the first: a batch id makes a repeated one harmless."""
    with headwater.connect(folder, settings=SETTINGS) as db:
        db.sql("CREATE STREAMING TABLE IF NOT EXISTS s (ts INT, v INT) TIMESTAMP BY ts")
        db.sql(
            "CREATE CONTINUOUS QUERY IF NOT EXISTS q AS SELECT sum(v) AS v"
            " FROM s [INTERVAL 1 SECOND BEFORE] SAMPLE INTERVAL 1 SECOND"
        )
        options = "WITH (interval = INTERVAL '0' SECONDS, batch_rows = 1)"
        db.sql(f"CREATE SINK IF NOT EXISTS k FROM q INTO 'json:{out}' {options}")
        feeder = threading.Thread(target=feed, args=[db])
        feeder.start()
        written = 0
        while written < RESULTS:
            written = more_than(db, written)
            print(written, flush=True)
        feeder.join()


def feed(db: headwater.Database) -> None:
    """All rows, one second after the other."""
    for second in range(LAST + 1):
        db.insert("s", [(second, second * 3)], batch_id=f"second {second}")


def more_than(db: headwater.Database, count: int) -> int:
    """Waits until the sink has written more rows; how many."""
    sinks = db._context.sinks
    assert sinks.wait_until(lambda: sinks.statuses()[0].row_count > count, PATIENCE_S)
    return sinks.statuses()[0].row_count


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[2]))
