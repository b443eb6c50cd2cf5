"""How an update query works under load: modes by load, queries that compete, and the bound of its queue."""

from __future__ import annotations

import threading
import time
from typing import Any

import pyarrow as pa
import pytest

import headwater
from headwater.engine import update_query
from headwater.engine.scheduler import Scheduler
from tests.harness.patience import PATIENCE_S, until

INLINE = {"eager_spark": False}
TABLE = "CREATE STREAMING TABLE {} (k INT, v INT) UPDATE KEY (k)"


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row costs 5 ms."""
    quick = update_query.results_of_rows

    def slowly(spec: Any, batch: Any, held: Any) -> pa.Table:
        time.sleep(len(batch) * 0.005)  # not a wait for progress: it is the cost of the rows
        return quick(spec, batch, held)

    monkeypatch.setattr(update_query, "results_of_rows", slowly)


def _mode(db: headwater.Database) -> str:
    return str(db.sql("SELECT mode FROM headwater.queries").rows()[0][0])


@pytest.mark.usefixtures("slow")
def test_a_query_that_is_behind_skips_and_returns_to_every_row() -> None:
    """WHEN BEHIND: append at first, updates under overload, append again when rows come slowly."""
    with headwater.connect(settings=INLINE) as db:
        db.sql(TABLE.format("s"))
        clause = "WITH UPDATES WHEN BEHIND INTERVAL '0.2' SECOND"
        db.sql(f"CREATE CONTINUOUS QUERY q AS SELECT k, v FROM s {clause}")
        assert _mode(db).endswith("now append")
        number = 0

        def behind() -> bool:
            nonlocal number
            db.insert("s", [(n % 5, n) for n in range(number, number + 40)])
            number += 40
            return _mode(db).endswith("now updates")

        def caught_up() -> bool:
            nonlocal number
            db.insert("s", [(0, number)])
            number += 1
            db.flush()
            return _mode(db).endswith("now append")

        until(behind)
        db.flush()
        until(caught_up)
        text = "SELECT rows_in, processed, superseded FROM headwater.staleness WHERE key IS NULL"
        rows_in, processed, superseded = db.sql(text).rows()[0]
        assert rows_in == number == processed + superseded
        assert superseded > 0


@pytest.mark.usefixtures("slow")
def test_keys_of_several_queries_compete(monkeypatch: pytest.MonkeyPatch) -> None:
    """One engine thread, two queries of unlike size under overload: the stalest keys are served first."""
    swaps: list[str] = []
    give_way = Scheduler.give_way

    def noted(self: Scheduler, claimed: str, other: str) -> None:
        swaps.append(other)
        give_way(self, claimed, other)
        self.validate()

    monkeypatch.setattr(Scheduler, "give_way", noted)
    with headwater.connect(settings={**INLINE, "engine_threads": 1}) as db:
        for name, keys in (("few", 2), ("many", 20)):
            db.sql(TABLE.format(name))
            db.sql(f"CREATE CONTINUOUS QUERY of_{name} AS SELECT k, v FROM {name} WITH UPDATES")
            db.insert(name, [(n, 0) for n in range(keys)])
        text = "SELECT query_name, mean_application_staleness_s, processed FROM headwater.staleness"
        number, found = 0, {}

        def both_served() -> bool:
            nonlocal number, found
            number += 1
            db.insert("few", [(n, number) for n in range(2)])
            db.insert("many", [(n, number) for n in range(20)])
            found = {row[0]: row[1:] for row in db.sql(f"{text} WHERE key IS NULL").rows()}
            return len(swaps) > 10 and found["of_few"][1] > 20 and found["of_many"][1] > 200

        until(both_served)
        db.flush()
        assert db.sql("SELECT k FROM of_many WHERE v = " + str(number)).arrow().num_rows == 20
    assert found["of_many"][1] > found["of_few"][1]
    assert found["of_many"][0] < 10 * found["of_few"][0]


@pytest.mark.usefixtures("slow")
def test_an_append_queue_beside_it_does_not_keep_an_update_query_waiting() -> None:
    """One engine thread, far too many rows: the append query takes its turns and no more."""
    with headwater.connect(settings={**INLINE, "engine_threads": 1}) as db:
        db.sql(TABLE.format("s"))
        db.sql("CREATE CONTINUOUS QUERY every AS SELECT k, v FROM s WITH APPEND")
        db.sql("CREATE CONTINUOUS QUERY latest AS SELECT k, v FROM s WITH UPDATES")
        text = "SELECT query_name, processed FROM headwater.staleness WHERE key IS NULL"
        number, done = 0, {}

        def both_served() -> bool:
            nonlocal number, done
            db.insert("s", [(n, number) for n in range(5)])
            number += 1
            done = dict(db.sql(text).rows())
            return done["every"] > 0 and done["latest"] >= 100

        until(both_served)
        db.sql("DROP CONTINUOUS QUERY every")  # it would take a long time
        assert done["every"] < 4 * done["latest"]


def test_rows_beyond_the_bound_wait_in_the_basket() -> None:
    """More keys than the queue may hold: all are processed, none is lost, and the counts add up."""
    with headwater.connect(settings={**INLINE, "update_queue_rows": 1000}) as db:
        db.sql(TABLE.format("s"))
        db.sql("CREATE CONTINUOUS QUERY q AS SELECT k, v FROM s WITH UPDATES")
        db.sql("CREATE CONTINUOUS QUERY every AS SELECT k, v FROM s WITH APPEND")
        db.insert("s", [(n, n) for n in range(5000)])
        db.flush()
        for name in ("q", "every"):
            assert db.sql(f"SELECT k FROM {name}").arrow().num_rows == 5000
        text = "SELECT rows_in, processed FROM headwater.staleness WHERE key IS NULL"
        assert db.sql(text).rows() == [(5000, 5000), (5000, 5000)]


@pytest.mark.parametrize("kind", ["LAZY", "EAGER"])
def test_windows_that_hold_too_many_rows_stop_the_query(kind: str) -> None:
    """A window that cannot close is refused beyond the bound, with what to do."""
    with headwater.connect(settings={**INLINE, "update_queue_rows": 1000}) as db:
        db.sql("CREATE STREAMING TABLE s (ts INT, k INT) TIMESTAMP BY ts UPDATE KEY (k)")
        text = "SELECT k, count(*) AS n FROM s [INTERVAL 1 HOUR] GROUP BY k SAMPLE INTERVAL 1 HOUR"
        db.sql(f"CREATE CONTINUOUS QUERY q AS {text} WITH UPDATES WINDOWS {kind}")
        db.insert("s", [(1, n) for n in range(3000)])
        until(lambda: db.sql("SELECT state FROM headwater.queries").rows() == [("failed",)])
        with pytest.raises(headwater.Error, match="query q has failed"):
            db.flush()
        ((error,),) = db.sql("SELECT error FROM headwater.queries").rows()
        assert "hold too many rows" in error


def test_a_lost_snapshot_means_that_keys_are_processed_again(tmp_path: Any) -> None:
    """Results that the log has dropped are made again from the table."""
    settings = {**INLINE, "results_kept": 3}
    with headwater.connect(tmp_path, settings=settings) as db:
        db.sql("CREATE STREAMING TABLE s (ts INT, k INT, v INT) TIMESTAMP BY ts UPDATE KEY (k)")
        db.sql("CREATE CONTINUOUS QUERY q AS SELECT k, v FROM s WITH UPDATES")
        for number in range(20):
            db.insert("s", [(number, number % 7, number)])
            db.flush()
        before = sorted(db.sql("SELECT * FROM q").rows())
    for file in (tmp_path / "snapshots").glob("*.snapshot"):
        file.unlink()
    with headwater.connect(tmp_path, settings=settings) as db:
        db.flush()
        assert (
            sorted(db.sql("SELECT * FROM q").rows())
            == before
            == [(k, v, v) for k, v in sorted({n % 7: n for n in range(20)}.items())]
        )


def test_a_query_waits_for_its_python_function(tmp_path: Any) -> None:
    """After a restart it is dormant until the function is registered again, then it catches up."""

    def twice(v: int) -> int:
        return 2 * v

    with headwater.connect(tmp_path) as db:
        db.create_function("twice", twice, returns="INT")
        db.sql("CREATE STREAMING TABLE s (ts INT, k INT, v INT) TIMESTAMP BY ts UPDATE KEY (k)")
        db.sql("CREATE CONTINUOUS QUERY q AS SELECT k, twice(v) AS w FROM s WITH UPDATES")
        db.insert("s", [(1, 1, 10)])
        db.flush()
        assert db.sql("SELECT * FROM q").rows() == [(1, 20, 1)]
    with headwater.connect(tmp_path) as db:
        with pytest.raises(headwater.Error, match="twice is not registered"):
            db.sql("SELECT * FROM q")
        db.insert("s", [(2, 1, 11), (3, 2, 12)])
        db.create_function("twice", twice, returns="INT")
        db.flush()
        assert sorted(db.sql("SELECT * FROM q").rows()) == [(1, 22, 2), (2, 24, 3)]


@pytest.mark.here
@pytest.mark.parametrize("advance", ["ADVANCE s TO 20", "INSERT INTO s VALUES (21, 3)"])
def test_windows_are_stale_from_when_the_clock_closed_them(
    advance: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not from the next look at the table: the query was busy with another key meanwhile."""
    began, turns = threading.Semaphore(0), threading.Semaphore(0)
    quick = update_query.results_of_windows

    def in_turn(spec: Any, batch: Any, held: Any) -> pa.Table:
        began.release()
        assert turns.acquire(timeout=PATIENCE_S)
        return quick(spec, batch, held)

    monkeypatch.setattr(update_query, "results_of_windows", in_turn)
    with headwater.connect(settings=INLINE) as db:
        db.sql("CREATE STREAMING TABLE s (ts INT, k INT) TIMESTAMP BY ts UPDATE KEY (k)")
        text = "SELECT k, count(*) AS n FROM s [INTERVAL 10 SECONDS BEFORE] GROUP BY k"
        text += " SAMPLE INTERVAL 10 SECONDS WITH UPDATES WINDOWS LAZY"
        db.sql(f"CREATE CONTINUOUS QUERY q AS {text}")
        db.insert("s", [(1, 1), (11, 2)])
        assert began.acquire(timeout=PATIENCE_S)  # with key 1
        db.sql(advance)
        closed = time.monotonic()
        time.sleep(0.2)  # not a wait for progress: for so long the query is busy
        turns.release()
        assert began.acquire(timeout=PATIENCE_S)
        busy_s = time.monotonic() - closed
        columns = "queue_staleness_s, application_staleness_s, mean_queue_staleness_s"
        text = f"SELECT {columns} FROM headwater.staleness WHERE key = '2'"
        ((in_queue, application, mean),) = db.sql(text).rows()
        turns.release(10)
        assert in_queue == 0
        assert busy_s <= application < busy_s + PATIENCE_S
        assert mean > 0
        db.flush()
