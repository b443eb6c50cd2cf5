"""Update queues on inner arcs: behind a materialized view it is as behind a streaming table (US9)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater
from headwater.engine import update_query

STREAM = "CREATE STREAMING TABLE s (ts INT, k STRING, v INT) TIMESTAMP BY ts"
SUMS = (
    "SELECT k, sum(v) AS t, count(*) AS n FROM s [INTERVAL 6 SECONDS] GROUP BY k"
    " SAMPLE INTERVAL 2 SECONDS"
)
READERS = {
    "rows": "SELECT k, t, n * 10 AS m FROM {} WHERE n <> 2 WITH UPDATES",
    "every": "SELECT k, t FROM {} WITH APPEND",
    "lazy": "SELECT k, max(t) AS t, count(*) AS c FROM {} [INTERVAL 4 SECONDS] GROUP BY k"
    " SAMPLE INTERVAL 4 SECONDS WITH UPDATES",
}


def _rows(start: int, end: int) -> list[tuple[int, str, int]]:
    return [(n // 2, "abc"[n * n % 3], n) for n in range(start, end)]


def _results(db: headwater.Database, name: str) -> list[tuple[Any, ...]]:
    found = db.subscribe(name, after="earliest", timeout=0.1)
    return [row for out in found for row in out.rows()]


@pytest.mark.parametrize("key", ["k", ""])
def test_a_view_is_read_as_a_streaming_table_with_its_rows(key: str, tmp_path: Path) -> None:
    """The same rows in a table with the same update key give the same, also over a restart."""
    with headwater.connect(tmp_path) as db:
        db.sql(STREAM)
        db.sql(f"CREATE MATERIALIZED VIEW m UPDATE KEY ({key}) AS {SUMS}")
        columns = "(ts INT, k STRING, t BIGINT, n BIGINT)"
        db.sql(f"CREATE STREAMING TABLE table_m {columns} TIMESTAMP BY ts UPDATE KEY ({key})")
        readers = {name: text for name, text in READERS.items() if key or name != "lazy"}
        for name, text in readers.items():
            for table in ("m", "table_m"):
                db.sql(f"CREATE CONTINUOUS QUERY {name}_{table} AS {text.format(table)}")
        db.insert("s", _rows(0, 31))
        db.flush()
    with headwater.connect(tmp_path) as db:
        db.insert("s", _rows(31, 80))
        db.advance("s", 60)
        db.flush()
        shown_key = key or "none: each row replaces the one before"
        explained = db.sql("EXPLAIN QUERY m").rows()[-1][0]
        assert explained == f"rows: materialized view m, update key {shown_key}"
        rows = db.sql("SELECT * FROM m").rows()
        assert len(rows) > 20
        db.insert("table_m", [(at, k, t, n) for k, t, n, at in rows])
        db.advance("table_m", 60)
        db.flush()
        for name in readers:
            shown = [sorted(db.sql(f"SELECT * FROM {name}_{t}").rows()) for t in ("m", "table_m")]
            assert shown[0] == shown[1], name
        assert _results(db, "every_m") == _results(db, "every_table_m")
        assert [row[:2] for row in _results(db, "every_m")] == [row[:2] for row in rows]


@pytest.mark.here
def test_a_slow_reader_of_a_view_skips_what_has_been_superseded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each row costs 20 ms: the newest of each key is what the view has, and every row is counted."""
    quick = update_query.results_of_rows

    def slowly(spec: Any, batch: Any, held: Any) -> pa.Table:
        time.sleep(len(batch) * 0.02)  # not a wait for progress: it is the cost of the rows
        return quick(spec, batch, held)

    monkeypatch.setattr(update_query, "results_of_rows", slowly)
    with headwater.connect(settings={"eager_spark": False}) as db:
        db.sql(STREAM)
        db.sql(f"CREATE MATERIALIZED VIEW m UPDATE KEY (k) AS {SUMS}")
        db.sql("CREATE CONTINUOUS QUERY q AS SELECT k, t, n FROM m WITH UPDATES")
        text = "SELECT rows_in, processed, superseded, waiting, in_process FROM headwater.staleness"
        for first in range(0, 180, 60):
            db.insert("s", [(first + n, "abc"[n % 3], n) for n in range(60)])  # 30 results
        db.advance("s", 200)
        db.flush()
        rows = sorted(db.sql("SELECT * FROM m").rows(), key=lambda row: row[-1])
        newest = {row[0]: row for row in rows}
        assert {row[0]: row for row in db.sql("SELECT * FROM q").rows()} == newest
        came, processed, superseded, *left = db.sql(f"{text} WHERE key IS NULL").rows()[0]
        assert (came, left) == (len(rows), [0, 0])
        assert came == processed + superseded
        assert superseded > 0
