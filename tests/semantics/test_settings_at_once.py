"""Every setting that is not fixed acts on what is there already, from the moment of its SET.

One check for each: it makes its objects under the defaults, SETs, and sees the other behaviour. A setting
without a check fails the test.
"""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater
from headwater.database import Database
from headwater.errors import OverloadError
from headwater.factories.line import Line
from headwater.factories.process import TaskProcess
from headwater.factories.seat import Seat
from headwater.kernel.cancellation import Cancellation
from headwater.kernel.restarts import Restarts
from headwater.kernel.spark import SparkProcess
from headwater.server.counts import Counts
from headwater.server.http.server import HttpServer
from headwater.server.peers import Peer
from headwater.server.wire.guests import Guests
from headwater.server.wire.server import WireServer
from headwater.settings import TABLE, Settings
from headwater.sql.caller import Caller
from headwater.storage.streaming.table import StreamingTable
from tests.harness.patience import PATIENCE_S, until
from tests.server.live import LiveServer

psycopg: Any = pytest.importorskip("psycopg", reason="psycopg is not installed")

CHECKS: dict[str, Callable[[Database, Path], None]] = {}
LASTING = {"block_age_s": 1000.0, "block_mb": 1000}  # nothing is sealed by itself
BY_CHECK = {"block_mb": {"block_age_s": 1000.0}, "block_age_s": {"block_mb": 1000}}
MEBIBYTE = 1 << 20


def check(act: Callable[[Database, Path], None]) -> Callable[[Database, Path], None]:
    """A check has the name of its setting."""
    CHECKS[act.__name__] = act
    return act


@pytest.mark.parametrize("name", [setting.name for setting in TABLE if not setting.fixed])
def test_a_setting_acts_on_what_is_there(name: str, folder: Path) -> None:
    settings = {"eager_spark": False, **BY_CHECK.get(name, LASTING)}
    with headwater.connect(folder, settings=settings) as db:
        CHECKS[name](db, folder)


# What the checks share


def made(db: Database, more: str = "") -> StreamingTable:
    """A table t."""
    db.sql(f"CREATE STREAMING TABLE t (v STRING, ts BIGINT NOT NULL) TIMESTAMP BY ts {more}")
    return db._context.streaming_table("t")


def put(db: Database, first: int, count: int = 1, width: int = 1) -> None:
    rows = {"v": ["x" * width] * count, "ts": list(range(first, first + count))}
    db.insert("t", pa.table(rows))


def query(db: Database, more: str = "") -> Any:
    """A continuous query q over t."""
    db.sql(
        f"CREATE CONTINUOUS QUERY q {more} AS SELECT count(*) AS n FROM t [INTERVAL '10' SECONDS]"
        " SAMPLE INTERVAL '1' SECOND"
    )
    return db._context.engine.find("q")


def update_query(db: Database) -> Any:
    made(db, "UPDATE KEY (v)")
    db.sql("CREATE CONTINUOUS QUERY q AS SELECT v, ts FROM t WITH UPDATES")
    found = db._context.engine.find_named("q")
    assert found is not None
    return found


def view(db: Database) -> Any:
    made(db)
    db.sql("CREATE VIEW w AS SELECT v, count(*) AS n FROM t GROUP BY v")
    found = db._context.engine.find_view("w")
    assert found is not None
    return found


def stop_keeper(db: Database) -> None:
    """Upkeep is the test's own from here on."""
    streams = db._context.streams
    streams._stopping = True
    streams.wake()
    streams._keeper.join()


def blocks(db: Database, count: int) -> None:
    """So many small blocks of t."""
    for number in range(count):
        put(db, number)
        db._context.streams.seal_all()


# Kernel


@check
def start_timeout_s(db: Database, _: Path) -> None:
    waited: list[float] = []

    class Starting:
        error = None
        owned = True

        def wait(self, timeout_s: float, _check: object) -> None:
            waited.append(timeout_s)
            raise OverloadError("it never starts")

    kernel: Any = db._context.kernel
    kernel._process = Starting()
    db.sql("SET start_timeout_s = 7.5")
    try:
        with pytest.raises(OverloadError):
            kernel._started(Cancellation())
    finally:
        kernel._process = None
    assert waited == [7.5]


