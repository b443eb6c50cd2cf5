"""What views hold across restarts, deletes and other views: cases that once went wrong, each by itself."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import headwater
from headwater.engine.elsewhere import HostGone
from headwater.execute import views
from headwater.storage import footer
from headwater.storage.standard_table import StandardTable
from tests.harness.patience import PATIENCE_S, until

SETTINGS = {"eager_spark": False, "removed_files_kept_s": 0}  # what RANGE hides goes at once
SUMS = "SELECT k, count(*) AS n FROM {} GROUP BY k"
Connect = Callable[..., headwater.Database]


def pipelines(db: headwater.Database, view: str) -> Any:
    """The pipelines of a view."""
    found = db._context.engine.find_view(view)
    assert found is not None
    return found.pipelines


def rows(db: headwater.Database, view: str) -> list[tuple[Any, ...]]:
    """A view's rows in order."""
    return sorted(db.sql(f"SELECT * FROM {view}").rows())


def test_a_delete_right_after_a_restart_is_seen(folder: Path, connect: Connect) -> None:
    """A view whose state came from its snapshot, and that was not read since, counts no deleted row."""
    with headwater.connect(folder, settings=SETTINGS) as db:
        db.sql("CREATE STREAMING TABLE r (ts INT, k INT) TIMESTAMP BY ts")
        db.sql(f"CREATE VIEW v AS {SUMS.format('r')}")
        db.insert("r", [(1, 1), (2, 1)])
        assert rows(db, "v") == [(1, 2)]
    db = connect(folder, settings=SETTINGS)
    db.sql("DELETE FROM r")
    assert rows(db, "v") == []


def test_rows_that_nobody_read_yet_outlive_a_restart(folder: Path, connect: Connect) -> None:
    """An incremental view folds nothing before it is read: its stream keeps the rows."""
    with headwater.connect(folder, settings=SETTINGS) as db:
        db.sql("CREATE STREAM q (ts INT, k INT) TIMESTAMP BY ts")
        db.sql(f"CREATE VIEW now AS {SUMS.format('q')}")
        db.sql(f"CREATE VIEW v WITH (maintenance = 'incremental') AS {SUMS.format('q')}")
        db.insert("q", [(1, 1), (2, 1)])
        db.insert("q", [(9, 2)])
        db.flush()
        db._context.streams.seal_all()
    db = connect(folder, settings=SETTINGS)
    db._context.streams.keep_once()
    assert rows(db, "v") == rows(db, "now") == [(1, 2), (2, 1)]


def test_no_snapshot_is_made_of_rows_that_are_being_deleted(folder: Path, connect: Connect) -> None:
    """Between the end of the old snapshot and the commit of a DELETE nothing is put away."""
    db = connect(folder, settings=SETTINGS)
    db.sql("CREATE STREAMING TABLE r (ts INT, k INT) TIMESTAMP BY ts")
    db.sql(f"CREATE VIEW v AS {SUMS.format('r')}")
    db.insert("r", [(1, 1)])
    (pipeline,) = pipelines(db, "v")
    assert rows(db, "v") == [(1, 1)]
    table, replace = pipeline.place.table, pipeline.place.table.replace

    def watched(*given: Any) -> Any:
        pipeline.put_away()
        assert not list(folder.glob(f"**/*{pipeline.number}*"))
        return replace(*given)

    table.replace = watched
    db.sql("DELETE FROM r")
    assert rows(db, "v") == []
    db.insert("r", [(2, 2)])
    assert rows(db, "v") == [(2, 1)]
    pipeline.put_away()
    assert list(folder.glob(f"**/*{pipeline.number}*"))


