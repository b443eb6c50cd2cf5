"""What Spark can run once, a view and a continuous query can keep, or they refuse it in clean words.

Each construct of `tests/harness/constructs.sql` is a SELECT over a streaming table `{s}` (in a continuous
query under a window) and standard tables. A view of it equals the SELECT itself, after stored rows and after
more; a continuous query equals the SELECT over its window at the query's last instant. Whatever becomes of
it, SHOW VIEWS, SHOW QUERIES and EXPLAIN go on for everybody.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater
from tests.harness.continuous.compare import same_bag

LIST = Path(__file__).parents[1] / "harness" / "constructs.sql"

CONSTRUCTS = {
    name: select.strip()
    for name, _, select in (
        part.partition("\n") for part in re.split(r"^-- ", LIST.read_text(), flags=re.M)[2:]
    )
}
# What Spark itself fails at; everything else must work.
REFUSED = {"listagg distinct"}
# What release 0.1 broke on, and a few beside it; all others in the long run alone.
OFTEN = {
    "group by an array", "session window", "struct field", "struct field by alias", "struct field of a group",
    "struct star", "struct of star", "posexplode", "lateral view grouped", "listagg distinct", "natural join",
    "star of a join using", "star but", "twelve branches", "top above a grouping", "strings with our words",
    "not exists", "set operations", "pivot", "unpivot", "regression",
}  # fmt: skip
NAMES = [
    pytest.param(name, marks=() if name in OFTEN else pytest.mark.large) for name in CONSTRUCTS
]

TABLE = (
    "CREATE STREAMING TABLE s (t INT NOT NULL, k INT, v INT, name STRING, at TIMESTAMP, arr ARRAY<INT>, "
    "m MAP<STRING, INT>, p STRUCT<x: INT, q: STRUCT<z: INT>>) TIMESTAMP BY t"
)


def rows(first: int, last: int) -> list[tuple[Any, ...]]:
    """Rows with NULLs, ties and empty collections."""
    return [
        (
            t,
            None if t % 11 == 5 else t % 4,
            None if t % 7 == 3 else t % 5,
            "abc"[t % 3],
            1_600_000_000_000_000 + t * 4_000_000,
            [[], [t % 3], [t % 3, 7]][t % 3],
            {"a": t % 4} if t % 2 else {},
            None if t % 9 == 4 else {"x": t % 3, "q": {"z": t % 2 or None}},
        )
        for t in range(first, last)
    ]


def arrow(values: list[tuple[Any, ...]]) -> pa.Table:
    """Rows as the table's columns."""
    types = [
        pa.int32(), pa.int32(), pa.int32(), pa.string(), pa.timestamp("us", "UTC"), pa.list_(pa.int32()),
        pa.map_(pa.string(), pa.int32()),
        pa.struct([("x", pa.int32()), ("q", pa.struct([("z", pa.int32())]))]),
    ]  # fmt: skip
    columns = list(zip(*values, strict=True))
    columns[6] = tuple(list(one.items()) for one in columns[6])
    names = ("t", "k", "v", "name", "at", "arr", "m", "p")
    return pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=names)


@pytest.fixture(scope="module")
def tables() -> Iterator[headwater.Database]:
    """One database for all constructs: what one leaves broken, the next one finds."""
    with headwater.connect(":memory:", settings={"block_age_s": 3600}) as database:
        database.sql(TABLE)
        database.sql("CREATE TABLE dim (k INT, label STRING)")
        database.sql("INSERT INTO dim VALUES (1, 'one'), (2, 'two'), (9, 'nine'), (NULL, 'none')")
        database.sql("CREATE FUNCTION twice(x INT) RETURNS INT RETURN 2 * x")
        database.insert("s", arrow(rows(0, 30)))
        database.sql(
            "CREATE VIEW kept AS SELECT count(*) AS n FROM s"
        )  # starts the engine's threads
        yield database
        database.sql("DROP VIEW kept")
        database.sql("DROP TABLE s")


def listed(db: headwater.Database) -> None:
    """Everybody can still see what there is."""
    for text in (
        "SHOW VIEWS",
        "SHOW QUERIES",
        "SELECT * FROM headwater.views",
        "SELECT * FROM headwater.queries",
    ):
        db.sql(text)


def same(found: pa.Table, wanted: pa.Table) -> None:
    """The same names and rows, in any order."""
    assert found.column_names == wanted.column_names
    bags = [list(zip(*(c.to_pylist() for c in t.columns), strict=True)) for t in (found, wanted)]
    assert same_bag(*bags), bags


@pytest.mark.parametrize("name", NAMES)
def test_a_view_equals_its_query(tables: headwater.Database, name: str) -> None:
    """Over stored rows, after more came, and by VERIFY VIEW; or it is refused in clean words."""
    db, select = tables, CONSTRUCTS[name].format(s="s")
    try:
        db.sql(f"CREATE VIEW v AS {select}")
    except headwater.Error as error:
        listed(db)
        if name not in REFUSED or error.sqlstate != "0A000":
            raise
        return
    try:
        listed(db)
        db.sql("EXPLAIN VIEW v")
        db.sql("EXPLAIN ANALYZE VIEW v")
        db.sql(f"EXPLAIN CREATE VIEW w AS {select}")
        for _ in range(2):
            same(db.sql("SELECT * FROM v").arrow(), db.sql(select).arrow())
            (last,) = db.sql("SELECT max(t) AS t FROM s").rows()
            db.insert("s", arrow(rows(last[0] + 4, last[0] + 6)))
        assert not db.sql("VERIFY VIEW v").rows()
    finally:
        db.sql("DROP VIEW v")