def pause_after_an_end(db: Database) -> float | None:
    """How long a Spark that just ended waits before it is started again."""
    pauses: list[float | None] = []
    process: Any = object.__new__(SparkProcess)
    process.owned, process.settings, process._restarts = True, db._context.settings, Restarts()
    process.stopping, process._changed = True, threading.Condition()
    process._listeners = [print]  # a database is open
    process._say_ended = lambda _why, pause: pauses.append(pause)
    process._clear = process._settle = lambda *_: None
    process._ended("a test")
    return pauses[0]


@check
def spark_restarts(db: Database, _: Path) -> None:
    assert pause_after_an_end(db) == 0.25
    db.sql("SET spark_restarts = 0")
    assert pause_after_an_end(db) is None


@check
def spark_restart_pause_s(db: Database, _: Path) -> None:
    db.sql("SET spark_restart_pause_s = 0.1")
    assert pause_after_an_end(db) == 0.1


@check
def statement_timeout_users_s(db: Database, _: Path) -> None:
    db.sql("SET statement_timeout_users_s = 600")
    assert db._limit(Caller("reader"))[0] == 600
    assert db._limit(Caller("admin"))[0] == 0, "an admin has no limit"


class Somebody:
    """A connection that nobody is behind."""

    def __init__(self, address: str) -> None:
        self.peer, self.counts, self.gone = Peer(address), Counts(), False

    def give_up(self, _error: object) -> None:
        self.gone = True


@check
def connections_reserved(db: Database, _: Path) -> None:
    guests: Any = Guests(db.setting)
    assert guests.admit(Somebody("a"), admin=False) is not None
    db.sql(f"SET connections_reserved = {guests.most - 1}")
    assert guests.admit(Somebody("b"), admin=False) is None
    assert guests.admit(Somebody("c"), admin=True) is not None


def gone_of(db: Database, addresses: Callable[[int], str]) -> int:
    """How many of a few more than `connections` that do not log in are sent away."""
    guests: Any = Guests(db.setting)
    crowd = [Somebody(addresses(number)) for number in range(guests.most + 3)]
    for each in crowd:
        guests.greet(each)
    return sum(each.gone for each in crowd)


@check
def waiting_logins(db: Database, _: Path) -> None:
    assert gone_of(db, str) == 0
    db.sql("SET waiting_logins = 1")
    assert gone_of(db, str) == 3


@check
def waiting_logins_per_address(db: Database, _: Path) -> None:
    db.sql("SET waiting_logins_per_address = 1000")
    assert gone_of(db, lambda _number: "a") == 0
    db.sql("SET waiting_logins_per_address = 1")
    assert gone_of(db, lambda _number: "a") == 3


@check
def login_timeout_s(db: Database, _: Path) -> None:
    with LiveServer(db) as server:
        db.sql("SET login_timeout_s = 0.1")
        with socket.create_connection((server.host, server.port), timeout=PATIENCE_S) as silent:
            assert silent.recv(1) == b"", "it is cut off"


@check
def statement_timeout_s(db: Database, _: Path) -> None:
    assert db._limit(Caller("admin"))[0] == 0
    db.sql("SET statement_timeout_s = 600")
    assert db._limit(Caller("admin"))[0] == 600


@check
def time_zone(db: Database, _: Path) -> None:
    db.sql("CREATE STREAMING TABLE t (at TIMESTAMP NOT NULL) TIMESTAMP BY at")
    db.sql("SET time_zone = 'Europe/Berlin'")
    db.sql("ADVANCE t TO TIMESTAMP '2026-01-01 01:00:00'")
    with db._context.streaming_table("t").reading() as snapshot:
        assert snapshot.clock == datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1_000_000


