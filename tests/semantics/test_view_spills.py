"""Views whose groups have no room in memory: spilled, merged, read, restarted; equal to their query."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pytest

import headwater
from headwater.engine import state_runs
from headwater.errors import DataError, StorageError
from headwater.kernel import state_merge
from tests.harness.patience import PATIENCE_S

SPILLED = {"eager_spark": False, "view_state_mb": 0}  # after every chunk
DDL = "CREATE STREAMING TABLE r (ts INT, k INT, name STRING, v BIGINT, f DOUBLE) TIMESTAMP BY ts"
EVERYTHING = (
    "SELECT k, name, count(*) AS n, sum(v) AS s, avg(v) AS a, min(name) AS low, max(v) AS high, "
    "first(v) AS one, last(name) AS last, count(DISTINCT v) AS d, count(DISTINCT name) AS e, "
    "stddev(f) AS dev FROM r GROUP BY k, name"
)
SUMS = "SELECT k, count(*) AS n, sum(v) AS s FROM {} GROUP BY k"
Connect = Callable[..., headwater.Database]
Row = tuple[Any, ...]


def batch(rng: random.Random, count: int) -> list[Row]:
    """Rows with few keys, NULL among them, some of them late."""
    names = [None, "", "a", "é", "customer 1"]
    return [
        (
            rng.randrange(50),
            rng.choice([None, *range(6)]),
            rng.choice(names),
            rng.randrange(9),
            rng.random(),
        )
        for _ in range(count)
    ]


def pipeline_of(db: headwater.Database, view: str) -> Any:
    """The one pipeline of a view."""
    found = db._context.engine.find_view(view)
    assert found is not None
    return found.pipelines[0]


def files(folder: Path) -> set[str]:
    """The files of spilled groups."""
    return {path.name.rpartition("-")[0] for path in folder.glob("snapshots/*.runs/*")}


VIEWS = {
    "everything": EVERYTHING,
    "part": "SELECT k, name, max(v) AS m FROM r GROUP BY k, name",
    "whole": "SELECT count(*) AS n, count(DISTINCT k) AS d, last(v) AS l FROM r",
    "upper": "SELECT max(n) AS m FROM (SELECT count(*) AS n FROM r GROUP BY k)",
}


def make(db: headwater.Database) -> None:
    """The table and its views."""
    db.sql(DDL)
    for name, query in VIEWS.items():
        db.sql(f"CREATE VIEW {name} AS {query}")


def rows(db: headwater.Database, view: str) -> list[Row]:
    """A view's rows, in order; floats up to rounding, which goes by the order of merges."""
    found = db.sql(f"SELECT * FROM {view}").rows()
    rounded = [tuple(round(v, 9) if isinstance(v, float) else v for v in row) for row in found]
    return sorted(rounded, key=repr)


