"""Update queries at their edges: unions by place, restarts, and rows beyond the bound (US1, US4)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headwater
from tests.harness.patience import PATIENCE_S

INLINE = {"eager_spark": False}
TABLE = "CREATE STREAMING TABLE {} (ts INT, k STRING, v INT) TIMESTAMP BY ts UPDATE KEY (k)"


def _results(db: headwater.Database, name: str) -> list[tuple[Any, ...]]:
    found = db.subscribe(name, after="earliest", timeout=0.1)
    return [row for out in found for row in out.rows()]


def test_columns_of_a_union_go_by_their_places() -> None:
    """Later branches may call columns otherwise; a key at another place is refused."""
    with headwater.connect(settings=INLINE) as db:
        db.sql(TABLE.format("a"))
        db.sql("CREATE STREAMING TABLE b (ts INT, w INT, k STRING) TIMESTAMP BY ts UPDATE KEY (k)")
        text = "SELECT k, v, v + 1 AS x FROM a UNION ALL SELECT k, w, -w AS v FROM b"
        db.sql(f"CREATE CONTINUOUS QUERY u AS {text} WITH UPDATES")
        db.insert("a", [(1, "x", 10), (1, "y", 11)])
        db.insert("b", [(2, 20, "x")])
        db.flush()
        assert sorted(db.sql("SELECT * FROM u").rows()) == [("x", 20, -20, 2), ("y", 11, 12, 1)]
        db.sql("CREATE STREAMING TABLE c (ts INT, k INT, v INT) TIMESTAMP BY ts UPDATE KEY (k)")
        text = "SELECT k, v FROM c UNION ALL SELECT v, k FROM c"
        with pytest.raises(headwater.Error, match="update key at the same places"):
            db.sql(f"CREATE CONTINUOUS QUERY other AS {text} WITH UPDATES")


def test_a_union_passes_over_older_rows_after_a_restart(tmp_path: Path) -> None:
    """A row that is older than its key's result is no news, though it came after the restart or a pause."""
    with headwater.connect(tmp_path, settings=INLINE) as db:
        db.sql(TABLE.format("a"))
        db.sql(TABLE.format("b"))
        text = "SELECT k, v FROM a UNION ALL SELECT k, v FROM b"
        db.sql(f"CREATE CONTINUOUS QUERY u AS {text} WITH UPDATES")
        db.insert("a", [(100, "x", 1)])
        db.flush()
    with headwater.connect(tmp_path, settings=INLINE) as db:
        db.insert("b", [(50, "x", 2)])
        db.flush()
        assert _results(db, "u") == [("x", 1, 100)]
        db.sql("PAUSE QUERY u")
        db.sql("RESUME QUERY u")
        db.insert("b", [(60, "x", 3), (60, "y", 4)])
        db.flush()
        assert _results(db, "u") == [("x", 1, 100), ("y", 4, 60)]


@pytest.mark.parametrize(
    "clause", ["APPEND", "SHEDDING 0", "UPDATES WHEN BEHIND INTERVAL '1' HOUR", "UPDATES"]
)
def test_a_union_may_pass_over_all_rows_of_an_insert(clause: str) -> None:
    """They are counted as superseded, however rows wait, and the query goes on."""
    with headwater.connect(settings=INLINE) as db:
        db.sql(TABLE.format("a"))
        db.sql(TABLE.format("b"))
        text = "SELECT k, v FROM a UNION ALL SELECT k, v FROM b"
        db.sql(f"CREATE CONTINUOUS QUERY u AS {text} WITH {clause}")
        for table, ts in (("a", 100), ("b", 50), ("b", 101)):
            db.insert(table, [(ts, "x", ts)])
            db.flush()
        assert _results(db, "u") == [("x", 100, 100), ("x", 101, 101)]
        counts = "SELECT rows_in, processed, superseded FROM headwater.staleness WHERE key IS NULL"
        assert db.sql(counts).rows() == [(3, 2, 1)]