@check
def staging_mb(db: Database, _: Path) -> None:
    staging = db._context.kernel.staging
    if staging._memory is None:
        pytest.skip("this machine has no shared memory")
    assert staging._place(2 * MEBIBYTE) == staging._memory
    db.sql("SET staging_mb = 1")
    assert staging._place(2 * MEBIBYTE) != staging._memory


@check
def change_mb(db: Database, _: Path) -> None:
    db.sql("CREATE TABLE t (a INT)")
    db.sql("INSERT INTO t VALUES (1), (2), (3)")
    kernel, written = db._context.kernel, list[object]()
    write = kernel.write

    def watched(work: Any, *rest: Any) -> Any:
        written.append(work)
        return write(work, *rest)

    kernel.write = watched  # type: ignore[method-assign]
    assert db.sql("DELETE FROM t WHERE a = 1").row_count == 1
    assert not written
    db.sql("SET change_mb = 0")
    assert db.sql("DELETE FROM t WHERE a = 2").row_count == 1
    assert written


def _who_answers(db: Database) -> str:
    return str(db.sql("EXPLAIN SELECT sum(a) AS s FROM t").rows()[0][0])


@check
def select_rows(db: Database, _: Path) -> None:
    db.sql("CREATE TABLE t (a INT)")
    db.sql("INSERT INTO t VALUES (1), (2), (3)")
    db.sql("SET select_rows = 3")
    assert _who_answers(db) == "run by operators"
    db.sql("SET select_rows = 2")
    assert _who_answers(db) == "run by Spark"


@check
def select_mb(db: Database, _: Path) -> None:
    db.sql("CREATE TABLE t (a INT)")
    db.sql("INSERT INTO t VALUES (1), (2), (3)")
    db.sql("SET select_rows = 100")
    assert _who_answers(db) == "run by operators"
    db.sql("SET select_mb = 0")
    assert _who_answers(db) == "run by Spark"


@check
def frames_held(db: Database, _: Path) -> None:
    gone: list[int] = []

    def hold(number: int) -> None:
        held = ExitStack()
        held.callback(gone.append, number)
        db._context.frames.hold(held)

    for number in range(3):
        hold(number)
    assert gone == []
    db.sql("SET frames_held = 2")
    hold(3)
    assert gone == [0, 1]


# Streaming tables


@check
def removed_files_kept_s(db: Database, _: Path) -> None:
    table = made(db)
    blocks(db, 1)
    (file,) = table.folder.rglob("*.parquet")
    with table.upkeep:
        table.replace(list(table.blocks), None)
    assert file.exists()
    db.sql("SET removed_files_kept_s = 0")
    until(lambda: not file.exists())


@check
def block_rows(db: Database, _: Path) -> None:
    table = made(db)
    put(db, 0, 3000)
    db.sql("SET block_rows = 1000")
    db._context.streams.seal_all()
    assert [block.row_count for block in table.blocks] == [1000, 1000, 1000]


@check
def block_mb(db: Database, _: Path) -> None:
    table = made(db)
    put(db, 0, 2, MEBIBYTE)
    assert not table.due()
    db.sql("SET block_mb = 1")
    until(lambda: not table.tail_bytes)


@check
def block_age_s(db: Database, _: Path) -> None:
    table = made(db)
    put(db, 0)
    assert not table.due()
    db.sql("SET block_age_s = 0.05")
    until(lambda: not table.tail_bytes)


@check
def unsealed_mb(db: Database, _: Path) -> None:
    table = made(db)
    put(db, 0, 2, MEBIBYTE)
    stop_keeper(db)
    db.sql("SET unsealed_mb = 1; SET insert_timeout_s = 0.1")
    with pytest.raises(OverloadError, match="wait to be written to blocks"):
        put(db, 2)
    assert table.due()


