"""Views kept by circuits whose states are on disk: they have the rows of those that are in memory."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import headwater
from headwater.engine import arrangement_runs, view
from headwater.engine.arrangement_runs import CircuitRuns
from headwater.engine.view_circuit import ViewCircuit
from headwater.errors import StorageError
from headwater.kernel import run_parts
from tests.harness.patience import PATIENCE_S
from tests.semantics.test_kept_views import TABLES, VIEWS

Connect = Callable[..., headwater.Database]
IN_MEMORY, ON_DISK = {"view_state_mb": 1024}, {"view_state_mb": 0}


def circuit_of(db: headwater.Database, name: str) -> ViewCircuit:
    """The circuit of a view in this process."""
    view = db._context.engine.find_view(name)
    assert view is not None
    assert view.circuit is not None
    return view.circuit


def contents(db: headwater.Database) -> dict[str, list[str]]:
    """The rows of every view."""
    return {name: sorted(map(repr, db.sql(f"SELECT * FROM {name}").rows())) for name in VIEWS}


def made(db: headwater.Database) -> None:
    """The tables and views."""
    for statement in TABLES:
        db.sql(statement)
    for name, query in VIEWS.items():
        assert db.sql(f"CREATE VIEW {name} AS {query}").notice is None, name


def some_rows(chance: Random, first: int) -> tuple[list[Any], list[Any]]:
    """Rows of both streaming tables."""

    def value(most: int) -> int | None:
        return chance.choice([None, *range(most)])

    mine = [
        (first + n // 3, value(4), value(9), chance.choice([None, 0.5, -0.0, 2.0]), [value(3)])
        for n in range(9)
    ]
    return mine, [(first + n // 2, value(4), value(9)) for n in range(4)]


@pytest.mark.here
@pytest.mark.timeout(600)
def test_views_on_disk_equal_those_in_memory(
    tmp_path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after rows are deleted and replaced, a restart, and a kill: a copy of the folder stands for it."""
    monkeypatch.setattr(run_parts, "ROWS_TOGETHER", 4)
    monkeypatch.setattr(arrangement_runs, "LEAST_MERGED", 6)
    chance = Random(11)
    twin, db = (
        connect(tmp_path / "twin", settings=IN_MEMORY),
        connect(tmp_path / "0", settings=ON_DISK),
    )
    both = [twin, db]
    for one in both:
        made(one)
    for step in range(6):
        mine, others = some_rows(chance, 3 * step)
        for one in both:
            one.insert("s", mine)
            one.insert("r", others)
            if step == 1:
                one.sql("INSERT INTO t VALUES (1, 'one'), (2, 'two'), (2, 'zwei'), (NULL, 'none')")
            if step == 3:
                one.sql("UPDATE t SET label = 'eins' WHERE k = 1")
                one.sql("DELETE FROM s WHERE v = 3")
                one.sql("UPDATE s SET v = 4 WHERE k = 3")
        assert contents(db) == contents(twin), step
        if step == 2:
            db.close()
            db = connect(tmp_path / "0", settings=ON_DISK)
        if step == 4:
            for name in VIEWS:
                circuit_of(db, name).put_away()
            mine, others = some_rows(chance, 3 * step + 2)
            for one in (twin, db):
                one.insert("s", mine)
            contents(db)  # runs that no snapshot names
            shutil.copytree(tmp_path / "0", tmp_path / "1")
            (tmp_path / "1" / "lock").unlink(missing_ok=True)
            db = connect(tmp_path / "1", settings=ON_DISK)
            assert circuit_of(db, "joined").runs.count
            assert contents(db) == contents(twin)
        both = [twin, db]
    assert db.sql("VERIFY VIEW full_joined").rows() == []
    spilled = dict(db.sql("SELECT name, spilled_bytes FROM headwater.views").rows())
    assert {name for name in VIEWS if not spilled[name]} == set()
    assert not circuit_of(twin, "joined").runs.count


