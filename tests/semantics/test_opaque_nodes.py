"""Views with a part that has no operator: Spark evaluates that node alone, operators keep what is around it.

Each equals its query on Spark after inserts, changes of tables, DELETE and UPDATE, and a restart; what goes
through the operators grows with the changes, not with the tables.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import headwater

Connect = Callable[..., headwater.Database]

TABLES = (
    "CREATE STREAMING TABLE s (ts INT, k INT, v INT, name STRING) TIMESTAMP BY ts",
    "CREATE TABLE t (k INT, label STRING)",
)
HERE = {"factories": 0}
COUNT = "CAST(hll_sketch_estimate(hll_sketch_agg(v)) AS INT)"  # exact, of so few values
CHANGES = "opaque, by Spark for each change:"
ALL_ROWS = "opaque, by Spark over all rows:"
# Each view with what EXPLAIN says of its node.
VIEWS = {
    "items": ("SELECT ts, k, soundex(name) AS s, v + 1 AS w FROM s WHERE v > 1", CHANGES),
    "condition": ("SELECT k, v FROM s WHERE levenshtein(name, 'anna') < 3 AND v > 0", CHANGES),
    "joined": (
        "SELECT a.k, soundex(a.name) AS s, b.label FROM s AS a JOIN t AS b ON a.k = b.k "
        "WHERE soundex(b.label) <> 'T000'",
        CHANGES,
    ),
    "lambdas": ("SELECT k, transform(array(v, 2), x -> x + v) AS xs FROM s", CHANGES),
    "newest": (
        "SELECT k, v, soundex(name) AS n FROM s "
        "QUALIFY row_number() OVER (PARTITION BY soundex(name) ORDER BY v DESC, ts) = 1",
        CHANGES,
    ),
    "grouped": (
        "SELECT s, count(*) AS n, max(l) AS l FROM "
        "(SELECT soundex(name) AS s, levenshtein(name, 'bob') AS l FROM s) AS x GROUP BY s",
        CHANGES,
    ),
    "of_groups": (
        "SELECT upper(label) AS u, soundex(label) AS e, median(v) AS m FROM s JOIN t USING (k) "
        "GROUP BY label HAVING soundex(label) IS NOT NULL",
        CHANGES,
    ),
    "block": (
        f"SELECT label, c FROM t JOIN (SELECT k, {COUNT} AS c FROM s GROUP BY k) AS x USING (k)",
        ALL_ROWS,
    ),
    "above": (
        "SELECT hll_sketch_estimate(hll_sketch_agg(m)) AS c, count(*) AS n "
        "FROM (SELECT k, max_by(v, ts) AS m FROM s GROUP BY k) AS g",
        ALL_ROWS,
    ),
    "with_above": (
        "WITH g AS (SELECT k, v FROM s QUALIFY row_number() OVER (PARTITION BY k ORDER BY ts, v) = 1) "
        f"SELECT {COUNT} AS c FROM g",
        ALL_ROWS,
    ),
    "recursive": (
        "SELECT n, v FROM (WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) "
        "SELECT n, label FROM r JOIN t ON t.k = r.n) AS x JOIN s ON s.k = x.n",
        ALL_ROWS,
    ),
    "branch": (
        f"SELECT k, v + 1 AS v FROM s UNION SELECT k, {COUNT} FROM s GROUP BY k",
        ALL_ROWS,
    ),
}


def check(db: headwater.Database, third: int | None = None) -> None:
    """Every view is kept, and equals its query; a third of them is asked, or all."""
    for name in list(VIEWS) if third is None else list(VIEWS)[third::3]:
        assert db.sql(f"VERIFY VIEW {name}").rows() == [], name
    assert rows(db, "SELECT name, tier FROM headwater.views WHERE tier NOT LIKE 'operators%'") == []


def rows(db: headwater.Database, text: str) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    return db.sql(text).rows()


def plan(db: headwater.Database, text: str) -> str:
    """What EXPLAIN says."""
    return "\n".join(line for (line,) in rows(db, text))


def test_views_equal_their_queries(folder: Path, connect: Connect) -> None:
    with headwater.connect(folder) as db:
        for statement in TABLES:
            db.sql(statement)
        db.insert("s", [(1, 1, 3, "anna"), (2, 1, 3, "bob"), (3, 2, None, None)])
        for name, (query, node) in VIEWS.items():
            assert db.sql(f"CREATE VIEW {name} AS {query}").notice is None, name
            assert node in plan(db, f"EXPLAIN VIEW {name}"), name
        check(db, 0)
        db.sql("INSERT INTO t VALUES (1, 'one'), (2, 'two'), (2, 'zwei'), (NULL, 'none')")
        db.insert("s", [(4, 3, 1, "ann"), (5, None, 8, "hannah"), (4, 1, 9, "bobby")])
        check(db, 1)
        db.sql("UPDATE t SET label = 'eins' WHERE k = 1")
        db.sql("DELETE FROM t WHERE label = 'zwei'")
        db.sql("DELETE FROM s WHERE v = 9")
        db.sql("UPDATE s SET name = 'anne' WHERE k = 3")
        check(db, 2)
        db.insert("s", [(7, 2, 2, "rob")])  # nobody has asked Spark about it before the restart
        before = {name: sorted(map(repr, rows(db, f"SELECT * FROM {name}"))) for name in VIEWS}
        db.insert("s", [(8, 1, 2, "roberta")])
        db.sql("DELETE FROM s WHERE v = 8")
    db = connect(folder)
    after = {name: sorted(map(repr, rows(db, f"SELECT * FROM {name}"))) for name in VIEWS}
    assert after != before
    check(db)
    db.insert("s", [(9, 2, 6, "rupert")])
    check(db, 0)


def test_operators_around_the_node_take_in_changes_alone(folder: Path, connect: Connect) -> None:
    db = connect(folder, settings=HERE)
    for statement in TABLES:
        db.sql(statement)
    for name in ("joined", "above", "block"):
        db.sql(f"CREATE VIEW {name} AS {VIEWS[name][0]}")
    db.sql("INSERT INTO t VALUES (1, 'one'), (2, 'two')")
    db.insert("s", [(n, n % 50, n, f"name {n}") for n in range(500)])
    circuits = {}
    for name in ("joined", "above", "block"):
        rows(db, f"SELECT * FROM {name}")
        view = db._context.engine.find_view(name)
        assert view is not None
        assert view.circuit is not None
        circuits[name] = view.circuit
    before = {name: _taken_in(circuit) for name, circuit in circuits.items()}
    asked = circuits["joined"].counters.rows_on_spark
    db.insert("s", [(501, 1, 7, "late")])
    for name, circuit in circuits.items():
        rows(db, f"SELECT * FROM {name}")
        assert 0 < _taken_in(circuit) - before[name] <= 12, name
        assert db.sql(f"VERIFY VIEW {name}").rows() == [], name
    seen = circuits["joined"].counters.rows_on_spark - asked
    assert seen == 2  # Spark too has seen the change alone: for the condition, and for the item


def _taken_in(circuit: Any) -> int:
    """Rows that all operators of a circuit have taken in."""
    return sum(did.rows_in for did in circuit.circuit.figures.values())


def test_commits_do_not_ask_spark(folder: Path, connect: Connect) -> None:
    db = connect(folder, settings=HERE)
    for statement in TABLES:
        db.sql(statement)
    db.sql(f"CREATE VIEW items AS {VIEWS['items'][0]}")
    view = db._context.engine.find_view("items")
    assert view is not None
    assert view.circuit is not None
    for n in range(5):
        db.insert("s", [(n, 1, n, "anna")])
    view.fire()
    assert view.circuit.counters.spark_runs == 0
    assert len(rows(db, "SELECT * FROM items")) == 3
    assert len(rows(db, "SELECT * FROM items")) == 3
    assert view.circuit.counters.spark_runs == 1


def test_a_row_that_raises_leaves_the_view_to_spark_until_it_is_gone(
    db: headwater.Database,
) -> None:
    db.sql(TABLES[0])
    db.sql("CREATE VIEW digits AS SELECT ts, conv(CAST(name AS INT), 10, 2) AS b FROM s")
    db.insert("s", [(1, 1, 1, "5"), (2, 1, 2, "six")])
    error = None
    try:
        rows(db, "SELECT * FROM digits")
    except headwater.Error as raised:
        error = raised
    assert error is not None
    db.sql("DELETE FROM s WHERE v = 2")
    assert rows(db, "SELECT * FROM digits") == [(1, "101")]


def test_what_depends_on_more_than_its_rows_is_no_node(db: headwater.Database) -> None:
    db.sql(TABLES[0])
    query = "SELECT k, soundex(name) AS s, current_timestamp() AS r FROM s"
    assert db.sql(f"CREATE VIEW moments AS {query}").notice is not None
    assert "opaque" not in plan(db, "EXPLAIN VIEW moments")


def test_a_view_that_is_all_opaque_is_evaluated_at_each_read(db: headwater.Database) -> None:
    db.sql(TABLES[0])
    query = f"SELECT * FROM (SELECT k, {COUNT} AS c FROM s GROUP BY k) AS x WHERE c > 0"
    made = db.sql(f"CREATE VIEW whole AS {query}")
    assert made.notice is not None
    assert "opaque" not in plan(db, "EXPLAIN VIEW whole")


def test_who_follows_gets_the_changes(db: headwater.Database) -> None:
    for statement in TABLES:
        db.sql(statement)
    db.sql(f"CREATE VIEW joined AS {VIEWS['joined'][0]}")
    db.sql("INSERT INTO t VALUES (1, 'one')")
    db.insert("s", [(1, 1, 3, "anna")])
    view = db._context.engine.find_view("joined")
    assert view is not None
    first = view.follow(None)
    db.insert("s", [(2, 1, 4, "bob"), (3, 9, 4, "rob")])
    second = view.follow(first.mark)
    assert second.changes is not None
    assert second.changes.rows.to_pylist() == [{"k": 1, "s": "B100", "label": "one"}]
