"""Views kept by circuits, through the database.

Each equals its query on Spark after inserts, changes of tables, DELETE and UPDATE, and a restart; a row whose
expression raises leaves the view to Spark until it is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headwater

Connect = Callable[..., headwater.Database]

TABLES = (
    "CREATE STREAMING TABLE s (ts INT, k INT, v INT, x DOUBLE, a ARRAY<INT>) TIMESTAMP BY ts",
    "CREATE STREAMING TABLE r (ts INT, k INT, w INT) TIMESTAMP BY ts",
    "CREATE TABLE t (k INT, label STRING)",
)
NAN = float("nan")
VIEWS = {
    "filtered": "SELECT ts, k, v * 2 AS w FROM s WHERE v > 1",
    "whole_rows": "SELECT * FROM s WHERE x IS NULL OR x > 0",
    "joined": "SELECT s.k, v, w FROM s JOIN r ON s.k = r.k AND v <> w",
    "labelled": "SELECT s.ts, v, label FROM s LEFT JOIN t ON t.k = s.k",
    "full_joined": "SELECT s.v, r.w FROM s FULL JOIN r ON s.k = r.k",
    "missing": "SELECT k, v FROM s WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = s.k AND r.w > s.v)",
    "newest": "SELECT k, v FROM s QUALIFY row_number() OVER (PARTITION BY k ORDER BY ts DESC, v) = 1",
    "largest": "SELECT ts, v FROM s ORDER BY v DESC NULLS LAST, ts LIMIT 2",
    "middles": "SELECT k, median(v) AS m, max_by(v, ts) AS l, count(DISTINCT v) AS d FROM s GROUP BY k",
    "totals": "SELECT k, v, count(*) AS n, sum(x) AS x FROM s GROUP BY ROLLUP(k, v)",
    "over_joins": "SELECT label, count(*) AS n FROM s JOIN r USING (k) JOIN t USING (k) GROUP BY label",
    "all_keys": "SELECT k FROM s UNION SELECT k FROM r EXCEPT SELECT k FROM t",
    "steps": "SELECT k, ts, v - lag(v) OVER (PARTITION BY k ORDER BY ts, v) AS step FROM s",
    "above": "SELECT k, v FROM s WHERE v > (SELECT avg(w) FROM r WHERE r.k = s.k)",
    "counted": "SELECT k, (SELECT count(*) FROM r WHERE r.k = t.k) AS n FROM t JOIN s USING (k)",
    "others": "SELECT k, v FROM s WHERE v NOT IN (SELECT w FROM r WHERE ts < 3)",
    "not_labelled": "SELECT v FROM s WHERE k NOT IN (SELECT k FROM t)",
    "none_of": "SELECT count(*) AS n FROM s WHERE v NOT IN (SELECT w FROM r)",
    "members": (
        "SELECT ts, k IN (SELECT k FROM t) AS one, k NOT IN (SELECT k FROM t) AS none, "
        "CASE WHEN k IN (SELECT k FROM t) THEN v END AS w FROM s "
        "WHERE coalesce(v IN (SELECT w FROM r), true) OR NOT (k IN (SELECT k FROM t) OR v > 3)"
    ),
    "whole_left": "SELECT s.* FROM s JOIN r USING (k)",
    "whole_right": "SELECT r.*, v FROM s LEFT JOIN r USING (k, ts)",
    "whole_semi": "SELECT * FROM s LEFT SEMI JOIN r USING (k)",
    "texts": (
        "SELECT k, listagg(CAST(v AS STRING), '-') WITHIN GROUP (ORDER BY v DESC, ts) AS l, "
        "size(collect_list(v)) AS n, size(collect_set(v)) AS d, any_value(k) AS a FROM s GROUP BY k"
    ),
    "percentiles": (
        "SELECT k, percentile_approx(v, array(0.3, 0.9)) AS p, approx_percentile(v + 0.5D, 0.5) AS d, "
        "percentile_cont(0.25) WITHIN GROUP (ORDER BY v DESC) AS c, skewness(v) AS s, "
        "mode() WITHIN GROUP (ORDER BY v DESC) AS m FROM s GROUP BY k"
    ),
    "bits": (
        "SELECT k, bit_and(v) AS a, bit_or(v - 5) AS o, bit_xor(v) AS x, try_sum(v) AS s, try_avg(x) AS g, "
        "every(v > 1) AS e, some(v > 7) AS n, std(v) AS d FROM s GROUP BY k"
    ),
    "bits_of_all": "SELECT bit_and(v) AS a, bit_xor(CAST(v AS TINYINT)) AS x FROM s WHERE v > 2",
    "best_structs": (
        "SELECT k, max(struct(x, v, ts)) AS m, min(struct(v AS w, ts)).w AS n, "
        "max_by(v, struct(ts, x, v)) AS b, min_by(v, struct(x, ts, v)) AS c FROM s GROUP BY k"
    ),
    "best_of_all": "SELECT max(named_struct('v', v, 'k', k)) AS m FROM s WHERE v > 2",
    "structs": (
        "SELECT k, max_by(struct(v, ts), struct(ts, v)) AS m, "
        "array_size(collect_list(struct(v, x))) AS n FROM s GROUP BY k"
    ),
    "places": (
        "SELECT k, ts, ntile(3) OVER (PARTITION BY k ORDER BY ts, v) AS n, "
        "percent_rank() OVER (PARTITION BY k ORDER BY ts) AS p, cume_dist() OVER (ORDER BY ts) AS c FROM s"
    ),
    "edges": (
        "SELECT k, first_value(v) OVER (PARTITION BY k ORDER BY ts, v) AS f, "
        "last_value(v) IGNORE NULLS OVER (PARTITION BY k ORDER BY ts, v ROWS 1 PRECEDING) AS l, "
        "nth_value(v, 2) OVER (PARTITION BY k ORDER BY ts, v) AS t, "
        "lag(v) IGNORE NULLS OVER (PARTITION BY k ORDER BY ts, v) AS g FROM s"
    ),
    "near": "SELECT k, sum(v) OVER (PARTITION BY k ORDER BY ts DESC RANGE 2 PRECEDING) AS z FROM s",
    "near_in_time": (
        "SELECT k, count(v) OVER (ORDER BY timestamp_seconds(v) "
        "RANGE BETWEEN INTERVAL 3 SECONDS PRECEDING AND INTERVAL '1' SECOND FOLLOWING) AS n FROM s"
    ),
    "windows": (
        "SELECT k, window, count(*) AS n FROM s "
        "GROUP BY k, window(timestamp_seconds(v), '3 seconds', '2 seconds')"
    ),
    "sessions": (
        "SELECT k, session_window.start AS b, session_window.end AS e, sum(x) AS x FROM s "
        "GROUP BY k, session_window(timestamp_seconds(v), '2 seconds')"
    ),
    "all_sessions": (
        "SELECT session_window AS w, count(*) AS n FROM s "
        "GROUP BY session_window(timestamp_seconds(ts), '1 second')"
    ),
    "window_rows": "SELECT k, window(timestamp_seconds(ts), '2 seconds', '1 second').start AS b FROM s",
    "elements": "SELECT k, e FROM s LATERAL VIEW OUTER explode(a) AS e",
}


def check(db: headwater.Database, third: int | None = None) -> None:
    """Every view is kept, and equals its query; a third of them is asked, or all."""
    for name in list(VIEWS) if third is None else list(VIEWS)[third::3]:
        found = db.sql(f"VERIFY VIEW {name}")
        assert found.rows() == [], name
    kept = db.sql("SELECT name, tier FROM headwater.views WHERE tier <> 'operators'").rows()
    assert kept == []


def rows(db: headwater.Database, text: str) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    return db.sql(text).rows()


def test_views_equal_their_queries(folder: Path, connect: Connect) -> None:
    with headwater.connect(folder) as db:
        for statement in TABLES:
            db.sql(statement)
        db.insert("s", [(1, 1, 3, 0.5, [1, 2]), (2, 1, 3, NAN, []), (3, 2, None, None, None)])
        for name, query in VIEWS.items():
            assert db.sql(f"CREATE VIEW {name} AS {query}").notice is None, name
        check(db, 0)
        db.sql("INSERT INTO t VALUES (1, 'one'), (2, 'two'), (2, 'zwei'), (NULL, 'none')")
        db.insert("r", [(1, 1, 2), (2, 3, 9), (3, None, 1)])
        db.insert("s", [(4, 3, 1, -0.0, [7]), (5, None, 8, 2.0, [None]), (4, 1, 9, 1.0, [3])])
        check(db, 1)
        db.sql("UPDATE t SET label = 'eins' WHERE k = 1")
        db.sql("DELETE FROM t WHERE label = 'zwei'")
        db.sql("DELETE FROM s WHERE v = 9")
        db.sql("UPDATE s SET v = 4 WHERE k = 3")
        check(db, 2)
        before = {name: sorted(map(repr, rows(db, f"SELECT * FROM {name}"))) for name in VIEWS}
    db = connect(folder)
    after = {name: sorted(map(repr, rows(db, f"SELECT * FROM {name}"))) for name in VIEWS}
    assert after == before
    db.insert("r", [(9, 2, 5)])
    db.insert("s", [(9, 2, 6, 1.5, [1])])
    check(db)


def test_rows_of_a_filter_come_in_the_order_of_time(db: headwater.Database) -> None:
    db.sql("CREATE STREAMING TABLE s (ts INT, v INT) TIMESTAMP BY ts WATERMARK INTERVAL 10 SECONDS")
    db.sql("CREATE VIEW f AS SELECT ts, v FROM s WHERE v > 0")
    db.insert("s", [(5, 1), (3, 2)])
    db.insert("s", [(4, 3), (1, 0), (3, 4)])
    assert rows(db, "SELECT * FROM f") == [(3, 2), (3, 4), (4, 3), (5, 1)]
    db.insert("s", [(2, 5)])
    assert rows(db, "SELECT * FROM f") == [(2, 5), (3, 2), (3, 4), (4, 3), (5, 1)]


def test_a_view_with_an_order_is_read_in_it(db: headwater.Database) -> None:
    db.sql("CREATE STREAMING TABLE s (ts INT, v INT) TIMESTAMP BY ts")
    db.sql("CREATE VIEW f AS SELECT v FROM s ORDER BY v DESC NULLS LAST")
    for ts, v in [(1, 2), (2, None), (3, 5), (4, 3)]:
        db.insert("s", [(ts, v)])
    assert rows(db, "SELECT * FROM f") == [(5,), (3,), (2,), (None,)]


def test_a_row_that_raises_leaves_the_view_to_spark_until_it_is_gone(
    db: headwater.Database,
) -> None:
    db.sql("CREATE STREAMING TABLE s (ts INT, v INT) TIMESTAMP BY ts")
    db.sql("CREATE VIEW f AS SELECT ts, 10 DIV v AS q FROM s WHERE ts < 100")
    db.insert("s", [(1, 5), (200, 0)])  # left out before it raises
    assert rows(db, "SELECT * FROM f") == [(1, 2)]
    db.insert("s", [(2, 0)])
    with pytest.raises(headwater.Error) as raised:
        rows(db, "SELECT * FROM f")
    assert raised.value.sqlstate == "22012"
    db.insert("s", [(3, 1)])
    with pytest.raises(headwater.Error):
        rows(db, "SELECT * FROM f")
    db.sql("DELETE FROM s WHERE ts = 2")
    assert rows(db, "SELECT * FROM f") == [(1, 2), (3, 10)]
    explained = "\n".join(row[0] for row in rows(db, "EXPLAIN VIEW f"))
    assert "evaluated again" not in explained


def test_strategies_of_kept_views(db: headwater.Database) -> None:
    """All that is different is when the work is done."""
    db.sql("CREATE STREAMING TABLE s (ts INT, k INT, v INT) TIMESTAMP BY ts")
    query = "SELECT k, v FROM s QUALIFY row_number() OVER (PARTITION BY k ORDER BY ts DESC) = 1"
    for name in ("split", "eager", "incremental", "deferred"):
        db.sql(f"CREATE VIEW v_{name} WITH (maintenance = '{name}') AS {query}")
    for ts in range(6):
        db.insert("s", [(ts, ts % 2, ts)])
        found = [
            sorted(rows(db, f"SELECT * FROM v_{n}")) for n in ("split", "eager", "incremental")
        ]
        assert found == [found[0]] * 3
    assert sorted(rows(db, "SELECT * FROM v_deferred")) == found[0] == [(0, 4), (1, 5)]
    db.flush()
    waiting = "SELECT value FROM headwater.metrics WHERE name = 'view.v_{}.waiting_rows'"
    for name in ("split", "eager", "deferred"):  # of the last nothing waits: each read begins anew
        assert rows(db, waiting.format(name)) == [(0,)], name


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(p) AS n FROM s",
        "SELECT p, a FROM s ORDER BY p",
        "SELECT DISTINCT p, a FROM s",
        "SELECT p, count(*) AS n FROM s WHERE v > 0 GROUP BY p",
        "SELECT x.v, y.p FROM s x LEFT JOIN s y ON x.v = y.v + 1",
        "SELECT v, p FROM s QUALIFY row_number() OVER (PARTITION BY v ORDER BY ts DESC) = 1",
    ],
)
def test_nested_columns(query: str, folder: Path, connect: Connect) -> None:
    with headwater.connect(folder) as db:
        columns = "ts INT, v INT, p STRUCT<x: INT, y: STRING>, a ARRAY<DOUBLE>"
        db.sql(f"CREATE STREAMING TABLE s ({columns}) TIMESTAMP BY ts")
        db.sql(f"CREATE VIEW n AS {query}")
        db.insert("s", [(1, 1, {"x": 1, "y": "a"}, [0.5, NAN]), (2, 2, None, None)])
        db.insert("s", [(3, 1, {"x": 1, "y": "a"}, [0.5, NAN]), (4, 2, {"x": None, "y": ""}, [])])
        db.flush()
        assert db.sql("VERIFY VIEW n").rows() == []
        before = sorted(map(repr, rows(db, "SELECT * FROM n")))
    db = connect(folder)
    assert sorted(map(repr, rows(db, "SELECT * FROM n"))) == before


def taken_in(db: headwater.Database) -> int:
    """How many rows have gone through circuits in this process."""
    views = db._context.engine.views()
    return sum(
        view.circuit.counters.rows_by_operators for view in views if view.circuit is not None
    )


@pytest.mark.here
def test_changed_rows_go_through_alone(folder: Path, connect: Connect) -> None:
    """From the second DELETE or UPDATE on; the first one makes operators that take rows back."""
    kept = {name: VIEWS[name] for name in ("filtered", "labelled", "newest", "middles", "steps")}
    with headwater.connect(folder) as db:
        for statement in TABLES:
            db.sql(statement)
        db.sql("INSERT INTO t VALUES (1, 'one'), (2, 'two')")
        db.insert("s", [(n, n % 5, n % 7, n / 2, [n]) for n in range(400)])
        for name, query in kept.items():
            db.sql(f"CREATE VIEW {name} AS {query}")
            rows(db, f"SELECT * FROM {name}")
        db.sql("DELETE FROM s WHERE ts = 7")
        db.flush()
        before = taken_in(db)
        db.sql("UPDATE s SET v = 100, k = 2 WHERE ts IN (8, 30)")
        db.sql("DELETE FROM s WHERE v = 6 AND ts < 50")
        db.insert("s", [(1000, 3, 1, 0.0, None)])
        db.flush()
        db.sql("DELETE FROM s WHERE ts IN (1000, 399)")
        for name in kept:
            assert db.sql(f"VERIFY VIEW {name}").rows() == [], name
        assert taken_in(db) == before + len(kept)  # the one that was inserted
        db.insert("s", [(1001, 3, 1, 0.0, None)])
        db.flush()
        after = {name: sorted(map(repr, rows(db, f"SELECT * FROM {name}"))) for name in kept}
    db = connect(folder)
    db.sql("DELETE FROM s WHERE ts = 1001")
    db.insert("s", [(1001, 3, 1, 0.0, None)])
    assert {n: sorted(map(repr, rows(db, f"SELECT * FROM {n}"))) for n in kept} == after
    assert taken_in(db) == len(kept)
    db.sql("DELETE FROM s")
    for name in kept:
        assert db.sql(f"VERIFY VIEW {name}").rows() == [], name


@pytest.mark.here
def test_a_row_that_goes_before_it_was_read_is_not_taken_back(db: headwater.Database) -> None:
    db.sql("CREATE STREAMING TABLE s (ts INT, k INT) TIMESTAMP BY ts")
    db.sql("CREATE VIEW v WITH (maintenance = 'incremental') AS SELECT ts, k FROM s WHERE k > 0")
    db.insert("s", [(n, n) for n in range(10)])
    assert len(rows(db, "SELECT * FROM v")) == 9
    db.sql("DELETE FROM s WHERE k = 1")
    assert len(rows(db, "SELECT * FROM v")) == 8
    db.insert("s", [(20, 20), (21, 21)])
    db.sql("DELETE FROM s WHERE k IN (2, 20)")
    assert sorted(rows(db, "SELECT k FROM v")) == [(3,), (4,), (5,), (6,), (7,), (8,), (9,), (21,)]


def test_what_has_no_operator_says_why(db: headwater.Database) -> None:
    db.sql("CREATE STREAMING TABLE s (ts INT, k INT, v INT) TIMESTAMP BY ts")
    query = "SELECT k, histogram_numeric(v, 3) AS x FROM s GROUP BY k"
    assert db.sql(f"CREATE VIEW n AS {query}").notice == (
        "the view is evaluated again when its input has changed: "
        "histogram_numeric of these types is evaluated by Spark"
    )


def test_what_comes_while_a_circuit_catches_up_waits_in_all_tables(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By itself, too, it stands at one moment of all tables: no row is in without one that came before it."""
    db = connect(settings={"eager_spark": False, "factories": 0})
    for statement in TABLES:
        db.sql(statement)
    db.sql("CREATE VIEW v AS SELECT s.ts, r.ts AS other FROM s FULL JOIN r ON s.ts = r.ts")
    view = db._context.engine.find_view("v")
    assert view is not None
    (circuit,) = view.circuits
    take, ends = circuit._take_in, []

    def slow(*arguments: Any) -> bool:
        ends.append(arguments[1])
        moved = take(*arguments)
        if len(ends) == 1:
            db.insert("s", [(1, 1, 1, None, None)])
            db.insert("r", [(1, 1, 1)])
        return moved

    monkeypatch.setattr(circuit, "_take_in", slow)
    monkeypatch.setattr(view, "on_free", lambda: None)
    with view.world.held(view.plan.identifiers) as held:
        circuit.catch_up(held)
    assert circuit.result().num_rows == 0
    assert db.sql("SELECT * FROM v").rows() == [(1, 1)]
