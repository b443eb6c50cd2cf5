"""`format("headwater")`: reads, streams of results and exactly-once writes, through a server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater
import headwater.spark
from headwater.server.http.server import HttpOptions, HttpServer
from headwater.spark.client import Client
from tests.harness.patience import PATIENCE_S
from tests.server.live import Live


@pytest.fixture
def live(db: headwater.Database) -> Iterator[Live]:
    """A server on a free port, over the test's database."""
    headwater.spark.register(db.spark)
    db.spark.createDataFrame(
        [(1,)], "x INT"
    )  # makes it this thread's active session, as a program's is
    with Live(HttpServer(db, HttpOptions(port=0))) as server:
        yield server


@pytest.fixture
def reader(db: headwater.Database, live: Live) -> Any:
    return db.spark.read.format("headwater").option("port", live.port)


def finished(start: Callable[[], Any]) -> None:
    """Runs a stream to its end; one whose Python worker this machine was too busy to start, again."""
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            assert start().awaitTermination(PATIENCE_S)
            return
        except Exception as error:
            if "failed to connect back" not in str(error) or time.monotonic() > until:
                raise


def make(db: headwater.Database) -> None:
    db.sql("CREATE STREAMING TABLE s (t BIGINT NOT NULL, k STRING, at TIMESTAMP) TIMESTAMP BY t")
    db.sql("INSERT INTO s VALUES (1, 'it''s', TIMESTAMP '2026-01-01 00:00:00'), (2, NULL, NULL)")


def tuples(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.collect())


def test_a_table_a_condition_and_a_query(db: headwater.Database, reader: Any) -> None:
    make(db)
    whole = reader.load("s")
    assert whole.dtypes == [("t", "bigint"), ("k", "string"), ("at", "timestamp")]
    assert tuples(whole.select("t", "k")) == [(1, "it's"), (2, None)]
    assert whole.where("k = 'it''s'").select("at").first()[0] is not None
    assert tuples(reader.option("where", "t > 1").load("s").select("t")) == [(2,)]
    assert tuples(reader.option("query", "SELECT max(t) AS m FROM s").load()) == [(2,)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"table": "nothing"}, "42P01"),
        ({}, "there is no table"),
        ({"table": "s", "url": "nowhere"}, "no address"),
    ],
)
def test_what_cannot_be_read(reader: Any, options: dict[str, str], said: str) -> None:
    with pytest.raises(Exception, match=said):
        reader.options(**options).load()


def test_a_frame_is_added_once(db: headwater.Database, live: Live) -> None:
    make(db)
    frame = db.spark.range(10, 13).selectExpr("id AS t", "'new' AS k")
    writer = frame.write.format("headwater").option("port", live.port).option("batch_id", "b")
    for _ in range(2):
        writer.mode("append").save("s")
    assert db.sql("SELECT count(*) FROM s WHERE k = 'new'").rows() == [(3,)]
    with pytest.raises(Exception, match="added, not put"):
        writer.mode("overwrite").save("s")


def test_the_results_of_a_query_are_a_stream_that_goes_on(
    db: headwater.Database, live: Live, tmp_path: Path
) -> None:
    make(db)
    db.sql(
        "CREATE CONTINUOUS QUERY q FROM BEGINNING AS"
        " SELECT count(*) AS n FROM s [INTERVAL 1 SECOND BEFORE] SAMPLE INTERVAL 1 SECOND"
    )

    def start() -> Any:
        results = db.spark.readStream.format("headwater").option("port", live.port).load("q")
        return (
            results.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "notes"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "out"))
        )

    for last in (2, 5):
        db.insert("s", [(last + 1, "x", None)])
        db.advance("s", last + 1)
        db.flush()
        finished(start)
    wanted = [
        tuple(row) for out in db.subscribe("q", after="earliest", timeout=0.1) for row in out.rows()
    ]
    assert len(wanted) >= 5
    assert tuples(db.spark.read.parquet(str(tmp_path / "out"))) == sorted(wanted)


def test_a_stream_is_written_exactly_once(
    db: headwater.Database, live: Live, tmp_path: Path
) -> None:
    make(db)
    source = tmp_path / "in"
    notes = tmp_path / "notes"
    db.spark.range(100, 150).selectExpr("id AS t", "'new' AS k").write.parquet(str(source))

    def start() -> Any:
        stream = db.spark.readStream.schema("t BIGINT, k STRING").parquet(str(source))
        return (
            stream.writeStream.format("headwater")
            .options(table="s", port=live.port)
            .option("checkpointLocation", str(notes))
            .trigger(availableNow=True)
            .start()
        )

    finished(start)
    for note in (notes / "commits").iterdir():  # Spark forgets that it was committed
        note.unlink()
    finished(start)
    assert db.sql("SELECT count(*), min(t), max(t) FROM s WHERE k = 'new'").rows() == [
        (50, 100, 149)
    ]


def test_a_server_that_is_not_there() -> None:
    client = Client.of({"url": "http://127.0.0.1:9"})
    with pytest.raises(headwater.Error, match="does not answer") as caught:
        client.query("SELECT 1")
    assert caught.value.sqlstate == "08001"