@pytest.mark.here
def test_a_snapshot_names_runs_and_has_only_what_memory_holds(
    folder: Path, connect: Connect
) -> None:
    db = connect(folder, settings={"view_state_mb": 1})
    db.sql("CREATE STREAMING TABLE s (ts INT, k INT, v STRING) TIMESTAMP BY ts")
    db.sql("CREATE TABLE t (k INT, label STRING)")
    db.sql("CREATE VIEW v AS SELECT s.k, v, label FROM s JOIN t ON s.k = t.k")
    db.sql("INSERT INTO t SELECT id, concat('label ', id) FROM range(60000)")
    for first in range(0, 60_000, 20_000):
        db.insert("s", [(n, n, f"value {n}") for n in range(first, first + 20_000)])
    assert db.sql("SELECT count(*) FROM v").rows() == [(60_000,)]
    circuit = circuit_of(db, "v")
    assert circuit.state_bytes < 1 << 20
    assert circuit.runs.byte_count > 1 << 20
    circuit.put_away()
    assert circuit.snapshot._path.stat().st_size < circuit.runs.byte_count
    db.close()
    db = connect(folder, settings={"view_state_mb": 1})
    circuit = circuit_of(db, "v")
    assert circuit.runs.count  # from the snapshot, before a row is read
    assert circuit.streams[0].sequence == 60_000
    db.sql("DELETE FROM t WHERE k >= 10")
    assert db.sql("SELECT count(*) FROM v").rows() == [(10,)]
    files = db._context.folder.path / "snapshots"
    assert list(files.glob("*.runs/*/*"))
    db.sql("DROP VIEW v")
    assert list(files.glob("*.runs/*/*")) == []


