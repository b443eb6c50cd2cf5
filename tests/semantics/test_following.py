"""SUBSCRIBE and sinks from views and tables: all rows first, then what each commit changed."""

from __future__ import annotations

import csv
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

import headwater
from headwater.execute import subscriptions
from headwater.kernel.kernel import Kernel
from headwater.sinks import runner
from tests.harness.patience import PATIENCE_S, until

Connect = Callable[..., headwater.Database]
SUMS = "CREATE VIEW sums AS SELECT k, sum(x) AS n FROM s GROUP BY k"


@pytest.fixture
def db(connect: Connect, folder: Path) -> headwater.Database:
    """A streaming table, a standard table, and a view on each kind."""
    made = connect(folder)
    made.sql("CREATE STREAMING TABLE s (ts INT, k INT, x INT) TIMESTAMP BY ts")
    made.sql("CREATE TABLE t (k INT, c STRING)")
    made.insert("s", [(1, 1, 10), (2, 2, 20)])
    made.sql("INSERT INTO t VALUES (1, 'one')")
    made.sql(SUMS)
    made.sql("CREATE VIEW named AS SELECT s.x, t.c FROM s JOIN t ON s.k = t.k")
    made.sql("CREATE VIEW plain AS SELECT upper(c) AS c FROM t")
    return made


