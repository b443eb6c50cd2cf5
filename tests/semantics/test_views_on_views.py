"""Views on views, and materialized views without a window: kept as one, and equal to their queries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headwater

Connect = Callable[..., headwater.Database]

TABLES = (
    "CREATE STREAMING TABLE s (ts INT, k INT, x INT) TIMESTAMP BY ts",
    "CREATE STREAMING TABLE r (ts INT, k INT, w INT) TIMESTAMP BY ts",
    "CREATE TABLE t (k INT, c STRING)",
)
VIEWS = {
    "big": "SELECT ts, k, x FROM s WHERE x > 1",
    "sums": "SELECT k, sum(x) AS n, count(*) AS m FROM big GROUP BY k",
    "largest": "SELECT max(n) AS n FROM sums",
    "shares": "SELECT a.k, a.n, b.n AS whole FROM sums a, largest b",
    "named": "SELECT b.ts, t.c, b.x FROM big b LEFT JOIN t ON b.k = t.k",
    "both": "SELECT big.k, big.x, r.w FROM big JOIN r ON big.k = r.k",
    "renamed(a, b)": "SELECT k, n FROM sums WHERE n > 2",
    "over_renamed": "SELECT a + b AS ab FROM renamed",
    "newest": "SELECT * FROM both QUALIFY row_number() OVER (PARTITION BY k ORDER BY x DESC, w) = 1",
    "twice": "SELECT k FROM sums UNION ALL SELECT k FROM big",
}


def rows(db: headwater.Database, text: str) -> list[tuple[Any, ...]]:
    """The rows of a query, in one order."""
    return sorted(db.sql(text).rows(), key=repr)


def check(db: headwater.Database) -> None:
    """Every view equals its query over the views below it, read as they are."""
    for name, query in VIEWS.items():
        plain = name.partition("(")[0]
        assert rows(db, f"SELECT * FROM {plain}") == rows(db, query), name


def test_views_on_views_are_kept(folder: Path, connect: Connect) -> None:
    with headwater.connect(folder) as db:
        for statement in TABLES:
            db.sql(statement)
        db.insert("s", [(1, 1, 3), (2, 1, 1), (3, 2, None)])
        for name, query in VIEWS.items():
            assert db.sql(f"CREATE VIEW {name} AS {query}").notice is None, name
        db.sql("INSERT INTO t VALUES (1, 'one'), (2, 'two')")
        db.insert("r", [(1, 1, 5), (2, 2, 6), (3, 1, 7)])
        db.insert("s", [(4, 2, 9), (5, None, 4), (4, 1, 2)])
        check(db)
        db.sql("DELETE FROM s WHERE x = 9")
        db.sql("UPDATE t SET c = 'eins' WHERE k = 1")
        check(db)
        kinds = db.sql("SELECT kind, tier FROM headwater.views").rows()
        assert set(kinds) == {("continuous", "operators")}
    db = connect(folder)
    db.insert("s", [(9, 1, 100)])
    check(db)
    assert rows(db, "SELECT * FROM largest") == [(105,)]
    assert [db.sql(f"VERIFY VIEW {name}").rows() for name in ("shares", "newest")] == [[], []]


@pytest.fixture
def db(connect: Connect, folder: Path) -> headwater.Database:
    """With a view, one on it, and one on that."""
    made = connect(folder)
    for statement in TABLES:
        made.sql(statement)
    made.insert("s", [(1, 1, 3), (2, 1, 1), (3, 2, 5)])
    made.sql("CREATE VIEW big AS SELECT k, x FROM s WHERE x > 1")
    made.sql("CREATE VIEW sums AS SELECT k, sum(x) AS n FROM big GROUP BY k")
    made.sql("CREATE VIEW largest AS SELECT max(n) AS n FROM sums")
    return made


def test_views_follow_one_that_gets_another_query(
    db: headwater.Database, folder: Path, connect: Connect
) -> None:
    db.sql("CREATE OR REPLACE VIEW big AS SELECT k, x * 10 AS x FROM s")
    assert rows(db, "SELECT * FROM sums") == [(1, 40), (2, 50)]
    assert rows(db, "SELECT * FROM largest") == [(50,)]
    db.insert("s", [(4, 1, 2)])
    assert rows(db, "SELECT * FROM largest") == [(60,)]
    db.close()
    again = connect(folder)
    assert rows(again, "SELECT * FROM largest") == [(60,)]
    assert again.sql("VERIFY VIEW largest").rows() == []


def test_a_view_on_a_plain_view_follows_it(db: headwater.Database) -> None:
    db.sql("INSERT INTO t VALUES (1, 'one'), (2, 'two')")
    db.sql("CREATE VIEW plain AS SELECT k, c FROM t")
    db.sql("CREATE VIEW mixed AS SELECT s.x, p.c FROM s JOIN plain p ON s.k = p.k WHERE s.k = 1")
    assert rows(db, "SELECT * FROM mixed") == [(1, "one"), (3, "one")]
    db.sql("CREATE OR REPLACE VIEW plain AS SELECT k, upper(c) AS c FROM t")
    assert rows(db, "SELECT * FROM mixed") == [(1, "ONE"), (3, "ONE")]


def test_a_view_follows_through_one_that_is_younger(db: headwater.Database) -> None:
    db.sql("CREATE VIEW younger AS SELECT k, n * 2 AS n FROM sums")
    db.sql("CREATE OR REPLACE VIEW largest AS SELECT max(n) AS n FROM younger")
    assert rows(db, "SELECT * FROM largest") == [(10,)]
    db.sql("CREATE OR REPLACE VIEW big AS SELECT k, x * 10 AS x FROM s")
    assert rows(db, "SELECT * FROM largest") == [(100,)]


def test_a_view_of_another_time_zone_does_not_follow(db: headwater.Database) -> None:
    """Its texts would mean one thing now, and another after a restart."""
    db.sql("SET time_zone = 'Asia/Tokyo'")
    with pytest.raises(headwater.Error, match="made in time zone UTC, and Asia/Tokyo is set"):
        db.sql("CREATE OR REPLACE VIEW big AS SELECT k, x * 10 AS x FROM s")
    assert rows(db, "SELECT * FROM largest") == [(5,)]
    db.sql("SET time_zone = 'UTC'")
    db.sql("CREATE OR REPLACE VIEW big AS SELECT k, x * 10 AS x FROM s")
    assert rows(db, "SELECT * FROM largest") == [(50,)]


def test_a_materialized_view_does_not_become_another(db: headwater.Database) -> None:
    db.sql("CREATE MATERIALIZED VIEW m AS SELECT c, count(*) AS n FROM t GROUP BY c")
    with pytest.raises(headwater.Error, match="m is a materialized view"):
        db.sql("CREATE OR REPLACE VIEW m AS SELECT c FROM t")
    db.sql("DROP MATERIALIZED VIEW m")


def test_nothing_changes_if_a_view_above_cannot_follow(db: headwater.Database) -> None:
    with pytest.raises(headwater.Error, match="sums reads it, and cannot follow") as error:
        db.sql("CREATE OR REPLACE VIEW big AS SELECT k FROM s")
    assert error.value.sqlstate == "2BP01"
    db.insert("s", [(4, 1, 2)])
    assert rows(db, "SELECT * FROM sums") == [(1, 5), (2, 5)]
    assert rows(db, "SELECT k, x FROM big") == [(1, 2), (1, 3), (2, 5)]


def test_a_view_is_not_made_of_itself(db: headwater.Database) -> None:
    with pytest.raises(headwater.Error, match="would be made of itself"):
        db.sql("CREATE OR REPLACE VIEW big AS SELECT k, n AS x FROM sums")
    with pytest.raises(headwater.Error, match="would be made of itself"):
        db.sql("CREATE OR REPLACE VIEW big AS SELECT * FROM big")
    assert rows(db, "SELECT * FROM largest") == [(5,)]


def test_a_view_that_is_read_is_not_dropped(db: headwater.Database) -> None:
    with pytest.raises(headwater.Error, match="is read by view sums"):
        db.sql("DROP VIEW big")


def test_views_whose_rows_are_not_all_stored_are_read_as_they_are(db: headwater.Database) -> None:
    """FROM NOW, and rows that RANGE has dropped: the view above sees what the one below has."""
    db.sql("CREATE VIEW late FROM NOW AS SELECT k, count(*) AS n FROM s GROUP BY k")
    db.sql("CREATE VIEW over_late AS SELECT sum(n) AS n FROM late")
    db.insert("s", [(7, 7, 7)])
    assert rows(db, "SELECT * FROM over_late") == [(1,)]
    db.sql("CREATE STREAMING TABLE z (ts INT, k INT) TIMESTAMP BY ts RANGE INTERVAL '10' SECOND")
    db.sql("CREATE VIEW counts AS SELECT k, count(*) AS n FROM z GROUP BY k")
    db.sql("CREATE VIEW all_counts AS SELECT sum(n) AS n FROM counts")
    db.insert("z", [(1, 1)])
    db.insert("z", [(100, 1)])
    assert rows(db, "SELECT * FROM all_counts") == [(2,)]


def test_with_never_hides_what_a_view_reads(db: headwater.Database) -> None:
    assert rows(db, "WITH s AS (SELECT 1 AS k) SELECT count(*) FROM big, s") == [(2,)]
    other = "WITH s AS (SELECT k FROM r) SELECT big.x FROM big JOIN s USING (k)"
    with pytest.raises(headwater.Error, match="cannot read a continuous view"):
        db.sql(f"CREATE VIEW other AS {other}")
    db.insert("r", [(1, 2, 0)])
    assert rows(db, other) == [(5,)]
    db.sql("CREATE VIEW plain AS SELECT k FROM t")
    with pytest.raises(headwater.Error, match="WITH t hides what view plain reads"):
        db.sql("WITH t AS (SELECT 7 AS k) SELECT * FROM plain")


# Materialized views without a window


def test_a_materialized_view_without_a_window_is_kept(folder: Path, connect: Connect) -> None:
    with headwater.connect(folder) as db:
        for statement in TABLES:
            db.sql(statement)
        db.sql("CREATE MATERIALIZED VIEW m AS SELECT k, count(*) AS n FROM s GROUP BY k")
        db.sql("CREATE MATERIALIZED VIEW mt AS SELECT c, count(*) AS n FROM t GROUP BY c")
        db.sql("CREATE VIEW joined AS SELECT m.k, m.n, t.c FROM m JOIN t ON m.k = t.k")
        db.insert("s", [(1, 1, 3), (2, 1, 1), (3, 2, 5)])
        db.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'a')")
        assert rows(db, "SELECT * FROM m") == [(1, 2), (2, 1)]
        assert rows(db, "SELECT * FROM mt") == [("a", 2), ("b", 1)]
        db.sql("DELETE FROM t WHERE k = 3")
        assert rows(db, "SELECT * FROM mt") == [("a", 1), ("b", 1)]
        assert rows(db, "SELECT * FROM joined") == [(1, 2, "a"), (2, 1, "b")]
        kinds = dict(db.sql("SELECT name, kind FROM headwater.views").rows())
        assert kinds == {"m": "materialized", "mt": "materialized", "joined": "continuous"}
    db = connect(folder)
    assert rows(db, "SELECT * FROM mt") == [("a", 1), ("b", 1)]
    assert db.sql("VERIFY VIEW m").rows() == []
    with pytest.raises(headwater.Error, match="takes no window"):
        db.sql("SELECT * FROM m [INTERVAL '3' SECOND] w")
    with pytest.raises(headwater.Error, match="RANGE is for the results"):
        db.sql("CREATE MATERIALIZED VIEW z RANGE INTERVAL '5' MINUTE AS SELECT k FROM s")
    with pytest.raises(headwater.Error, match="is read by view joined"):
        db.sql("DROP MATERIALIZED VIEW m")
    db.sql("DROP VIEW joined")
    db.sql("DROP MATERIALIZED VIEW m")
    db.sql("DROP MATERIALIZED VIEW IF EXISTS m")
