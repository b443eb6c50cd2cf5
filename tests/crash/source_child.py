"""A process that feeds a table from files, one file in each micro-batch, and tells how many rows came."""

from __future__ import annotations

import sys
from pathlib import Path

import headwater
from tests.sources.feeding import status

TABLE = "CREATE STREAMING TABLE t (n INT, ts BIGINT NOT NULL) TIMESTAMP BY ts"
SOURCE = "WITH (max_files_per_trigger = 1, trigger = INTERVAL '1' MILLISECOND)"
PATIENCE_S = 600.0


def main(folder: str, incoming: str, last: int) -> None:
    """Until the source has delivered all files."""
    with headwater.connect(folder) as db:
        if not db.sql("SHOW SOURCES").rows():
            db.sql("SET block_age_s = 0.5")
            db.sql(TABLE)
            db.sql(f"CREATE SOURCE s INTO t FROM 'csv:{Path(incoming)}' {SOURCE}")
        told = -1
        while told < last:
            before = told

            def more(before: int = before) -> bool:
                now = status(db, "s")
                return now.row_count > before or now.state != "running"

            assert db._context.sources.wait_until(more, PATIENCE_S), "the source stands still"
            now = status(db, "s")
            assert now.state == "running", now.last_error
            told = now.row_count
            print(told, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