@pytest.mark.here
@pytest.mark.parametrize("rows_at_once", [1_000_000, 40], ids=["in this process", "on Spark"])
def test_a_spilled_view_equals_its_query(
    rows_at_once: int, folder: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All families, NULL keys, several keys; read while spilled, across a restart, in both tiers."""
    jobs: list[Any] = []
    merge = state_merge.merge_on_spark
    monkeypatch.setattr(state_runs, "merge_on_spark", lambda *a: (jobs.append(a), merge(*a))[1])
    settings, rng = {**SPILLED, "rows_at_once": rows_at_once}, random.Random(1)
    twin = connect(":memory:", settings={"eager_spark": False})
    db = connect(folder, settings=settings)
    make(db)
    make(twin)
    for turn in range(2):
        for _ in range(5):
            chunk = batch(rng, 30)
            db.insert("r", chunk)
            db.flush()
            twin.insert("r", chunk)
        assert pipeline_of(db, "everything").runs
        assert not pipeline_of(twin, "everything").runs
        for view in VIEWS:
            assert rows(db, view) == rows(twin, view)
        if turn == 0:
            pipeline_of(db, "everything").put_away()
            db.close()
            db = connect(folder, settings=settings)
    assert db.sql("VERIFY VIEW everything").rows() == []
    assert bool(jobs) == (rows_at_once == 40)


@pytest.mark.here
def test_an_unchanged_read_runs_nothing(db: headwater.Database) -> None:
    """A read over several runs leaves one; the next read of unchanged input merges nothing."""
    db.sql("SET view_state_mb = 0")
    db.sql(DDL)
    db.sql(f"CREATE VIEW v AS {SUMS.format('r')}")
    for turn in range(3):
        db.insert("r", [(turn, 1, "a", 1, 0.0), (turn, turn, "a", 1, 0.0)])
        db.flush()
    runs = pipeline_of(db, "v").runs
    assert len(runs) == 3
    first = db.sql("SELECT * FROM v ORDER BY k").rows()
    assert first == [(0, 1, 1), (1, 4, 4), (2, 1, 1)]
    assert len(runs) == 1
    before = runs._runs
    assert db.sql("SELECT * FROM v ORDER BY k").rows() == first
    assert runs._runs is before
    row = db.sql("SELECT groups, state_bytes, spilled_bytes FROM headwater.views").rows()[0]
    assert row[0] == 3
    assert row[1] < 10_000
    assert row[2] == runs.byte_count > 0
    plan = "\n".join(line for (line,) in db.sql("EXPLAIN ANALYZE VIEW v").rows())
    assert f"spilled: {row[2]} bytes in 1 runs" in plan


def elsewhere(work: Callable[[], object]) -> None:
    """Runs in another thread, which must not have to wait for a lock of this one."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()


@pytest.mark.here
@pytest.mark.parametrize("spills", [1, 3])
def test_rows_are_folded_while_runs_are_merged(
    spills: int, db: headwater.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read shows what was there when it began; runs that were merged meanwhile stay as they are."""
    db.sql("SET view_state_mb = 0")
    db.sql(DDL)
    db.sql(f"CREATE VIEW v AS {SUMS.format('r')}")
    for turn in range(2):
        db.insert("r", [(turn, 1, "a", 1, 0.0)])
        db.flush()
    pipeline, unite = pipeline_of(db, "v"), state_runs.unite_here

    def meanwhile(*given: Any) -> Any:
        monkeypatch.setattr(state_runs, "unite_here", unite)
        for turn in range(spills):
            db.insert("r", [(turn, 1, "a", 1, 0.0)])
            elsewhere(pipeline.catch_up)
        elsewhere(pipeline.put_away)
        return unite(*given)

    monkeypatch.setattr(state_runs, "unite_here", meanwhile)
    view = db._context.engine.find_view("v")
    assert view is not None
    assert view.read().rows.to_pylist() == [{"k": 1, "n": 2, "s": 2}]
    assert len(pipeline.runs) == 2  # two became one, and one came; or four became one, and one came
    assert db.sql("SELECT * FROM v").rows() == [(1, 2 + spills, 2 + spills)]
    pipeline.put_away()
    assert len(files(db._context.folder.path)) == 1


def test_a_snapshot_that_was_overtaken_is_not_put_in_place(
    folder: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are folded while a snapshot is written; if they are deleted meanwhile, it counts for nothing."""
    db = connect(folder, settings={"eager_spark": False, "snapshot_s": 1000.0})
    db.sql(DDL)
    db.sql(f"CREATE VIEW v AS {SUMS.format('r')}")
    db.insert("r", [(1, 1, "a", 1, 0.0)])
    db.flush()
    pipeline = pipeline_of(db, "v")
    prepare, doings = pipeline.snapshot.prepare, [pipeline.catch_up, pipeline.rows_will_change]

    def meanwhile(*given: Any) -> Any:
        elsewhere(doings.pop(0))
        return prepare(*given)

    monkeypatch.setattr(pipeline.snapshot, "prepare", meanwhile)
    db.insert("r", [(2, 1, "a", 1, 0.0)])
    pipeline.catch_up()
    pipeline.put_away()
    assert (pipeline.kept, pipeline.snapshot.exists) == (2, True)
    db.insert("r", [(3, 1, "a", 1, 0.0)])
    pipeline.catch_up()
    pipeline.put_away()
    assert (pipeline.kept, pipeline.snapshot.exists) == (0, False)
    assert not list(folder.glob("snapshots/*"))


@pytest.mark.here
def test_runs_are_merged_geometrically(db: headwater.Database) -> None:
    """Sixteen spills leave one run, twenty-one leave three levels."""
    db.sql("SET view_state_mb = 0")
    db.sql(DDL)
    db.sql(f"CREATE VIEW v AS {SUMS.format('r')}")
    pipeline = pipeline_of(db, "v")
    runs = pipeline.runs
    for turn in range(21):
        db.insert("r", [(turn, turn, "a", 1, 0.0)])
        db.flush()
    assert [(run.level, run.row_count) for run in runs._runs] == [(2, 16), (1, 4), (0, 1)]
    pipeline.put_away()  # runs that the snapshot before named go
    assert len({path.name.rpartition("-")[0] for path in runs._folder.iterdir()}) == 3


def test_files_that_no_snapshot_names_go_at_the_start(folder: Path, connect: Connect) -> None:
    """Runs of the snapshot stay until the next one; others are forgotten with their rows counted once."""
    db = connect(folder, settings=SPILLED)
    db.sql("CREATE STREAM q (ts INT, k INT, v INT) TIMESTAMP BY ts")
    db.sql(f"CREATE VIEW v AS {SUMS.format('q')}")
    for turn in range(3):
        db.insert("q", [(turn, turn, 1)])
        db.flush()
    pipeline = pipeline_of(db, "v")
    pipeline.put_away()
    named = files(folder)
    db.insert("q", [(9, 2, 1)])
    db.flush()
    pipeline.put_away = lambda: None  # as if it were killed
    assert db.sql("SELECT * FROM v ORDER BY k").rows() == [(0, 1, 1), (1, 1, 1), (2, 2, 2)]
    assert named < files(folder)
    db.close()
    db = connect(folder, settings={**SPILLED, "view_state_mb": 1})
    assert files(folder) == named
    assert db.sql("SELECT * FROM v ORDER BY k").rows() == [(0, 1, 1), (1, 1, 1), (2, 2, 2)]
    db.sql("DROP VIEW v")
    assert not list(folder.glob("snapshots/*"))


def test_a_failed_spill_loses_nothing(
    folder: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full: what a stream has let go is in the snapshot, the rest comes again."""
    db = connect(folder, settings={**SPILLED, "snapshot_s": 1000.0})
    db.sql("CREATE STREAM q (ts INT, k INT, v INT) TIMESTAMP BY ts")
    db.sql(f"CREATE VIEW v AS {SUMS.format('q')}")
    db.insert("q", [(1, 1, 1), (2, 2, 1)])
    db.flush()
    pipeline = pipeline_of(db, "v")
    pipeline.put_away()
    kept, held = pipeline.kept, files(folder)
    assert kept == 2

    def full(*_: Any) -> None:
        raise StorageError("the disk is full", sqlstate="53100")

    with monkeypatch.context() as patch:
        patch.setattr(state_runs, "write_part", full)
        db.insert("q", [(3, 1, 1)])
        with pytest.raises(StorageError):
            db.sql("SELECT * FROM v")
        with pipeline.lock:  # the engine tries it too, and goes back step by step
            assert (pipeline.kept, pipeline.sequence, files(folder)) == (kept, kept, held)
    assert db.sql("SELECT * FROM v ORDER BY k").rows() == [(1, 2, 2), (2, 1, 1)]


def test_an_overflow_is_told_from_both_tiers(db: headwater.Database) -> None:
    """A sum that does not fit is the same error, wherever runs were merged; no file of the try is left."""
    db.sql("SET view_state_mb = 0")
    db.sql(DDL)
    db.sql("CREATE VIEW v AS SELECT k, sum(v) AS s FROM r GROUP BY k")
    for turn in range(3):
        db.insert("r", [(turn, k, "a", 2**62, 0.0) for k in range(5)])
        db.flush()
    runs = pipeline_of(db, "v").runs
    before = sorted(runs._folder.iterdir())
    told = []
    for rows in (1_000_000, 10):
        db.sql(f"SET rows_at_once = {rows}")
        with pytest.raises(DataError) as raised:
            db.sql("SELECT * FROM v")
        told.append((raised.value.message, raised.value.sqlstate))
        assert sorted(runs._folder.iterdir()) == before
    assert told[0] == told[1]


def test_a_damaged_run_is_as_good_as_no_snapshot(folder: Path, connect: Connect) -> None:
    """Stored rows are folded again where a file of the snapshot is not whole."""
    db = connect(folder, settings=SPILLED)
    db.sql(DDL)
    db.sql(f"CREATE VIEW v AS {SUMS.format('r')}")
    db.insert("r", [(1, 1, "a", 1, 0.0), (2, 2, "a", 1, 0.0)])
    db.flush()
    db.close()
    path = next(folder.glob("snapshots/*.runs/*"))
    path.write_bytes(path.read_bytes()[:-1])
    db = connect(folder, settings=SPILLED)
    assert db.sql("SELECT * FROM v ORDER BY k").rows() == [(1, 1, 1), (2, 1, 1)]


def test_deleted_rows_leave_no_runs(folder: Path, connect: Connect) -> None:
    """A DELETE makes a spilled view anew."""
    db = connect(folder, settings=SPILLED)
    db.sql(DDL)
    db.sql(f"CREATE VIEW v AS {SUMS.format('r')}")
    db.insert("r", [(1, 1, "a", 1, 0.0), (2, 2, "a", 1, 0.0)])
    db.flush()
    assert files(folder)
    db.sql("DELETE FROM r WHERE k = 1")
    assert db.sql("SELECT * FROM v").rows() == [(2, 1, 1)]
    db.sql("DELETE FROM r")
    assert db.sql("SELECT * FROM v").rows() == []
    assert not files(folder)


@pytest.mark.large
@pytest.mark.timeout(0)
def test_ten_million_groups_stay_within_their_bound(folder: Path, connect: Connect) -> None:
    """Memory does not grow with the groups; the view has all of them."""
    groups, step, bound = 10_000_000, 500_000, 100
    settings = {"eager_spark": False, "view_state_mb": bound, "rows_at_once": 100_000_000}
    db = connect(folder, settings={**settings, "recent_mb": 0, "snapshot_s": 1000.0})
    db.sql("CREATE STREAM q (ts BIGINT, k BIGINT, v BIGINT) TIMESTAMP BY ts")
    inner = "SELECT k, count(*) AS n, sum(v) AS s FROM q GROUP BY k"
    db.sql(f"CREATE VIEW v AS SELECT count(*) AS n, sum(s) AS s FROM ({inner})")
    pipeline, keys = pipeline_of(db, "v"), np.random.default_rng(0).permutation(groups)
    process, most = psutil.Process(), 0
    before = process.memory_info().rss
    for start in range(0, groups, step):
        part = keys[start : start + step] * 1_000_003
        times, ones = np.full(step, start), np.ones(step, np.int64)
        db.insert("q", pa.table({"ts": times, "k": part, "v": ones}))
        db.flush()
        assert pipeline.state_bytes < (bound << 20) + 200 * step
        most = max(most, process.memory_info().rss - before)
    assert pipeline.runs
    assert most < 700 << 20  # in memory they would take as much alone, and twice that to grow
    assert db.sql("SELECT * FROM v").rows() == [(groups, groups)]
