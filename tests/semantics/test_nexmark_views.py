"""NEXMark's 23 queries as views over streaming tables: after each chunk DuckDB says what is right."""

from __future__ import annotations

import headwater
from tests.harness.workloads.judge import Judge, check_views
from tests.harness.workloads.nexmark import SIDE_INPUT, SIDE_ROWS, STREAMS, NexmarkData
from tests.harness.workloads.queries import read_queries

QUERIES = read_queries("nexmark")
CHUNKS = 3


def test_every_view_is_right_after_every_chunk(db: headwater.Database) -> None:
    for name, columns in STREAMS.items():
        db.sql(f"CREATE STREAMING TABLE {name} ({columns}) TIMESTAMP BY dateTime")
    db.sql(f"CREATE TABLE side_input ({SIDE_INPUT})")
    db.insert("side_input", SIDE_ROWS)
    judge = Judge({**STREAMS, "side_input": SIDE_INPUT})
    judge.add("side_input", SIDE_ROWS)
    check_views(db, judge, QUERIES, NexmarkData(7).chunks(CHUNKS))
