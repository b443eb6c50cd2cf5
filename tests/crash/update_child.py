"""A process that feeds a stream and follows an update query over it; somebody kills it.

python -m tests.crash.update_child FOLDER LOG LAST
"""

from __future__ import annotations

import sys
from pathlib import Path

import headwater
from tests.crash.query_child import SETTINGS, follow

QUERIES = {
    "q": "SELECT k, ts, v FROM s WHERE v > 0 WITH UPDATES",
    "every": "SELECT k, ts, v, _seq AS n FROM s WITH APPEND",
    "lazy": "SELECT k, count(*) AS n, sum(v) AS t FROM s [INTERVAL 4 SECONDS] GROUP BY k"
    " SAMPLE INTERVAL 2 SECONDS WITH UPDATES",
    "eager": "SELECT k, count(*) AS n, sum(v) AS t FROM s [INTERVAL 4 SECONDS] GROUP BY k"
    " SAMPLE INTERVAL 6 SECONDS WITH UPDATES WINDOWS EAGER",
    "of_view": "SELECT k, n, t FROM m WITH UPDATES",
}
VIEW = (
    "CREATE MATERIALIZED VIEW IF NOT EXISTS m UPDATE KEY (k) AS SELECT k, count(*) AS n, sum(v) AS t"
    " FROM s [INTERVAL 4 SECONDS] GROUP BY k SAMPLE INTERVAL 2 SECONDS"
)


def open_database(folder: Path) -> headwater.Database:
    """The database, with its stream and queries."""
    db = headwater.connect(folder, settings=SETTINGS)
    db.sql("CREATE STREAM IF NOT EXISTS s (ts INT, k STRING, v INT) TIMESTAMP BY ts UPDATE KEY (k)")
    db.sql(VIEW)
    for name, text in QUERIES.items():
        db.sql(f"CREATE CONTINUOUS QUERY IF NOT EXISTS {name} AS {text}")
    return db


if __name__ == "__main__":
    follow(open_database(Path(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3]))
