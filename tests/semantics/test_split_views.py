"""A view in parts is the view: rows, one instant, restarts, all statements (CV1, CV2, CV8, ST3).

That factories are killed meanwhile is in `tests/factories`: their load has views in parts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import headwater
from headwater.engine import halting, view
from headwater.engine.halting import Ends
from headwater.engine.split_view import SplitView
from headwater.engine.view_pipeline import ViewPipeline
from headwater.errors import BindError, SettingError
from headwater.execute.altered_parts import set_parts
from headwater.factories import coordinator, placement
from headwater.kernel.relation import HeldTables
from tests.harness.oracle import duckdb_rows
from tests.harness.patience import PATIENCE_S, until

Connect = Callable[..., headwater.Database]

TABLE = (
    "CREATE STREAMING TABLE s (ts INT, k INT, name STRING, d DOUBLE, day DATE, ok BOOLEAN, "
    "price DECIMAL(30, 4), cents DECIMAL(9, 2), at TIMESTAMP, raw BINARY, x INT) TIMESTAMP BY ts"
)
SCHEMA = pa.schema(
    [
        ("ts", pa.int32()),
        ("k", pa.int32()),
        ("name", pa.string()),
        ("d", pa.float64()),
        ("day", pa.date32()),
        ("ok", pa.bool_()),
        ("price", pa.decimal128(30, 4)),
        ("cents", pa.decimal128(9, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("raw", pa.binary()),
        ("x", pa.int32()),
    ]
)
KEYS = (
    *("k", "name", "d", "day", "ok", "price", "cents", "at", "raw"),
    *("k, name", "d, x", "k % 3, ok", "upper(name), day, cents"),
)
NOTHING_HELD = HeldTables({}, {})
AGGREGATES = "count(*) AS n, sum(x) AS total, min(x) AS low, count(DISTINCT x) AS values"


def query(keys: str) -> str:
    """A view by some keys."""
    named = ", ".join(f"{key} AS k{place}" for place, key in enumerate(keys.split(", ")))
    return f"SELECT {named}, {AGGREGATES} FROM s GROUP BY {keys} HAVING count(*) <> 2"


def some_rows(random: Random, first: int, count: int) -> pa.Table:
    """Rows with keys of all types, NULL, NaN and negative zeros among them."""

    def one(ts: int) -> dict[str, Any]:
        number = random.randrange(12)
        values: dict[str, Any] = {
            "k": number,
            "name": f"n{number}" if number else "",
            "d": random.choice([0.0, -0.0, float("nan"), 1.5, float("inf"), -2.25]),
            "day": date(2026, 1, 1 + number),
            "ok": bool(number % 2),
            "price": number * Decimal("1000000000000000000000.0001"),
            "cents": Decimal(number) / 4,
            "at": datetime(2026, 1, 1, number),
            "raw": bytes([number, 0, 255]),
            "x": random.randrange(5),
        }
        return {"ts": ts} | {n: None if random.random() < 0.1 else v for n, v in values.items()}

    return pa.Table.from_pylist([one(first + number) for number in range(count)], SCHEMA)


def comparable(found: list[tuple[Any, ...]]) -> list[str]:
    """Rows in one order; numbers as Spark groups them."""

    def plain(value: Any) -> Any:
        if isinstance(value, bytearray):
            return bytes(value)
        if isinstance(value, datetime):
            return value.replace(tzinfo=None)
        return float(value) + 0.0 if isinstance(value, float | Decimal) else value

    return sorted(repr(tuple(map(plain, row))) for row in found)


def rows(db: headwater.Database, text: str) -> list[str]:
    """The rows of a query, in one order."""
    return comparable(db.sql(text).rows())


def split(db: headwater.Database, name: str) -> SplitView:
    """A view that is in parts."""
    found = db._context.engine.find_view(name)
    assert isinstance(found, SplitView)
    return found


def check_oracle(db: headwater.Database, every: Sequence[str]) -> None:
    """In parts, whole, and by DuckDB over the stored rows: the same."""
    stored = db.sql("SELECT * FROM s").arrow()
    for number, keys in enumerate(every):
        wanted = comparable(duckdb_rows(query(keys), {"s": stored}))
        assert rows(db, f"SELECT * FROM whole_{number}") == wanted, keys
        assert rows(db, f"SELECT * FROM parts_{number}") == wanted, keys


def run_history(
    folder: Path, connect: Connect, settings: dict[str, Any], every: Sequence[str]
) -> None:
    """Inserts, deletes, updates and restarts, with a look at everything after each."""
    random = Random(7)
    db = connect(folder, settings=settings)
    db.sql(TABLE)
    for number, keys in enumerate(every):
        db.sql(f"CREATE VIEW whole_{number} AS {query(keys)}")
        how = (
            f"parts = {2 + number % 2}, maintenance = '{('split', 'incremental')[number % 4 == 3]}'"
        )
        db.sql(f"CREATE VIEW parts_{number} WITH ({how}) AS {query(keys)}")
    for step, count in enumerate((40, 90, 1, 40)):
        db.insert("s", some_rows(random, 100 * step, count))
        if step == 1:
            db.sql("DELETE FROM s WHERE x = 3 OR k = 5")
        if step == 2:
            db.sql("UPDATE s SET k = 4, name = 'n4' WHERE k IS NULL")
        check_oracle(db, every)
        if step in (0, 2):
            db.close()
            db = connect(folder, settings=settings)
            check_oracle(db, every)
    for number in (0, 2):
        assert db.sql(f"VERIFY VIEW parts_{number}").rows() == []
    db.close()


@pytest.mark.here
def test_parts_are_the_view(folder: Path, connect: Connect) -> None:
    run_history(folder, connect, {}, KEYS)


@pytest.mark.here
def test_parts_on_disk_are_the_view(folder: Path, connect: Connect) -> None:
    run_history(folder, connect, {"view_state_mb": 0}, KEYS[::4])


def test_parts_in_factories_are_the_view(folder: Path, connect: Connect) -> None:
    run_history(folder, connect, {}, KEYS[1::3])


@pytest.mark.here
def test_partials_of_spark_are_shared_out(folder: Path, connect: Connect) -> None:
    """Where Spark folds, each part takes its own groups of what Spark made."""
    db = connect(folder, settings={"spark_sql_only": True})
    db.sql(TABLE)
    for number in (0, 2, 9):
        db.sql(f"CREATE VIEW parts WITH (parts = 3) AS {query(KEYS[number])}")
        db.insert("s", some_rows(Random(3), 100 * number, 60))
        stored = db.sql("SELECT * FROM s").arrow()
        wanted = comparable(duckdb_rows(query(KEYS[number]), {"s": stored}))
        assert rows(db, "SELECT * FROM parts") == wanted
        groups = [part.pipelines[0].groups for part in split(db, "parts").parts]
        assert all(groups)
        assert sum(groups) == len(db.sql(f"SELECT 1 FROM s GROUP BY {KEYS[number]}").rows())
        db.sql("DROP VIEW parts")


KEYS_AT_ONCE = 64


def with_all_factories(db: headwater.Database) -> None:
    """Every factory has come: parts are spread over all of them."""
    db.sql("CREATE STREAMING TABLE first (ts INT) TIMESTAMP BY ts")
    db.sql("CREATE VIEW first_rows AS SELECT count(*) AS n FROM first")
    until(lambda: all(seat.is_there for seat in db._factories.seats))


def read_while_rows_come(db: headwater.Database, reads: int) -> list[set[int]]:
    """Each insert adds one row to each key: the counts that each read found."""
    db.sql("CREATE STREAMING TABLE t (ts INT, k INT) TIMESTAMP BY ts")
    db.sql("CREATE VIEW v WITH (parts = 2) AS SELECT k, count(*) AS n FROM t GROUP BY k")
    stop, written = threading.Event(), [0]

    def insert() -> None:
        while not stop.is_set():
            db.insert("t", [(written[0], key) for key in range(KEYS_AT_ONCE)])
            written[0] += 1

    writer = threading.Thread(target=insert)
    writer.start()
    found = []
    try:
        until(lambda: written[0] > 0)
        for _ in range(reads):
            before = written[0]
            counts = [row[0] for row in db.sql("SELECT n FROM v").rows()]
            assert len(counts) == KEYS_AT_ONCE
            assert min(counts) >= before, "a read without an acknowledged insert"
            found.append(set(counts))
    finally:
        stop.set()
        writer.join(PATIENCE_S)
    assert rows(db, "SELECT DISTINCT n FROM v") == [f"({written[0]},)"]
    return found


@pytest.mark.here
def test_a_read_is_of_one_instant(db: headwater.Database) -> None:
    assert all(len(counts) == 1 for counts in read_while_rows_come(db, 150))


def test_a_read_of_factories_is_of_one_instant(db: headwater.Database) -> None:
    with_all_factories(db)
    found = read_while_rows_come(db, 150)
    assert split(db, "v").host == "factory 1, factory 2"
    assert all(len(counts) == 1 for counts in found)


@pytest.mark.here
def test_rows_that_come_between_two_parts(
    db: headwater.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After each part is halted, and before each gives its rows, there is an insert."""
    db.sql("CREATE STREAMING TABLE t (ts INT, k INT) TIMESTAMP BY ts")
    db.sql("CREATE VIEW v WITH (parts = 3) AS SELECT k, count(*) AS n FROM t GROUP BY k")
    halt, go_to = ViewPipeline.halt, ViewPipeline.go_to
    inserts = 0

    def insert() -> None:
        nonlocal inserts
        db.insert("t", [(inserts, key) for key in range(KEYS_AT_ONCE)])
        inserts += 1

    def halt_and_insert(self: ViewPipeline, reader: int, held: HeldTables) -> Ends | None:
        ends = halt(self, reader, held)
        insert()
        return ends

    def insert_and_go(self: ViewPipeline, reader: int, ends: Ends, held: HeldTables) -> bool:
        insert()
        return go_to(self, reader, ends, held)

    insert()
    monkeypatch.setattr(ViewPipeline, "halt", halt_and_insert)
    monkeypatch.setattr(ViewPipeline, "go_to", insert_and_go)
    for _ in range(5):
        assert rows(db, "SELECT DISTINCT n FROM v") == [f"({inserts - 4},)"]


