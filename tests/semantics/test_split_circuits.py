"""Views that circuits keep, in parts: rows, one instant, restarts, all statements (CV1, CV2, CV8, ST3).

DuckDB over the stored rows says what is right. Which circuits can be split is in `tests/plan`, random ones
are in `test_circuits_oracle.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import headwater
from headwater.engine import view
from headwater.engine.split_view import SplitView
from headwater.engine.view_circuit import ViewCircuit
from headwater.errors import BindError
from headwater.execute import altered_parts
from headwater.execute.altered_parts import set_parts
from headwater.factories import coordinator, placement
from tests.harness.oracle import duckdb_rows
from tests.harness.patience import PATIENCE_S, until

Connect = Callable[..., headwater.Database]

TABLES = (
    "CREATE STREAMING TABLE s (ts INT, k INT, v INT, name STRING) TIMESTAMP BY ts",
    "CREATE STREAMING TABLE r (ts INT, k INT, w INT) TIMESTAMP BY ts",
    "CREATE TABLE t (k INT, label STRING)",
)
VIEWS = {
    "joined": "SELECT s.k, v, w FROM s JOIN r ON s.k = r.k AND v <> w",
    "left_joined": "SELECT s.k AS k, v, w FROM s LEFT JOIN r ON s.k = r.k",
    "labelled": "SELECT s.ts, v, label FROM s LEFT JOIN t ON t.k = s.k",
    "best": "SELECT k, v, ts FROM s QUALIFY row_number() OVER (PARTITION BY k ORDER BY v DESC, ts) <= 2",
    "steps": "SELECT k, ts, v - lag(v) OVER (PARTITION BY k ORDER BY ts) AS step FROM s",
    "pairs": "SELECT DISTINCT name, s.k FROM s JOIN r ON s.k = r.k",
    "missing": "SELECT k, v FROM s WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = s.k AND r.w > s.v)",
    "sums": "SELECT s.k, count(*) AS n, sum(w) AS w FROM s JOIN r ON s.k = r.k GROUP BY s.k",
    "all_keys": "SELECT k FROM s UNION SELECT k FROM r",
    "ordered": "SELECT name FROM s WHERE v > 2 ORDER BY v DESC NULLS LAST, ts",
    "first": "SELECT k, sum(w) AS w FROM s JOIN r USING (k) GROUP BY k ORDER BY w DESC NULLS LAST, k LIMIT 3",
}
IN_ORDER = ("ordered", "first")


def split(db: headwater.Database, name: str) -> SplitView:
    """A view that is in parts."""
    found = db._context.engine.find_view(name)
    assert isinstance(found, SplitView)
    return found


def rows(db: headwater.Database, text: str) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    return db.sql(text).rows()


def make(db: headwater.Database, parts: int = 2, names: tuple[str, ...] = tuple(VIEWS)) -> None:
    """The tables, and views in parts."""
    for statement in TABLES:
        db.sql(statement)
    for name in names:
        assert db.sql(f"CREATE VIEW {name} WITH (parts = {parts}) AS {VIEWS[name]}").notice is None
        assert len(split(db, name).parts) == parts


def some(random: Random, first: int, count: int) -> dict[str, pa.Table]:
    """Rows of the streaming tables, NULL among their keys."""

    def key() -> int | None:
        return None if random.random() < 0.1 else random.randrange(9)

    times = range(first, first + count)
    s = [(ts, key(), random.randrange(8), f"n{random.randrange(5)}") for ts in times]
    r = [(ts, key(), random.randrange(8)) for ts in times if random.random() < 0.4]
    types = {"s": ("ts", "k", "v", "name"), "r": ("ts", "k", "w")}
    return {
        table: pa.Table.from_pylist([dict(zip(types[table], row, strict=True)) for row in found])
        for table, found in (("s", s), ("r", r))
        if found
    }


def insert(db: headwater.Database, given: dict[str, pa.Table]) -> None:
    """Rows into their tables."""
    for table, found in given.items():
        db.insert(table, found)


def check(db: headwater.Database, names: tuple[str, ...] = tuple(VIEWS)) -> None:
    """Every view equals its query on DuckDB, and its parts keep it."""
    stored = {name: db.sql(f"SELECT * FROM {name}").arrow() for name in ("s", "r", "t")}
    for name in names:
        wanted = list(map(repr, duckdb_rows(VIEWS[name], stored)))
        found = list(map(repr, rows(db, f"SELECT * FROM {name}")))
        if name not in IN_ORDER:
            wanted, found = sorted(wanted), sorted(found)
        assert found == wanted, name
        if split(db, name).parts[0].elsewhere is None:
            assert [circuit.stopped for circuit in split(db, name).circuits] == [None, None], name


def run_history(folder: Path, connect: Connect, settings: dict[str, Any]) -> None:
    """Inserts, changes of all tables and restarts, with a look at everything after each."""
    random, db = Random(11), connect(folder, settings=settings)
    make(db)
    if db._factories.seats:
        rows(db, "SELECT sum(id) FROM range(10)")  # Spark runs: factories come
        until(lambda: "here" not in split(db, "joined").host)
    check(db)
    insert(db, some(random, 0, 40))
    check(db)
    db.sql("INSERT INTO t VALUES (1, 'one'), (2, 'two'), (2, 'zwei'), (NULL, 'none')")
    check(db)
    db.sql("DELETE FROM s WHERE v = 3")
    check(db)
    db.close()
    db = connect(folder, settings=settings)
    check(db)
    insert(db, some(random, 100, 30))
    db.sql("UPDATE s SET k = 4 WHERE k = 5")
    db.sql("UPDATE t SET label = 'eins' WHERE k = 1")
    check(db)
    db.sql("DELETE FROM r WHERE w < 2")
    insert(db, some(random, 200, 30))
    check(db)
    db.close()
    db = connect(folder, settings=settings)
    insert(db, some(random, 300, 10))
    check(db)
    db.close()


@pytest.mark.here
def test_parts_are_the_view(folder: Path, connect: Connect) -> None:
    run_history(folder, connect, {})


@pytest.mark.here
def test_parts_on_disk_are_the_view(folder: Path, connect: Connect) -> None:
    run_history(folder, connect, {"view_state_mb": 0})


def test_parts_in_factories_are_the_view(folder: Path, connect: Connect) -> None:
    run_history(folder, connect, {})


@pytest.mark.here
def test_each_part_has_its_own_rows(db: headwater.Database) -> None:
    """No part is empty, and none holds what another one has."""
    make(db, 3, ("joined", "best"))
    insert(db, some(Random(2), 0, 200))
    for name in ("joined", "best"):
        keys = []
        assert rows(db, f"SELECT * FROM {name}")
        for circuit in split(db, name).circuits:
            keys.append(set(circuit.result().column(0).to_pylist()))
        assert all(keys)
        assert sum(map(len, keys)) == len(set().union(*keys)), name


KEYS_AT_ONCE = 64


def read_while_rows_come(db: headwater.Database, reads: int) -> list[set[int]]:
    """Each insert adds a row to each key, of one table and another: the counts that each read found."""
    db.sql("CREATE STREAMING TABLE a (ts INT, k INT) TIMESTAMP BY ts")
    db.sql("CREATE STREAMING TABLE b (ts INT, k INT) TIMESTAMP BY ts")
    both = "SELECT k, ts FROM a UNION ALL SELECT k, ts FROM b"
    text = f"SELECT k, count(*) AS n, median(ts) AS m FROM ({both}) GROUP BY k"
    db.sql(f"CREATE VIEW v WITH (parts = 2) AS {text}")
    stop, written = threading.Event(), [0]

    def insert_rows() -> None:
        while not stop.is_set():
            found = [(written[0], key) for key in range(KEYS_AT_ONCE)]
            db.insert("a", found)
            db.insert("b", found)
            written[0] += 1

    writer = threading.Thread(target=insert_rows)
    writer.start()
    found = []
    try:
        until(lambda: written[0] > 0)
        for _ in range(reads):
            before = written[0]
            counts = [row[0] for row in rows(db, "SELECT n FROM v")]
            assert len(counts) == KEYS_AT_ONCE
            assert min(counts) >= 2 * before, "a read without an acknowledged insert"
            found.append(set(counts))
    finally:
        stop.set()
        writer.join(PATIENCE_S)
    return found


@pytest.mark.here
def test_a_read_is_of_one_instant(db: headwater.Database) -> None:
    assert all(len(counts) == 1 for counts in read_while_rows_come(db, 60))


def test_a_read_of_factories_is_of_one_instant(db: headwater.Database) -> None:
    rows(db, "SELECT sum(id) FROM range(10)")  # Spark runs: factories come
    found = read_while_rows_come(db, 60)
    assert all(len(counts) == 1 for counts in found)
    until(lambda: "here" not in split(db, "v").host)
    assert len(set(rows(db, "SELECT n FROM v"))) == 1


@pytest.mark.here
def test_rows_that_come_between_two_parts(
    db: headwater.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each part is halted, and before each gives its rows, there is an insert."""
    make(db, 3, ("best",))
    halt, go_to, inserts = ViewCircuit.halt, ViewCircuit.go_to, 0

    def add() -> None:
        nonlocal inserts
        inserts += 1
        db.insert("s", [(inserts, key, inserts, "") for key in range(KEYS_AT_ONCE)])

    def halt_and_insert(self: ViewCircuit, *how: Any) -> Any:
        found = halt(self, *how)
        add()
        return found

    def insert_and_go(self: ViewCircuit, *how: Any) -> bool:
        add()
        return go_to(self, *how)

    add()
    monkeypatch.setattr(ViewCircuit, "halt", halt_and_insert)
    monkeypatch.setattr(ViewCircuit, "go_to", insert_and_go)
    for _ in range(4):
        assert rows(db, "SELECT max(v), min(v), count(*) FROM best") == [
            (inserts - 4, inserts - 5 or 1, 2 * KEYS_AT_ONCE)
        ]