@check
def view_queue_rows(db: Database, _: Path) -> None:
    """The bound holds from the view's creation: it has folded nothing yet."""
    made(db)
    put(db, 0, 50)  # rows that were there before hold nobody back
    found = view_that_does_not_fold(db)
    put(db, 50, 9)
    db.sql("SET view_queue_rows = 5; SET insert_timeout_s = 0.1")
    with pytest.raises(OverloadError, match="view_queue_rows is 5"):
        put(db, 59)
    db.sql("RESET view_queue_rows")
    put(db, 59)
    found.lock.release()
    assert db.sql("SELECT n FROM w").rows() == [(60,)]


def view_that_does_not_fold(db: Database) -> Any:
    """The pipeline of a view w, locked from its creation on."""
    pipelines = db._context.pipelines
    join = pipelines.join

    def locked(*arguments: Any) -> Any:
        found = join(*arguments)
        found.lock.acquire()
        return found

    pipelines.join = locked  # type: ignore[method-assign]
    db.sql("CREATE VIEW w AS SELECT v, count(*) AS n FROM t GROUP BY v")
    pipelines.join = join  # type: ignore[method-assign]
    found = db._context.engine.find_view("w")
    assert found is not None
    return found.pipelines[0]


@check
def recent_mb(db: Database, _: Path) -> None:
    table = made(db)
    blocks(db, 1)
    assert table._memory
    db.sql("SET recent_mb = 0")
    until(lambda: not table._memory)


@check
def insert_timeout_s(db: Database, _: Path) -> None:
    """Also of one who waits already."""
    made(db)
    found = view_that_does_not_fold(db)
    db.sql("SET view_queue_rows = 1")
    put(db, 0, 2)
    refused: list[BaseException] = []

    def insert() -> None:
        try:
            put(db, 2)
        except OverloadError as error:
            refused.append(error)

    waiting = threading.Thread(target=insert)
    waiting.start()
    began = time.monotonic()
    db.sql("SET insert_timeout_s = 0.1")
    waiting.join()
    found.lock.release()
    assert refused
    assert time.monotonic() - began < 20  # the default is 30
    queue: Any = db._context.streams._wal._queue
    assert queue._timeout_s() == 0.1


@check
def max_clock_ahead_s(db: Database, _: Path) -> None:
    db.sql("CREATE STREAMING TABLE t (at TIMESTAMP NOT NULL) TIMESTAMP BY at")
    ahead = [(datetime.now(UTC) + timedelta(minutes=10),)]
    db.sql("SET max_clock_ahead_s = 60")
    with pytest.raises(headwater.Error, match="too far ahead"):
        db.insert("t", ahead)
    db.sql("RESET max_clock_ahead_s")
    db.insert("t", ahead)


@check
def sidecar_mb(db: Database, _: Path) -> None:
    table = made(db)
    blocks(db, 2)
    db.sql("CREATE INDEX i ON t (v)")
    db.seal()
    sidecar = table.indexes.sidecar
    assert sidecar is not None
    assert len(sidecar) == 2
    db.sql("SET sidecar_mb = 0")
    until(lambda: not len(sidecar))


@check
def index_lag_blocks(db: Database, _: Path) -> None:
    table = made(db)
    stop_keeper(db)
    blocks(db, 12)
    db.sql("CREATE INDEX i ON t (v)")
    db._context.streams._keep_table(table, False)
    assert table.indexes.largest_lag(table.blocks) == 8
    db.sql("SET index_lag_blocks = 1")
    db._context.streams._keep_table(table, False)
    assert table.indexes.largest_lag(table.blocks) <= 1


@check
def compact_files(db: Database, _: Path) -> None:
    table = made(db)
    blocks(db, 3)
    assert table.compact() == 0
    db.sql("SET compact_files = 2")
    assert table.compact() == 3


@check
def dedup_window_s(db: Database, _: Path) -> None:
    made(db)
    row = [{"v": "x", "ts": 1}]
    assert db.insert("t", row, batch_id="b") == 1
    table = db._context.streaming_table("t")
    table._ids["b"] -= 100  # stored a while ago
    db.sql("SET block_age_s = 0.05")
    until(lambda: not table.tail_bytes)
    assert db.insert("t", row, batch_id="b") == 0
    db.sql("SET dedup_window_s = 1")
    put(db, 2)
    until(lambda: "b" not in table._ids)