def test_results_of_a_union_come_in_the_order_of_their_rows() -> None:
    """Rows of both branches in one firing: a key does not go back, and a slow reader gets the last one."""
    with headwater.connect(settings=INLINE) as db:
        db.sql(TABLE.format("a"))
        db.sql(TABLE.format("b"))
        text = "SELECT k, v FROM a WHERE v <> 7 UNION ALL SELECT k, v FROM b"
        db.sql(f"CREATE CONTINUOUS QUERY u AS {text} WITH APPEND")
        db.sql("PAUSE QUERY u")
        for ts in range(1, 20):
            db.insert("ab"[ts % 2 == 0], [(ts, "x", ts)])
        db.sql("RESUME QUERY u")
        db.flush()
        assert [row[1] for row in _results(db, "u")] == [n for n in range(1, 20) if n != 7]
        reader = db.subscribe("u", after="earliest", timeout=0.1, conflate_by=["k"])
        assert [out.rows() for out in reader] == [[("x", 19, 19)]]


@pytest.mark.parametrize("kind", ["LAZY", "EAGER"])
def test_windows_without_a_key_go_on_after_a_restart(kind: str, tmp_path: Path) -> None:
    """UPDATE KEY () has one key without columns, which has its result still."""
    with headwater.connect(tmp_path, settings=INLINE) as db:
        db.sql("CREATE STREAMING TABLE s (ts INT, v INT) TIMESTAMP BY ts UPDATE KEY ()")
        text = "SELECT count(*) AS n, sum(v) AS v FROM s [INTERVAL 5 SECONDS BEFORE]"
        text += f" SAMPLE INTERVAL 5 SECONDS WITH UPDATES WINDOWS {kind}"
        db.sql(f"CREATE CONTINUOUS QUERY q AS {text}")
        for ts in (1, 2, 6):
            db.insert("s", [(ts, ts)])
            db.flush()
        assert _results(db, "q") == [(2, 3, 5)]
    with headwater.connect(tmp_path, settings=INLINE) as db:
        for ts in (7, 11):
            db.insert("s", [(ts, ts)])
            db.flush()
        assert _results(db, "q") == [(2, 3, 5), (2, 13, 10)]


@pytest.mark.parametrize("only_spark", [False, True], ids=["operators", "Spark"])
def test_what_was_folded_of_a_window_is_there_after_a_restart(
    only_spark: bool, tmp_path: Path
) -> None:
    """EAGER partials, by operators or made by Spark, are those of all rows of the window, each once."""
    settings = {"spark_sql_only": only_spark}
    with headwater.connect(tmp_path, settings=settings) as db:
        db.sql(TABLE.format("s"))
        columns = "count(*) AS n, sum(v) AS t, count(DISTINCT v) AS d, first(v) AS f, last(v) AS l"
        text = f"SELECT k, {columns} FROM s [INTERVAL 10 SECONDS BEFORE] WHERE v <> 9 GROUP BY k"
        text += " SAMPLE INTERVAL 10 SECONDS WITH UPDATES WINDOWS EAGER"
        db.sql(f"CREATE CONTINUOUS QUERY q AS {text}")
        for row in [(1, "a", 5), (2, "a", 5), (3, "b", 9)]:
            db.insert("s", [row])
            db.flush()
    with headwater.connect(tmp_path, settings=settings) as db:
        for row in [(4, "a", 7), (5, "b", 2), (6, "a", 9)]:
            db.insert("s", [row])
            db.flush()
        assert _results(db, "q") == []
        db.advance("s", 10)
        db.flush()
        assert sorted(_results(db, "q")) == [("a", 3, 17, 2, 5, 7, 10), ("b", 1, 2, 1, 2, 2, 10)]