@pytest.mark.here
def test_a_disk_that_is_full_while_a_row_is_found_leaves_no_half_of_a_state(
    db: headwater.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Near rows of a top-n have gone to disk, far ones have not: the circuit begins anew."""
    monkeypatch.setattr(view, "FEW_ROWS", 0)
    db.sql("CREATE STREAMING TABLE s (ts INT, k INT, v INT) TIMESTAMP BY ts")
    order = "row_number() OVER (PARTITION BY k ORDER BY v DESC, ts)"
    db.sql(f"CREATE VIEW v AS SELECT k, v FROM s QUALIFY {order} = 1")
    rows = [(n, n % 3, n) for n in range(300)]
    db.insert("s", rows)
    db.sql("DELETE FROM s WHERE v < 2")  # from here on far rows are kept
    assert sorted(db.sql("SELECT * FROM v").rows()) == [(0, 297), (1, 298), (2, 299)]
    circuit, write, left = circuit_of(db, "v"), arrangement_runs.write_part, [1]

    def fails(*arguments: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise StorageError("no space left", sqlstate="53100")
        return write(*arguments)

    monkeypatch.setattr(arrangement_runs, "write_part", fails)
    monkeypatch.setattr(ViewCircuit, "_bound", 0)
    with circuit.lock, pytest.raises(StorageError):
        circuit.find(pa.table({"k": pa.array([1], pa.int32())}))
    monkeypatch.undo()
    db.insert("s", [(400, 9, 5)])
    assert sorted(db.sql("SELECT * FROM v").rows()) == [(0, 297), (1, 298), (2, 299), (9, 5)]


@pytest.mark.here
def test_what_cannot_go_to_disk_is_not_kept(db: headwater.Database) -> None:
    db.sql("CREATE STREAMING TABLE s (ts INT, v INT) TIMESTAMP BY ts")
    db.sql("SET view_state_mb = 1")
    db.sql("CREATE VIEW f AS SELECT v, row_number() OVER (ORDER BY v) AS n FROM s")
    db.insert("s", [(n, n) for n in range(200_000)])
    assert db.sql("SELECT count(*) FROM f").rows() == [(200_000,)]
    explained = "\n".join(row[0] for row in db.sql("EXPLAIN VIEW f").rows())
    assert "view_state_mb" in explained


@pytest.mark.here
def test_views_share_the_rows_of_a_table(db: headwater.Database) -> None:
    """Views that join one table hold its rows once, at each version."""
    db.sql("CREATE STREAMING TABLE s (ts INT, k INT) TIMESTAMP BY ts")
    db.sql("CREATE TABLE t (k INT, label STRING)")
    db.sql("INSERT INTO t VALUES (1, 'one')")
    db.sql("INSERT INTO t VALUES (2, 'two')")
    for number in range(3):
        db.sql(f"CREATE VIEW v{number} AS SELECT ts, label FROM s JOIN t ON s.k = t.k + {number}")
    for step in range(2):
        db.insert("s", [(step, 2)])
        held = []
        for number in range(3):
            assert db.sql(f"SELECT * FROM v{number}").rows() is not None
            rows = circuit_of(db, f"v{number}").statics[0].rows
            assert rows is not None
            arrays = [column.chunk(0) for column in rows.columns]
            held.append([b.address for array in arrays for b in array.buffers() if b])
        assert held == [held[0]] * 3
        assert [column.num_chunks for column in rows.columns] == [1, 1]
        db.sql("UPDATE t SET label = 'zwei' WHERE k = 2")
    assert sorted(db.sql("SELECT * FROM v0").rows()) == [(0, "zwei"), (1, "zwei")]


@pytest.mark.here
def test_a_circuit_on_disk_moves_to_another_host_and_back(db: headwater.Database) -> None:
    """The host that it leaves removes nothing that the other one has written since."""
    db.sql("SET view_state_mb = 0")
    db.sql("CREATE STREAMING TABLE s (ts INT, k INT) TIMESTAMP BY ts")
    db.sql("CREATE STREAMING TABLE r (ts INT, k INT) TIMESTAMP BY ts")
    db.sql("CREATE VIEW v AS SELECT s.ts, r.ts AS other FROM s FULL JOIN r ON s.k = r.k")

    def went_through(circuit: ViewCircuit, step: int) -> None:
        db.insert("s", [(step, step % 3)])
        db.insert("r", [(step, step % 2)])
        with db._context.held(frozenset()) as held:
            circuit.catch_up(held)

    mine = circuit_of(db, "v")
    arguments = (mine.number, mine.spec, mine.tables, mine.starts, mine.world)
    other = ViewCircuit(*arguments, mine.snapshot, mine.runs.anew())
    other.is_lent = True
    hosts = [mine, other]
    for step in range(12):
        went_through(hosts[0], step)
        if step % 3 == 2:
            hosts[0].lend()
            hosts.reverse()
            hosts[0].take_back()
            assert hosts[0].runs.count
            assert [source.sequence for source in hosts[0].streams] == [step + 1] * 2
    ends = [(a, b) for a in range(12) for b in range(12) if a % 3 == b % 2]
    alone = [(a, None) for a in range(12) if a % 3 == 2]
    found = [tuple(row.values()) for row in hosts[0].result().to_pylist()]
    assert sorted(found, key=repr) == sorted([*ends, *alone], key=repr)
    assert hosts[0] is mine
    assert sorted(db.sql("SELECT * FROM v").rows(), key=repr) == sorted(found, key=repr)


@pytest.mark.here
def test_a_snapshot_under_way_when_a_circuit_leaves_removes_nothing_of_the_other_host(
    db: headwater.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that it holds and that no snapshot names have the numbers that the other host gives next."""
    db.sql("SET view_state_mb = 0")
    db.sql("CREATE STREAMING TABLE s (ts INT, k INT) TIMESTAMP BY ts")
    db.sql("CREATE STREAMING TABLE r (ts INT, k INT) TIMESTAMP BY ts")
    db.sql("CREATE VIEW v AS SELECT s.ts, r.ts AS other FROM s JOIN r ON s.k = r.k")
    mine = circuit_of(db, "v")
    arguments = (mine.number, mine.spec, mine.tables, mine.starts, mine.world)
    other = ViewCircuit(*arguments, mine.snapshot, mine.runs.anew())
    other.is_lent = True

    def went_through(circuit: ViewCircuit, step: int) -> None:
        db.insert("s", [(step, 1)])
        db.insert("r", [(step, 1)])
        with db._context.held(frozenset()) as held:
            circuit.catch_up(held)

    put_away, sync = ViewCircuit.put_away, CircuitRuns.sync
    here = threading.current_thread()
    late = threading.Thread(target=lambda: put_away(mine))
    holds, ends = threading.Event(), threading.Event()

    def syncs(runs: CircuitRuns, records: Any) -> None:
        if threading.current_thread() is late:
            holds.set()
            assert ends.wait(PATIENCE_S)
        sync(runs, records)

    def begins_another(circuit: ViewCircuit) -> None:
        put_away(circuit)
        if threading.current_thread() is not here:
            return  # the engine's own snapshot, where the test takes long
        went_through(circuit, 2)
        late.start()
        assert holds.wait(PATIENCE_S)
        threading.Timer(0.5, ends.set).start()

    went_through(mine, 1)
    monkeypatch.setattr(CircuitRuns, "sync", syncs)
    monkeypatch.setattr(ViewCircuit, "put_away", begins_another)
    mine.lend()
    other.take_back()
    went_through(other, 3)
    late.join(PATIENCE_S)
    assert other.result().num_rows == 9
