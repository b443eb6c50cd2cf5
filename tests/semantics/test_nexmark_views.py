"""NEXMark's 23 queries as views over streaming tables: after each chunk DuckDB says what is right."""

from __future__ import annotations

import headwater
from tests.harness.workloads.judge import Judge, wrong_views
from tests.harness.workloads.nexmark import SIDE_INPUT, SIDE_ROWS, STREAMS, NexmarkData
from tests.harness.workloads.queries import read_queries

QUERIES = read_queries("nexmark")
CHUNKS = 3


def test_every_view_is_right_after_every_chunk(db: headwater.Database) -> None:
    for name, columns in STREAMS.items():
        db.sql(f"CREATE STREAMING TABLE {name} ({columns}) TIMESTAMP BY dateTime")
    db.sql(f"CREATE TABLE side_input ({SIDE_INPUT})")
    db.insert("side_input", SIDE_ROWS)
    notices = {one.name: db.sql(f"CREATE VIEW {one.name} AS {one.text}").notice for one in QUERIES}
    assert {name: notice for name, notice in notices.items() if notice is not None} == {}
    judge = Judge({**STREAMS, "side_input": SIDE_INPUT})
    judge.add("side_input", SIDE_ROWS)
    for chunk in NexmarkData(7).chunks(CHUNKS):
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
