"""A process that feeds a stream under a long folded window, and dies at a given step of letting rows go.

    python -m tests.crash.window_child FOLDER STEP COUNT

STEP names a call; the process ends by SIGKILL right before its COUNT-th, or with `after ` before it, right
after. It inserts from where the stream stands and answers what it can until then.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import headwater
from headwater.engine.snapshots import SnapshotFile
from headwater.storage.streaming.stored import StoredTable

LAST_SECOND = 400
WINDOW = 300
QUERY = (
    f"CREATE CONTINUOUS QUERY q AS SELECT k, count(*) n, sum(v) t, max(v) m FROM s "
    f"[INTERVAL {WINDOW} SECONDS] GROUP BY k SAMPLE INTERVAL 20 SECONDS"
)
SETTINGS = {"eager_spark": False, "removed_files_kept_s": 0}
STEPS = {
    "prepare": (SnapshotFile, "prepare"),  # a snapshot is written beside the old one
    "put": (SnapshotFile, "put"),  # it takes the old one's place
    "keep_from": (StoredTable, "keep_from"),  # the stream is told what nobody needs
    "drop": (StoredTable, "_drop_below"),  # blocks of it go
}


def rows_at(second: int) -> list[tuple[int, str, int]]:
    """The rows of one second, the same in every process."""
    return [
        (second, "abc"[(second * 7 + n) % 3], (second * 31 + n) % 17) for n in range(second % 4)
    ]


def open_database(folder: Path) -> headwater.Database:
    """The database, with its stream and query."""
    db = headwater.connect(folder, settings=SETTINGS)
    db.sql("CREATE STREAM IF NOT EXISTS s (ts INT, k STRING, v INT) TIMESTAMP BY ts")
    db.sql(QUERY.replace("QUERY q", "QUERY IF NOT EXISTS q"))
    return db


def feed(db: headwater.Database, last: int = LAST_SECOND) -> None:
    """All rows; a batch id makes a repeated second harmless."""
    for second in range(last):
        db.insert("s", rows_at(second), batch_id=f"second {second}")
        if second % 20 == 5:
            db.flush()
            let_go(db)
    db.advance("s", last)
    db.flush()


def let_go(db: headwater.Database) -> None:
    """What upkeep does now and then: a snapshot, blocks, and the end of what nobody needs.

    The engine does it in the thread that fires the query: here nothing may be under way with it, no early
    fold of an open chunk either, which the flush before this one found and did not wait for.
    """
    db.flush()
    engine, table = db._context.engine, db._context.stream("s")
    query = engine.find("q")
    assert query is not None
    assert table is not None
    query.put_away()
    engine.let_go_of(table)
    db._context.streams.seal_all()
    table.expire()


def die_at(step: str, count: int) -> None:
    """Has the process killed at a call."""
    place, name = STEPS[step.removeprefix("after ")]
    real: Callable[..., Any] = getattr(place, name)
    calls = [0]

    def counted(*given: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == count and not step.startswith("after "):
            os.kill(os.getpid(), signal.SIGKILL)
        found = real(*given, **named)
        if calls[0] == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(place, name, counted)


if __name__ == "__main__":
    die_at(sys.argv[2], int(sys.argv[3]))
    feed(open_database(Path(sys.argv[1])))
