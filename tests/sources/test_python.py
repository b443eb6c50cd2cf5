"""Sources of kind python: a user's generator feeds a table (EQ9). No Spark needed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater
from tests.harness.patience import PATIENCE_S
from tests.sources.feeding import runner, status, wait_for_rows, wait_for_state

TABLE = "CREATE STREAMING TABLE t (v INT, ts BIGINT NOT NULL) TIMESTAMP BY ts"
RETURNS = "TABLE(ts BIGINT, v INT)"
Connect = Callable[..., headwater.Database]


class Feed:
    """A generator whose rows come when the test says so."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.allowed = threading.Semaphore(0)

    def allow(self, count: int) -> None:
        self.allowed.release(count)

    def __call__(self, start: int = 0) -> Iterator[tuple[int, int] | None]:
        self.starts.append(start)
        while True:
            if self.allowed.acquire(timeout=0.01):
                yield (start, start * 10)
                start += 1
            else:
                yield None


def begun(db: headwater.Database, function: Any, options: str = "") -> None:
    db.sql(TABLE)
    db.create_function("feed", function, returns=RETURNS, kind="table")
    db.sql(f"CREATE SOURCE s INTO t FROM 'python:feed' {options}")


def test_a_generator_feeds_a_table(db: headwater.Database) -> None:
    feed = Feed()
    begun(db, feed)
    feed.allow(3)
    wait_for_rows(db, "s", 3)
    assert db.sql("SELECT ts, v FROM t").rows() == [(0, 0), (1, 10), (2, 20)]
    feed.allow(1)
    wait_for_rows(db, "s", 4)
    now = status(db, "s")
    assert (now.table_name, now.url, now.state) == ("t", "python:feed", "running")
    assert now.lag_s is not None
    assert now.lag_s < 60


@pytest.mark.parametrize("form", ["dicts", "tables", "one table", "mixed"])
def test_rows_come_in_many_forms(db: headwater.Database, form: str) -> None:
    table = pa.table({"v": pa.array([1, 2], pa.int32()), "ts": [1, 2]})
    made: dict[str, Callable[[], Any]] = {
        "dicts": lambda: iter([{"ts": 1, "v": 1}, {"v": 2, "ts": 2}]),
        "tables": lambda: iter([table.slice(0, 1), table.slice(1)]),
        "one table": lambda: table,
        "mixed": lambda: iter([(1, 1), table.slice(1).to_batches()[0]]),
    }
    begun(db, made[form])
    wait_for_state(db, "s", "finished")
    assert db.sql("SELECT ts, v FROM t").rows() == [(1, 1), (2, 2)]


def test_it_goes_on_where_it_was(folder: Path, connect: Connect) -> None:
    feed = Feed()
    with connect(folder) as db:
        begun(db, feed)
        feed.allow(5)
        wait_for_rows(db, "s", 5)
    with connect(folder) as db:
        assert "waits for function feed" in (status(db, "s").last_error or "")
        db.create_function("feed", feed, returns=RETURNS, kind="table")
        feed.allow(2)
        wait_for_rows(db, "s", 7)
        assert feed.starts == [0, 5]
        assert [ts for (ts,) in db.sql("SELECT ts FROM t").rows()] == list(range(7))
        assert status(db, "s").last_error is None


def test_pause_and_resume(db: headwater.Database) -> None:
    feed = Feed()
    begun(db, feed)
    feed.allow(2)
    wait_for_rows(db, "s", 2)
    db.sql("PAUSE SOURCE s")
    assert status(db, "s").state == "paused"
    db.sql("PAUSE SOURCE s")
    db.sql("RESUME SOURCE s")
    feed.allow(1)
    wait_for_rows(db, "s", 3)
    assert feed.starts == [0, 2]
    db.sql("DROP SOURCE s")
    assert db.sql("SHOW SOURCES").rows() == []
    assert len(db.sql("SELECT * FROM t")) == 3


def test_a_function_that_fails_stops_its_source_alone(db: headwater.Database) -> None:
    def broken(start: int = 0) -> Iterator[tuple[int, int]]:
        yield (start, 1)
        raise RuntimeError("no more line")

    begun(db, broken)
    found = wait_for_state(db, "s", "failed")
    assert "RuntimeError: no more line (38000)" in (found.last_error or "")
    assert found.row_count == 1
    db.insert("t", [(1, 5)])
    db.sql("RESUME SOURCE s")
    wait_for_state(db, "s", "failed")
    assert len(db.sql("SELECT * FROM t")) == 3


