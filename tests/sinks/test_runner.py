"""A sink at work, over a target that fails as the test says: retries, places, bounds. No Spark needed."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater
from headwater.connectors import runner as attempts
from headwater.sinks import manager, runner
from headwater.sinks.target import SinkBatch, SinkProgress
from tests.harness.patience import PATIENCE_S
from tests.sinks.flowing import (
    Connect,
    expected,
    feed,
    make_query,
    status,
    wait_for,
    wait_for_rows,
)

SINK = "CREATE SINK k FROM q INTO 'json:unused' WITH (interval = INTERVAL '0' SECONDS"


@dataclass
class Store:
    """A target that keeps rows and progress together, and fails where it is told to."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    progress: SinkProgress | None = None
    failures: list[str] = field(default_factory=list)  # what happens to the next calls
    sizes: list[int] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    writing: threading.Event = field(default_factory=threading.Event)

    def open(self, schema: pa.Schema) -> SinkProgress | None:
        self._fail("open")
        return self.progress

    def write(self, batch: SinkBatch) -> None:
        self.writing.set()
        self.gate.wait(PATIENCE_S)
        self._fail("before")
        self.rows += [tuple(row.values()) for row in batch.rows.to_pylist()]
        self.sizes.append(batch.rows.num_rows)
        self.progress = batch.progress
        self._fail("after")

    def _fail(self, point: str) -> None:
        if self.failures and self.failures[0] == point:
            self.failures.pop(0)
            raise ConnectionError(f"lost at {point}")

    def interrupt(self) -> None:
        self.gate.set()

    def close(self) -> None:
        pass


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    """In place of every sink's target."""
    made = Store()
    made.gate.set()
    monkeypatch.setattr(manager, "_target", lambda *_: made)
    monkeypatch.setattr(attempts, "FIRST_PAUSE_S", 0.001)
    return made


def test_errors_are_retried_and_nothing_is_written_twice(
    db: headwater.Database, store: Store
) -> None:
    """Also where the write arrived and only its answer was lost."""
    store.failures = ["open", "before", "before", "after", "open", "after"]
    make_query(db)
    feed(db, 0, 2)
    db.sql(SINK + ", batch_rows = 1)")
    feed(db, 2, 3)
    wait_for_rows(db, "k", 10)
    assert store.failures == []
    assert store.rows == expected(0, 5)
    assert status(db, "k").state == "running"


