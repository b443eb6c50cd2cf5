"""A windowed query in parts is the query: every instant once, what stands above its groups computed once
(DC4, ST5, EQ3).

That factories are killed meanwhile is in `tests/factories`: their load has queries in parts.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import headwater
from headwater.engine.split_query import PartSink, SplitQuery
from headwater.errors import BindError, DataError, NotSupportedError, SettingError
from headwater.execute.altered_parts import changes_by_itself, set_parts
from headwater.factories import coordinator, placement
from tests.harness.patience import PATIENCE_S, until

Connect = Callable[..., headwater.Database]

TABLE = "CREATE STREAMING TABLE a (ts INT, k INT, v INT) TIMESTAMP BY ts"
STREAM = "CREATE STREAM b (ts INT, k INT, v INT) TIMESTAMP BY ts"
QUERIES = {
    "plain": "SELECT k, count(*) n, sum(v) s, avg(v) m FROM a [INTERVAL 5 SECONDS] GROUP BY k"
    " SAMPLE INTERVAL 2 SECONDS",
    "ordered": "SELECT k, sum(v) s FROM a [INTERVAL 7 SECONDS BEFORE] GROUP BY k HAVING count(*) > 1"
    " ORDER BY s DESC, k LIMIT 2 SAMPLE INTERVAL 1 SECONDS",
    "grouped_again": "SELECT p, count(*) c, sum(s) s FROM (SELECT k, k % 2 AS p, sum(v) s"
    " FROM a [INTERVAL 9 SECONDS] GROUP BY k, k % 2) GROUP BY p SAMPLE INTERVAL 3 SECONDS",
    "at_rows": "SELECT k, max(v) m FROM a [INTERVAL 3 SECONDS] GROUP BY k SAMPLE REALTIME",
    "epochs": "SELECT k, count(DISTINCT v) n FROM a CUT ON ts BY INTERVAL '4' SECOND GROUP BY k",
    "changes": "SELECT k, count(*) n FROM a [INTERVAL 6 SECONDS] GROUP BY k SAMPLE INTERVAL 2 SECONDS"
    " EMIT CHANGES",
    "of_stream": "SELECT k, count(*) n, min(v) low FROM b [INTERVAL 20 SECONDS] GROUP BY k"
    " SAMPLE INTERVAL 3 SECONDS",
}


def create(db: headwater.Database, names: list[str]) -> None:
    """Each query whole, and in three parts."""
    db.sql(TABLE)
    db.sql(STREAM)
    for name in names:
        for suffix, parts in (("", 1), ("_parts", 3)):
            db.sql(
                f"CREATE CONTINUOUS QUERY {name}{suffix} WITH (parts = {parts}) AS {QUERIES[name]}"
            )


def some_rows(random: Random, first: int) -> list[tuple[int, int, int]]:
    """Rows of one second; now and then a gap comes before them."""
    return [(first, random.randrange(7), random.randrange(50)) for _ in range(random.randrange(4))]


def results(db: headwater.Database, name: str) -> list[tuple[Any, ...]]:
    """Every result of a query; rows in their own order only where the query has one."""
    found = []
    for out in db.subscribe(name, after="earliest", timeout=0.01):
        rows = list(map(str, out.rows()))
        found.append((out.time, out.epoch, rows if name.startswith("ordered") else sorted(rows)))
    return found


def split(db: headwater.Database, name: str) -> SplitQuery:
    """A query that is in parts."""
    found = db._context.engine.find(name)
    assert isinstance(found, SplitQuery)
    return found


def check(db: headwater.Database, names: list[str]) -> None:
    """In parts and whole: the same results, in the same order."""
    for name in names:
        whole = results(db, name)
        assert len(whole) > 5
        assert results(db, f"{name}_parts") == whole, name


def run_history(folder: Path, connect: Connect, settings: dict[str, Any], names: list[str]) -> None:
    """Inserts with gaps, a DELETE, PAUSE and RESUME, and restarts."""
    random, second, db = Random(3), 0, connect(folder, settings=settings)
    create(db, names)
    for step in range(40):
        second += random.choice((0, 1, 1, 2, 25))
        for table in ("a", "b"):
            if rows := some_rows(random, second):
                db.insert(table, rows)
        if step in (12, 30):
            db.close()
            db = connect(folder, settings=settings)
        if step == 18:
            db.flush()  # so that a DELETE finds the same instants answered in both
            db.sql("DELETE FROM a WHERE k = 3")
        if step in (20, 24):
            db.sql(f"{'PAUSE' if step == 20 else 'RESUME'} QUERY {names[0]}_parts")
    for table in ("a", "b"):
        db.advance(table, second + 60)
    db.flush()
    check(db, names)
    for name in names:
        assert len(split(db, f"{name}_parts").parts) == 3


@pytest.mark.here
def test_parts_are_the_query(folder: Path, connect: Connect) -> None:
    run_history(folder, connect, {"snapshot_s": 0.1}, list(QUERIES))


def test_parts_in_factories_are_the_query(folder: Path, connect: Connect) -> None:
    run_history(folder, connect, {"snapshot_s": 0.1}, ["plain", "ordered", "of_stream"])


@pytest.mark.here
def test_a_materialized_view_in_parts(db: headwater.Database) -> None:
    """Its table has the rows of all parts; queries read them, and FLUSH waits for both."""
    db.sql(TABLE)
    for suffix, parts in (("", 1), ("_parts", 2)):
        db.sql(
            f"CREATE MATERIALIZED VIEW m{suffix} WITH (parts = {parts}) AS SELECT k, sum(v) s"
            " FROM a [INTERVAL 4 SECONDS] GROUP BY k SAMPLE INTERVAL 2 SECONDS"
        )
        db.sql(
            f"CREATE CONTINUOUS QUERY above{suffix} AS SELECT count(*) n, sum(s) s"
            f" FROM m{suffix} [INTERVAL 8 SECONDS] SAMPLE INTERVAL 4 SECONDS"
        )
    for second in range(30):
        db.insert("a", [(second, key, second * key) for key in range(5)])
    db.flush()
    of_m = "SELECT k, s, _t FROM {} ORDER BY _t, k"
    assert db.sql(of_m.format("m_parts")).rows() == db.sql(of_m.format("m")).rows()
    assert results(db, "above_parts") == results(db, "above")
    assert results(db, "above")[-1][0] == 28


@pytest.mark.here
def test_parts_that_have_come_differently_far(
    folder: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No result before the last part has passed its instant; what the others gave is given again."""
    db = connect(folder)
    create(db, ["plain"])
    held, append = list[int](), PartSink.append

    def not_of_the_second(sink: PartSink, given: Any) -> None:
        if sink._place == 1:
            held.append(len(given))
            raise SettingError("not now")
        append(sink, given)

    with monkeypatch.context() as inner:
        inner.setattr(PartSink, "append", not_of_the_second)
        db.insert("a", [(second, key, 1) for second in range(20) for key in range(7)])
        until(lambda: bool(held), "the second part has given nothing")
        with pytest.raises(BindError, match="plain_parts has failed"):
            db.flush()
        assert results(db, "plain")
        query = split(db, "plain_parts")
        assert query.sink.log.newest() is None
        assert query.standing[0] == "failed"
        state, error = db.sql(
            "SELECT state, error FROM headwater.queries WHERE name = 'plain_parts'"
        ).rows()[0]
        assert state == "failed"
        assert "not now" in error
    db.close()
    db = connect(folder)
    db.insert("a", [(30, 1, 1)])
    db.flush()
    check(db, ["plain"])


