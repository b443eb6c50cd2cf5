"""A process that fills a folder with every kind of file, says so and waits; somebody kills it or not.

    python -m tests.crash.damage_child FOLDER OLDER

In the middle, while nothing moves, the whole folder is copied to OLDER: the older copies of its files.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path

import headwater
from headwater.database import Database

SETTINGS = {
    "eager_spark": False,
    "block_age_s": 1e6,  # only what is asked for is sealed
    "snapshot_s": 0.2,
    "compact_files": 1000,
    "wal_segment_mb": 1,
    "recent_mb": 0,  # blocks are read from their files
}
BATCHES = 16  # of rows; the last two are sealed only by a close
HALF = 8
ROWS = 20

MADE = (
    "CREATE STREAMING TABLE s (t INT NOT NULL, k STRING, v DOUBLE) TIMESTAMP BY t",
    "CREATE INDEX i ON s (k)",
    "CREATE STREAM w (t INT NOT NULL, k STRING) TIMESTAMP BY t",
    "CREATE TABLE d (a INT, b STRING)",
    "CREATE VIEW n AS SELECT k, count(*) AS n, sum(v) AS v FROM s GROUP BY k",
    "CREATE VIEW o AS SELECT k, count(*) AS n FROM w GROUP BY k",
    "CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM s [INTERVAL 10 SECONDS BEFORE]"
    " SAMPLE INTERVAL 10 SECONDS",
    "CREATE USER ann PASSWORD 'a long password 1' ROLE ADMIN",
    "CREATE USER bob PASSWORD 'a long password 2' ROLE READER",
)
LATER = ("ALTER USER ann ROLE READER", "CREATE TABLE e (a INT)", "DROP USER bob")


def rows_of(batch: int) -> list[tuple[int, str, float]]:
    """The rows of a batch."""
    return [(batch * ROWS + n, f"k{(batch * 7 + n) % 5}", n / 4) for n in range(ROWS)]


def fill(db: Database, batches: range) -> None:
    """Adds rows everywhere; all but the newest two batches are sealed."""
    for batch in batches:
        db.insert("s", rows_of(batch), batch_id=f"s{batch}")
        db.insert("w", [row[:2] for row in rows_of(batch)], batch_id=f"w{batch}")
        if batch < BATCHES - 2:
            db.insert("d", [(batch, "x" * batch)], batch_id=f"d{batch}")
            db.flush()
            db.seal()
    db.flush()


def wait_for_snapshot(db: Database, folder: str, since: float) -> None:
    """Until the state of the views has been written after this time."""
    kept = Path(folder) / "snapshots"
    while not any(path.stat().st_mtime > since for path in kept.glob("*.snapshot")):
        db.flush()


def main(folder: str, older: str) -> None:
    """Fills the folder, and waits for a word."""
    with headwater.connect(folder, settings=SETTINGS) as db:
        for text in MADE:
            db.sql(text)
        fill(db, range(HALF))
        wait_for_snapshot(db, folder, 0.0)
        shutil.copytree(folder, older)
        for text in LATER:
            db.sql(text)
        began = time.time()
        fill(db, range(HALF, BATCHES))
        wait_for_snapshot(db, folder, began)
        print("ready", flush=True)
        sys.stdin.readline()
    print("closed", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main(*sys.argv[1:3])


def expected_rows() -> list[tuple[int, str, float]]:
    """All rows of table s."""
    return [row for batch in range(BATCHES) for row in rows_of(batch)]


def older_of(folder: Path, older: Path, path: Path) -> Path | None:
    """The older copy of a file, if there is one that differs."""
    copy = older / path.relative_to(folder)
    same = copy.is_file() and copy.read_bytes() == path.read_bytes()
    return copy if copy.is_file() and not same else None
