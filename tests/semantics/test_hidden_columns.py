"""Hidden columns take no part in `*`, NATURAL JOIN and USING, wherever rows of a streaming table are read.

Without TIMESTAMP BY a table has a hidden `_t`; `_seq` and `_late` every one has. A query may name them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import headwater

HIDDEN = ("_t", "_seq", "_late")
# Each gives as many columns as its SELECT has over the declared ones.
SELECTS = {
    "natural": ("SELECT a.x, b.y FROM a NATURAL JOIN b", [(1, 10), (2, 20)]),
    "natural star": ("SELECT * FROM a NATURAL JOIN b", [(1, "p", 10), (2, "q", 20)]),
    "natural left": (
        "SELECT * FROM a NATURAL LEFT JOIN b",
        [(1, "p", 10), (2, "q", 20), (4, "s", None)],
    ),
    "natural count": ("SELECT count(*) AS n FROM a NATURAL JOIN b", [(2,)]),
    "using": ("SELECT * FROM a JOIN b USING (x)", [(1, "p", 10), (2, "q", 20)]),
    "join": ("SELECT * FROM a JOIN dim ON a.x = dim.d", [(1, "p", 1, "one")]),
    "a star": ("SELECT a.*, b.y FROM a JOIN b ON a.x = b.x", [(1, "p", 10), (2, "q", 20)]),
    "subquery": (
        "SELECT * FROM (SELECT * FROM a) NATURAL JOIN (SELECT * FROM b)",
        [(1, "p", 10), (2, "q", 20)],
    ),
    "cte": (
        "WITH c AS (SELECT * FROM a) SELECT * FROM c NATURAL JOIN b",
        [(1, "p", 10), (2, "q", 20)],
    ),
    "union": (
        "SELECT * FROM a UNION ALL SELECT x, CAST(y AS STRING) FROM b",
        [(1, "10"), (1, "p"), (2, "20"), (2, "q"), (3, "30"), (4, "s")],
    ),
    "except": ("SELECT * FROM a EXCEPT SELECT x, 'p' FROM b", [(2, "q"), (4, "s")]),
    "distinct": ("SELECT DISTINCT * FROM a", [(1, "p"), (2, "q"), (4, "s")]),
    "struct": (
        "SELECT size(map_keys(from_json(to_json(struct(*)), 'MAP<STRING, STRING>'))) AS n FROM a WHERE x = 1",
        [(2,)],
    ),
    "star but": ("SELECT * EXCEPT (x) FROM a", [("p",), ("q",), ("s",)]),
    "named": ("SELECT *, _seq AS n FROM a", [(1, "p", 0), (2, "q", 1), (4, "s", 2)]),
    "named of one": (
        "SELECT a.*, b._seq AS n FROM a JOIN b ON a.x = b.x",
        [(1, "p", 0), (2, "q", 1)],
    ),
    "named in where": (
        "SELECT * FROM a WHERE _seq > 0 AND NOT _late AND _t IS NOT NULL",
        [(2, "q"), (4, "s")],
    ),
    "named on both sides": (
        "SELECT * FROM a JOIN b USING (x) WHERE a._seq = b._seq AND a._seq > 0",
        [(2, "q", 20)],
    ),
    "first": (
        "SELECT count(*) AS n, first(w) AS f FROM a NATURAL JOIN (SELECT 1 AS x)",
        [(1, "p")],
    ),
    "lateral view": (
        "SELECT * FROM a LATERAL VIEW explode(array(7)) AS e",
        [(1, "p", 7), (2, "q", 7), (4, "s", 7)],
    ),
}
REFUSED = (
    "SELECT a._seq AS n FROM a NATURAL JOIN b WHERE b._seq > 0",
    "SELECT struct(*) AS x, _seq AS n FROM a",
)


@pytest.fixture(scope="module")
def tables() -> Iterator[headwater.Database]:
    """Two tables of arrival time, and a standard one."""
    with headwater.connect(":memory:") as db:
        db.sql("CREATE STREAMING TABLE a (x INT, w STRING)")
        db.sql("CREATE STREAMING TABLE b (x INT, y INT)")
        db.sql("CREATE TABLE dim (d INT, label STRING)")
        db.sql("INSERT INTO dim VALUES (1, 'one'), (3, 'three')")
        db.sql("INSERT INTO a VALUES (1, 'p'), (2, 'q'), (4, 's')")
        db.sql("INSERT INTO b VALUES (1, 10), (2, 20), (3, 30)")
        db.sql("CREATE VIEW kept AS SELECT count(*) AS n FROM a")  # starts the engine's threads
        yield db


def bag(db: headwater.Database, text: str) -> list[tuple[object, ...]]:
    """The rows in some order."""
    return sorted(db.sql(text).rows(), key=repr)


@pytest.mark.parametrize("name", SELECTS)
def test_a_view_a_query_and_a_select_show_declared_columns_alone(
    tables: headwater.Database, name: str
) -> None:
    """And VERIFY VIEW, which goes another way, agrees."""
    select, wanted = SELECTS[name]
    assert bag(tables, select) == wanted
    for options in ("", " WITH (maintenance = 'deferred')"):
        tables.sql(f"CREATE VIEW v{options} AS {select}")
        try:
            assert bag(tables, "SELECT * FROM v") == wanted
            assert not tables.sql("VERIFY VIEW v").rows()
        finally:
            tables.sql("DROP VIEW v")


@pytest.mark.parametrize("name", [name for name in SELECTS if "dim" not in name])
def test_a_continuous_query_shows_declared_columns_alone(
    tables: headwater.Database, name: str
) -> None:
    """Over windows of time, of rows, and folded where that can be."""
    select, wanted = SELECTS[name]
    for window in ("[INTERVAL 1 HOUR]", "[ROWS 100]"):
        text = select
        for table in ("a", "b"):
            text = text.replace(f"FROM {table}", f"FROM {table} {window} AS {table}")
            text = text.replace(f"JOIN {table}", f"JOIN {table} {window} AS {table}")
        tables.sql(f"CREATE CONTINUOUS QUERY q FROM BEGINNING AS {text} SAMPLE REALTIME")
        try:
            tables.flush()
            *_, newest = tables.subscribe("q", after="earliest", timeout=0.05)
            assert sorted((row[:-1] for row in newest.rows()), key=repr) == wanted, window
        finally:
            tables.sql("DROP QUERY q")


@pytest.mark.parametrize("select", REFUSED)
def test_what_cannot_leave_them_out_is_refused(tables: headwater.Database, select: str) -> None:
    """In a view and once."""
    for text in (select, f"CREATE VIEW v AS {select}"):
        with pytest.raises(headwater.Error) as refused:
            tables.sql(text)
        assert refused.value.sqlstate == "0A000"
        assert refused.value.hint


def test_verify_view_finds_a_view_that_joins_by_a_hidden_column(
    tables: headwater.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the planner lets Spark see what it reads, as release 0.1 did, the check is not taken in."""
    from headwater.plan.folds import Leaf

    tables.sql("CREATE VIEW v AS SELECT a.x, b.y FROM a NATURAL JOIN b")
    try:
        with monkeypatch.context() as patched:
            patched.setattr(Leaf, "exposed", property(lambda leaf: list(leaf.needed)))
            tables.sql("INSERT INTO a VALUES (3, 't')")
            assert bag(tables, "SELECT * FROM v") == []
            found = tables.sql("VERIFY VIEW v").rows()
        assert [sign for sign, _ in found] == ["-", "-", "-"]
    finally:
        tables.sql("DROP VIEW v")
        tables.sql("DELETE FROM a WHERE x = 3")
