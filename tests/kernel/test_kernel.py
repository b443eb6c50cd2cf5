"""Runs on Spark: many callers, cancelling, timeouts, versions of one name side by side."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import headwater
from headwater.errors import CancelledError, KernelError
from headwater.kernel.cancellation import Cancellation
from headwater.kernel.functions import SqlFunction
from headwater.kernel.kernel import Work, needed_functions
from tests.harness.patience import PATIENCE_S

Connect = Callable[..., headwater.Database]
ON_SPARK = "SELECT sum(id) FROM range(10)"  # after it Spark is there
# Spark looks whether a task was killed after each thousand rows of a range. In a cross join these can take
# minutes, and the next statement would wait for the task's slot.
SLOW = "SELECT sum(id % 7) FROM range(1000000000000)"


def test_one_name_with_different_rows_side_by_side(db: headwater.Database) -> None:
    kernel = db._context.kernel

    def ask(number: int) -> None:
        staged = kernel.staging.stage(pa.table({"v": [number] * (number + 1)}))
        found = kernel.run(Work("SELECT count(*) AS n, max(v) AS v FROM same", {"same": staged}))
        assert found.to_pylist() == [{"n": number + 1, "v": number}]
        kernel.staging.release(staged)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(16)))


def test_a_name_of_an_earlier_run_is_gone(db: headwater.Database) -> None:
    kernel = db._context.kernel
    staged = kernel.staging.stage(pa.table({"v": [1]}))
    assert kernel.run(Work("SELECT v FROM mine", {"mine": staged})).num_rows == 1
    with pytest.raises(headwater.Error, match="mine"):
        kernel.run(Work("SELECT v FROM mine"))


def test_eight_threads_read_and_write_the_same_tables(db: headwater.Database) -> None:
    db.sql("CREATE TABLE t (thread INT, n INT)")
    db.sql("CREATE TABLE fixed AS SELECT id AS n FROM range(100)")

    def work(thread: int) -> None:
        for n in range(2):
            db.insert("t", [(thread, n)])
            mine = db.sql(f"SELECT count(*), sum(n) FROM t WHERE thread = {thread}").rows()
            assert mine == [(n + 1, sum(range(n + 1)))]
        assert db.sql("SELECT sum(n) FROM fixed").rows() == [(4950,)]
        assert len(db.sql(f"SELECT n FROM t WHERE thread = {thread}")) == 2

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert db.sql("SELECT count(*), count(DISTINCT thread) FROM t").rows() == [(16, 8)]


def test_cancelling_from_another_thread(db: headwater.Database) -> None:
    db.sql(ON_SPARK)
    failed: list[headwater.Error] = []
    started = threading.Event()

    def ask() -> None:
        started.set()
        try:
            db.sql(SLOW)
        except headwater.Error as error:
            failed.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    started.wait()
    while not db._under_way:  # the statement is under way
        thread.join(0.01)
    thread.join(0.3)
    db.cancel()
    thread.join(PATIENCE_S)
    assert [e.sqlstate for e in failed] == ["57014"]
    assert db.sql("SELECT 1 + 1").rows() == [(2,)]


def test_cancelling_before_the_run(db: headwater.Database) -> None:
    cancellation = Cancellation()
    cancellation.cancel("no more")
    with pytest.raises(CancelledError, match="no more"):
        db._context.kernel.run(Work("SELECT 1"), cancellation)
    assert db.sql("SELECT 2 + 2").rows() == [(4,)]


def test_statement_timeout(db: headwater.Database) -> None:
    db.sql(ON_SPARK)
    db.sql("SET statement_timeout_s = 0.5")
    with pytest.raises(CancelledError, match=r"statement_timeout_s = 0\.5") as caught:
        db.sql(SLOW)
    assert caught.value.sqlstate == "57014"
    db.sql("SET statement_timeout_s = 0")
    assert db.sql("SELECT 1 + 1").rows() == [(2,)]


def test_a_cancelled_change_leaves_the_table(db: headwater.Database) -> None:
    db.sql("CREATE TABLE t AS SELECT id FROM range(10)")
    before = set(db._context.folder.tables.rglob("*"))
    db.sql("SET statement_timeout_s = 0.4")
    for statement in (
        f"INSERT INTO t {SLOW}",
        f"CREATE TABLE u AS {SLOW}",
        f"UPDATE t SET id = ({SLOW})",
    ):
        with pytest.raises(CancelledError):
            db.sql(statement)
    db.sql("RESET statement_timeout_s")
    assert set(db._context.folder.tables.rglob("*")) == before
    assert db.sql("SELECT count(*), sum(id) FROM t").rows() == [(10, 45)]


def test_closing_cancels_what_runs(connect: Connect) -> None:
    db = connect(":memory:")
    db.sql(ON_SPARK)
    failed: list[BaseException] = []

    def ask() -> None:
        try:
            db.sql(SLOW)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    while not db._under_way:
        thread.join(0.01)
    db.close()
    thread.join(PATIENCE_S)
    assert len(failed) == 1
    assert isinstance(failed[0], headwater.Error)
    with pytest.raises(headwater.Error, match="closed") as caught:
        db.sql("SELECT 1")
    assert caught.value.sqlstate == "08003"


def test_databases_of_one_process_do_not_see_each_other(connect: Connect) -> None:
    one, two = connect(":memory:"), connect(":memory:")
    one.sql("CREATE TABLE t AS SELECT 1 AS a")
    two.sql("CREATE TABLE t AS SELECT 2 AS a")
    one.sql("CREATE FUNCTION f() RETURNS INT RETURN 10")
    assert one.sql("SELECT max(a) + f() FROM t").rows() == [(11,)]
    assert two.sql("SELECT max(a) FROM t").rows() == [(2,)]
    with pytest.raises(headwater.Error) as caught:
        two.sql("SELECT f()")
    assert caught.value.sqlstate == "42883"


def test_another_master_in_the_same_process_is_refused(connect: Connect, folder: Path) -> None:
    connect(":memory:").sql(ON_SPARK)
    with pytest.raises(KernelError, match="already runs Spark") as caught:
        connect(folder, master="local[1]")
    assert caught.value.sqlstate == "55006"
    connect(folder).close()  # the folder was let go


def test_functions_are_needed_after_those_they_call() -> None:
    calls = {"fa": {"fc"}, "fb": set(), "fc": {"fb", "t"}, "fd": {"fd"}}
    functions = {n: SqlFunction(n, "", "INT", frozenset(c)) for n, c in calls.items()}
    assert needed_functions("select fa(1)", (), functions) == ["fb", "fc", "fa"]
    assert needed_functions("select 1", ("fd",), functions) == ["fd"]
    assert needed_functions("select 1", (), functions) == []