@pytest.mark.here
def test_a_part_that_stops_leaves_the_view_to_spark(db: headwater.Database) -> None:
    """One row's expression raises in one part: each read is evaluated, until that row is gone."""
    make(db, 2, ())
    db.sql("CREATE VIEW v WITH (parts = 2) AS SELECT s.k, 10 DIV v AS q FROM s JOIN r USING (k)")
    db.insert("r", [(1, key, 0) for key in range(8)])
    db.insert("s", [(1, key, 2, "") for key in range(8)])
    assert rows(db, "SELECT count(*), sum(q) FROM v") == [(8, 40)]
    db.insert("s", [(2, 3, 0, "")])
    with pytest.raises(headwater.Error, match=r"(?i)zero"):
        rows(db, "SELECT * FROM v")
    stopped = [circuit.stopped is not None for circuit in split(db, "v").circuits]
    assert sorted(stopped) == [False, True]
    db.flush()
    db.sql("DELETE FROM s WHERE v = 0")
    assert rows(db, "SELECT count(*), sum(q) FROM v") == [(8, 40)]
    assert [circuit.stopped for circuit in split(db, "v").circuits] == [None, None]


@pytest.mark.parametrize("where", ["here", "factories"])
def test_a_key_is_found_by_the_part_that_has_it(
    folder: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    keys = 2 * view.FEW_ROWS + 500  # no part is so small that it is read whole
    db = connect(folder, settings={"factories": 0 if where == "here" else 2})
    make(db, 3, ("best", "sums"))
    db.insert("r", [(1, key, key) for key in range(keys)])
    db.insert("s", [(1, key, 1, "") for key in range(keys)])
    monkeypatch.setattr(SplitView, "read", lambda _self: pytest.fail("it was read whole"))
    for key in (0, 1, 2, 3, 17, 99):
        db.insert("s", [(500, key, 1000 + key, "")])
        assert rows(db, f"SELECT max(v) FROM best WHERE k = {key}") == [(1000 + key,)]
        assert rows(db, f"SELECT n, w FROM sums WHERE k = {key}") == [(2, 2 * key)]
    assert rows(db, f"SELECT * FROM best WHERE k = {keys}") == []
    db.close()


@pytest.mark.here
def test_a_view_gets_other_parts(folder: Path, connect: Connect) -> None:
    """Fewer, more, or whole; reads, DELETE and restarts between see every row."""
    random, db = Random(6), connect(folder)
    make(db, 2, ("joined", "first"))
    for step, parts in enumerate((3, 1, 1, 4, "auto", 1, 2)):
        insert(db, some(random, 100 * step, 40))
        for name in ("joined", "first"):
            db.sql(f"ALTER VIEW {name} SET (parts = {parts})")
            found = db._context.engine.find_view(name)
            assert found is not None
            assert len(found.parts) == {1: 0, "auto": 4}.get(parts, parts)
            if parts == "auto":
                assert set_parts(db._context, name, 2)
            assert db.sql(f"VERIFY VIEW {name}").rows() == []
        if step in (1, 3, 4):
            db.sql(f"DELETE FROM s WHERE v = {step}")
            db.close()
            db = connect(folder)
            assert db.sql("VERIFY VIEW joined").rows() == []
    check(db, ("joined", "first"))
    db.close()
    snapshots = sorted(path.name for path in (folder / "snapshots").glob("pipeline-*.snapshot"))
    assert len(snapshots) == 4
    assert all("-of-2" in name for name in snapshots)


@pytest.mark.here
def test_what_is_whole_stays_whole(db: headwater.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """EXPLAIN says why; load never splits it, nor a view whose rows are too many to be read again."""
    make(db, 2, ())
    db.sql("CREATE VIEW running AS SELECT k, sum(v) OVER (ORDER BY ts) AS x FROM s")
    with pytest.raises(BindError, match="cannot have 2 parts: all rows meet in: sum"):
        db.sql("ALTER VIEW running SET (parts = 2)")
    plan = [row[0] for row in rows(db, "EXPLAIN VIEW running")]
    assert plan[-1].startswith("in one part: all rows meet in: sum(v) over all rows")
    assert not set_parts(db._context, "running", 2)
    db.sql(f"CREATE VIEW best AS {VIEWS['best']}")
    insert(db, some(Random(1), 0, 30))
    with monkeypatch.context() as inner:
        inner.setattr(altered_parts, "MOST_REMADE", 29)
        assert not set_parts(db._context, "best", 2)
    assert set_parts(db._context, "best", 2)
    check(db, ("best",))


@pytest.mark.here
def test_one_view_to_its_users(db: headwater.Database) -> None:
    """EXPLAIN, system tables, SUBSCRIBE, views above, OR REPLACE, DROP."""
    make(db, 2, ("sums", "first"))
    db.sql("CREATE VIEW above AS SELECT max(w) AS w FROM sums")
    insert(db, some(Random(3), 0, 60))
    plan = [row[0] for row in rows(db, "EXPLAIN VIEW first")]
    assert plan[0] == "continuous view first, maintenance split, 2 parts by hash of k"
    assert "part 1 of 2 by hash of k" in "\n".join(plan)
    measured = "\n".join(row[0] for row in rows(db, "EXPLAIN ANALYZE VIEW first"))
    assert [measured.count(f"part {n} of 2\n") for n in (1, 2)] == [1, 1]
    made = rows(db, f"EXPLAIN CREATE VIEW v WITH (parts = 3) AS {VIEWS['sums']}")
    assert made[0] == ("3 parts by hash of k",)
    subscription = db.subscribe("sums", timeout=PATIENCE_S)
    assert len(next(subscription).rows()) == len(rows(db, "SELECT * FROM sums"))
    db.insert("r", [(900, 3, 1)])
    db.insert("s", [(900, 3, 1, "")])
    assert next(subscription).rows()
    subscription.close()
    shown = "SELECT state, tier, waiting_rows FROM headwater.views WHERE name = 'sums'"
    until(lambda: rows(db, shown) == [("running", "operators", 0)])  # what was told may be r's row
    for parts in (3, 1, 2):
        db.sql(f"CREATE OR REPLACE VIEW sums WITH (parts = {parts}) AS {VIEWS['sums']}")
        assert rows(db, "SELECT * FROM above") == rows(db, "SELECT max(w) FROM sums")
    for name in ("above", "sums", "first"):
        db.sql(f"DROP VIEW {name}")
    assert db._context.engine.parts() == []
    assert list((db._context.folder.path / "snapshots").glob("pipeline-*")) == []


def test_a_heavy_view_is_split_by_itself(
    folder: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the rule of folds, while rows come and it is read; a restart finds it in parts."""
    monkeypatch.setattr(placement, "SPLIT_LOAD", 0.001)
    monkeypatch.setattr(placement, "SPLIT_ROWS", 1)
    monkeypatch.setattr(placement, "IDLE", 1.0)
    monkeypatch.setattr(coordinator, "BALANCE_S", 0.3)
    db, random, number = connect(folder), Random(4), 0
    make(db, 1, ())
    db.sql(f"CREATE VIEW best AS {VIEWS['best']}")

    def is_split_after_more() -> bool:
        nonlocal number
        insert(db, some(random, 50 * number, 50))
        number += 1
        stored = {"s": db.sql("SELECT * FROM s").arrow()}
        wanted = sorted(map(repr, duckdb_rows(VIEWS["best"], stored)))
        assert sorted(map(repr, rows(db, "SELECT * FROM best"))) == wanted
        found = db._context.engine.find_view("best")
        return isinstance(found, SplitView) and found.host == "factory 1, factory 2"

    until(is_split_after_more, "it was not split")
    is_split_after_more()
    db.close()
    db = connect(folder)
    assert len(split(db, "best").parts) == 2
    is_split_after_more()


def test_the_end_of_a_parts_factory(db: headwater.Database) -> None:
    """One of its hosts is killed: what it had is answered by another, and no row is missing."""
    random = Random(8)
    make(db, 2, ("joined", "first"))
    rows(db, "SELECT sum(id) FROM range(10)")  # Spark runs: factories come
    for step in range(3):
        until(lambda: "here" not in split(db, "joined").host)
        insert(db, some(random, 100 * step, 40))
        check(db, ("joined", "first"))
        insert(db, some(random, 100 * step + 50, 40))
        next(seat for seat in db._factories.seats if seat.lent).process.kill()
        check(db, ("joined", "first"))
    db.sql("DELETE FROM s WHERE v = 3")
    check(db, ("joined", "first"))
