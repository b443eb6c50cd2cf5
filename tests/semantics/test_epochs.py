"""Epochs through the database: their times, their numbers, restarts (EQ1, EQ3, EQ6, EQ7)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import headwater

INLINE = {"eager_spark": False}


def test_the_post_cut_time_is_shown_and_an_overrun_names_its_part() -> None:
    """A budget that nothing can keep: the report has the epoch, the part and the Spark job."""
    with headwater.connect(settings={"spark_sql_only": True}) as db:
        db.sql("CREATE STREAM s (ts INT, v INT) TIMESTAMP BY ts")
        db.sql(
            "CREATE CONTINUOUS QUERY q WITH (budget = INTERVAL '0.001' SECOND) AS "
            "SELECT sum(v) AS t FROM s CUT ON ts BY INTERVAL '10' SECOND"
        )
        db.sql(
            "CREATE CONTINUOUS QUERY w AS SELECT sum(v) AS t FROM s [INTERVAL '1' HOUR] SAMPLE REALTIME"
        )
        db.sql("INSERT INTO s VALUES (1, 1), (12, 2)")
        db.flush()
        shown = {
            row[0]: row[1:]
            for row in db.sql("SELECT name, post_cut_ms, over_budget FROM headwater.queries").rows()
        }
        post_cut, report = shown["q"]
        assert post_cut > 1
        found = re.fullmatch(
            r"epoch 0 took .* s, its budget is 0.001 s; .* s in (.*) \(Spark jobs? .*\)", report
        )
        assert found is not None
        assert found[1] in ("the stream pipeline of fold 0", "the whole query over its windows")
        assert shown["w"] == (None, None)
        lines = [row[0] for row in db.sql("EXPLAIN ANALYZE QUERY q").rows()]
        assert any(line.startswith("over budget: 1 times; epoch 0 took") for line in lines)


@pytest.mark.parametrize("mode", ["fold", "reevaluate"])
def test_chunks_by_value_go_on_after_a_restart(tmp_path: Path, mode: str) -> None:
    """The open chunk and the kept ones are found again; every epoch has its result once."""
    rows = [(n, "abc"[n // 4 % 3], n) for n in range(30)]
    with headwater.connect(tmp_path, settings=INLINE) as db:
        db.sql("CREATE STREAM s (ts INT, k STRING, v INT) TIMESTAMP BY ts")
        db.sql(
            f"CREATE MATERIALIZED VIEW m WITH (mode = '{mode}') AS "
            "SELECT count(*) AS n, min(v) AS low, max(v) AS high FROM s CUT ON k KEEP 2 CHUNKS"
        )
    for start in range(0, 30, 6):
        with headwater.connect(tmp_path, settings=INLINE) as db:
            db.insert("s", rows[start : start + 3])
            db.flush()
            db.insert("s", rows[start + 3 : start + 6])
            db.flush()
    with headwater.connect(tmp_path, settings=INLINE) as db:
        found = db.sql("SELECT _epoch, n, low, high, _t FROM m ORDER BY _epoch").rows()
    expected = [(0, 4, 0, 3, 3)]
    expected += [(k, 8, 4 * k - 4, 4 * k + 3, 4 * k + 3) for k in range(1, 7)]
    assert found == expected