@pytest.mark.parametrize("mode", ["auto", pytest.param("reevaluate", marks=pytest.mark.large)])
@pytest.mark.parametrize("name", NAMES)
def test_a_query_equals_its_select_over_the_window(
    tables: headwater.Database, name: str, mode: str
) -> None:
    """At its last instant; or it is refused in clean words."""
    db, select = tables, CONSTRUCTS[name].format(s="s [INTERVAL 20 SECONDS]")
    create = f"{select} SAMPLE INTERVAL 1 SECONDS"
    try:
        db.sql(f"CREATE CONTINUOUS QUERY q WITH (mode = '{mode}') AS {create}")
    except headwater.Error as error:
        listed(db)
        if name not in REFUSED or error.sqlstate != "0A000":
            raise
        return
    try:
        listed(db)
        db.sql("EXPLAIN QUERY q")
        db.sql(f"EXPLAIN {create}")
        (last,) = db.sql("SELECT max(t) AS t FROM s").rows()
        db.insert("s", arrow(rows(last[0] + 4, last[0] + 6)))  # none is late
        db.advance("s", last[0] + 6)
        db.flush()
        wanted = db.sql(select).arrow()
        *_, newest = db.subscribe("q", after="earliest", timeout=0.05)
        assert newest.time == last[0] + 6
        same(newest.arrow().drop_columns(["_t"]), wanted)
        listed(db)
        db.sql("EXPLAIN ANALYZE QUERY q")
    finally:
        db.sql("DROP QUERY q")


def test_a_python_aggregate_is_told_as_the_reason(db: headwater.Database) -> None:
    """A view and a query with one are evaluated again, and say that it is why."""

    class Longest:
        def init(self) -> None:
            self.most = 0

        def add(self, batch: pa.RecordBatch) -> None:
            self.most = max([self.most, *map(len, batch.column(0).to_pylist())])

        def merge(self, other: Longest) -> None:
            self.most = max(self.most, other.most)

        def finish(self) -> int:
            return self.most

    db.sql("CREATE STREAMING TABLE s (t INT NOT NULL, k INT, name STRING) TIMESTAMP BY t")
    db.create_function("longest", Longest, returns="INT", kind="aggregate")
    db.sql("INSERT INTO s VALUES (1, 1, 'a'), (2, 1, 'abc'), (3, 2, 'ab')")
    reason = "longest is an aggregate in Python, which has no fold"
    for number, (select, wanted) in enumerate(
        {
            "SELECT k, longest(name) AS n FROM s GROUP BY k": [(1, 3), (2, 2)],
            "SELECT longest(name) AS n FROM s": [(3,)],
            "SELECT k FROM s GROUP BY k HAVING longest(name) > 2": [(1,)],
        }.items()
    ):
        notice = db.sql(f"CREATE VIEW v{number} AS {select}").notice
        assert notice is not None
        assert notice.endswith(reason)
        assert sorted(db.sql(f"SELECT * FROM v{number}").rows()) == wanted
        windowed = select.replace("FROM s", "FROM s [INTERVAL 9 SECONDS]")
        plan = db.sql(f"EXPLAIN {windowed} SAMPLE INTERVAL 1 SECOND").rows()
        assert any(reason in line for (line,) in plan), plan
    db.sql("CREATE STREAM z (k INT, name STRING)")
    with pytest.raises(headwater.Error) as refused:
        db.sql("CREATE VIEW w AS SELECT longest(name) AS n FROM z")
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    "clause", ["FOR SYSTEM_TIME AS OF", "SYSTEM_VERSION AS OF", "TIMESTAMP AS OF"]
)
def test_a_table_as_of_a_time_is_refused(db: headwater.Database, clause: str) -> None:
    """Once, in a view and in a query; only views have versions."""
    db.sql("CREATE STREAMING TABLE s (t INT NOT NULL, k INT) TIMESTAMP BY t")
    db.sql("CREATE TABLE dim (k INT)")
    for text in (
        f"SELECT * FROM dim {clause} '2026-01-01'",
        f"SELECT s.k FROM s JOIN dim {clause} s.t ON s.k = dim.k",
        f"CREATE VIEW v AS SELECT count(*) AS n FROM s JOIN dim {clause} s.t AS d ON s.k = d.k",
        f"CREATE CONTINUOUS QUERY q AS SELECT s.k FROM s [INTERVAL 2 SECONDS] JOIN dim {clause} s.t"
        " ON s.k = dim.k SAMPLE INTERVAL 1 SECOND",
    ):
        with pytest.raises(headwater.Error) as refused:
            db.sql(text)
        assert refused.value.sqlstate == "0A000"
        assert refused.value.hint
    assert db.sql("SELECT 1 AS timestamp").rows() == [(1,)]
