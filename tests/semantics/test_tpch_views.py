"""TPC-H's 22 queries as views over streaming tables: after each chunk DuckDB says what is right."""

from __future__ import annotations

import headwater
from tests.harness.workloads.judge import Judge, wrong_views
from tests.harness.workloads.queries import read_queries
from tests.harness.workloads.tpch import STREAMS, TpchData

QUERIES = read_queries("tpch")
CHUNKS = 3


def test_every_view_is_right_after_every_chunk(db: headwater.Database) -> None:
    for name, columns in STREAMS.items():
        db.sql(f"CREATE STREAMING TABLE {name} ({columns})")
    notices = {one.name: db.sql(f"CREATE VIEW {one.name} AS {one.text}").notice for one in QUERIES}
    assert {name: notice for name, notice in notices.items() if notice is not None} == {}
    judge = Judge(STREAMS)
    for chunk in TpchData(7).chunks(CHUNKS):
        for name, rows in chunk.items():
            db.insert(name, rows)
            judge.add(name, rows)
        answers = judge.answers(QUERIES)
        assert wrong_views(db, QUERIES, answers) == []
    assert [name for name, rows in answers.items() if not rows] == []  # each query gives rows
    by_spark = (
        "SELECT name FROM headwater.views WHERE maintenance = 're-evaluated' OR tier <> 'in line'"
    )
    assert db.sql(by_spark).rows() == []