@pytest.mark.here
def test_an_error_above_the_groups_is_the_querys(db: headwater.Database) -> None:
    """The instants before it are answered, and RESUME tries again."""
    db.sql(TABLE)
    text = "SELECT k, 10 / min(v) AS x FROM a [INTERVAL 2 SECONDS] GROUP BY k SAMPLE INTERVAL 2 SECONDS"
    db.sql(f"CREATE CONTINUOUS QUERY q WITH (parts = 2) AS {text}")
    db.insert("a", [(second, key, 1) for second in range(7) for key in range(4)])
    db.insert("a", [(7, 2, 0), (9, 1, 1)])
    with pytest.raises(BindError, match="query q has failed"):
        db.flush()
    assert split(db, "q").standing[0] == "failed"
    with pytest.raises(DataError):
        for _ in db.subscribe("q", after="earliest", timeout=PATIENCE_S):
            pass
    found = split(db, "q").sink.log.newest()
    assert found is not None
    assert found.instant == 6
    db.sql("DELETE FROM a WHERE v = 0")
    db.sql("RESUME QUERY q")
    db.flush()
    assert [time for time, _, _ in results(db, "q")] == [0, 2, 4, 6, 8]


@pytest.mark.here
def test_one_query_to_its_users(db: headwater.Database) -> None:
    create(db, ["plain"])
    db.insert("a", [(second, second % 7, second) for second in range(20)])
    db.flush()
    ((name, state, host, count),) = db.sql(
        "SELECT name, state, host, results FROM headwater.queries WHERE name LIKE 'plain_parts%'"
    ).rows()
    assert (name, state, host, count) == ("plain_parts", "running", "here", 10)
    lines = [line for (line,) in db.sql("EXPLAIN ANALYZE QUERY plain_parts").rows()]
    assert lines[0] == "continuous query plain_parts, running, 3 parts by hash of k"
    assert [line for line in lines if line.startswith("part ")] == [
        "part 1 of 3",
        "part 2 of 3",
        "part 3 of 3",
    ]
    db.sql("DROP QUERY plain_parts")
    assert not db._context.engine.parts()


