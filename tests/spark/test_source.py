"""`format("headwater")`: reads, streams of results and exactly-once writes, through a server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

import headwater
import headwater.spark
from headwater.server.http.server import HttpOptions, HttpServer
from headwater.spark import source
from headwater.spark.client import Client, ServedResult
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


def into_files(db: headwater.Database, live: Live, folder: Path) -> Any:
    """Begins to write the results of `q` that are there, from where the last run ended."""
    results = db.spark.readStream.format("headwater").option("port", live.port).load("q")
    return (
        results.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "notes"))
        .trigger(availableNow=True)
        .start(str(folder / "out"))
    )


def test_the_results_of_a_query_are_a_stream_that_goes_on(
    db: headwater.Database, live: Live, tmp_path: Path
) -> None:
    make(db)
    db.sql(
        "CREATE CONTINUOUS QUERY q FROM BEGINNING AS"
        " SELECT count(*) AS n FROM s [INTERVAL 1 SECOND BEFORE] SAMPLE INTERVAL 1 SECOND"
    )

    start = partial(into_files, db, live, tmp_path)
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


def test_all_results_are_read_however_many(
    db: headwater.Database, live: Live, tmp_path: Path
) -> None:
    """More than a micro-batch takes; a run goes on where the one before ended."""
    size = source.MOST_ROWS // 2 + 1
    db.sql("CREATE STREAMING TABLE s (t BIGINT NOT NULL) TIMESTAMP BY t")
    db.sql(
        "CREATE CONTINUOUS QUERY q FROM BEGINNING AS"
        " SELECT t FROM s [INTERVAL 2 SECONDS BEFORE] SAMPLE INTERVAL 2 SECONDS"
    )

    start = partial(into_files, db, live, tmp_path)
    for first, last in ((0, 3), (3, 4)):
        for number in range(first, last):
            db.insert("s", pa.table({"t": np.full(size, 2 * number + 1)}))
        db.advance("s", 2 * last)
        db.flush()
        finished(start)
        read = db.spark.read.parquet(str(tmp_path / "out"))
        assert read.selectExpr("count(*)", "max(t)").first() == (last * size, 2 * last - 1)


class Results(Client):
    """A client of a server that has some results."""

    kept: ClassVar[list[ServedResult]] = []

    def results(self, query: str, after: str, emit: str) -> Iterator[ServedResult]:
        tokens = [result.token for result in self.kept]
        yield from self.kept[tokens.index(after) + 1 if after in tokens else 0 :]


def test_results_that_are_read_again_are_the_same_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The micro-batch was not finished, and the first results of it were dropped meanwhile."""
    made = [ServedResult(f"token {n}", ("n",), [[n], [n]]) for n in range(6)]
    schema = pa.schema([("n", pa.int64())])
    reader = source.ResultReader(Results("http://nowhere"), "q", "all", "earliest", schema)
    Results.kept = made[:4]
    monkeypatch.setattr(source, "MOST_ROWS", 4)
    places, found = [reader.initialOffset()], []
    for _ in range(3):
        rows, place = reader.read(places[-1])
        found.append(list(rows))
        places.append(place)
    assert found == [[(0,), (0,), (1,), (1,)], [(2,), (2,), (3,), (3,)], []]
    assert places[3] == places[2]
    for number, (begin, end) in enumerate(pairwise(places)):
        assert list(reader.readBetweenOffsets(begin, end)) == found[number]
    for Results.kept in (made[1:], made[4:], []):
        with pytest.raises(headwater.Error, match="not there any more"):
            list(reader.readBetweenOffsets(*places[:2]))
    reader.prepareForTriggerAvailableNow()
    Results.kept = made[:3]
    assert [len(list(reader.read(place)[0])) for place in (places[0], places[1])] == [4, 2]
    Results.kept = made
    assert reader.read(places[1])[1] == places[1]


def test_what_is_a_stream_of_results(connect: Callable[..., headwater.Database]) -> None:
    """A query by itself, a view or a table if it is said what of each result."""
    db = connect(settings={"eager_spark": False, "factories": 0})
    db.sql("CREATE STREAMING TABLE s (t BIGINT NOT NULL) TIMESTAMP BY t")
    db.sql("CREATE VIEW v AS SELECT max(t) AS t FROM s")
    db.sql(
        "CREATE CONTINUOUS QUERY q FROM BEGINNING AS"
        " SELECT max(t) AS t FROM s [INTERVAL 2 SECONDS] SAMPLE INTERVAL 2 SECONDS"
    )
    db.insert("s", [(1,), (2,)])
    db.advance("s", 2)
    db.flush()
    found = {}
    with Live(HttpServer(db, HttpOptions(port=0))) as server:
        options = {"url": f"http://127.0.0.1:{server.port}"}
        for table, emit in (("q", None), ("q", "all"), ("v", "all"), ("v", "changes")):
            said = {} if emit is None else {"emit": emit}
            asked = source.HeadwaterSource({**options, "table": table, **said})
            reader = asked.simpleStreamReader(StructType())
            rows, place = reader.read(reader.initialOffset())
            found[table, emit] = asked.columns.names, [row[0] for row in rows]
            assert reader.read(place)[1] == place
        with pytest.raises(headwater.Error, match="no results of its own") as caught:
            source.HeadwaterSource({**options, "table": "v"}).simpleStreamReader(StructType())
    assert found == {
        ("q", None): (["t", "_t"], [2]),
        ("q", "all"): (["t", "_t"], [2]),
        ("v", "all"): (["t", "_t"], [2]),
        ("v", "changes"): (["t", "_t", "_op"], [2]),
    }
    assert "changes" in (caught.value.hint or "")


def test_a_stream_is_written_exactly_once(
    db: headwater.Database, live: Live, tmp_path: Path
) -> None:
    make(db)
    files = tmp_path / "in"
    notes = tmp_path / "notes"
    db.spark.range(100, 150).selectExpr("id AS t", "'new' AS k").write.parquet(str(files))

    def start() -> Any:
        stream = db.spark.readStream.schema("t BIGINT, k STRING").parquet(str(files))
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
