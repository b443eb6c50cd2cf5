"""TPC-H's 22 queries as views over streaming tables: after each chunk DuckDB says what is right."""

from __future__ import annotations

import headwater
from tests.harness.workloads.judge import Judge, check_views
from tests.harness.workloads.queries import read_queries
from tests.harness.workloads.tpch import STREAMS, TpchData

QUERIES = read_queries("tpch")
CHUNKS = 3


def test_every_view_is_right_after_every_chunk(db: headwater.Database) -> None:
    for name, columns in STREAMS.items():
        db.sql(f"CREATE STREAMING TABLE {name} ({columns})")
    check_views(db, Judge(STREAMS), QUERIES, TpchData(7).chunks(CHUNKS))
