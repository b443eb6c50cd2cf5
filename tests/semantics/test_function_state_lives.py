"""What happens to the state of functions when something goes wrong: errors, failed writes, damage (EQ8)."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import headwater
from headwater.errors import StorageError
from tests.harness.actions import CreateFunction, Flush, Insert, Kill, Sql, run

INLINE = {"eager_spark": False, "removed_files_kept_s": 0}  # what RANGE hides goes at once
PER_CHUNK = "SELECT ts, total(v) AS t FROM s CUT ON ts BY INTERVAL '10' SECOND KEEP 2 CHUNKS"


class Total:
    """A running sum that counts how often it was called in this process."""

    calls = 0

    def __init__(self) -> None:
        self.total = 0

    def __call__(self, v: int) -> int:
        type(self).calls += 1
        self.total += v
        return self.total


def _open(folder: Path, function: Any = Total, **settings: Any) -> headwater.Database:
    db = headwater.connect(folder, settings={**INLINE, **settings})
    if function is not None:
        db.create_function("total", function, returns="INT", state="query")
    return db


def _create(db: headwater.Database, kind: str = "STREAM", query: str = PER_CHUNK) -> None:
    db.sql(f"CREATE {kind} s (ts INT, v INT) TIMESTAMP BY ts")
    db.sql(f"CREATE CONTINUOUS QUERY q AS {query}")


def _feed(db: headwater.Database, first: int, last: int) -> None:
    db.insert("s", [(ts, ts) for ts in range(first, last)])
    db._context.engine.flush()  # whether a query fails or not


def _totals(db: headwater.Database) -> dict[int, set[int]]:
    """By T the values that results have shown."""
    found: dict[int, set[int]] = {}
    db._context.engine.flush()
    for out in db.subscribe("q", after="earliest", timeout=0.01):
        for ts, total, *_ in out.rows():
            found.setdefault(ts, set()).add(total)
    return found


def _expected(last: int) -> dict[int, set[int]]:
    return {ts: {ts * (ts + 1) // 2} for ts in range(last)}


def _state(db: headwater.Database) -> tuple[str, str]:
    found = db.sql("SELECT state, error FROM headwater.queries WHERE name = 'q'").rows()[0]
    return found[0], str(found[1])


def test_each_row_is_called_once(tmp_path: Path) -> None:
    """While a row is in windows its value is remembered; after a clean end nothing is called again."""
    Total.calls = 0
    with _open(tmp_path) as db:
        _create(db)
        _feed(db, 0, 41)
        assert Total.calls == 40  # the row at 40 waits for its chunk
    with _open(tmp_path) as db:
        _feed(db, 41, 61)
        assert Total.calls == 60
        assert _totals(db) == _expected(60)


def test_an_exception_stops_the_query_and_a_better_function_goes_on(tmp_path: Path) -> None:
    """Good chunks are answered, the error names function and row; after RESUME each row counts once,
    also those that were called before the error."""

    class Fails(Total):
        def __call__(self, v: int) -> int:
            self.total += 1000 * (v == 25)  # half done when it fails
            if v == 25:
                raise ValueError("not this one")
            return super().__call__(v)

    with _open(tmp_path, Fails) as db:
        _create(db)
        _feed(db, 0, 60)
        state, error = _state(db)
        assert state == "failed"
        assert "function total failed for the row at 25: ValueError: not this one" in error
        with pytest.raises(headwater.Error):
            _totals(db)
        db.create_function("total", Total, returns="INT", state="query")
        db.sql("RESUME QUERY q")
        assert _totals(db) == _expected(50)


@pytest.mark.parametrize("failures", [1, 2])
def test_a_result_that_could_not_be_written_calls_nothing_twice(
    failures: int, tmp_path: Path
) -> None:
    """The write fails once or twice and is tried again: values go on as if it had not."""
    with _open(tmp_path) as db:
        _create(db)
        _feed(db, 0, 15)
        query = db._context.engine.find("q")
        assert query is not None
        log: Any = db._context.streams.find(query.number)
        real, left = log.insert, [failures]

        def fail(*given: Any, **named: Any) -> Any:
            if left[0]:
                left[0] -= 1
                raise StorageError("no space", sqlstate="53100")
            return real(*given, **named)

        log.insert = fail
        _feed(db, 15, 65)
        assert _totals(db) == _expected(60)


def test_values_wait_until_their_result_is_written(tmp_path: Path) -> None:
    """A firing over many chunks that fails after its calls: the next try begins with an empty chunk,
    and the chunks after it still find their values."""
    with _open(tmp_path) as db:
        _create(db)
        _feed(db, 0, 15)
        db.advance("s", 50)
        db.flush()
        query: Any = db._context.engine.find("q")
        log: Any = db._context.streams.find(query.number)
        real, left = log.insert, [1]

        def fail(*given: Any, **named: Any) -> Any:
            if left[0]:
                left[0] -= 1
                raise StorageError("no space", sqlstate="53100")
            return real(*given, **named)

        log.insert = fail
        _feed(db, 65, 121)
        after = sum(range(15))
        wanted = {ts: {after + sum(range(65, ts + 1))} for ts in range(65, 120)}
        assert _totals(db) == {**_expected(15), **wanted}


def test_a_query_waits_for_the_function_that_it_was_made_with(tmp_path: Path) -> None:
    """Not registered, or with another type or life span: the query waits and says for what; a stream
    and a table with RANGE keep its rows."""
    with _open(tmp_path) as db:
        _create(db, "STREAMING TABLE")
        db.sql("DROP QUERY q")
        db.sql("ALTER TABLE s SET RANGE INTERVAL 20 SECONDS")
        db.sql(f"CREATE CONTINUOUS QUERY q AS {PER_CHUNK}")
        _feed(db, 0, 15)
    with _open(tmp_path, None) as db:
        for returns, state in (("BIGINT", "query"), ("INT", "chunk")):
            db.create_function("total", Total, returns=returns, state=state)
            state_now, error = _state(db)
            assert state_now == "failed"
            assert 'returns="INT", state="query"' in error
        _feed(db, 15, 90)
        db.seal()
        db._context.streams.keep_once()
        db.create_function("total", Total, returns="INT", state="query")
        assert _totals(db) == _expected(80)


def test_state_that_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    """At once if it begins so; when the snapshot comes if it becomes so. In memory it may be anything."""

    class Locked(Total):
        def __init__(self) -> None:
            super().__init__()
            self.lock = threading.Lock()

    def later(state: dict[str, Any], v: int) -> int:
        state["lock"] = threading.Lock()
        return v

    with _open(tmp_path, None, snapshot_s=0.1) as db:
        with pytest.raises(headwater.Error, match="state of function total cannot be pickled"):
            db.create_function("total", Locked, returns="INT", state="query")
        db.create_function("total", Locked, returns="INT", state="chunk")
        _create(db)
        _feed(db, 0, 20)
        assert _state(db)[0] == "running"
        db.sql("DROP QUERY q")
        db.create_function("total", later, returns="INT", state="query")
        db.sql(f"CREATE CONTINUOUS QUERY q AS {PER_CHUNK}")
        query: Any = db._context.engine.find("q")
        _feed(db, 20, 31)
        query.keeper.looked_at = 0.0
        _feed(db, 31, 51)
        state, error = _state(db)
        assert state == "failed"
        assert "cannot be pickled" in error


def test_a_damaged_snapshot_is_not_taken_for_the_truth(tmp_path: Path) -> None:
    """Results that would not go on as they were are not given: the query stops and says why."""
    with _open(tmp_path) as db:
        _create(db)
        _feed(db, 0, 25)
    file = next((tmp_path / "snapshots").glob("*-functions.snapshot"))
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with _open(tmp_path) as db:
        _feed(db, 25, 35)
        state, error = _state(db)
        assert state == "failed"
        assert "state of function total is lost or damaged" in error
        db.sql("DROP QUERY q")
        assert not file.exists()


@pytest.mark.large
def test_rows_that_are_deleted_were_called_all_the_same(tmp_path: Path) -> None:
    """DELETE takes rows from windows, not from state, also if the process dies right after it."""
    before = [
        CreateFunction("total", Total, "INT", "query"),
        Sql("CREATE STREAMING TABLE s (ts INT, v INT) TIMESTAMP BY ts"),
        Sql(f"CREATE CONTINUOUS QUERY q AS {PER_CHUNK}"),
        Insert("s", [(ts, ts) for ts in range(12)]),
        Flush(),  # the first firing leaves a snapshot
        Insert("s", [(ts, ts) for ts in range(12, 25)]),
        Flush(),
        Sql("DELETE FROM s WHERE ts < 15"),
        Kill(),
    ]
    run(before, tmp_path, {**INLINE, "snapshot_s": 3600.0})
    with _open(tmp_path) as db:
        _feed(db, 25, 45)
        assert _totals(db) == _expected(40)


@pytest.mark.parametrize(
    ("query", "oldest"),
    [
        (PER_CHUNK, 99),
        ("SELECT ts, total(v) AS t FROM s CUT BY 10 ROWS KEEP 2 CHUNKS", 99),
        ("SELECT ts, total(v) AS t, per_chunk(v) AS c FROM s [ROWS 7] SAMPLE 5 ROWS", 99),
        ("SELECT ts, per_chunk(v) AS c FROM s [ROWS 7] SAMPLE 5 ROWS", 120),
        ("SELECT ts, per_scan(v) AS c FROM s [ROWS 7] SAMPLE 5 ROWS", 123),
    ],
)
def test_a_stream_lets_go_of_rows_that_nothing_needs(
    query: str, oldest: int, tmp_path: Path
) -> None:
    """Rows stay that a restart needs: those since the snapshot, of whole chunks, of the window; no others."""
    with _open(tmp_path) as db:
        for life in ("chunk", "scan"):
            db.create_function(f"per_{life}", Total, returns="INT", state=life)
        _create(db, query=query)
        engine: Any = db._context.engine
        _feed(db, 0, 101)
        engine.find("q").put_away()
        _feed(db, 101, 131)
        table: Any = db._context.stream("s")
        assert table._horizon == oldest
    with _open(tmp_path) as db:
        for life in ("chunk", "scan"):
            db.create_function(f"per_{life}", Total, returns="INT", state=life)
        _feed(db, 131, 151)
        if "total" in query:
            assert _totals(db) == _expected(150)