# Continuous queries


@check
def inline_rows(db: Database, _: Path) -> None:
    made(db)
    found = query(db)
    db.sql(
        "CREATE CONTINUOUS QUERY j AS SELECT count(*) AS n FROM t [INTERVAL '3' SECONDS] a"
        " JOIN t [INTERVAL '3' SECONDS] b ON a.v = b.v SAMPLE INTERVAL '1' SECOND"
    )
    joined = db._context.engine.find("j")
    assert joined is not None
    assert {fold.tier for fold in [*found.folds, *joined.folds]} == {"operators"}
    db.sql("SET inline_rows = 0")
    assert [fold.tier for fold in found.folds] == ["Spark"]
    assert all(fold.is_elsewhere for fold in joined.folds)  # made again at the next firing


@check
def rows_at_once(db: Database, _: Path) -> None:
    made(db)
    found = query(db)
    db.sql("SET rows_at_once = 2")
    runs = found.counters.operator_runs
    put(db, 0, 9)
    db.flush()
    assert found.counters.operator_runs > runs + 2
    assert found.counters.rows_on_spark == 0


@check
def spark_sql_only(db: Database, _: Path) -> None:
    made(db)
    found = query(db)
    assert [fold.tier for fold in found.folds] == ["operators"]
    db.sql("SET spark_sql_only = true")
    assert [fold.tier for fold in found.folds] == ["Spark"]
    db.sql("SET spark_sql_only = false")
    assert [fold.tier for fold in found.folds] == ["operators"]


@check
def factory_timeout_s(db: Database, _: Path) -> None:
    ours, theirs = socket.socketpair()  # nobody answers at the other end
    with ours, theirs, subprocess.Popen(["sleep", "600"]) as hangs:
        seat = Seat(1, db._context)
        seat.line, seat.process = Line(ours, "factory 1", 0, lambda: None), TaskProcess(hangs.pid)
        feel = db._factories._jobs._feel
        feel(seat)  # the pulse goes out
        feel(seat)
        assert hangs.poll() is None
        db.sql("SET factory_timeout_s = 1")
        line = seat.line

        def ended() -> bool:
            feel(seat)
            return line.ended.is_set()

        until(ended)
        assert hangs.wait(PATIENCE_S) == -signal.SIGKILL
        seat.process.close()


@check
def basket_mb(db: Database, _: Path) -> None:
    made(db)
    found = query(db)
    put(db, 0)
    db.flush()
    feed = found.readers[0].feed
    feed._most_bytes = 0
    put(db, 1, 2, MEBIBYTE)
    db.flush()
    assert not feed.is_full
    db.sql("SET basket_mb = 1")
    put(db, 3, 2, MEBIBYTE)
    db.flush()
    assert feed._bound == MEBIBYTE


@check
def update_target_ms(db: Database, _: Path) -> None:
    found = update_query(db)
    db.sql("SET update_target_ms = 777")
    put(db, 0)
    db.flush()
    assert found.sizer.target_s == 0.777


@check
def update_queue_rows(db: Database, _: Path) -> None:
    found = update_query(db)
    db.sql("SET update_queue_rows = 1000")
    assert found._room == 1000


@check
def results_kept(db: Database, _: Path) -> None:
    made(db)
    found = query(db)
    put(db, 0, 20)
    db.flush()
    log = found.sink.log
    assert log.next - log.first == 19
    db.sql("SET results_kept = 2")
    put(db, 20)
    db.flush()
    assert log.next - log.first == 2


@check
def results_mb(db: Database, _: Path) -> None:
    made(db)
    db.sql("CREATE CONTINUOUS QUERY q AS SELECT v FROM t [ROWS 1] SAMPLE 1 ROWS")
    found = db._context.engine.find("q")
    assert found is not None
    for number in range(3):
        db.insert("t", [(random.randbytes(MEBIBYTE).hex(), number)])
    db.flush()
    log: Any = found.sink.log  # type: ignore[attr-defined]
    assert log.next - log.first == 3
    db.sql("SET results_mb = 1")
    put(db, 3)
    db.flush()
    assert log.next - log.first < 3


