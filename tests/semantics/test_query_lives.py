"""Continuous queries through their lives: errors, pauses, restarts, failed writes (ST5, ST6, DC3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headwater
from headwater.errors import StorageError
from tests.harness.patience import PATIENCE_S, until

INLINE = {"eager_spark": False}
COUNT = "SELECT count(*) AS n, sum(v) AS t FROM s [INTERVAL 10 SECONDS] SAMPLE INTERVAL 10 SECONDS"


def _results(db: headwater.Database, name: str) -> list[Any]:
    found = db.subscribe(name, after="earliest", timeout=0.2)
    return [(out.time, out.rows()) for out in found]


def _table(db: headwater.Database, kind: str = "STREAMING TABLE", more: str = "") -> None:
    db.sql(f"CREATE {kind} s (ts INT, v INT) TIMESTAMP BY ts {more}")


def _feed(db: headwater.Database, first: int, last: int) -> None:
    for second in range(first, last):
        db.insert("s", [(second, 1)])


def test_an_error_inside_a_query_stops_that_query_only() -> None:
    """The instants before the failing one are answered, other queries go on; RESUME catches up."""
    with headwater.connect() as db:
        db.sql("CREATE STREAMING TABLE s (ts INT, v STRING) TIMESTAMP BY ts")
        db.sql(
            "CREATE CONTINUOUS QUERY bad AS SELECT CAST(v AS INT) AS i FROM s [ROWS 1] SAMPLE REALTIME"
        )
        db.sql(
            "CREATE CONTINUOUS QUERY good AS SELECT count(*) AS n FROM s [ROWS 9] SAMPLE REALTIME"
        )
        db.insert("s", [(1, "1"), (2, "2"), (3, "x"), (4, "4")])
        db.advance("s", 4)
        with pytest.raises(headwater.Error, match="query bad has failed"):
            db.flush()
        states = dict(db.sql("SELECT name, state FROM headwater.queries").rows())
        assert states == {"bad": "failed", "good": "running"}
        with pytest.raises(headwater.Error):
            _results(db, "bad")
        assert len(_results(db, "good")) == 4
        db.sql("UPDATE s SET v = '3' WHERE ts = 3")
        db.sql("RESUME QUERY bad")
        db.flush()
        assert [rows[0][0] for _, rows in _results(db, "bad")] == [1, 2, 3, 4]


def test_a_query_over_arrival_times_follows_the_wall_clock() -> None:
    """One row is enough: instants come with the wall clock, without another commit."""
    with headwater.connect(settings=INLINE) as db:
        db.sql("CREATE STREAMING TABLE s (v INT)")
        db.sql("CREATE CONTINUOUS QUERY q AS SELECT count(*) AS n FROM s [INTERVAL '1' HOUR] "
               "SAMPLE INTERVAL '0.2' SECOND")  # fmt: skip
        db.insert("s", [(1,)])
        with db.subscribe("q", timeout=PATIENCE_S) as found:
            counts = [next(found).rows()[0][0] for _ in range(3)]
        assert counts == [1, 1, 1]


def test_a_stream_keeps_rows_for_a_query_that_is_behind(tmp_path: Path) -> None:
    """A paused query over a stream finds its rows after a restart, whatever faster ones have let go."""
    with headwater.connect(tmp_path, settings=INLINE) as db:
        _table(db, "STREAM")
        for name in ("a", "b"):
            db.sql(f"CREATE CONTINUOUS QUERY {name} AS {COUNT}")
        _feed(db, 0, 15)
        db.flush()
        db.sql("PAUSE QUERY b")
        _feed(db, 15, 100)
        db.flush()
    with headwater.connect(tmp_path, settings=INLINE) as db:
        _feed(db, 100, 121)
        db.flush()
        db.sql("RESUME QUERY b")
        db.flush()
        assert _results(db, "b") == _results(db, "a")


@pytest.mark.parametrize("emit", ["", " EMIT CHANGES"])
@pytest.mark.parametrize("failing", ["log", "view"])
def test_a_view_is_right_after_a_failed_write(emit: str, failing: str, tmp_path: Path) -> None:
    """The log or the view could not be written: after RESUME and a restart each row is there once."""
    with headwater.connect(tmp_path / "a", settings=INLINE) as db:
        _table(db)
        db.sql(f"CREATE MATERIALIZED VIEW m AS {COUNT}{emit}")
        query = db._context.engine.find("_m")
        assert query is not None
        _feed(db, 0, 15)
        db.flush()
        table: Any = db._context.streams.find(query.number if failing == "log" else 2)
        name = "insert" if failing == "log" else "store_result"
        real, full = getattr(table, name), [True]

        def fail(*given: Any, **named: Any) -> Any:
            if full[0]:
                raise StorageError("no space", sqlstate="53100")
            return real(*given, **named)

        setattr(table, name, fail)
        _feed(db, 15, 40)
        with pytest.raises(headwater.Error, match="materialized view m is retrying"):
            db.flush()
        full[0] = False
        db.sql("RESUME QUERY m")
        db.flush()
        rows = db.sql("SELECT * FROM m ORDER BY _t").rows()
    with headwater.connect(tmp_path / "a", settings=INLINE) as db:
        db.flush()
        assert db.sql("SELECT * FROM m ORDER BY _t").rows() == rows
    with headwater.connect(tmp_path / "b", settings=INLINE) as db:
        _table(db)
        db.sql(f"CREATE MATERIALIZED VIEW m AS {COUNT}{emit}")
        _feed(db, 0, 40)
        db.flush()
        assert db.sql("SELECT * FROM m ORDER BY _t").rows() == rows


def test_range_waits_for_a_paused_query_and_goes_on_when_it_is_dropped() -> None:
    """A query that was paused finds the rows of its windows; once it is gone RANGE takes them."""
    with headwater.connect(settings={**INLINE, "removed_files_kept_s": 0}) as db:
        _table(db, more="RANGE INTERVAL 20 SECONDS")
        db.sql(f"CREATE CONTINUOUS QUERY a AS {COUNT}")
        db.sql(f"CREATE CONTINUOUS QUERY b AS {COUNT}")
        _feed(db, 0, 11)
        db.flush()
        db.sql("PAUSE QUERY b")
        _feed(db, 11, 100)
        db.flush()
        db.seal()
        db._context.streams.keep_once()
        db.sql("RESUME QUERY b")
        db.flush()
        assert _results(db, "b") == _results(db, "a")
        for name in ("a", "b"):
            db.sql(f"KILL QUERY {name}")
        table: Any = db._context.streams.find(1)
        assert table._held_from is None


@pytest.mark.here
def test_early_rows_of_a_row_count_survive_a_rebuild() -> None:
    """SAMPLE n ROWS: rows folded before their instant are counted once when a table below changes (DC7)."""
    with headwater.connect(settings={"rows_at_once": 20}) as db:
        db.sql("CREATE STREAMING TABLE s (ts INT, v INT) TIMESTAMP BY ts")
        db.sql("CREATE TABLE names (v INT, w INT)")
        db.sql("INSERT INTO names VALUES (1, 1)")
        db.sql("CREATE CONTINUOUS QUERY q WITH (mode = 'fold') AS SELECT count(*) AS n, max(ts) AS m"
               " FROM s [ROWS 30] JOIN names USING (v) SAMPLE 20 ROWS")  # fmt: skip
        query = db._context.engine.find("q")
        assert query is not None
        _feed(db, 0, 35)
        db.flush()
        until(lambda: query.readers[0].early > 0)
        db.sql("INSERT INTO names VALUES (2, 2)")
        _feed(db, 35, 60)
        db.flush()
        assert [rows for _, rows in _results(db, "q")] == [
            [(20, 19, 19)], [(30, 39, 39)], [(30, 59, 59)]]  # fmt: skip


def test_a_trial_does_not_keep_flush_waiting() -> None:
    """While the other mode is on trial nothing is folded early, and nothing spins."""
    with headwater.connect(settings={**INLINE, "rows_at_once": 10}) as db:
        _table(db)
        db.sql(f"CREATE CONTINUOUS QUERY q AS {COUNT}")
        _feed(db, 0, 11)
        db.flush()
        query = db._context.engine.find("q")
        assert query is not None
        query.chooser._trial = []
        db.insert("s", [(second, 1) for second in range(11, 19)])
        db.flush()


def test_names_of_the_system_and_names_twice_are_refused() -> None:
    """`_t` is the instant; a result has each name once."""
    with headwater.connect(settings=INLINE) as db:
        _table(db)
        for select, state in (("v AS _t", "42602"), ("v, ts AS v", "42701")):
            with pytest.raises(headwater.Error) as caught:
                db.sql(
                    f"CREATE CONTINUOUS QUERY q AS SELECT {select} FROM s [ROWS 2] SAMPLE REALTIME"
                )
            assert caught.value.sqlstate == state
