"""The upper part of a view: blocks over the folds, tables and each other, by operators and on Spark.

Every view equals DuckDB over the same rows, and where its parts are of the shapes that
`plan/upper` knows no Spark run is needed to read it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import headwater
from headwater.compile.upper import UpperBlock
from tests.harness.continuous.compare import same_bag

TOTALS = "(SELECT k, sum(v) AS total, count(*) AS n FROM s GROUP BY k)"
BLOCKS = {
    "value": f"WITH t AS {TOTALS} SELECT k, total FROM t WHERE total = (SELECT max(total) FROM t)",
    "value of nothing": f"WITH t AS {TOTALS} SELECT k FROM t WHERE "
    "n > (SELECT max(n) FROM t WHERE n > 99)",
    "value in the list": "SELECT name, (SELECT sum(v) FROM s) AS whole FROM people",
    "value of a table": f"SELECT t.k, (SELECT min(id) FROM people) AS least FROM {TOTALS} t",
    "value of the first": f"WITH t AS {TOTALS} SELECT k FROM t WHERE "
    "total = (SELECT total FROM t ORDER BY total DESC NULLS LAST LIMIT 1)",
    "value of one group or none": "SELECT name FROM people WHERE id < "
    "(SELECT sum(v) FROM s HAVING count(*) > 4) OR id = 9",
    "value alone": "SELECT (SELECT sum(v) FROM s) AS whole FROM people",
    "value as a key": "SELECT id + (SELECT count(*) FROM s) AS x, count(*) AS n FROM people "
    "GROUP BY id + (SELECT count(*) FROM s)",
    "members": "SELECT name FROM people WHERE id IN (SELECT k FROM s GROUP BY k HAVING count(*) > 1)",
    "members of members": "SELECT name FROM people WHERE id IN (SELECT person FROM homes WHERE town IN "
    f"(SELECT k FROM {TOTALS} t WHERE total > 3))",
    "correlated": "SELECT name, (SELECT sum(v) FROM s WHERE s.k = people.id) AS own FROM people",
    "correlated, compared": "SELECT name FROM people WHERE id > (SELECT 0.5 * sum(v) FROM s "
    "WHERE s.k = people.id) OR name = 'Ann'",
    "two levels": f"SELECT n, count(*) AS c FROM (SELECT n, total FROM {TOTALS} t WHERE total > 2) u "
    "GROUP BY n",
    "two levels of groups": f"SELECT max(c) AS m FROM (SELECT n, count(*) AS c FROM {TOTALS} t "
    "GROUP BY n) u",
    "a CTE named as a table": "WITH people AS (SELECT id FROM people WHERE id > 1), "
    f"t AS {TOTALS} SELECT t.k, n FROM t JOIN people ON t.k = people.id",
    "CASE without a name": "SELECT k, CASE WHEN sum(v) > 3 THEN 1 ELSE 0 END FROM s GROUP BY k",
    "missing partners": f"SELECT name, total FROM people LEFT JOIN {TOTALS} t ON people.id = t.k "
    "WHERE total IS NULL OR total > 2",
    "exists": f"SELECT name FROM people WHERE EXISTS (SELECT 1 FROM {TOTALS} t WHERE t.k = people.id)",
    "not exists": f"SELECT name FROM people WHERE NOT EXISTS (SELECT 1 FROM {TOTALS} t "
    "WHERE t.k = people.id AND t.total > t.n)",
    "exists in a table": f"SELECT k, n FROM {TOTALS} t WHERE EXISTS (SELECT 1 FROM people WHERE id = k)",
    "a table twice": f"SELECT a.name, n FROM people a JOIN {TOTALS} t ON a.id = t.k "
    "JOIN people b ON b.id = t.k JOIN homes h ON h.person = b.id",
    "itself by its key": f"WITH t AS {TOTALS} SELECT a.k, b.total FROM t a JOIN t b ON a.k = b.k",
    "a block of WITH twice": f"WITH t AS (SELECT k, total FROM {TOTALS} u WHERE total > 1) "
    "SELECT a.k, b.total FROM t a JOIN t b ON a.k = b.k WHERE a.total = (SELECT max(total) FROM t)",
    "twice": f"SELECT a.k, a.total - b.n AS d FROM {TOTALS} a JOIN {TOTALS} b ON a.k = b.k",
}
BY_OPERATORS = {
    "not in": f"SELECT name FROM people WHERE id NOT IN (SELECT k FROM {TOTALS} t WHERE k IS NOT NULL)",
    "or": f"SELECT name FROM people WHERE id IN (SELECT k FROM {TOTALS} t) OR name = 'Bob'",
    "members or not": "SELECT id FROM people WHERE name IS NULL OR (id = 1) IN "
    "(SELECT k = 0 FROM s WHERE k > 0 GROUP BY k = 0)",
    "not NULL without a group": "SELECT name, (SELECT coalesce(sum(v), 0) FROM s WHERE s.k = people.id) "
    "AS own, (SELECT max(v) IS NULL FROM s WHERE s.k = people.id) AS none FROM people",
    "counted and summed": "SELECT name, (SELECT count(v) + coalesce(sum(v), -1) FROM s "
    "WHERE s.k = people.id) AS own FROM people",
    "counted": "SELECT name, (SELECT count(*) FROM s WHERE s.k = people.id) AS own FROM people",
    "itself": f"WITH t AS {TOTALS} SELECT a.k, b.total FROM t a JOIN t b ON a.k = b.n",
    "union": f"SELECT k FROM {TOTALS} t UNION ALL SELECT id FROM people",
    "star": f"WITH t AS {TOTALS} SELECT * FROM t WHERE total = (SELECT max(total) FROM t)",
    "a rank of groups": "SELECT k, sum(v) AS total, rank() OVER (ORDER BY sum(v) DESC NULLS LAST) AS r "
    "FROM s GROUP BY k",
    "a share": "SELECT k, sum(v) / (SELECT sum(v) FROM s) AS share FROM s GROUP BY k",
    "sums of sums": "SELECT k, sum(sum(v)) OVER (ORDER BY k NULLS FIRST) AS t FROM s GROUP BY k",
    "the first of each": "SELECT * FROM (SELECT k, v, count(*) AS n, row_number() OVER "
    "(PARTITION BY k ORDER BY count(*) DESC, v NULLS LAST) AS rn FROM s GROUP BY k, v) WHERE rn <= 2",
    "with a table": f"SELECT name, total, sum(total) OVER () AS whole FROM people LEFT JOIN {TOTALS} t "
    "ON t.k = people.id",
    "now": "SELECT k, now() > TIMESTAMP '2020-01-01' AS later, "
    "rank() OVER (ORDER BY max(v) NULLS LAST) AS r FROM s GROUP BY k",
    "a value that is empty": "SELECT name, (SELECT max(v) FROM s WHERE v > 99) AS none, "
    "count(*) OVER () AS n FROM people",
}
ON_SPARK = {
    "a CTE inside": f"WITH t AS {TOTALS}, u AS (SELECT 7 AS k) SELECT t.n FROM t JOIN u ON t.k = u.k WHERE "
    "t.k IN (WITH u AS (SELECT id AS k FROM people) SELECT k + 4 FROM u)",
    "an aggregate of Spark": f"SELECT bit_xor(DISTINCT total) AS n FROM {TOTALS} t",
}
PEOPLE = pa.table(
    {
        "id": pa.array([1, 2, 3, None, 9], pa.int32()),
        "name": ["Ann", "Bob", "Cyd", "Dan", None],
    }
)
HOMES = pa.table(
    {"person": pa.array([1, 2, 3], pa.int32()), "town": pa.array([1, 2, 7], pa.int32())}
)
BATCHES = [
    [(1, 1), (1, 2), (2, 5), (None, 4)],
    [(2, None), (3, 1), (7, 1), (None, 2), (1, 2)],
]


@pytest.fixture
def tables(db: headwater.Database) -> tuple[headwater.Database, duckdb.DuckDBPyConnection]:
    """The stream and the tables, in both."""
    duck = duckdb.connect()
    db.sql("CREATE STREAM s (k INT, v INT)")
    db.sql("CREATE TABLE people (id INT, name STRING)")
    db.sql("CREATE TABLE homes (person INT, town INT)")
    duck.execute("CREATE TABLE s (k INT, v INT)")
    for name, rows in (("people", PEOPLE), ("homes", HOMES)):
        db.insert(name, rows)
        duck.register(name, rows)
    return db, duck


def _feed(
    db: headwater.Database,
    duck: duckdb.DuckDBPyConnection,
    rows: list[tuple[int | None, int | None]],
) -> None:
    columns = [pa.array(values, pa.int32()) for values in zip(*rows, strict=True)]
    db.insert("s", pa.table(columns, names=["k", "v"]))
    duck.executemany("INSERT INTO s VALUES (?, ?)", rows)


Tables = tuple[headwater.Database, duckdb.DuckDBPyConnection]


def test_by_blocks(tables: Tables) -> None:
    """Values, members, groups and blocks of blocks are read without Spark, before any row and after some."""
    _compare(tables, list(BLOCKS.values()), "operators")


def _compare(tables: Tables, queries: list[str], tier: str) -> None:
    """Views of queries equal DuckDB's answers, before any row and after each batch."""
    db, duck = tables
    names = {f"v{number}": query for number, query in enumerate(queries)}
    for view, query in names.items():
        db.sql(f"CREATE VIEW {view} AS {query}")
        lines = [line for (line,) in db.sql(f"EXPLAIN VIEW {view}").rows()]
        assert f"at each read: {tier}" in lines, (query, lines)
    for batch in [None, *BATCHES]:
        if batch is not None:
            _feed(db, duck, batch)
        for view, query in names.items():
            found = db.sql(f"SELECT * FROM {view}").rows()
            wanted = list(map(tuple, duck.execute(query).fetchall()))
            assert same_bag(found, wanted), (query, found, wanted)


