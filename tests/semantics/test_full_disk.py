"""A disk that is full for a moment: queries, views and sources go on by themselves, exactly."""

from __future__ import annotations

import contextlib
import errno
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater
from headwater.database import Database
from headwater.engine import retries
from headwater.engine.snapshots import SnapshotFile
from headwater.engine.state_runs import StateRuns
from headwater.errors import DataError, Error, StorageError
from headwater.kernel.relation import Staging
from headwater.storage.disk import may_pass, storage_error
from headwater.storage.streaming.table import StreamingTable

OFFLINE = {"eager_spark": False}
PATIENCE_S = 30.0


def full(*_: Any, **__: Any) -> Any:
    raise storage_error("write", "/data/x", OSError(errno.ENOSPC, "full"))


def broken(*_: Any, **__: Any) -> Any:
    raise OSError(errno.EIO, "Input/output error")


def state_of(db: Database, name: str) -> tuple[Any, ...]:
    found = db.sql("SELECT name, state, error FROM headwater.queries").rows()
    found += db.sql("SELECT name, state, error FROM headwater.views").rows()
    (row,) = [(state, error) for known, state, error in found if known == name]
    return row


def refusal(act: Callable[[], object]) -> Error:
    with pytest.raises(Error) as caught:
        act()
    return caught.value