@pytest.mark.here
def test_parts_that_have_come_differently_far(db: headwater.Database) -> None:
    """The one that is behind is brought to where the other stands, before it folds on."""
    db.sql("CREATE STREAMING TABLE t (ts INT, k INT) TIMESTAMP BY ts")
    db.sql("CREATE VIEW v WITH (parts = 2) AS SELECT k, count(*) AS n FROM t GROUP BY k")
    behind, ahead = (part.pipelines[0] for part in split(db, "v").parts)
    behind.halt(-1, NOTHING_HELD)
    db.insert("t", [(1, key) for key in range(KEYS_AT_ONCE)])
    until(lambda: ahead.sequence == KEYS_AT_ONCE)
    assert behind.sequence == 0
    assert rows(db, "SELECT DISTINCT n FROM v") == ["(1,)"]


@pytest.mark.here
def test_a_reader_that_does_not_come_back(
    db: headwater.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part that it has halted folds on after a while; inserts have not waited."""
    monkeypatch.setattr(halting, "HALT_S", 2.0)
    db.sql("CREATE STREAMING TABLE t (ts INT, k INT) TIMESTAMP BY ts")
    db.sql("CREATE VIEW v WITH (parts = 2) AS SELECT k, count(*) AS n FROM t GROUP BY k")
    for part in split(db, "v").parts:
        assert part.halt(-1)() == (0,)
    db.insert("t", [(1, 1), (1, 2)])
    pipelines = split(db, "v").pipelines
    assert all(p.sequence == 0 for p in pipelines if p.halted_until is not None)
    until(lambda: [pipeline.sequence for pipeline in pipelines] == [2, 2])
    assert all(part.read_at(-1, (2,), 0)() is None for part in split(db, "v").parts)


@pytest.mark.here
@pytest.mark.parametrize("when", ["before rows came", "between pull and firing"])
def test_flush_waits_for_a_halted_part(
    db: headwater.Database, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    monkeypatch.setattr(halting, "HALT_S", 1.0)
    db.sql("CREATE STREAMING TABLE t (ts INT, k INT) TIMESTAMP BY ts")
    db.sql("CREATE VIEW v WITH (parts = 2) AS SELECT k, count(*) AS n FROM t GROUP BY k")
    part = split(db, "v").parts[0]
    pipeline, fire = part.pipelines[0], part.fire

    def halted() -> int:
        if part.fired < before + 1:
            pipeline._halt = (-1, time.monotonic() + halting.HALT_S)
        return fire()

    db.flush()
    before = part.fired
    if when == "before rows came":
        pipeline.halt(-1, NOTHING_HELD)
    else:
        monkeypatch.setattr(part, "fire", halted)
    db.insert("t", [(1, key) for key in range(KEYS_AT_ONCE)])
    db.flush()
    assert [own.sequence for own in split(db, "v").pipelines] == [KEYS_AT_ONCE] * 2


@pytest.mark.here
def test_an_error_of_a_reader_lets_parts_go_on(
    db: headwater.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.sql("CREATE STREAMING TABLE t (ts INT, k INT) TIMESTAMP BY ts")
    db.sql("CREATE VIEW v WITH (parts = 2) AS SELECT k, count(*) AS n FROM t GROUP BY k")
    db.insert("t", [(1, 1), (1, 2)])
    last = split(db, "v").parts[-1]
    with monkeypatch.context() as inner:
        inner.setattr(last, "read_at", lambda *_: (_ for _ in ()).throw(RuntimeError("no")))
        with pytest.raises(RuntimeError):
            split(db, "v").read()
    assert [pipeline.halted_until for pipeline in split(db, "v").pipelines] == [None, None]


def test_one_view_to_its_users(db: headwater.Database) -> None:
    """More parts than factories; SHOW, EXPLAIN and system tables tell of one view."""
    with_all_factories(db)
    db.sql("CREATE STREAMING TABLE t (ts INT, k INT, x INT) TIMESTAMP BY ts")
    db.sql("CREATE VIEW v WITH (parts = 3) AS SELECT k, sum(x) AS x FROM t GROUP BY k")
    db.insert("t", [(n, n % 50, n) for n in range(100)])
    db.flush()
    db.sql("DROP VIEW first_rows")
    shown = db.sql("SELECT name, host, state, groups, waiting_rows FROM headwater.views")
    hosts = "factory 1, factory 2"
    assert shown.rows() == [("v", hosts, "running", 50, 0)]
    assert [row[0] for row in db.sql("SHOW VIEWS").rows()] == ["v"]
    plan = [row[0] for row in db.sql("EXPLAIN VIEW v").rows()]
    assert plan[0] == f"continuous view v, maintenance split, 3 parts by hash of k, in {hosts}"
    measured = "\n".join(row[0] for row in db.sql("EXPLAIN ANALYZE VIEW v").rows())
    assert [measured.count(f"part {n} of 3, in factory") for n in (1, 2, 3)] == [1, 1, 1]
    assert measured.count("rows folded by operators: 100") == 3
    waiting = db.sql("SELECT value FROM headwater.metrics WHERE name = 'view.v.waiting_rows'")
    assert waiting.rows() == [(0,)]


@pytest.mark.here
def test_views_with_the_same_parts_share_their_groups(db: headwater.Database) -> None:
    db.sql("CREATE STREAMING TABLE t (ts INT, k INT, x INT) TIMESTAMP BY ts")
    for name, parts, made in (("v", 2, "sum(x)"), ("w", 2, "max(x)"), ("whole", 1, "sum(x)")):
        text = f"SELECT k, {made} AS x FROM t GROUP BY k"
        db.sql(f"CREATE VIEW {name} WITH (parts = {parts}) AS {text}")
    db.insert("t", [(n, n % 50, n) for n in range(100)])
    shared = dict(db.sql("SELECT name, shared_with FROM headwater.views").rows())
    assert shared == {"v": ["w"], "w": ["v"], "whole": []}
    assert rows(db, "SELECT * FROM v") == rows(db, "SELECT * FROM whole")
    assert rows(db, "SELECT * FROM w") == rows(db, "SELECT k, max(x) FROM t GROUP BY k")


@pytest.mark.here
def test_what_cannot_be_split(db: headwater.Database) -> None:
    db.sql("CREATE STREAMING TABLE t (ts INT, k INT, x INT) TIMESTAMP BY ts")
    refused = {
        "SELECT count(*) AS n FROM t": "not one grouping by keys",
        "SELECT k, sum(x) OVER (ORDER BY ts) AS x FROM t": "all rows meet in",
        "SELECT t.x, count(*) AS n FROM t JOIN t AS o USING (k) GROUP BY t.x": "all rows of t",
        "SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY n DESC LIMIT 3": "LIMIT",
        "SELECT DISTINCT count(*) AS n FROM t GROUP BY k": "DISTINCT",
        "SELECT max(n) AS n FROM (SELECT k, count(*) AS n FROM t GROUP BY k)": "above its grouping",
    }
    for text, reason in refused.items():
        for words in ("", "EXPLAIN "):
            with pytest.raises(BindError, match=reason):
                db.sql(f"{words}CREATE VIEW v WITH (parts = 2) AS {text}")
        db.sql(f"CREATE VIEW v WITH (parts = 1) AS {text}")
        db.sql("DROP VIEW v")
    grouped = "SELECT k, count(*) AS n FROM t GROUP BY k"
    plan = db.sql(f"EXPLAIN CREATE VIEW v WITH (parts = 2) AS {grouped}").rows()
    assert plan[0] == ("2 parts by hash of k",)
    for maintenance in ("eager", "deferred"):
        with pytest.raises(BindError, match=maintenance):
            db.sql(f"CREATE VIEW v WITH (parts = 2, maintenance = '{maintenance}') AS {grouped}")
    for parts in ("0", "65", "'two'", "1.5", "true"):
        with pytest.raises(SettingError, match="whole number"):
            db.sql(f"CREATE VIEW v WITH (parts = {parts}) AS {grouped}")


def test_statements_about_a_view_in_parts(db: headwater.Database) -> None:
    """OR REPLACE with more, fewer and no parts; views and queries on it; SUBSCRIBE; DROP."""
    db.sql("CREATE STREAMING TABLE t (ts INT, k INT, x INT) TIMESTAMP BY ts")
    db.sql("CREATE VIEW v WITH (parts = 2) AS SELECT k, sum(x) AS x FROM t GROUP BY k")
    db.sql("CREATE VIEW above AS SELECT max(x) AS x FROM v")
    db.insert("t", [(n, n % 5, n) for n in range(20)])
    subscription = db.subscribe("v", timeout=PATIENCE_S)
    first = next(subscription)
    assert len(first.rows()) == 5
    for parts in (3, 1, 2):
        db.sql(
            f"CREATE OR REPLACE VIEW v WITH (parts = {parts}) AS SELECT k, sum(x) AS x FROM t GROUP BY k"
        )
        assert rows(db, "SELECT * FROM v") == rows(db, "SELECT k, sum(x) FROM t GROUP BY k")
        assert rows(db, "SELECT * FROM above") == rows(db, "SELECT max(x) FROM v")
        names = [part.name for part in db._context.engine.parts()]
        assert names == [f"v/{n}" for n in range(1, parts + 1) if parts > 1]
    db.insert("t", [(30, 2, 100)])
    change = next(subscription)
    assert (
        [(op, k) for op, k, *_ in change.changes()] if hasattr(change, "changes") else change.rows()
    )
    subscription.close()
    assert rows(db, "SELECT x FROM v WHERE k = 2") == rows(db, "SELECT sum(x) FROM t WHERE k = 2")
    db.sql("DROP VIEW above")
    db.sql("DROP VIEW v")
    assert db._context.engine.parts() == []
    assert list((db._context.folder.path / "snapshots").glob("pipeline-*")) == []
    db.sql("DROP TABLE t")


def test_an_error_of_one_part_is_the_views(db: headwater.Database) -> None:
    """One row stops its part, and so every read, until it is deleted; the insert stands."""
    db.sql("CREATE STREAMING TABLE t (ts INT, k INT, x INT) TIMESTAMP BY ts")
    db.sql("CREATE VIEW v WITH (parts = 2) AS SELECT k, sum(10 DIV x) AS n FROM t GROUP BY k")
    db.insert("t", [(n, n, 1) for n in range(8)])
    db.insert("t", [(9, 3, 0)])
    with pytest.raises(headwater.Error, match=r"(?i)zero"):
        db.sql("SELECT * FROM v")
    with pytest.raises(BindError, match="view v has failed"):
        db.flush()
    ((state, error),) = db.sql("SELECT state, error FROM headwater.views").rows()
    assert state == "failed"
    assert "zero" in error.casefold()
    db.sql("DELETE FROM t WHERE x = 0")
    assert rows(db, "SELECT sum(n), count(*) FROM v") == ["(80, 8)"]
    assert db.sql("SELECT state, error FROM headwater.views").rows() == [("running", None)]


STREAM = "CREATE STREAM t (ts INT, k STRING, x INT, y DOUBLE) TIMESTAMP BY ts"
OF_STREAM = (
    "SELECT k, count(*) AS n, sum(x) AS s, avg(y) AS a, count(DISTINCT x) AS u, max(k) AS high, "
    "first(x) AS one, last(x) AS other FROM t GROUP BY k HAVING count(*) > 1"
)


def some_of_stream(random: Random, first: int, count: int) -> list[tuple[Any, ...]]:
    """Rows of a stream: a view of them cannot be made again."""
    keys = [None, *(f"key {number}" for number in range(20))]
    return [(first + n, random.choice(keys), random.randrange(7), float(n)) for n in range(count)]


def of_stream(given: list[tuple[Any, ...]]) -> list[str]:
    """What the view has of these rows, by brute force."""
    found = []
    for key in {row[1] for row in given}:
        mine = [row for row in given if row[1] == key]
        if len(mine) > 1:
            xs, ys = [row[2] for row in mine], [row[3] for row in mine]
            found.append(
                (key, len(mine), sum(xs), sum(ys) / len(ys), len(set(xs)), key, xs[0], xs[-1])
            )
    return comparable(found)


@pytest.mark.here
def test_a_whole_view_goes_on_in_parts(folder: Path, connect: Connect) -> None:
    """With the groups that it has: of a stream no row is there to be folded again."""
    random, given, db = Random(5), list[tuple[Any, ...]](), connect(folder)
    db.sql(STREAM)
    db.sql(f"CREATE VIEW v AS {OF_STREAM}")
    db.sql(f"CREATE VIEW whole WITH (parts = 1) AS {OF_STREAM.replace('> 1', '> 2')}")
    for step in range(4):
        given += (new := some_of_stream(random, 100 * step, 60))
        db.insert("t", new)
        if step == 1:
            db.sql("DROP VIEW whole")  # it had the groups, too
            before = db.sql("SELECT * FROM v").rows()
            assert set_parts(db._context, "v", 3)
            assert not set_parts(db._context, "v", 3)
            assert comparable(before) == rows(db, "SELECT * FROM v VERSION AS OF 'latest'")
            sizes = [part.pipelines[0].groups for part in split(db, "v").parts]
            assert all(sizes)
            assert sum(sizes) == len({row[1] for row in given})
        assert rows(db, "SELECT * FROM v") == of_stream(given)
        if step == 2:
            db.close()
            db = connect(folder)
            assert len(split(db, "v").parts) == 3
            assert rows(db, "SELECT * FROM v") == of_stream(given)
    assert len(list((folder / "snapshots").glob("pipeline-*.snapshot"))) == 3


@pytest.mark.here
def test_a_view_in_parts_goes_on_in_others(folder: Path, connect: Connect) -> None:
    """Fewer, more, or whole, with the groups that they have; reads and restarts between see every row."""
    random, given, db = Random(6), list[tuple[Any, ...]](), connect(folder)
    db.sql(STREAM)
    db.sql(f"CREATE VIEW v WITH (parts = 2) AS {OF_STREAM}")
    for step, parts in enumerate((3, 1, 1, 4, "auto", 1)):
        given += (new := some_of_stream(random, 100 * step, 60))
        db.insert("t", new)
        db.sql(f"ALTER VIEW v SET (parts = {parts})")
        found = db._context.engine.find_view("v")
        assert found is not None
        assert len(found.parts) == {1: 0, "auto": 4}.get(parts, parts)
        if parts == "auto":
            assert set_parts(db._context, "v", 3)
        assert rows(db, "SELECT * FROM v") == of_stream(given)
        if step in (1, 3, 4):
            db.close()
            db = connect(folder)
            assert rows(db, "SELECT * FROM v") == of_stream(given)
    assert not db._context.engine.parts()
    assert len(list((folder / "snapshots").glob("pipeline-*.snapshot"))) == 1


@pytest.mark.here
def test_parts_that_others_share_are_made_again(db: headwater.Database) -> None:
    """Of the stored rows, where they are all there; else the view stays as it is."""
    grouped = "SELECT k, count(*) AS n FROM {} GROUP BY k"
    db.sql("CREATE STREAMING TABLE t (ts INT, k INT) TIMESTAMP BY ts")
    db.sql("CREATE STREAM u (ts INT, k INT) TIMESTAMP BY ts")
    for table in ("t", "u"):
        for name in ("v", "w"):
            text = grouped.format(table)
            db.sql(f"CREATE VIEW {name}_{table} WITH (parts = 2) AS {text}")
        db.insert(table, [(number, number % 7) for number in range(30)])
    db.sql("ALTER VIEW v_t SET (parts = 1)")
    assert rows(db, "SELECT * FROM v_t") == rows(db, "SELECT * FROM w_t")
    with pytest.raises(BindError, match="cannot be made again"):
        db.sql("ALTER VIEW v_u SET (parts = 1)")
    with pytest.raises(SettingError, match="from 1 to 64"):
        db.sql("ALTER VIEW v_u SET (parts = 0)")
    assert len(split(db, "v_u").parts) == 2
    assert rows(db, "SELECT * FROM v_u") == rows(db, "SELECT * FROM v_t")


@pytest.mark.here
def test_a_view_whose_split_fails_stays_whole(
    folder: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was written for its parts is of no use, and gone at the next start."""
    given, db = some_of_stream(Random(2), 0, 80), connect(folder)
    db.sql(STREAM)
    db.sql(f"CREATE VIEW v AS {OF_STREAM}")
    db.insert("t", given)
    with monkeypatch.context() as inner:
        inner.setattr(db._context.catalog, "change", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            set_parts(db._context, "v", 2)
    assert rows(db, "SELECT * FROM v") == of_stream(given)
    db.close()
    db = connect(folder)
    assert rows(db, "SELECT * FROM v") == of_stream(given)
    assert set_parts(db._context, "v", 2)
    assert rows(db, "SELECT * FROM v") == of_stream(given)


@pytest.mark.here
def test_who_is_never_split_by_itself(db: headwater.Database) -> None:
    db.sql("CREATE STREAMING TABLE t (ts INT, k INT, x INT) TIMESTAMP BY ts")
    grouped = "SELECT k, count(*) AS n FROM t GROUP BY k"
    db.sql(f"CREATE VIEW one WITH (parts = 1) AS {grouped}")
    db.sql("CREATE VIEW ordered AS SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY n LIMIT 2")
    db.sql("CREATE VIEW all_rows AS SELECT count(*) AS n FROM t")
    db.sql(f"CREATE VIEW v AS {grouped}")
    db.sql(f"CREATE VIEW w AS {grouped}")
    for name in ("one", "ordered", "all_rows", "v"):  # v and w have their groups in common
        assert not set_parts(db._context, name, 2), name


def test_a_heavy_view_is_split_by_itself(
    folder: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While rows come and it is read: none is lost, none counts twice, each read is of one instant."""
    monkeypatch.setattr(placement, "SPLIT_LOAD", 0.001)
    monkeypatch.setattr(placement, "SPLIT_ROWS", 1)
    monkeypatch.setattr(placement, "IDLE", 1.0)
    monkeypatch.setattr(coordinator, "BALANCE_S", 0.3)
    db = connect(folder)
    with_all_factories(db)
    db.sql("CREATE STREAM t (ts INT, k INT) TIMESTAMP BY ts")
    db.sql("CREATE VIEW v AS SELECT k, count(*) AS n FROM t GROUP BY k")
    inserts = 0

    def is_split_after_more() -> bool:
        nonlocal inserts
        db.insert("t", [(inserts, key) for key in range(KEYS_AT_ONCE)])
        inserts += 1
        assert rows(db, "SELECT DISTINCT n FROM v") == [f"({inserts},)"]
        found = db._context.engine.find_view("v")
        return isinstance(found, SplitView) and found.host == "factory 1, factory 2"

    until(is_split_after_more, "it was not split")
    for _ in range(5):
        is_split_after_more()
    db.close()
    db = connect(folder)
    assert rows(db, "SELECT n, count(*) FROM v GROUP BY n") == [f"({inserts}, {KEYS_AT_ONCE})"]
    assert split(db, "v").host.startswith("factory")


@pytest.mark.parametrize("where", ["here", "factories"])
def test_a_key_is_found_by_the_part_that_has_it(
    folder: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    count = 2 * view.FEW_ROWS + 500
    db = connect(folder, settings={"factories": 0 if where == "here" else 2})
    db.sql("CREATE STREAMING TABLE t (ts INT, k INT, name STRING, x INT) TIMESTAMP BY ts")
    db.sql("CREATE VIEW v WITH (parts = 2) AS SELECT name, k, sum(x) AS x FROM t GROUP BY k, name")
    db.insert("t", [(n, n, f"n{n % 9}", n) for n in range(count)])
    monkeypatch.setattr(SplitView, "read", lambda _self: pytest.fail("it was read whole"))
    for key in (0, 1, 2, 3, 17, count - 1):
        db.insert("t", [(count, key, f"n{key % 9}", 1)])
        found = rows(db, f"SELECT x FROM v WHERE k = {key} AND name = 'n{key % 9}'")
        assert found == [f"({key + 1},)"]
    assert rows(db, "SELECT x FROM v WHERE k = 3 AND name = 'none'") == []
