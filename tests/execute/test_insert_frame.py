"""`db.insert(table, frame)`: a DataFrame's rows, written by executors, once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import headwater
from headwater.execute import insert_frame
from headwater.sources.handed_blocks import HandedBlocks
from headwater.storage.streaming.micro_batch import WrittenBatch
from headwater.storage.streaming.table import RepeatedBatch

TABLE = "CREATE STREAMING TABLE s (t BIGINT NOT NULL, k STRING, v DOUBLE) TIMESTAMP BY t"
as_blocks: list[int] = []  # one for each insert that executors wrote
FRAME = "id AS t", "CAST(id % 3 AS STRING) AS K", "CAST(id AS FLOAT) / 2 AS v"


@pytest.fixture(params=["small", "large"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Through the log, or as blocks."""
    if request.param == "large":
        monkeypatch.setattr(insert_frame, "SMALL_BYTES", -1)

    def counted(*given: Any, **named: Any) -> HandedBlocks:
        as_blocks.append(1)
        return HandedBlocks(*given, **named)

    as_blocks.clear()
    monkeypatch.setattr(insert_frame, "HandedBlocks", counted)
    return str(request.param)


def frame_of(db: headwater.Database, rows: int, partitions: int = 3) -> Any:
    return db.spark.range(0, rows, 1, partitions).selectExpr(*FRAME)


def test_rows_come_once_and_are_there_after_a_restart(
    folder: Any, connect: Callable[..., headwater.Database], size: str
) -> None:
    with connect(folder) as db:
        db.sql(TABLE)
        db.insert("s", [(1, "x", 0.0)])
        frame = frame_of(db, 1000)
        assert db.insert("s", frame, batch_id="a") == 1000
        assert bool(as_blocks) == (size == "large")
        assert db.insert("s", frame, batch_id="a") == 0
        wanted = db.sql("SELECT count(*), sum(t), sum(v), max(k) FROM s").rows()
        assert wanted == [(1001, 499_501, 249_750.0, "x")]
        assert db.sql("SELECT count(DISTINCT _seq) FROM s").rows() == [(1001,)]
    with connect(folder) as db:
        assert db.sql("SELECT count(*), sum(t), sum(v), max(k) FROM s").rows() == wanted
        assert db.insert("s", frame_of(db, 1000), batch_id="a") == 0
        assert db.insert("s", frame_of(db, 10)) == 10  # late: for history