@pytest.mark.parametrize(
    ("row", "message"),
    [((1, 2, 3), "a row has 3 values"), ((None, 2), "NULL"), (("x", 2), "ts")],
)
def test_rows_that_do_not_fit(db: headwater.Database, row: Any, message: str) -> None:
    begun(db, lambda: iter([row]))
    assert message in (wait_for_state(db, "s", "failed").last_error or "")
    assert len(db.sql("SELECT * FROM t")) == 0


def test_a_source_that_is_done_is_not_started_again(folder: Path, connect: Connect) -> None:
    def once() -> Iterator[tuple[int, int]]:
        yield (1, 1)

    with connect(folder) as db:
        begun(db, once)
        wait_for_state(db, "s", "finished")
    with connect(folder) as db:
        db.create_function("feed", once, returns=RETURNS, kind="table")
        assert status(db, "s").state == "finished"
        assert len(db.sql("SELECT * FROM t")) == 1


def test_a_silent_source_lets_the_clock_go_on(db: headwater.Database) -> None:
    feed, other = Feed(), Feed()
    begun(db, feed, "WITH (idle_timeout = INTERVAL '200' MILLISECONDS)")
    db.create_function("other", other, returns=RETURNS, kind="table")
    db.sql("CREATE SOURCE o INTO t FROM 'python:other'")
    feed.allow(3)
    wait_for_rows(db, "s", 3)
    clock = "SELECT clock FROM headwater.tables WHERE name = 't'"
    assert db.sql(clock).rows() == [(None,)]  # the other one has no rows yet
    other.allow(6)
    wait_for_rows(db, "o", 6)
    assert db._context.sources.wait_until(lambda: db.sql(clock).rows() == [("5",)], PATIENCE_S)
    feed.allow(4)  # 3 and 4 come too late, and from 6 on it holds the clock again
    wait_for_rows(db, "s", 7)
    other.allow(10)
    wait_for_rows(db, "o", 16)
    assert db.sql("SELECT late_count FROM headwater.late_rows").rows() == [(2,)]


def test_a_paused_source_holds_nothing_back(folder: Path, connect: Connect) -> None:
    feed = Feed()
    clock = "SELECT clock FROM headwater.tables WHERE name = 't'"
    with connect(folder) as db:
        begun(db, feed)
        db.insert("t", [(1, 5)])
        assert db.sql(clock).rows() == [(None,)]
        db.sql("PAUSE SOURCE s")
        assert db.sql(clock).rows() == [("5",)]
    with connect(folder) as db:
        assert status(db, "s").state == "paused"
        db.insert("t", [(1, 6)])
        assert db.sql(clock).rows() == [("6",)]
        db.sql("DROP SOURCE s; DROP TABLE t")


def test_many_rows_in_small_batches(db: headwater.Database) -> None:
    def many(start: int = 0) -> Iterator[tuple[int, int]]:
        for number in range(start, 5000):
            yield (number, number)

    begun(db, many, "WITH (batch_rows = 64)")
    wait_for_state(db, "s", "finished")
    assert [ts for (ts,) in db.sql("SELECT ts FROM t").rows()] == list(range(5000))
    assert runner(db, "s").feed.options.batch_rows == 64


def test_a_source_stopped_before_its_first_row_leaves_no_thread(db: headwater.Database) -> None:
    """A stop may come while the function is being called, before anything pulls from it."""
    called, go_on = threading.Event(), threading.Event()
    feed = Feed()

    def slow(start: int = 0) -> Iterator[tuple[int, int] | None]:
        called.set()
        go_on.wait(PATIENCE_S)
        return feed(start)

    begun(db, slow)
    assert called.wait(PATIENCE_S)
    stopped = runner(db, "s")
    stopped.stopping.set()
    stopped.interrupt()
    go_on.set()
    stopped.stop()
    assert not [t for t in threading.enumerate() if t.name == "headwater-source-s-pull"]


def test_an_end_that_meets_a_pause_or_a_drop_undoes_neither(db: headwater.Database) -> None:
    begun(db, lambda: iter([(1, 1)]))
    before = db._context.sources.find("s")
    wait_for_state(db, "s", "finished")
    ended = runner(db, "s").on_end
    db.sql("PAUSE SOURCE s")
    ended()  # as if the thread had come to its end only now
    assert status(db, "s").state == "paused"
    assert before is not None
    db._context.sources.drop(before)  # found before it had finished
    ended()
    assert db.sql("SHOW SOURCES").rows() == []