@pytest.fixture
def db(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """With one of each kind that writes files, and pauses so long that only FLUSH ends them."""
    monkeypatch.setattr(retries, "FIRST_PAUSE_S", 600.0)
    with headwater.connect(folder, settings=OFFLINE) as db:
        db.sql("CREATE STREAMING TABLE t (k INT, v STRING, ts BIGINT NOT NULL) TIMESTAMP BY ts")
        windows = "FROM t [INTERVAL '2' SECONDS BEFORE] SAMPLE INTERVAL '1' SECOND"
        db.sql(f"CREATE CONTINUOUS QUERY q AS SELECT count(*) AS n, max(v) AS v {windows}")
        db.sql(f"CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n {windows}")
        db.sql("CREATE CONTINUOUS QUERY a AS SELECT k, v FROM t [ROWS 1] SAMPLE 1 ROWS")
        db.sql("CREATE VIEW w AS SELECT k % 7 AS k, count(*) AS n FROM t GROUP BY k % 7")
        yield db


def put(db: Database, first: int, count: int) -> None:
    db.insert("t", [(n, f"row {n}", n) for n in range(first, first + count)])


def check(db: Database, count: int) -> None:
    """Everything is as if nothing had ever failed, for rows 0 … count − 1."""
    results = [(out.table.column("n")[0].as_py(), int(str(out.time))) for out in kept(db, "q")]
    expected = [(min(second, 2), second) for second in range(count)]
    assert results == expected
    assert db.sql("SELECT n, _t FROM m").rows() == expected
    assert [out.table.column("k")[0].as_py() for out in kept(db, "a")] == list(range(count))
    groups = {k: len(range(k, count, 7)) for k in range(min(count, 7))}
    assert dict(db.sql("SELECT k, n FROM w").rows()) == groups
    assert {state_of(db, name) for name in ("q", "m", "a", "w")} == {("running", None)}


def kept(db: Database, name: str) -> list[Any]:
    with db.subscribe(name, after="earliest", timeout=0) as reader:  # type: ignore[union-attr]
        return list(reader)


@pytest.mark.parametrize("fault", [full, broken])
@pytest.mark.parametrize(
    ("place", "stopped"),
    [
        ("results", {"query a", "query q", "materialized view m"}),
        ("view table", {"materialized view m"}),
        ("spill", {"view w"}),
        ("basket", {"query a", "query q"}),
    ],
)
def test_each_file_that_is_derived(
    db: Database,
    monkeypatch: pytest.MonkeyPatch,
    fault: Callable[..., Any],
    place: str,
    stopped: set[str],
) -> None:
    put(db, 0, 5)
    db.flush()
    check(db, 5)
    with monkeypatch.context() as patch:
        inject(db, patch, place, fault)
        put(db, 5, 5)
        error = refusal(db.flush)
        assert error.sqlstate == "55000"
        assert all(f"{name} is retrying" in error.message for name in stopped), error
        assert "full" in (error.detail or "") or "error" in (error.detail or "").lower()
        state, cause = state_of(db, min(stopped).split()[-1])
        assert state == "retrying"
        assert cause
        assert refusal(lambda: db.sql("FLUSH")).sqlstate == "55000"  # tried again, in vain
    db.flush()
    check(db, 10)
    put(db, 10, 3)
    db.flush()
    check(db, 13)


def inject(db: Database, patch: pytest.MonkeyPatch, place: str, fault: Callable[..., Any]) -> None:
    """From here on writes of one kind fail."""
    insert = StreamingTable.insert

    def no_results(table: StreamingTable, *arguments: Any, **more: Any) -> int:
        if table.definition.kind == "results":
            fault()
        return insert(table, *arguments, **more)

    if place == "results":
        patch.setattr(StreamingTable, "insert", no_results)
    elif place == "view table":
        patch.setattr(StreamingTable, "store_result", fault)
    elif place == "spill":
        db.sql("SET view_state_mb = 0")
        patch.setattr(StateRuns, "spill", fault)
    else:
        db.sql("SET basket_mb = 1")
        patch.setattr("headwater.engine.feed.Feed._bound", property(lambda _: -1))
        patch.setattr(Staging, "set_aside", fault)


@pytest.mark.parametrize("fault", [full, broken])
def test_snapshots_that_cannot_be_written_are_written_later(
    db: Database, monkeypatch: pytest.MonkeyPatch, fault: Callable[..., Any]
) -> None:
    """Results need no snapshot: they come all the same."""
    db.sql("SET snapshot_s = 0.1")
    view = db._context.engine.find_view("w")
    assert view is not None
    with monkeypatch.context() as patch:
        patch.setattr(SnapshotFile, "prepare", fault)
        for first in range(0, 15, 5):
            overdue(db)
            put(db, first, 5)
            db.flush()
        check(db, 15)
        assert view.pipelines[0].kept == 0
    db.flush()
    check(db, 15)
    overdue(db)
    put(db, 15, 1)
    db.flush()
    check(db, 16)
    assert view.pipelines[0].kept > 0


def overdue(db: Database) -> None:
    """The next firing writes snapshots."""
    for query in db._context.engine.all():
        query.keeper.looked_at = 0.0
    for pipeline in db._context.pipelines._found.values():
        pipeline.keeper.looked_at = 0.0


def test_attempts_come_by_themselves_with_growing_pauses(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[None] = []

    def twice_full(log: Any, results: Any) -> Any:
        if log.next == 0 and len(attempts) < 3:
            attempts.append(None)
            full()
        return append(log, results)

    from headwater.engine.results import ResultLog

    append = ResultLog.append
    monkeypatch.setattr(ResultLog, "append", twice_full)
    with headwater.connect(folder, settings=OFFLINE) as db:
        db.sql("CREATE STREAMING TABLE t (v INT, ts INT NOT NULL) TIMESTAMP BY ts")
        db.sql("CREATE CONTINUOUS QUERY q AS SELECT v FROM t [ROWS 1] SAMPLE 1 ROWS")
        with db.subscribe("q", after="earliest", timeout=PATIENCE_S) as reader:  # type: ignore[union-attr]
            db.insert("t", [(7, 1)])
            assert next(iter(reader)).table.column("v").to_pylist() == [7]
        assert len(attempts) == 3


def test_pauses_double_up_to_their_bound() -> None:
    waiting = retries.Retries()
    now, pauses = 0.0, []
    for _ in range(12):
        waiting.failed("q", now)
        at = waiting.wake_at()
        assert at is not None
        assert waiting.take(at - 0.01) is None
        assert waiting.take(at) == "q"
        pauses.append(round(at - now, 6))
        now = at
    assert pauses[:4] == [0.1, 0.2, 0.4, 0.8]
    assert pauses[-1] == retries.LONGEST_PAUSE_S
    waiting.forget("q")
    waiting.failed("q", now)
    assert waiting.wake_at() == now + retries.FIRST_PAUSE_S


def test_flush_names_what_has_failed_with_its_cause(db: Database, tmp_path: Path) -> None:
    db.sql("CREATE STREAMING TABLE u (v INT, ts INT NOT NULL) TIMESTAMP BY ts LATE REJECT")
    db.sql("CREATE CONTINUOUS QUERY bad AS SELECT v FROM u [ROWS 1] SAMPLE 1 ROWS")

    def rows() -> Iterator[tuple[int, int]]:
        yield 1, 10
        raise RuntimeError("no more of this")

    db.create_function("rows", rows, returns="TABLE(v INT, ts INT)", kind="table")
    db.sql("CREATE SOURCE s INTO u FROM 'python:rows'")
    sources = db._context.sources
    assert sources.wait_until(lambda: sources.statuses()[0].state == "failed", PATIENCE_S)
    error = refusal(db.flush)
    assert "source s has failed" in error.message
    assert "no more of this" in (error.detail or "")
    db.sql("DROP SOURCE s")
    db.flush()

    def fire() -> int:
        raise DataError("1 is too much", sqlstate="22003")

    db._context.engine.find("bad").fire = fire  # type: ignore[union-attr, method-assign]
    db.insert("u", [(1, 11)])
    error = refusal(db.flush)
    assert "query bad has failed" in error.message
    assert "22003" in (error.detail or "")
    db.sql("DROP QUERY bad")
    db.flush()


def test_a_source_keeps_the_rows_that_found_no_room(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An iterator gives its rows once."""
    from headwater.connectors import runner

    monkeypatch.setattr(runner, "FIRST_PAUSE_S", 0.001)
    db.sql("CREATE STREAMING TABLE u (v INT, ts INT NOT NULL) TIMESTAMP BY ts")
    attempts: list[None] = []
    insert = StreamingTable.insert

    def seldom(table: StreamingTable, *arguments: Any, **more: Any) -> int:
        attempts.append(None)
        if table.definition.name == "u" and len(attempts) % 3:
            full()
        return insert(table, *arguments, **more)

    monkeypatch.setattr(StreamingTable, "insert", seldom)
    db.create_function(
        "rows",
        lambda: iter([(n, n) for n in range(50)]),
        returns="TABLE(v INT, ts INT)",
        kind="table",
    )
    db.sql("CREATE SOURCE s INTO u FROM 'python:rows' WITH (batch_rows = 7)")
    sources = db._context.sources
    assert sources.wait_until(lambda: sources.statuses()[0].state == "finished", PATIENCE_S)
    assert db.sql("SELECT v FROM u").rows() == [(n,) for n in range(50)]


def test_errors_that_may_pass() -> None:
    assert may_pass(storage_error("write", "x", OSError(errno.ENOSPC, "")))
    assert may_pass(OSError(errno.EIO, ""))
    assert may_pass(OSError(errno.EMFILE, ""))
    assert not may_pass(OSError(errno.EACCES, ""))
    assert not may_pass(ConnectionRefusedError())
    assert not may_pass(StorageError("damaged", sqlstate="XX001"))
    assert not may_pass(ValueError())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MB; only root can mount one."""
    where = tmp_path / "small"
    where.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(where)]
    made = subprocess.run(command, capture_output=True)
    if made.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {made.stderr.decode().strip()}")
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", str(where)], check=True)


def test_a_disk_that_is_really_full_three_times(small_disk: Path) -> None:
    """What was acknowledged is answered exactly once there is room again; nothing is restarted."""
    settings = {**OFFLINE, "insert_timeout_s": 5.0, "block_age_s": 0.2, "snapshot_s": 0.1}
    settings |= {"wal_segment_mb": 1}
    source, stored = random.Random(7), 0
    with headwater.connect(small_disk / "data", settings=settings) as db:
        db.sql("CREATE STREAMING TABLE t (v STRING, ts BIGINT NOT NULL) TIMESTAMP BY ts")
        windows = "FROM t [INTERVAL '2' SECONDS BEFORE] SAMPLE INTERVAL '1' SECOND"
        db.sql(f"CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n {windows}")
        db.sql("CREATE CONTINUOUS QUERY a AS SELECT ts FROM t [ROWS 1] SAMPLE 1 ROWS")
        db.sql("CREATE VIEW w AS SELECT count(*) AS n, max(v) AS v FROM t")
        for _ in range(3):
            filler = small_disk / "filler"
            free = subprocess.run(
                ["df", "-B1", "--output=avail", str(small_disk)], capture_output=True
            )
            filler.write_bytes(bytes(max(int(free.stdout.split()[-1]) - (3 << 20), 0)))
            refused = None
            while refused is None:
                try:
                    db.insert("t", [(source.randbytes(20_000).hex(), stored)], batch_id=f"{stored}")
                    stored += 1
                except StorageError as error:
                    refused = error
            assert refused.sqlstate == "53100"
            with contextlib.suppress(Error):
                db.flush()  # what needs no room may have gone on
            filler.unlink()
            db.insert("t", [("x", stored)], batch_id=f"{stored}")
            stored += 1
            db.flush()
            assert db.sql("SELECT n FROM w").rows() == [(stored,)]
            expected = [(min(second, 2), second) for second in range(stored)]
            assert db.sql("SELECT n, _t FROM m").rows() == expected
            found = [out.table.column("ts")[0].as_py() for out in kept(db, "a")]
            assert found == list(range(stored))
