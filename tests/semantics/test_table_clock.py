"""A row from the far future: refused where the wall clock tells, and mended where it got in."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headwater.database import Database
from headwater.errors import Error
from headwater.storage.streaming import micro_batch
from headwater.storage.streaming.set_clock import set_clock
from tests.crash.stream_store import Opened, rows_of, scanned
from tests.sources.feeding import deliver

OFFLINE = {"eager_spark": False}
PATIENCE_S = 30.0
FAR = 4_102_444_800  # the year 2100, in seconds
Connect = Callable[..., Database]


def now(**more: float) -> datetime:
    return datetime.now(UTC) + timedelta(**more)


def refusal(act: Callable[[], object], sqlstate: str) -> Error:
    with pytest.raises(Error) as caught:
        act()
    assert caught.value.sqlstate == sqlstate, caught.value
    return caught.value


@pytest.fixture
def db(folder: Path, connect: Connect) -> Database:
    return connect(folder, settings=OFFLINE)


def clock(db: Database, table: str = "t") -> str | None:
    found = db.sql(f"SELECT clock FROM headwater.tables WHERE name = '{table}'").rows()
    return found[0][0]  # type: ignore[no-any-return]


# The bound


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("TIMESTAMP", lambda at: at),
        ("TIMESTAMP_NTZ", lambda at: at.replace(tzinfo=None)),
        ("DATE", lambda at: at.date()),
    ],
)
def test_a_time_too_far_beyond_the_wall_clock_is_refused(
    db: Database, type_: str, value: Callable[[datetime], Any]
) -> None:
    db.sql(f"CREATE STREAMING TABLE t (id INT, at {type_} NOT NULL) TIMESTAMP BY at")
    db.insert("t", [(1, value(datetime(2020, 1, 1, tzinfo=UTC))), (2, value(now(hours=-1)))])
    before = clock(db)
    far = value(datetime(2100, 1, 1, tzinfo=UTC))
    error = refusal(lambda: db.insert("t", [(3, far), (4, value(now()))]), "22008")
    for name in ("max_clock_ahead_s", "max_clock_ahead =", "SET MAX_CLOCK_AHEAD"):
        assert name in (error.hint or "")
    refusal(lambda: db.advance("t", far), "22008")
    refusal(lambda: db.insert_together({"t": pa.table({"id": [3], "at": [far]})}), "22008")
    assert clock(db) == before
    assert db.sql("SELECT id FROM t").rows() == [(1,), (2,)]
    db.insert("t", [(5, value(now(hours=23)))])
    db.sql("SET max_clock_ahead_s = 0")
    db.insert("t", [(6, far)])
    assert (clock(db) or "").startswith("2100")


def test_the_bound_counts_from_the_clock_if_that_is_ahead(db: Database) -> None:
    """Simulated times in the future come with an option, and go on from there."""
    db.sql(
        "CREATE STREAMING TABLE t (at TIMESTAMP NOT NULL) TIMESTAMP BY at"
        " WITH (max_clock_ahead = INTERVAL '100000' DAYS)"
    )
    first = datetime(2100, 1, 1, tzinfo=UTC)
    db.insert("t", [(first,)])
    db.sql("ALTER TABLE t SET MAX_CLOCK_AHEAD INTERVAL '1' HOUR")
    db.insert("t", [(first + timedelta(minutes=50),)])
    db.insert("t", [(first + timedelta(minutes=100),)])
    refusal(lambda: db.insert("t", [(first + timedelta(hours=9),)]), "22008")
    db.sql("ALTER TABLE t SET MAX_CLOCK_AHEAD INTERVAL '0' SECONDS")  # no bound
    db.insert("t", [(first + timedelta(days=900),)])
    db.sql("ALTER TABLE t SET MAX_CLOCK_AHEAD DEFAULT")
    refusal(lambda: db.insert("t", [(first + timedelta(days=902),)]), "22008")


def test_the_option_outlives_a_restart_and_is_refused_for_integers(
    folder: Path, connect: Connect
) -> None:
    with connect(folder, settings=OFFLINE) as db:
        db.sql("CREATE STREAMING TABLE t (at DATE NOT NULL) TIMESTAMP BY at")
        db.sql("ALTER TABLE t SET MAX_CLOCK_AHEAD INTERVAL '100000' DAYS")
        db.sql("CREATE STREAMING TABLE i (at BIGINT NOT NULL) TIMESTAMP BY at")
        refusal(lambda: db.sql("ALTER TABLE i SET MAX_CLOCK_AHEAD INTERVAL '1' DAY"), "22023")
        with_option = "WITH (max_clock_ahead = INTERVAL '1' DAY)"
        text = f"CREATE STREAMING TABLE j (at INT) TIMESTAMP BY at {with_option}"
        refusal(lambda: db.sql(text), "22023")
    with connect(folder, settings=OFFLINE) as db:
        db.insert("t", [(date(2100, 1, 1),)])
        db.insert("i", [(FAR,)])  # no wall clock: no bound
        assert clock(db, "i") == str(FAR)


def test_a_source_goes_on_after_a_row_from_the_future_and_its_clock_too(db: Database) -> None:
    """The row is stored and waits; nobody is late because of it."""
    db.sql("CREATE STREAMING TABLE t (id INT, at TIMESTAMP NOT NULL) TIMESTAMP BY at")
    base = now(hours=-1).replace(microsecond=0)
    far = datetime(2100, 1, 1, tzinfo=UTC)
    rows = [(0, base), (1, base + timedelta(seconds=1)), (2, far), (3, base + timedelta(seconds=2))]
    db.create_function(
        "rows", lambda: iter(rows), returns="TABLE(id INT, at TIMESTAMP)", kind="table"
    )
    db.sql("CREATE SOURCE s INTO t FROM 'python:rows' WITH (batch_rows = 1)")
    sources = db._context.sources
    assert sources.wait_until(lambda: sources.statuses()[0].state == "finished", PATIENCE_S)
    assert db.sql("SELECT id, _late FROM t").rows() == [
        (0, False),
        (1, False),
        (3, False),
        (2, False),
    ]
    assert clock(db) == str(base + timedelta(seconds=2))
    assert db.sql("SELECT id FROM t [ROWS 2]").rows() == [(3,), (1,)]


@pytest.mark.parametrize("watermark", [0, 5])
def test_a_micro_batch_with_a_row_from_the_future(
    folder: Path, connect: Connect, watermark: int
) -> None:
    """Executors tell the clock what it must know, also of the rows beside the wrong one."""
    base = now(hours=-1).replace(microsecond=0)
    times = [base + timedelta(seconds=n) for n in range(10)]
    far = datetime(2100, 1, 1, tzinfo=UTC)
    for _ in range(2):  # the second time after a restart
        with connect(folder, settings=OFFLINE) as db:
            if not db.sql("SHOW TABLES").rows():
                db.sql(
                    "CREATE STREAMING TABLE t (id INT, at TIMESTAMP NOT NULL) TIMESTAMP BY at"
                    f" WATERMARK INTERVAL '{watermark}' SECONDS"
                )
                table = db._context.streaming_table("t")
                micro_batch.tell(table, "add", "s")
                rows = pa.table({"id": pa.array(range(11), pa.int32()), "at": [*times, far]})
                deliver(table, "s", 0, rows.cast(table.schema))
            table = db._context.streaming_table("t")
            table._clock.validate()
            assert clock(db) == str(times[9 - watermark])
            assert table._clock.waiting_count == 1 + watermark


# The clock set back


HISTORY = "CREATE STREAMING TABLE t (id INT, t BIGINT NOT NULL) TIMESTAMP BY t RANGE INTERVAL 1 DAY"


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("restarted", [False, True])
def test_history_comes_back_after_a_row_of_the_year_2100(
    folder: Path, connect: Connect, sealed: bool, restarted: bool
) -> None:
    """D3: a table of integers has no wall clock to compare with; RANGE hid everything."""
    db = connect(folder, settings=OFFLINE)
    db.sql(HISTORY)
    db.insert("t", pa.table({"id": pa.array(range(1000), pa.int32()), "t": list(range(1000))}))
    if sealed:
        db.seal()
    db.insert("t", [(-1, FAR)])
    db.insert("t", [(1000, 1000)])  # honest, acknowledged, late and hidden
    assert db.sql("SELECT id FROM t").rows() == [(-1,)]
    db.seal()
    for _ in range(3):
        db._context.streams.keep_once()
    if restarted:
        db.close()
        db = connect(folder, settings=OFFLINE)
        db._context.streams.keep_once()
    db.sql("ALTER TABLE t SET CLOCK TO 999")
    expected = [*((n, False) for n in range(1000)), (1000, True)]
    assert db.sql("SELECT id, _late FROM t").rows() == [*expected, (-1, False)]
    assert db.sql("SELECT id FROM t [ROWS 2]").rows() == [(999,), (998,)]
    db.insert("t", [(1001, 1001)])
    assert clock(db) == "1001"
    db.close()
    with connect(folder, settings=OFFLINE) as db:
        assert db.sql("SELECT id, _late FROM t").rows() == [*expected, (1001, False), (-1, False)]
        assert db.sql("SELECT id FROM t [ROWS 2]").rows() == [(1001,), (1000,)]
        assert clock(db) == "1001"


def test_files_go_once_they_were_hidden_for_long_enough(db: Database) -> None:
    db.sql(HISTORY)
    db.insert("t", [(1, 1)])
    db.seal()
    table = db._context.streaming_table("t")
    (file,) = table.folder.rglob("*.parquet")
    db.insert("t", [(2, FAR)])
    assert table.expire() == 0
    table._hidden_since = dict.fromkeys(table._hidden_since, time.monotonic() - 601)
    assert table.expire() == 1
    db.sql("SET removed_files_kept_s = 0")
    table.collect_garbage()
    assert not file.exists()


def test_a_clock_goes_back_only(db: Database) -> None:
    db.sql("CREATE STREAMING TABLE t (t INT NOT NULL) TIMESTAMP BY t")
    error = refusal(lambda: db.sql("ALTER TABLE t SET CLOCK TO 5"), "22023")
    assert "has none yet" in (error.detail or "")
    db.insert("t", [(10,)])
    error = refusal(lambda: db.sql("ALTER TABLE t SET CLOCK TO 11"), "22023")
    assert "ADVANCE" in (error.hint or "")
    db.sql("CREATE STREAMING TABLE a (v INT)")
    refusal(lambda: db.sql("ALTER TABLE a SET CLOCK TO 11"), "55000")
    db.sql("ALTER TABLE t SET CLOCK TO 10")
    assert clock(db) == "10"


def test_delivered_results_are_never_taken_back(db: Database) -> None:
    """A query that has answered later instants stands in the way; others go on exactly."""
    db.sql("CREATE STREAMING TABLE t (v INT, t INT NOT NULL) TIMESTAMP BY t UPDATE KEY (v)")
    sampled = "SELECT count(*) AS n FROM t [INTERVAL '2' SECONDS BEFORE] SAMPLE INTERVAL '1' SECOND"
    db.sql(f"CREATE CONTINUOUS QUERY q AS {sampled}")
    db.sql(f"CREATE MATERIALIZED VIEW m AS {sampled}")
    db.sql("CREATE CONTINUOUS QUERY u AS SELECT v, t FROM t WITH APPEND")
    db.sql("CREATE VIEW w AS SELECT count(*) AS n FROM t")
    db.insert("t", [(n, n) for n in range(5)])
    db.flush()
    db.sql("PAUSE QUERY q")
    db.insert("t", [(9, 90)])
    db.flush()
    error = refusal(lambda: db.sql("ALTER TABLE t SET CLOCK TO 4"), "55000")
    assert "results of m, u" in error.message
    assert clock(db) == "90"
    db.sql("DROP MATERIALIZED VIEW m")
    db.sql("DROP QUERY u")
    db.sql("ALTER TABLE t SET CLOCK TO 4")
    db.sql("RESUME QUERY q")
    db.insert("t", [(5, 5), (6, 6)])
    db.flush()
    with db.subscribe("q", after="earliest", timeout=0) as reader:  # type: ignore[union-attr]
        found = [(int(str(out.time)), out.table.column("n")[0].as_py()) for out in reader]
    assert found == [(0, 0), (1, 1), (2, 2), (3, 2), (4, 2), (5, 2), (6, 2)]
    assert db.sql("SELECT n FROM w").rows() == [(8,)]


def test_a_clock_is_set_while_many_insert(db: Database) -> None:
    """Rows that were on their way are all there, and wait or count as the clock says."""
    db.sql("CREATE STREAMING TABLE t (v INT, t INT NOT NULL) TIMESTAMP BY t")
    table = db._context.streaming_table("t")
    db.insert("t", [(0, 1)])
    stop, counts = threading.Event(), [0] * 4

    def write(number: int) -> None:
        while not stop.is_set():
            db.insert("t", [(number, 100 + counts[number])])
            counts[number] += 1

    writers = [threading.Thread(target=write, args=[n]) for n in range(4)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(20):
            before = sum(counts)
            set_clock(table, 1)
            table.barrier()
            assert sum(counts) >= before
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    table._clock.validate()
    set_clock(table, 1)
    assert len(db.sql("SELECT * FROM t")) == 1 + sum(counts)
    in_time = sum(not late for (late,) in db.sql("SELECT _late FROM t").rows())
    assert table._clock.waiting_count == in_time - 1
    assert clock(db) == "1"


@pytest.mark.parametrize("zone", ["+02:00", "Etc/GMT-2"])
def test_times_of_statements_are_in_the_zone_of_the_session(
    folder: Path, connect: Connect, zone: str
) -> None:
    with connect(folder, settings=OFFLINE) as db:
        db.sql("CREATE STREAMING TABLE t (id INT, at TIMESTAMP NOT NULL) TIMESTAMP BY at")
        db.sql(f"SET time_zone = '{zone}'")
        db.sql("INSERT INTO t VALUES (1, TIMESTAMP '2020-01-01 10:00:00')")
        assert clock(db) == "2020-01-01 08:00:00+00:00"
        db.sql("ADVANCE t TO TIMESTAMP '2020-01-01 12:00:00'")
        assert clock(db) == "2020-01-01 10:00:00+00:00"
        db.sql("ADVANCE t TO '2020-01-01 13:00:00'")
        assert clock(db) == "2020-01-01 11:00:00+00:00"
        assert db._context.kernel.status.state == "not started"


def test_a_row_that_is_deleted_while_it_waits_moves_no_clock(
    folder: Path, connect: Connect
) -> None:
    created = "CREATE STREAMING TABLE t (id INT, t BIGINT NOT NULL) TIMESTAMP BY t"
    with connect(folder, settings=OFFLINE) as db:
        db.sql(f"{created} WATERMARK INTERVAL 5 SECONDS")
        db.sql("INSERT INTO t VALUES (1, 10), (2, 20), (3, 21)")
        table = db._context.streaming_table("t")
        assert (clock(db), table._clock.waiting_count) == ("10", 2)
        db.sql("DELETE FROM t")
        assert (clock(db), table._clock.waiting_count) == ("10", 0)
        db.sql("INSERT INTO t VALUES (4, 26)")  # 20 and 21 would be released
        assert clock(db) == "10"
        db.sql("INSERT INTO t VALUES (5, 18)")
        assert db.sql("SELECT id, _late FROM t").rows() == [(5, False), (4, False)]
        table._clock.validate()
    with connect(folder, settings=OFFLINE) as db:
        assert clock(db) == "18"


def test_no_file_goes_after_its_rows_are_seen_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Upkeep has found a compartment hidden; the clock is set back before it is dropped."""
    with Opened(folder, removed_files_kept_s=0) as opened:
        table = opened.create("t", range_ticks=10, compartments=2)
        table.insert(rows_of([1, 2, 3]))
        opened.store.seal(table)
        real, found = table.replace, list[list[int]]()

        def read() -> None:
            set_clock(table, 3)
            found.append([t for (t,) in scanned(table, ("t",))])

        thread = threading.Thread(target=read)

        def replaced(*given: Any) -> Any:
            thread.start()
            thread.join(0.3)
            return real(*given)

        monkeypatch.setattr(table, "replace", replaced)
        with table.upkeep:  # the upkeep in the background comes later
            table.insert(rows_of([1000], 9))
            table.expire()
        thread.join(PATIENCE_S)
        assert [t for (t,) in scanned(table, ("t",))] == found[0] == [1000]