def test_an_error_is_shown_until_it_is_over(
    db: headwater.Database, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """State, attempts and the error stand in headwater.sinks; pauses double up to the bound."""
    monkeypatch.setattr(attempts, "LONGEST_PAUSE_S", 0.002)
    store.failures = ["open"] * 10**6
    make_query(db)
    feed(db, 0, 1)
    db.sql(SINK + ")")
    found = wait_for(db, "k", lambda s: s.attempts >= 3)
    assert found.state == "retrying"
    ((error, rows),) = db.sql("SELECT last_error, row_count FROM headwater.sinks").rows()
    assert error == "a write failed (58030); detail: lost at open"
    assert rows == 0
    store.failures.clear()
    found = wait_for(db, "k", lambda s: s.row_count == 2)
    assert (found.state, found.attempts, found.last_error) == ("running", 0, None)
    assert found.last_time == "2"


def test_a_slow_target_gets_batches_of_a_bounded_size(db: headwater.Database, store: Store) -> None:
    """What came meanwhile is written together, up to batch_rows and the rows of one result."""
    store.gate.clear()
    make_query(db)
    feed(db, 0, 1)
    db.sql(SINK + ", batch_rows = 5)")
    feed(db, 1, 20)
    store.gate.set()
    wait_for_rows(db, "k", 42)
    assert store.rows == expected(0, 21)
    assert max(store.sizes) == 6
    assert len(store.sizes) < 12


def test_results_that_were_dropped_unwritten_stop_a_sink(
    db: headwater.Database, store: Store
) -> None:
    """It does not pass over them: it fails, and says which bound to raise."""
    db.sql("SET results_kept = 3")
    store.gate.clear()
    make_query(db)
    feed(db, 0, 1)
    db.sql(SINK + ", batch_rows = 1)")
    for number in range(1, 12):
        feed(db, number, 1)
    store.gate.set()
    found = wait_for(db, "k", lambda s: s.state == "failed")
    assert "raise results_kept" in (found.last_error or "")


def test_a_sink_that_hangs_does_not_hold_up_closing(
    connect: Connect, folder: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that does not end is interrupted; the sink goes on at the next open."""
    monkeypatch.setattr(runner, "STOP_PATIENCE_S", 0.2)
    with connect(folder) as db:
        make_query(db)
        store.gate.clear()
        db.sql(SINK + ")")
        feed(db, 0, 1)
        assert store.writing.wait(PATIENCE_S)
    with connect(folder) as db:
        wait_for_rows(db, "k", 2)
    assert store.rows == expected(0, 1)


def test_a_paused_sink_writes_nothing_until_it_is_resumed(
    connect: Connect, folder: Path, store: Store
) -> None:
    """Also over a restart; then it goes on where it was."""
    with connect(folder) as db:
        make_query(db)
        db.sql(SINK + ")")
        feed(db, 0, 1)
        wait_for_rows(db, "k", 2)
        db.sql("PAUSE SINK k; PAUSE SINK k")
        feed(db, 1, 1)
        assert (status(db, "k").state, status(db, "k").row_count) == ("paused", 2)
        db.sql("RESUME SINK k; RESUME SINK k")
        wait_for_rows(db, "k", 4)
        db.sql("PAUSE SINK k")
    with connect(folder) as db:
        feed(db, 2, 1)
        assert (status(db, "k").state, status(db, "k").row_count) == ("paused", None)
        assert store.rows == expected(0, 2)
        db.sql("RESUME SINK k")
        wait_for(db, "k", lambda s: s.row_count == 6)
    assert store.rows == expected(0, 3)


def test_resuming_tries_again_at_once(
    db: headwater.Database, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sink that would wait long for its next attempt; and nothing is written twice by that."""
    monkeypatch.setattr(attempts, "FIRST_PAUSE_S", 10_000.0)
    store.failures = ["after"]
    make_query(db)
    feed(db, 0, 1)
    db.sql(SINK + ")")
    wait_for(db, "k", lambda s: s.state == "retrying")
    db.sql("RESUME SINK k")
    wait_for(db, "k", lambda s: s.state == "running" and s.row_count == 2)
    assert store.rows == expected(0, 1)


def test_a_target_that_is_well_again_is_shown_so_before_the_next_result(
    db: headwater.Database, store: Store
) -> None:
    """No result waits, so nothing would be written that could end the error."""
    store.failures = ["open", "open"]
    make_query(db)
    db.sql(SINK + ")")
    found = wait_for(db, "k", lambda s: s.state == "running" and s.waiting_results == 0)
    assert (found.attempts, found.last_error, store.failures) == (0, None, [])


def test_sinks_that_hang_are_stopped_together_and_hold_nothing_up(
    connect: Connect, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is told to end before any is waited for; SHOW SINKS answers while one is dropped."""
    monkeypatch.setattr(runner, "STOP_PATIENCE_S", 60.0)
    stores = {name: Store() for name in ("a", "b")}
    monkeypatch.setattr(manager, "_target", lambda _, sink, *__: stores[sink.name])
    with connect(folder) as db:
        make_query(db)
        for name in stores:
            db.sql(f"CREATE SINK {name} FROM q INTO 'csv:/nowhere'")
        feed(db, 0, 1)
        for store in stores.values():
            assert store.writing.wait(PATIENCE_S)
        dropping = threading.Thread(target=db.sql, args=("DROP SINK a",))
        dropping.start()
        assert status(db, "b").state == "running"
        assert dropping.is_alive()
        stores["a"].gate.set()
        dropping.join(PATIENCE_S)
        assert not dropping.is_alive()
        stores["b"].gate.set()