@pytest.mark.parametrize("kind", ["LAZY", "EAGER"])
def test_no_window_closes_before_its_rows_that_wait_in_the_basket(kind: str) -> None:
    """More rows than the queue may hold: each result is still what the append query gives."""
    with headwater.connect(settings={**INLINE, "update_queue_rows": 1000}) as db:
        db.sql("CREATE STREAMING TABLE s (ts INT, k INT) TIMESTAMP BY ts UPDATE KEY (k)")
        db.insert("s", [(n // 40, n % 7) for n in range(4000)])
        db.sql("ADVANCE s TO 200")
        text = "SELECT k, count(*) AS n FROM s [INTERVAL 10 SECONDS BEFORE] GROUP BY k"
        text += " SAMPLE INTERVAL 10 SECONDS"
        db.sql(f"CREATE CONTINUOUS QUERY every FROM BEGINNING AS {text}")
        db.sql(f"CREATE CONTINUOUS QUERY q FROM BEGINNING AS {text} WITH UPDATES WINDOWS {kind}")
        db.flush()
        found = _results(db, "q")
        assert found
        assert set(found) <= set(_results(db, "every"))
        assert {row[0]: row[2] for row in found} == dict.fromkeys(range(7), 100)


def test_a_reader_is_told_the_columns_that_it_gets() -> None:
    """What an update query keeps for itself is not among them."""
    with headwater.connect(settings=INLINE) as db:
        db.sql(TABLE.format("s"))
        db.sql("CREATE CONTINUOUS QUERY q AS SELECT k, v FROM s WITH UPDATES")
        db.insert("s", [(1, "x", 1)])
        db.flush()
        with db.subscribe("q", after="earliest", timeout=PATIENCE_S) as reader:
            assert reader.schema == next(reader).arrow().schema
            assert reader.schema.names == ["k", "v", "_t"]


def test_names_of_the_key_may_be_those_of_the_result() -> None:
    """GROUP BY an alias of the key, REFRESH by either name; a column goes before an alias."""
    with headwater.connect(settings=INLINE) as db:
        db.sql(TABLE.format("s"))
        text = "SELECT {} AS {}, count(*) AS n FROM s [INTERVAL 5 SECONDS BEFORE] GROUP BY {}"
        text += " SAMPLE INTERVAL 5 SECONDS WITH UPDATES"
        db.sql("CREATE CONTINUOUS QUERY q AS " + text.format("k", "name", "NAME"))
        with pytest.raises(headwater.Error, match="GROUP BY contains the update key: k"):
            db.sql("CREATE CONTINUOUS QUERY w AS " + text.format("k", "v", "v"))
        db.insert("s", [(1, "x", 1), (2, "y", 2), (3, "x", 3), (6, "x", 4)])
        db.flush()
        assert sorted(db.sql("SELECT * FROM q").rows()) == [("x", 2, 5), ("y", 1, 5)]
        for name in ("k", "name"):
            refresh = f"REFRESH EVERY INTERVAL '1' SECOND FOR {name} IN ('x')"
            text = f"SELECT k AS name, v FROM s WITH UPDATES {refresh}"
            db.sql(f"CREATE CONTINUOUS QUERY by_{name} AS {text}")


def test_a_named_key_of_which_nothing_came_is_not_counted() -> None:
    """Means are over the keys of the stream: those that REFRESH names are not all of them."""
    with headwater.connect(settings=INLINE) as db:
        db.sql(TABLE.format("s"))
        refresh = "REFRESH EVERY INTERVAL '1' SECOND FOR k IN ('x', 'never')"
        db.sql(f"CREATE CONTINUOUS QUERY q AS SELECT k, v FROM s WITH UPDATES {refresh}")
        text = "SELECT key FROM headwater.staleness WHERE key IS NOT NULL ORDER BY key"
        assert db.sql(text).rows() == []
        db.insert("s", [(1, "x", 1), (1, "y", 2)])
        db.flush()
        assert db.sql(text).rows() == [("x",), ("y",)]


def test_keys_of_a_join_have_one_type() -> None:
    """They wait in one queue, so another type is refused before anything is made."""
    with headwater.connect(settings=INLINE) as db:
        db.sql(TABLE.format("a"))
        db.sql("CREATE STREAMING TABLE b (ts INT, k INT) TIMESTAMP BY ts UPDATE KEY (k)")
        text = "SELECT a.k FROM a [INTERVAL 5 SECONDS] JOIN b [INTERVAL 5 SECONDS] ON a.k = b.k"
        with pytest.raises(headwater.Error, match="k is STRING, k is INT"):
            db.sql(f"CREATE CONTINUOUS QUERY q AS {text} WITH UPDATES")


@pytest.mark.parametrize("window", ["", "[INTERVAL 5 SECONDS] SAMPLE INTERVAL 5 SECONDS"])
def test_a_name_of_the_system_is_refused(window: str) -> None:
    """The column by which a result finds its row would be there twice."""
    with headwater.connect(settings=INLINE) as db:
        db.sql(TABLE.format("s"))
        text = f"SELECT k, v AS Headwater_Row FROM s {window} WITH UPDATES"
        with pytest.raises(headwater.Error, match="belong to the system"):
            db.sql(f"CREATE CONTINUOUS QUERY q AS {text}")