@pytest.mark.here
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT count(*) n FROM a [INTERVAL 2 SECONDS] SAMPLE INTERVAL 2 SECONDS", "by keys"),
        ("SELECT k, count(*) n FROM a [ROWS 9] GROUP BY k SAMPLE 3 ROWS", "counted in rows"),
        ("SELECT k, count(*) n FROM a [LANDMARK] GROUP BY k SAMPLE INTERVAL 2 SECONDS", "counted"),
        ("SELECT k, v FROM a [INTERVAL 2 SECONDS] SAMPLE INTERVAL 2 SECONDS", "by keys"),
        (
            "SELECT name, count(*) n FROM a [INTERVAL 2 SECONDS] x, names WHERE x.k = names.k"
            " GROUP BY name SAMPLE INTERVAL 2 SECONDS",
            "other versions",
        ),
    ],
)
def test_what_cannot_be_split(db: headwater.Database, text: str, reason: str) -> None:
    db.sql(TABLE)
    db.sql("CREATE TABLE names (k INT, name STRING)")
    with pytest.raises(BindError, match=reason):
        db.sql(f"CREATE CONTINUOUS QUERY q WITH (parts = 2) AS {text}")
    db.sql(f"CREATE CONTINUOUS QUERY q AS {text}")
    assert not set_parts(db._context, "q", 2)
    with pytest.raises(BindError, match=reason):
        db.sql("ALTER QUERY q SET (parts = 2)")


@pytest.mark.here
def test_other_parts_while_rows_come(folder: Path, connect: Connect) -> None:
    """More, fewer, one, as a user says or load asks for it: no result is lost, none comes twice."""
    random, db = Random(8), connect(folder)
    names = ["plain", "ordered"]
    create(db, names)
    readers = {name: db.subscribe(f"{name}_parts", timeout=PATIENCE_S) for name in names}
    for step, parts in enumerate((1, 4, "auto", 2, 3)):
        for second in range(10 * step, 10 * step + 10):
            db.insert("a", some_rows(random, second) or [(second, 1, 1)])
        for name in names:
            db.sql(f"ALTER QUERY {name}_parts SET (parts = {parts})")
            count = {1: 0, "auto": 4}.get(parts, parts)
            found = db._context.engine.find(f"{name}_parts")
            assert found is not None
            assert len(found.parts) == count
        if parts == "auto":
            assert set_parts(db._context, "plain_parts", 1)
            assert set_parts(db._context, "ordered_parts", 2)
            assert not set_parts(db._context, "ordered_parts", 2)
        if step == 2:
            db.close()
            db = connect(folder)
            readers = {}
        for name, reader in readers.items():
            assert next(reader).time <= 10 * step + 10, name
    db.advance("a", 80)
    db.flush()
    check(db, names)
    assert {path.name.partition("-")[2] for path in (folder / "snapshots").iterdir()} <= {
        "",
        *(f"part-{place}-of-3.snapshot" for place in range(3)),
    }


@pytest.mark.here
def test_a_query_over_a_stream_keeps_its_parts(db: headwater.Database) -> None:
    """The rows of its windows are in their state alone."""
    create(db, ["of_stream"])
    with pytest.raises(NotSupportedError, match="began with"):
        db.sql("ALTER QUERY of_stream SET (parts = 2)")
    with pytest.raises(SettingError, match="only the parts"):
        db.sql("ALTER QUERY of_stream SET (priority = 2)")
    assert not changes_by_itself(db._context, "of_stream_parts")


def test_a_heavy_query_is_split_and_united_by_itself(
    folder: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While rows come; once the load has gone it is whole again."""
    monkeypatch.setattr(placement, "SPLIT_LOAD", 0.0005)
    monkeypatch.setattr(placement, "SPLIT_ROWS", 1)
    monkeypatch.setattr(placement, "IDLE", 1.0)
    monkeypatch.setattr(placement, "UNITE_LOAD", 0.0)
    monkeypatch.setattr(coordinator, "BALANCE_S", 0.3)
    db = connect(folder)
    db.sql(TABLE)
    db.sql(f"CREATE CONTINUOUS QUERY q AS {QUERIES['grouped_again']}")
    db.sql(f"CREATE CONTINUOUS QUERY whole WITH (parts = 1) AS {QUERIES['ordered']}")
    second = 0

    def host_after_more() -> tuple[int, str]:
        nonlocal second
        db.insert("a", [(second, key, second) for key in range(50)])
        second += 1
        found = db._context.engine.find("q")
        return (0, "") if found is None else (len(found.parts), found.host)

    until(lambda: host_after_more() == (2, "factory 1, factory 2"), "it was not split")
    monkeypatch.setattr(placement, "UNITE_LOAD", 100.0)
    monkeypatch.setattr(placement, "SPLIT_LOAD", 100.0)
    monkeypatch.setattr(coordinator, "UNITE_LOOKS", 2)
    until(lambda: host_after_more()[0] == 0, "it was not united")
    db.flush()
    times = [time for time, _, _ in results(db, "q")]
    assert times == list(range(0, times[-1] + 1, 3))
    assert times[-1] >= second - 4
    for time, _, shown in results(db, "q"):
        sums = [sum(range(max(time - 9, 0), time + 1))] * 25
        assert shown == sorted(str((p, 25, sum(sums), time)) for p in range(2)), time