def test_by_operators(tables: Tables) -> None:
    """What no block computes goes through operators, without Spark, before any row and after some."""
    _compare(tables, list(BY_OPERATORS.values()), "operators over changes")
    db, _ = tables
    ran = [line for (line,) in db.sql("EXPLAIN ANALYZE VIEW v0").rows()]
    assert "upper part on Spark: 0 runs" in ran


@pytest.mark.here
def test_a_block_that_is_read_twice_is_computed_once(
    tables: tuple[headwater.Database, duckdb.DuckDBPyConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    db, duck = tables
    computed: list[UpperBlock] = []
    rows = UpperBlock.rows

    def noted(block: UpperBlock, moment: Any) -> pa.Table:
        computed.append(block)
        return rows(block, moment)

    monkeypatch.setattr(UpperBlock, "rows", noted)
    query = BLOCKS["a block of WITH twice"]
    db.sql(f"CREATE VIEW v AS {query}")
    _feed(db, duck, BATCHES[0])
    computed.clear()
    found = db.sql("SELECT * FROM v").rows()
    assert same_bag(found, list(map(tuple, duck.execute(query).fetchall())))
    assert len(computed) == len(set(map(id, computed))) == 3  # the whole, the largest total, t


def test_on_spark(tables: tuple[headwater.Database, duckdb.DuckDBPyConnection]) -> None:
    """What the shapes leave out is Spark's, and as right."""
    db, duck = tables
    for view, query in enumerate(ON_SPARK.values()):
        db.sql(f"CREATE VIEW v{view} AS {query}")
        lines = [line for (line,) in db.sql(f"EXPLAIN VIEW v{view}").rows()]
        assert "at each read: Spark" in lines, (query, lines)
    for batch in BATCHES:
        _feed(db, duck, batch)
    for view, query in enumerate(ON_SPARK.values()):
        found = db.sql(f"SELECT * FROM v{view}").rows()
        wanted = list(map(tuple, duck.execute(query).fetchall()))
        assert same_bag(found, wanted), (query, found, wanted)


def test_part_of_an_equality(
    tables: tuple[headwater.Database, duckdb.DuckDBPyConnection],
) -> None:
    """What a subquery is correlated on is an equality by itself, not one inside OR or IS."""
    db, _ = tables
    for rest in ("OR people.id > 2", "IS NOT NULL", "<> (people.id > 3)"):
        condition = f"(s.v > 1) = (people.id > 1) {rest}"
        query = f"SELECT name, (SELECT sum(v) FROM s WHERE {condition}) AS own FROM people"
        with pytest.raises(headwater.Error, match="R2"):
            db.sql(f"CREATE VIEW v AS {query}")


@pytest.mark.parametrize(
    ("options", "query"),
    [
        ("", "SELECT k, now() AS d FROM whole GROUP BY k"),
        ("", "SELECT k, current_timestamp() AS d, count(*) AS n FROM whole GROUP BY k"),
        ("WITH (volatile = 'at insert')", "SELECT k, max(now()) AS d FROM whole GROUP BY k"),
    ],
)
def test_times_of_a_view_on_a_table_of_whole_numbers(
    db: headwater.Database, options: str, query: str
) -> None:
    """They are timestamps, whatever the table counts its time in."""
    before = datetime.now(UTC)
    db.sql("CREATE STREAMING TABLE whole (ts INT, k INT) TIMESTAMP BY ts")
    db.insert("whole", [(1, 1)])
    db.sql(f"CREATE VIEW timed {options} AS {query}")
    [row] = db.sql("SELECT * FROM timed").rows()
    assert before <= row[1] <= datetime.now(UTC)