@check
def view_state_mb(db: Database, _: Path) -> None:
    found = view(db)
    put(db, 0)
    db.flush()
    assert not found.pipelines[0].runs
    db.sql("SET view_state_mb = 0")
    put(db, 1)
    db.flush()
    assert found.pipelines[0].runs


@check
def view_versions(db: Database, _: Path) -> None:
    found = view(db)
    for number in range(4):
        put(db, number)
        db.sql("SELECT * FROM w")
    assert len(found.versions._kept) == 4
    db.sql("SET view_versions = 1")
    put(db, 4)
    db.sql("SELECT * FROM w")
    assert len(found.versions._kept) == 1


@check
def max_empty_instants(db: Database, _: Path) -> None:
    made(db)
    found = query(db)
    put(db, 0)
    db.sql("SET max_empty_instants = 2")
    db.advance("t", 500)
    db.flush()
    assert found.results < 50


@check
def snapshot_s(db: Database, _: Path) -> None:
    made(db)
    found = query(db)
    put(db, 0, 3)
    db.flush()
    found.keeper.settle()
    found.keeper.looked_at = before = time.monotonic() - 1.0
    put(db, 3)
    db.flush()
    assert found.keeper.looked_at == before
    db.sql("SET snapshot_s = 0.1")
    put(db, 4)
    db.flush()
    assert found.keeper.looked_at > before


# Server


@check
def http_idle_s(db: Database, _: Path) -> None:
    server = HttpServer(db)
    db.sql("SET http_idle_s = 3")
    assert server.idle_s == 3


@check
def http_stall_s(db: Database, _: Path) -> None:
    server = HttpServer(db)
    db.sql("SET http_stall_s = 3")
    assert server.stall_s == 3


@check
def drain_s(db: Database, _: Path) -> None:
    """Of a server that runs."""
    waited: list[float] = []
    all_ended = WireServer._all_ended

    async def ended(server: WireServer, timeout_s: float) -> bool:
        waited.append(timeout_s)
        return await all_ended(server, timeout_s)

    with LiveServer(db) as server:
        server.server._all_ended = ended.__get__(server.server)
        db.sql("SET drain_s = 0.25")
    assert waited[0] == 0.25


@check
def message_mb(db: Database, _: Path) -> None:
    """Of a connection that is there, and of HTTP."""
    http = HttpServer(db)
    long = f"SHOW TABLES -- {'x' * 2 * MEBIBYTE}"
    with LiveServer(db) as server, psycopg.connect(server.dsn, autocommit=True) as client:
        client.execute(long)
        db.sql("SET message_mb = 1")
        with pytest.raises(psycopg.Error, match="1048576 bytes"):
            client.execute(long)
    assert http.largest_body == MEBIBYTE


@check
def copy_mb(db: Database, _: Path) -> None:
    """Of a connection that is there."""
    made(db)
    with LiveServer(db) as server, psycopg.connect(server.dsn, autocommit=True) as client:
        copy_in(client, 1, 2)
        db.sql("SET copy_mb = 1")
        with pytest.raises(psycopg.Error, match="copy_mb is 1"):
            copy_in(client, 2, 2)
    assert db.sql("SELECT ts FROM t").rows() == [(1,)]


def copy_in(client: Any, time: int, megabytes: int) -> None:
    with client.cursor().copy("COPY t FROM STDIN") as copy:
        copy.write(f"{'x' * megabytes * MEBIBYTE}\t{time}\n")


def test_a_count_of_changes_is_seen_after_the_value() -> None:
    """What is computed under a count must not be of an older value."""
    settings = Settings(environment={})
    before = settings.changes
    settings.set("block_mb", 7)
    assert settings.changes == before + 1
    with pytest.raises(headwater.Error):
        settings.set("block_mb", 0)
    assert settings.changes == before + 1