def test_rows_that_came_twice_at_once_are_stored_where_the_first_were_refused(
    db: headwater.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log had no room for the first ones, when the second ones had found their id already."""
    db.sql(TABLE)
    monkeypatch.setattr(insert_frame, "SMALL_BYTES", -1)
    tries = []

    class Second(HandedBlocks):
        def commit(self, number: int) -> WrittenBatch:
            tries.append(number)
            if len(tries) == 1:
                raise RepeatedBatch("the batch was stored before")
            return super().commit(number)

    monkeypatch.setattr(insert_frame, "HandedBlocks", Second)
    assert db.insert("s", frame_of(db, 5), batch_id="a") == 5
    assert len(tries) == 2
    assert db.sql("SELECT count(*) FROM s").rows() == [(5,)]


def test_queries_see_the_rows_of_a_frame(db: headwater.Database, size: str) -> None:
    db.sql(TABLE)
    db.sql("CREATE VIEW totals AS SELECT k, count(*) AS n FROM s GROUP BY k")
    db.sql(
        "CREATE CONTINUOUS QUERY q AS SELECT count(*) AS n FROM s [INTERVAL 100 SECONDS BEFORE]"
        " SAMPLE INTERVAL 100 SECONDS"
    )
    db.insert("s", frame_of(db, 400))
    db.advance("s", 400)
    db.flush()
    assert db.sql("SELECT * FROM totals ORDER BY k").rows() == [("0", 134), ("1", 133), ("2", 133)]
    given = [out.rows()[0][0] for out in db.subscribe("q", after="earliest", timeout=0.2)]
    assert sum(given) == 400


def test_late_rows_are_dropped_or_refused_as_of_any_insert(
    db: headwater.Database, size: str
) -> None:
    db.sql(f"{TABLE} LATE DROP")
    db.sql(f"{TABLE} LATE REJECT".replace(" s ", " r "))
    for name in ("s", "r"):
        db.advance(name, 9)
    assert db.insert("s", frame_of(db, 15)) == 5
    with pytest.raises(headwater.Error, match="late"):
        db.insert("r", frame_of(db, 15))
    assert db.sql("SELECT count(*) FROM r").rows() == [(0,)]


def test_rows_too_far_ahead_are_refused(db: headwater.Database, size: str) -> None:
    db.sql("CREATE STREAMING TABLE w (at TIMESTAMP NOT NULL) TIMESTAMP BY at")
    far = db.spark.range(3).selectExpr("TIMESTAMP '2199-01-01 00:00:00' AS at")
    with pytest.raises(headwater.Error, match="too far ahead"):
        db.insert("w", far)
    near = db.spark.range(3).selectExpr("timestamp_seconds(id) AS at")
    assert db.insert("w", near) == 3
    assert db.sql("SELECT max(at) FROM w").rows() == [(datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC),)]


def test_a_standard_table_takes_a_frame_once(db: headwater.Database) -> None:
    db.sql("CREATE TABLE p (k STRING NOT NULL, v DOUBLE, w INT)")
    frame = db.spark.range(5).selectExpr("id * 2.5D AS v", "CAST(id AS STRING) AS k", "NULL AS w")
    assert db.insert("p", frame, batch_id="1") == 5
    assert db.insert("p", frame, batch_id="1") == 0
    assert db.sql("SELECT count(*), sum(v), max(k), max(w) FROM p").rows() == [(5, 25.0, "4", None)]
    with pytest.raises(headwater.Error) as caught:
        db.insert("p", db.spark.range(1).selectExpr("CAST(NULL AS STRING) AS k"), batch_id="2")
    assert caught.value.sqlstate == "23502"
    assert db.insert("p", frame, batch_id="2") == 5


@pytest.mark.parametrize(
    ("columns", "sqlstate"),
    [
        (("id AS t", "1 AS nope"), "42703"),
        (("id AS t", "id AS T"), "42701"),
        (("id AS t", "1 AS k"), "42804"),
        (("CAST(NULL AS BIGINT) AS t",), "23502"),
        (("'a' AS k",), "23502"),
    ],
)
def test_frames_that_do_not_fit(
    db: headwater.Database, size: str, columns: tuple[str, ...], sqlstate: str
) -> None:
    db.sql(TABLE)
    with pytest.raises(headwater.Error) as caught:
        db.insert("s", db.spark.range(2).selectExpr(*columns), batch_id="a")
    assert caught.value.sqlstate == sqlstate
    assert db.sql("SELECT count(*) FROM s").rows() == [(0,)]
    assert db.insert("s", frame_of(db, 2), batch_id="a") == 2


def test_an_empty_frame_and_one_that_fails(db: headwater.Database, size: str) -> None:
    db.sql(TABLE)
    assert db.insert("s", frame_of(db, 0)) == 0
    with pytest.raises(headwater.Error, match=r"(?i)zero"):
        db.insert(
            "s", db.spark.range(2).selectExpr("id AS t", "CAST(raise_error('zero') AS STRING) AS k")
        )
    assert not list(db._context.folder.staging.glob("given-*"))


def test_files_of_a_process_that_was_killed_are_gone(
    folder: Path, connect: Callable[..., headwater.Database]
) -> None:
    settings = {"eager_spark": False, "factories": 0}
    connect(folder, settings=settings).close()
    left = folder / "staging" / "given-1" / "part-0.parquet"
    left.parent.mkdir(parents=True)
    left.touch()
    connect(folder, settings=settings)
    assert not left.exists()


def test_a_streaming_frame_is_refused(db: headwater.Database) -> None:
    db.sql(TABLE)
    endless = db.spark.readStream.format("rate").load().selectExpr("value AS t")
    with pytest.raises(headwater.Error, match="no end"):
        db.insert("s", endless)