def told(rows: Iterable[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """The rows of a result with their signs, without the time."""
    return Counter((row[-1], *row[:-2]) for row in rows)


def applied(state: Counter[tuple[Any, ...]], out: Any) -> None:
    """Takes a result into the rows that are there."""
    for row in out.rows():
        state[row[:-2]] += 1 if row[-1] == "+" else -1
        assert state[row[:-2]] >= 0


def test_all_rows_first_then_changes(db: headwater.Database) -> None:
    with db.subscribe("sums", timeout=PATIENCE_S) as reader:
        first = next(reader)
        assert told(first.rows()) == Counter([("+", 1, 10), ("+", 2, 20)])
        db.insert("s", [(3, 1, 5), (4, 3, 7)])
        second = next(reader)
        assert told(second.rows()) == Counter([("-", 1, 10), ("+", 1, 15), ("+", 3, 7)])
        assert second.time > first.time
        db.sql("DELETE FROM s WHERE k = 2")
        assert told(next(reader).rows()) == Counter([("-", 2, 20)])


def test_changes_of_tables_reach_the_reader_of_a_view(db: headwater.Database) -> None:
    with db.subscribe("named", timeout=PATIENCE_S) as reader:
        assert told(next(reader).rows()) == Counter([("+", 10, "one")])
        db.sql("INSERT INTO t VALUES (2, 'two')")
        assert told(next(reader).rows()) == Counter([("+", 20, "two")])
        db.sql("UPDATE t SET c = 'eins' WHERE k = 1")
        assert told(next(reader).rows()) == Counter([("-", 10, "one"), ("+", 10, "eins")])


@pytest.mark.parametrize(("name", "before"), [("t", (1, "one")), ("plain", ("ONE",))])
def test_tables_and_plain_views(db: headwater.Database, name: str, before: tuple[Any, ...]) -> None:
    with db.subscribe(name, timeout=PATIENCE_S) as reader:
        assert told(next(reader).rows()) == Counter([("+", *before)])
        db.sql("DELETE FROM t")
        assert told(next(reader).rows()) == Counter([("-", *before)])


def test_a_streaming_table(db: headwater.Database) -> None:
    with db.subscribe("s", timeout=PATIENCE_S) as reader:
        assert told(next(reader).rows()) == Counter([("+", 1, 1, 10), ("+", 2, 2, 20)])
        db.insert("s", [(9, 9, 9)])
        assert told(next(reader).rows()) == Counter([("+", 9, 9, 9)])
        db.sql("UPDATE s SET x = 8 WHERE k = 9")
        assert told(next(reader).rows()) == Counter([("-", 9, 9, 9), ("+", 9, 9, 8)])


def test_changes_add_up_to_the_view(db: headwater.Database, folder: Path, connect: Connect) -> None:
    """Random inserts, deletes and updates in pieces of a few commits, with tokens and restarts between."""
    random = Random(7)
    db.sql("CREATE VIEW top2 AS SELECT k, x FROM s ORDER BY x DESC, k, ts LIMIT 2")
    db.sql("CREATE VIEW over_sums AS SELECT n % 3 AS m, count(*) AS c FROM sums GROUP BY n % 3")
    views = ("sums", "named", "top2", "over_sums", "s")
    states = {name: Counter[tuple[Any, ...]]() for name in views}
    tokens: dict[str, str | None] = dict.fromkeys(views)
    for step in range(12):
        for name in views:
            with db.subscribe(name, after=tokens[name], timeout=0.01) as reader:
                for out in reader:
                    applied(states[name], out)
                    tokens[name] = out.token
                    assert out.rows() or step == 0
        for name in views:
            assert +states[name] == Counter(db.sql(f"SELECT * FROM {name}").rows()), (name, step)
        for number in range(random.randrange(1, 4)):
            match random.randrange(6):
                case 0:
                    db.sql(f"DELETE FROM s WHERE k = {random.randrange(4)}")
                case 1:
                    db.sql(f"INSERT INTO t VALUES ({random.randrange(4)}, 'v{step}')")
                case 2:
                    db.sql(
                        f"UPDATE s SET x = {random.randrange(9)} WHERE k = {random.randrange(4)}"
                    )
                case _:
                    row = (100 * step + number, random.randrange(4), random.randrange(9))
                    db.insert("s", [row] * random.randrange(1, 3))
        if step in (4, 8):
            db.close()
            db = connect(folder)


def test_an_insert_that_changes_nothing_is_not_told(db: headwater.Database) -> None:
    with db.subscribe("named", timeout=PATIENCE_S) as reader:
        next(reader)
        db.insert("s", [(5, 99, 1)])  # joins nothing
        db.flush()
        db.insert("s", [(6, 1, 2)])
        assert told(next(reader).rows()) == Counter([("+", 2, "one")])


def test_a_token_goes_on_after_a_restart(
    db: headwater.Database, folder: Path, connect: Connect
) -> None:
    """Also over commits that nobody was told of: they come as one."""
    state: Counter[tuple[Any, ...]] = Counter()
    with db.subscribe("sums", timeout=PATIENCE_S) as reader:
        first = next(reader)
        applied(state, first)
        db.insert("s", [(3, 1, 5)])
        second = next(reader)
    db.insert("s", [(4, 1, 5)])
    db.insert("s", [(5, 4, 4)])
    db.close()
    again = connect(folder)
    again.insert("s", [(6, 4, 1)])
    with again.subscribe("sums", after=first.token, timeout=0.5) as reader:
        outs = list(reader)
    assert told(outs[0].rows()) == told(second.rows())
    assert len(outs) >= 2
    for out in outs:
        applied(state, out)
    assert +state == Counter(again.sql("SELECT * FROM sums").rows())


def test_other_emits(db: headwater.Database) -> None:
    with (
        db.subscribe("sums", emit="all", timeout=PATIENCE_S) as whole,
        db.subscribe("sums", emit="inserts", timeout=PATIENCE_S) as added,
        db.subscribe("sums", emit="deletes", timeout=PATIENCE_S) as gone,
    ):
        assert sorted(row[:2] for row in next(whole).rows()) == [(1, 10), (2, 20)]
        assert sorted(row[:2] for row in next(added).rows()) == [(1, 10), (2, 20)]
        assert next(gone).rows() == []
        db.insert("s", [(3, 1, 5)])
        assert sorted(row[:2] for row in next(whole).rows()) == [(1, 15), (2, 20)]
        assert [row[:2] for row in next(added).rows()] == [(1, 15)]
        assert [row[:2] for row in next(gone).rows()] == [(1, 10)]


def test_an_empty_view_begins_with_an_empty_result(db: headwater.Database) -> None:
    db.sql("CREATE VIEW none AS SELECT k FROM s WHERE k > 1000")
    with db.subscribe("none", timeout=PATIENCE_S) as reader:
        assert next(reader).rows() == []
        db.insert("s", [(3, 2000, 5)])
        assert told(next(reader).rows()) == Counter([("+", 2000)])


def test_subscribe_as_a_statement(db: headwater.Database) -> None:
    assert told(db.sql("SUBSCRIBE sums").rows()) == Counter([("+", 1, 10), ("+", 2, 20)])
    db.insert("s", [(3, 1, 5)])
    assert told(db.sql("SUBSCRIBE sums").rows()) == Counter([("+", 1, 15), ("+", 2, 20)])


def test_a_view_that_gets_another_query_tells_the_difference(db: headwater.Database) -> None:
    with db.subscribe("sums", timeout=PATIENCE_S) as reader:
        next(reader)
        db.sql("CREATE OR REPLACE VIEW sums AS SELECT k, sum(x) AS n FROM s WHERE k < 2 GROUP BY k")
        assert told(next(reader).rows()) == Counter([("-", 2, 20)])
        db.sql("CREATE OR REPLACE VIEW sums AS SELECT k FROM s")
        with pytest.raises(headwater.Error, match="the columns of sums have changed"):
            next(reader)
    with db.subscribe("sums", timeout=PATIENCE_S) as reader:
        assert told(next(reader).rows()) == Counter([("+", 1), ("+", 2)])


def test_a_plain_view_that_gets_another_query_tells_the_difference(
    db: headwater.Database, tmp_path: Path
) -> None:
    """A sink and a reader go on with it, if it has the same columns and tells its changes."""
    out = tmp_path / "out"
    db.sql(f"CREATE SINK k FROM plain INTO 'csv:{out}'")
    with db.subscribe("plain", timeout=PATIENCE_S) as reader:
        assert told(next(reader).rows()) == Counter([("+", "ONE")])
        db.sql("CREATE OR REPLACE VIEW plain AS SELECT lower(c) AS c FROM t")
        assert told(next(reader).rows()) == Counter([("-", "ONE"), ("+", "one")])
        db.sql("INSERT INTO t VALUES (2, 'TWO')")
        assert told(next(reader).rows()) == Counter([("+", "two")])
    until(lambda: _written(out) == {("one",): 1, ("two",): 1})
    for query in (
        "SELECT upper(c) AS d FROM t",
        "SELECT k AS c FROM t",
        "SELECT upper(c) AS c FROM t WHERE now() > TIMESTAMP '2020-01-01'",
        "SELECT name AS c FROM headwater.tables",
    ):
        with pytest.raises(headwater.Error, match="plain is read by sink k"):
            db.sql(f"CREATE OR REPLACE VIEW plain AS {query}")
    assert sorted(db.sql("SELECT * FROM plain").rows()) == [("one",), ("two",)]


def test_what_is_followed_goes_with_its_changes(db: headwater.Database) -> None:
    with db.subscribe("sums", timeout=PATIENCE_S) as reader:
        token = next(reader).token
        db.sql("DROP VIEW sums")
        assert list(reader) == []
    with pytest.raises(headwater.Error, match="there is no continuous query, view or table sums"):
        db.subscribe("sums")
    db.sql(SUMS)
    with pytest.raises(headwater.Error, match="token"):
        db.subscribe("sums", after=token)


def test_what_cannot_be_told_is_refused(db: headwater.Database) -> None:
    db.sql("CREATE VIEW timed AS SELECT k, n, current_date() AS d FROM sums")
    with pytest.raises(headwater.Error, match="depends on the time of each read"):
        db.subscribe("timed")
    db.sql(
        "CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM s [INTERVAL '2' SECOND] w "
        "SAMPLE INTERVAL '2' SECOND"
    )
    db.sql("CREATE VIEW over_results AS SELECT * FROM m")
    with pytest.raises(headwater.Error, match="has a column _t"):
        db.subscribe("over_results")


def test_a_sink_takes_the_changes_of_a_view(
    db: headwater.Database, folder: Path, connect: Connect, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    db.sql(f"CREATE SINK k FROM sums INTO 'csv:{out}'")
    db.insert("s", [(3, 1, 5)])
    until(lambda: _written(out) == {("1", "15"): 1, ("2", "20"): 1})
    with pytest.raises(headwater.Error, match="is read by sink k"):
        db.sql("DROP VIEW sums")
    with pytest.raises(headwater.Error, match="is read by sink k"):
        db.sql("CREATE OR REPLACE VIEW sums AS SELECT k FROM s")
    db.insert("s", [(4, 2, 1)])
    db.close()
    again = connect(folder)
    again.insert("s", [(5, 2, 1)])
    until(lambda: _written(out) == {("1", "15"): 1, ("2", "22"): 1})


def test_what_comes_before_a_reader_is_one_is_told(
    db: headwater.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A view that nobody reads is not looked at: a row that came just then waited for the next one."""
    opened = subscriptions.open_subscription

    def later(*arguments: Any) -> Any:
        db.insert("s", [(3, 1, 5)])
        db.flush()
        return opened(*arguments)

    monkeypatch.setattr(subscriptions, "open_subscription", later)
    with db.subscribe("sums", timeout=PATIENCE_S) as reader:
        assert told(next(reader).rows()) == Counter([("+", 1, 10), ("+", 2, 20)])
        assert told(next(reader).rows()) == Counter([("-", 1, 10), ("+", 1, 15)])


def test_changes_are_told_again_once_an_error_is_over(db: headwater.Database) -> None:
    db.sql("CREATE VIEW rest AS SELECT 10 % k AS r FROM s")
    with db.subscribe("rest", timeout=PATIENCE_S) as reader:
        next(reader)
        db.insert("s", [(3, 0, 1)])
        with pytest.raises(headwater.Error, match="zero"):
            next(reader)
    with pytest.raises(headwater.Error, match="zero"):
        db.subscribe("rest")
    db.sql("DELETE FROM s WHERE k = 0")
    with db.subscribe("rest", timeout=PATIENCE_S) as reader:
        assert told(next(reader).rows()) == Counter([("+", 0), ("+", 0)])
        db.insert("s", [(4, 3, 1)])
        assert told(next(reader).rows()) == Counter([("+", 1)])


def test_a_table_with_other_columns_is_followed_anew_after_a_restart(
    db: headwater.Database, folder: Path, connect: Connect
) -> None:
    with db.subscribe("t", timeout=PATIENCE_S) as reader:
        next(reader)
    db.sql("ALTER TABLE t ADD COLUMNS (d INT)")
    db.close()
    again = connect(folder)
    with again.subscribe("t", timeout=PATIENCE_S) as reader:
        assert told(next(reader).rows()) == Counter([("+", 1, "one", None)])


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT k, current_timestamp() AS n FROM t", "depends on the time"),
        ("SELECT k, rand() AS n FROM t", "or on chance"),
        ("SELECT k, CAST('now' AS TIMESTAMP) AS n FROM t", "depends on the time"),
        ("SELECT * FROM by_time WHERE k > 0 LIMIT 1", "depends on the time"),
        ("SELECT name FROM headwater.tables", "reads headwater.tables"),
    ],
)
def test_plain_views_that_change_by_themselves_are_refused(
    db: headwater.Database, query: str, why: str
) -> None:
    db.sql(
        "CREATE VIEW by_time FROM NOW AS SELECT k, date_format(now(), 'd') AS d FROM s GROUP BY k"
    )
    db.sql(f"CREATE VIEW v AS {query}")
    with pytest.raises(headwater.Error, match=why):
        db.subscribe("v")


def test_rows_that_time_takes_away_are_told(db: headwater.Database) -> None:
    """RANGE hides rows by the wall clock where it stamps them."""
    db.sql("CREATE STREAMING TABLE a (k INT) RANGE INTERVAL '1' SECOND")
    with db.subscribe("a", timeout=PATIENCE_S) as reader:
        assert next(reader).rows() == []
        db.insert("a", [(1,)])
        changes = [row[-1] for out in (next(reader), next(reader)) for row in out.rows()]
        assert changes == ["+", "-"]


@pytest.mark.here
def test_opening_asks_spark_nothing(
    db: headwater.Database, folder: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was followed goes on by the columns that the catalog has."""
    db.sql("CREATE VIEW sounds AS SELECT soundex(c) AS c FROM t")  # only Spark has that
    with db.subscribe("sounds", timeout=PATIENCE_S) as reader:
        token = next(reader).token
    db.close()
    asked: list[object] = []
    with monkeypatch.context() as patch:
        patch.setattr(Kernel, "analyse", lambda *work: asked.append(work) or [])
        db = connect(folder)
    assert asked == []
    db.sql("INSERT INTO t VALUES (2, 'two')")
    with db.subscribe("sounds", after=token, timeout=PATIENCE_S) as reader:
        assert told(next(reader).rows()) == Counter([("+", "T000")])


def test_an_advance_is_a_change_of_what_goes_by_the_clock(db: headwater.Database) -> None:
    db.sql("CREATE VIEW recent AS SELECT k FROM s [INTERVAL '2' SECOND]")
    with db.subscribe("recent", timeout=PATIENCE_S) as reader:
        assert told(next(reader).rows()) == Counter([("+", 1), ("+", 2)])
        db.advance("s", 9)
        assert told(next(reader).rows()) == Counter([("-", 1), ("-", 2)])


def test_a_view_that_cannot_be_followed_any_more_ends_its_readers(db: headwater.Database) -> None:
    db.sql("CREATE VIEW above AS SELECT k, n FROM sums")
    with (
        db.subscribe("sums", timeout=PATIENCE_S) as reader,
        db.subscribe("above", timeout=PATIENCE_S) as other,
    ):
        next(reader)
        next(other)
        db.sql("CREATE OR REPLACE VIEW sums AS SELECT k, x + 1 AS n, now() AS d FROM s")
        with pytest.raises(headwater.Error, match="depends on the time"):
            next(reader)
    assert sorted(row[:2] for row in db.sql("SELECT * FROM sums").rows()) == [(1, 11), (2, 21)]


def test_a_sink_above_a_view_that_gets_other_columns(
    db: headwater.Database, tmp_path: Path
) -> None:
    """The statement is refused as a whole: nothing has become another view."""
    db.sql("CREATE VIEW above AS SELECT * FROM sums")
    db.sql("CREATE VIEW top AS SELECT * FROM above")
    for name in ("above", "top"):
        db.sql(f"CREATE SINK k FROM {name} INTO 'csv:{tmp_path / name}'")
        with pytest.raises(headwater.Error, match=f"{name} is read by sink k"):
            db.sql(
                "CREATE OR REPLACE VIEW sums AS SELECT k, sum(x) AS n, 1 AS one FROM s GROUP BY k"
            )
        db.sql("DROP SINK k")
        for view in ("sums", "above", "top"):
            assert sorted(db.sql(f"SELECT * FROM {view}").rows()) == [(1, 10), (2, 20)]


def test_a_sink_is_dropped_at_once(
    db: headwater.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statement that waits for its thread to end holds the lock of statements."""
    monkeypatch.setattr(runner, "STOP_PATIENCE_S", PATIENCE_S)
    db.sql(f"CREATE SINK k FROM sums INTO 'csv:{tmp_path / 'out'}'")
    began = time.monotonic()
    db.sql("DROP SINK k")
    assert time.monotonic() - began < PATIENCE_S / 2


def test_a_view_with_the_engines_name_for_changes(db: headwater.Database) -> None:
    name = "(changes of sums)"
    db.sql(f"CREATE VIEW `{name}` AS SELECT k FROM s")
    with db.subscribe("sums", timeout=PATIENCE_S) as reader:
        next(reader)
        assert sorted(db.sql(f"SELECT * FROM `{name}`").rows()) == [(1,), (2,)]


def _written(folder: Path) -> dict[tuple[str, ...], int]:
    """What the changes that a sink wrote add up to."""
    found: Counter[tuple[str, ...]] = Counter()
    for path in sorted(folder.glob("k-*.csv")):  # those that are whole
        with path.open(newline="") as lines:
            for row in list(csv.reader(lines))[1:]:
                found[tuple(row[:-2])] += 1 if row[-1] == "+" else -1
    return {row: count for row, count in found.items() if count}