@pytest.mark.here
def test_a_delete_leaves_the_state_of_other_tables_alone(folder: Path, connect: Connect) -> None:
    """A view over a table and a stream: rows of the stream are gone, so what is folded of them must stay."""
    db = connect(folder, settings=SETTINGS)
    db.sql("CREATE STREAMING TABLE r (ts INT, k INT) TIMESTAMP BY ts")
    db.sql("CREATE STREAM q (ts INT, k INT) TIMESTAMP BY ts")
    both = "SELECT a.n AS a, b.n AS b FROM (SELECT count(*) AS n FROM r) a, (SELECT count(*) AS n FROM q) b"
    db.sql(f"CREATE VIEW v AS {both}")
    db.insert("r", [(1, 1)])
    db.insert("q", [(1, 1), (2, 2)])
    assert rows(db, "v") == [(1, 2)]
    found = pipelines(db, "v")
    for pipeline in found:
        pipeline.put_away()
    db.sql("DELETE FROM r")
    kept = {p.place.table.definition.name: p.kept for p in found}
    assert kept == {"r": 0, "q": 2}
    assert rows(db, "v") == [(0, 2)]


@pytest.mark.parametrize("kind", ["STREAM", "STREAMING TABLE"])
def test_rows_that_come_while_a_view_is_made_are_counted(
    kind: str, folder: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another view has folded and put them away, and upkeep would let them go."""
    db = connect(folder, settings={**SETTINGS, "snapshot_s": 0.1})
    ranged = " RANGE INTERVAL 5 SECONDS" if kind == "STREAMING TABLE" else ""
    db.sql(f"CREATE {kind} q (ts INT, k INT) TIMESTAMP BY ts{ranged}")
    db.sql(f"CREATE VIEW first AS {SUMS.format('q')}")
    db.insert("q", [(0, 0)])
    pin = views.pin_static

    def slow(*given: Any) -> Any:
        for second in range(0, 40, 10):
            db.insert("q", [(second, 1)])
        assert rows(db, "first") == [(0, 1), (1, 4)]
        (pipeline,) = pipelines(db, "first")
        pipeline.put_away()
        db._context.engine._let_go_of(pipeline.place.table)
        db._context.streams.seal_all()
        db._context.streams.keep_once()
        return pin(*given)

    monkeypatch.setattr(views, "pin_static", slow)
    db.sql(f"CREATE VIEW second FROM NOW AS {SUMS.format('q')}")
    assert rows(db, "second") == [(1, 4)]


def test_a_late_row_beyond_range_counts(folder: Path, connect: Connect) -> None:
    """What RANGE hid when a view began is left out; what comes later counts, whatever its time."""
    with headwater.connect(folder, settings=SETTINGS) as db:
        db.sql("CREATE STREAMING TABLE g (ts INT, k INT) TIMESTAMP BY ts RANGE INTERVAL 5 SECONDS")
        db.insert("g", [(1, 1), (50, 2)])
        db.sql(f"CREATE VIEW v AS {SUMS.format('g')}")
        db.insert("g", [(2, 3)])
        assert rows(db, "v") == [(2, 1), (3, 1)]
    db = connect(folder, settings=SETTINGS)
    assert rows(db, "v") == [(2, 1), (3, 1)]


def test_a_view_that_cannot_start_guards_its_rows(folder: Path, connect: Connect) -> None:
    """Its rows are neither changed nor let go until it starts again or is dropped."""
    with headwater.connect(folder, settings=SETTINGS) as db:
        db.sql("CREATE STREAMING TABLE r (ts INT, k INT) TIMESTAMP BY ts")
        db.sql(f"CREATE VIEW v AS {SUMS.format('r')}")
        db.insert("r", [(1, 1)])
    db = connect(folder, settings=SETTINGS)
    context = db._context
    context.engine.remove("v")
    context.dormant["v"] = headwater.Error("it cannot start")
    with pytest.raises(headwater.Error, match="view v cannot start"):
        db.sql("DELETE FROM r")
    context.dormant.clear()
    assert db.sql("SELECT * FROM r").rows() == [(1, 1)]


def test_a_view_whose_function_is_missing_keeps_its_state(folder: Path, connect: Connect) -> None:
    """Another view with the same keys goes on meanwhile; both have every row in the end."""

    def doubled(v: int) -> int:
        return 2 * v

    with headwater.connect(folder, settings=SETTINGS) as db:
        db.create_function("doubled", doubled, returns="INT")
        db.sql("CREATE STREAM s (k INT, v INT)")
        db.sql("CREATE VIEW plain AS SELECT k, count(*) AS n FROM s GROUP BY k")
        db.sql("CREATE VIEW calling AS SELECT k, sum(doubled(v)) AS t FROM s GROUP BY k")
        db.insert("s", [(1, 1), (2, 2)])
    db = connect(folder, settings=SETTINGS)
    db.insert("s", [(1, 10)])
    assert rows(db, "plain") == [(1, 2), (2, 1)]
    with pytest.raises(headwater.Error, match="doubled"):
        rows(db, "calling")
    db.create_function("doubled", doubled, returns="INT")
    db.insert("s", [(2, 20)])
    assert rows(db, "calling") == [(1, 22), (2, 44)]
    assert rows(db, "plain") == [(1, 2), (2, 2)]


def test_a_lost_snapshot_is_told(folder: Path, connect: Connect) -> None:
    """A stream's rows that only the snapshot held are gone with it: no view counts from the middle."""
    with headwater.connect(folder, settings=SETTINGS) as db:
        db.sql("CREATE STREAM s (k INT)")
        db.sql(f"CREATE VIEW v AS {SUMS.format('s')}")
        db.insert("s", [(1,), (2,)])
        assert rows(db, "v") == [(1, 1), (2, 1)]
        pipelines(db, "v")[0].put_away()
        db.insert("s", [(1,)])
        db.seal()
        number = pipelines(db, "v")[0].number
    with headwater.connect(folder, settings=SETTINGS) as db:
        db.insert("s", [(2,)])
        db.seal()
        assert rows(db, "v") == [(1, 2), (2, 2)]
    (snapshot,) = [f for f in folder.rglob("*") if number in f.name]
    snapshot.unlink()
    db = connect(folder, settings=SETTINGS)
    db.insert("s", [(1,)])
    with pytest.raises(headwater.Error, match="rows of stream s that the view needs are gone"):
        rows(db, "v")


def test_a_delete_while_a_version_is_made_is_seen_by_the_next(
    folder: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version is known by the rows that were folded, not by those that are stored a moment later."""
    db = connect(folder, settings=SETTINGS)
    db.sql("CREATE STREAMING TABLE r (ts INT, k INT) TIMESTAMP BY ts")
    db.sql(f"CREATE VIEW v AS {SUMS.format('r')}")
    db.insert("r", [(1, 1)])
    view = db._context.engine.find_view("v")
    assert view is not None
    catch_up = view.catch_up

    def then_deleted() -> None:
        catch_up()
        monkeypatch.undo()
        db.sql("DELETE FROM r")

    monkeypatch.setattr(view, "catch_up", then_deleted)
    assert view.read().rows.to_pylist() == [{"k": 1, "n": 1}]
    assert rows(db, "v") == []


def test_a_table_that_changes_while_a_version_is_made_is_read_again(
    folder: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version of a table in a result's key is that of the rows that were read."""
    db = connect(folder, settings=SETTINGS)
    db.sql("CREATE STREAM s (k INT)")
    db.sql("CREATE TABLE t (k INT)")
    db.sql(f"CREATE VIEW v AS SELECT t.k, n FROM ({SUMS.format('s')}) a JOIN t ON a.k = t.k")
    db.insert("s", [(1,), (2,)])
    db.insert("t", [(1,)])
    reading = StandardTable.reading

    @contextlib.contextmanager
    def then_changed(table: StandardTable) -> Iterator[Any]:
        with reading(table) as snapshot:
            monkeypatch.undo()
            db.insert("t", [(2,)])
            yield snapshot

    monkeypatch.setattr(StandardTable, "reading", then_changed)
    view = db._context.engine.find_view("v")
    assert view is not None
    assert view.read().rows.to_pylist() == [{"k": 1, "n": 1}]
    assert rows(db, "v") == [(1, 1), (2, 1)]


def test_a_view_that_was_dropped_holds_nothing(folder: Path, connect: Connect) -> None:
    """A reader that is still at it neither slows writers down nor leaves a snapshot behind."""
    db = connect(folder, settings=SETTINGS)
    db.sql("CREATE STREAMING TABLE r (ts INT, k INT) TIMESTAMP BY ts")
    db.sql(f"CREATE VIEW v AS {SUMS.format('r')}")
    db.insert("r", [(1, 1)])
    view = db._context.engine.find_view("v")
    assert view is not None
    (pipeline,) = view.pipelines
    assert rows(db, "v") == [(1, 1)]
    assert pipeline.number in pipeline.place.table.folded_by
    db.sql("DROP VIEW v")
    pipeline._caught_up = False  # as of a reader that came before the first rows were folded
    db.insert("r", [(2, 1)])
    assert view.read().rows.to_pylist() == [{"k": 1, "n": 2}]
    view.put_away()
    assert not pipeline.place.table.folded_by
    assert not list(folder.glob(f"**/*{pipeline.number}*"))


def test_what_a_view_reads_keeps_its_name(folder: Path, connect: Connect) -> None:
    """Names in a view's text must mean the same after a restart; those of columns and aliases are free."""
    db = connect(folder, settings=SETTINGS)
    db.sql("CREATE STREAM s (k INT)")
    db.sql("CREATE TABLE t (k INT, w INT)")
    db.sql("CREATE TABLE n (k INT)")
    db.sql(f"CREATE VIEW v AS SELECT t.w, n FROM ({SUMS.format('s')}) a JOIN t ON a.k = t.k")
    for change in ("RENAME TO u", "RENAME COLUMN w TO x", "DROP COLUMN w"):
        with pytest.raises(headwater.Error, match="table t is read by view v"):
            db.sql(f"ALTER TABLE t {change}")
    db.sql("ALTER TABLE n RENAME TO a")
    db.sql("DROP TABLE a")


def test_tables_that_functions_read(folder: Path, connect: Connect) -> None:
    """They are as of the read above the groupings, as of creation below them, and cannot go."""
    db = connect(folder, settings=SETTINGS)
    db.sql("CREATE STREAM s (k INT)")
    db.sql("CREATE TABLE t (w INT)")
    db.insert("t", [(10,)])
    db.sql("CREATE FUNCTION top(x INT) RETURNS INT RETURN x + (SELECT max(w) FROM t)")
    db.sql(f"CREATE VIEW above AS SELECT top(k) AS k, n FROM ({SUMS.format('s')}) a")
    db.sql("CREATE VIEW below AS SELECT sum(top(k)) AS k FROM s")
    db.insert("s", [(1,)])
    assert (rows(db, "above"), rows(db, "below")) == ([(11, 1)], [(11,)])
    db.insert("t", [(20,)])
    db.insert("s", [(1,)])
    assert (rows(db, "above"), rows(db, "below")) == ([(21, 2)], [(22,)])
    db.insert("t", [(30,)])
    assert (rows(db, "above"), rows(db, "below")) == ([(31, 2)], [(22,)])
    with pytest.raises(headwater.Error, match="table t is read by view"):
        db.sql("DROP TABLE t")


def test_an_error_of_one_view_is_not_that_of_another(folder: Path, connect: Connect) -> None:
    """Views with the same keys: a sum out of range stops only its view; what may raise is folded apart."""
    db = connect(folder, settings=SETTINGS)
    db.sql("CREATE STREAM s (k INT, v INT, c DECIMAL(38, 0))")
    db.sql("CREATE VIEW divided AS SELECT k, max(100 / v) AS x FROM s GROUP BY k")
    db.sql("CREATE VIEW summed AS SELECT k, sum(c) AS x FROM s GROUP BY k")
    db.sql(f"CREATE VIEW counted AS {SUMS.format('s')}")
    assert pipelines(db, "summed") == pipelines(db, "counted") != pipelines(db, "divided")
    db.insert("s", [(1, 4, Decimal("9" * 38))] * 2)
    assert rows(db, "counted") == [(1, 2)]
    with pytest.raises(headwater.Error, match="out of range"):
        rows(db, "summed")
    assert rows(db, "counted") == [(1, 2)]


def test_a_function_that_is_replaced_counts_at_the_next_read(db: headwater.Database) -> None:
    """Above the groupings, whether the view calls it itself or by another function."""
    db.sql("CREATE STREAMING TABLE t (k INT, v INT, ts BIGINT NOT NULL) TIMESTAMP BY ts")
    db.sql("CREATE FUNCTION factor(x BIGINT) RETURNS BIGINT RETURN x * 10")
    db.sql("CREATE FUNCTION scaled(x BIGINT) RETURNS BIGINT RETURN factor(x) + 1")
    db.sql("CREATE VIEW w AS SELECT k, scaled(sum(v)) AS s FROM t GROUP BY k")
    db.insert("t", [(1, 2, 1)])
    assert rows(db, "w") == [(1, 21)]
    assert rows(db, "w") == [(1, 21)]
    db.sql("CREATE OR REPLACE FUNCTION scaled(x BIGINT) RETURNS BIGINT RETURN factor(x) + 2")
    assert rows(db, "w") == [(1, 22)]
    db.sql("CREATE OR REPLACE FUNCTION factor(x BIGINT) RETURNS BIGINT RETURN x * 100")
    assert rows(db, "w") == [(1, 202)]


def test_a_view_on_a_stream_that_drops_late_rows_is_read_after_one(folder: Path) -> None:
    """A late row has a sequence number and is nowhere: that is no row missing."""
    with headwater.connect(folder, settings=SETTINGS) as db:
        db.sql("CREATE STREAM s (k INT, t INT NOT NULL) TIMESTAMP BY t LATE DROP")
        db.sql(f"CREATE VIEW v AS {SUMS.format('s')}")
        for row in ((1, 10), (1, 11), (2, 3), (2, 12)):
            db.insert("s", [row])
            db.seal()
        assert rows(db, "v") == [(1, 2), (2, 1)]
        pipelines(db, "v")[0].put_away()
    with headwater.connect(folder, settings=SETTINGS) as db:
        db.insert("s", [(2, 4), (1, 13)])
        assert rows(db, "v") == [(1, 3), (2, 1)]


def test_a_read_without_a_change_makes_no_version(db: headwater.Database) -> None:
    """Also where only the host of the view can tell that a table above its folds is the same."""
    db.sql("CREATE STREAMING TABLE r (ts INT, k INT) TIMESTAMP BY ts")
    db.sql("CREATE TABLE names (k INT, name STRING)")
    db.sql("INSERT INTO names VALUES (1, 'one')")
    counts = "(SELECT k, count(*) AS n FROM r GROUP BY k)"
    db.sql(f"CREATE VIEW v AS SELECT name, n FROM {counts} c JOIN names USING (k)")
    view = db._context.engine.find_view("v")
    assert view is not None
    db.insert("r", [(1, 1), (2, 1)])
    assert rows(db, "v") == [("one", 2)]
    first = view.versions.last
    assert rows(db, "v") == [("one", 2)]
    assert view.versions.last is first
    db.sql("INSERT INTO names VALUES (1, 'uno')")
    assert rows(db, "v") == [("one", 2), ("uno", 2)]
    assert view.versions.last is not first


class _Away:
    """A host that has not got the view yet."""

    name = "away"

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.there = threading.Event()

    def wait_there(self) -> None:
        self.asked.set()
        assert self.there.wait(PATIENCE_S)

    def read_view(self, view: object) -> None:
        raise HostGone("it was taken back")

    def wait_gone(self) -> None:
        pass


@pytest.mark.here
def test_a_view_moves_while_it_fires_and_somebody_reads_it(db: headwater.Database) -> None:
    """A move waits for the firing: this waits neither for the next host nor for a reader who does."""
    db.sql("CREATE STREAMING TABLE r (ts INT, k INT) TIMESTAMP BY ts")
    db.sql(
        "CREATE VIEW v WITH (maintenance = 'eager') AS SELECT k, count(*) AS n FROM r GROUP BY k"
    )
    engine, away = db._context.engine, _Away()
    view = engine.find_view("v")
    assert view is not None
    firing, goes_on = threading.Event(), threading.Event()
    catch_up = view.pipelines[0].catch_up

    def held_up(*arguments: Any) -> Any:
        firing.set()
        assert goes_on.wait(PATIENCE_S)
        return catch_up(*arguments)

    view.pipelines[0].catch_up = held_up  # type: ignore[method-assign]
    db.insert("r", [(1, 1), (2, 1)])
    assert firing.wait(PATIENCE_S)
    mover = threading.Thread(target=engine.lend, args=(view, away))
    mover.start()
    until(lambda: view.elsewhere is away)
    found: list[tuple[Any, ...]] = []
    reader = threading.Thread(target=lambda: found.extend(rows(db, "v")))
    reader.start()
    assert away.asked.wait(PATIENCE_S)
    goes_on.set()
    mover.join(PATIENCE_S)
    assert not mover.is_alive()
    assert (view.state, view.error) == ("running", None)
    engine.take_back(view)
    away.there.set()
    reader.join(PATIENCE_S)
    assert found == [(1, 2)]


def test_a_changed_byte_in_a_pinned_table_is_never_another_row(
    folder: Path, connect: Connect
) -> None:
    """A view's own copy of a table has checksums: damage names the file, and DROP VIEW gets rid of it."""
    with headwater.connect(folder, settings=SETTINGS) as db:
        db.sql("CREATE STREAMING TABLE r (ts INT, k INT) TIMESTAMP BY ts")
        db.sql("CREATE TABLE names (k INT, name STRING)")
        db.sql("INSERT INTO names VALUES (1, 'ann'), (2, 'bob')")
        db.sql(
            "CREATE VIEW v AS SELECT name, count(*) AS n FROM r JOIN names USING (k) GROUP BY name"
        )
    (pinned,) = (folder / "views").iterdir()
    whole = pinned.read_bytes()
    for place in (whole.index(b"ann"), len(whole) // 2, len(whole) - 12):
        pinned.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        footer._check.cache_clear()  # a process looks at a file once
        with headwater.connect(folder, settings=SETTINGS) as db:
            db.insert("r", [(1, 1)])
            with pytest.raises(headwater.Error) as caught:
                db.sql("SELECT * FROM v")
            assert caught.value.sqlstate == "XX001", place
            assert str(pinned) in str(caught.value), place
    db = connect(folder, settings=SETTINGS)
    db.sql("DROP VIEW v")
    db.sql("CREATE VIEW v AS SELECT name, count(*) AS n FROM r JOIN names USING (k) GROUP BY name")
    assert rows(db, "v") == [("ann", 3)]


@pytest.mark.here
def test_a_snapshot_under_way_ends_before_the_view_leaves(
    folder: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would be written, and thrown away, where the next host writes its own."""
    db = connect(folder, settings={**SETTINGS, "snapshot_s": 3600})
    db.sql("CREATE STREAMING TABLE r (ts INT, k INT) TIMESTAMP BY ts")
    db.sql(f"CREATE VIEW v AS {SUMS.format('r')}")
    assert rows(db, "v") == []
    (pipeline,) = pipelines(db, "v")
    put_away, prepare = pipeline.put_away, pipeline.keeper.file.prepare
    writing, go_on = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def prepare_slowly(*state: Any) -> Path:
        writing.set()
        assert go_on.wait(PATIENCE_S)
        fresh: Path = prepare(*state)
        return fresh

    def write_again() -> None:
        pipeline.kept = -1  # whoever has written one meanwhile
        put_away()

    def put_away_and_begin_another() -> None:
        put_away()
        if threading.current_thread() is leaving:
            monkeypatch.setattr(pipeline.keeper.file, "prepare", prepare_slowly)
            threads.append(threading.Thread(target=write_again))
            threads[0].start()
            assert writing.wait(PATIENCE_S)

    db.insert("r", [(1, 1)])
    assert rows(db, "v") == [(1, 1)]
    leaving = threading.Thread(target=pipeline.lend)
    monkeypatch.setattr(pipeline, "put_away", put_away_and_begin_another)
    leaving.start()
    assert writing.wait(PATIENCE_S)
    leaving.join(0.2)
    assert not pipeline.is_lent
    go_on.set()
    leaving.join(PATIENCE_S)
    threads[0].join(PATIENCE_S)
    assert pipeline.is_lent
    monkeypatch.undo()
    pipeline.take_back()
    assert rows(db, "v") == [(1, 1)]
