"""A process that feeds a stream and follows a query whose functions keep state; somebody kills it.

python -m tests.crash.function_child FOLDER LOG LAST
"""

from __future__ import annotations

import sys
from pathlib import Path

import headwater
from tests.crash.query_child import SETTINGS, follow

QUERY = (
    "CREATE CONTINUOUS QUERY IF NOT EXISTS q AS SELECT _seq AS n, k, total(v) AS t, place() AS p"
    " FROM s CUT ON ts BY INTERVAL '3' SECOND KEEP 2 CHUNKS"
)


class Total:
    """Depends on all values so far and on their order."""

    def __init__(self) -> None:
        self.total = 0

    def __call__(self, value: int) -> int:
        self.total = (self.total * 31 + value) % 1_000_003
        return self.total


def place(state: dict[str, int]) -> int:
    """The number of the row in its chunk."""
    state["n"] = state.get("n", 0) + 1
    return state["n"]


def open_database(folder: Path) -> headwater.Database:
    """The database, with its stream, functions and query."""
    db = headwater.connect(folder, settings=SETTINGS)
    db.create_function("total", Total, returns="BIGINT", state="query")
    db.create_function("place", place, returns="BIGINT", state="chunk")
    db.sql("CREATE STREAM IF NOT EXISTS s (ts INT, k STRING, v INT) TIMESTAMP BY ts")
    db.sql(QUERY)
    return db


if __name__ == "__main__":
    follow(open_database(Path(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3]))
