"""Plain scans give what Spark gives: every (operator, type) pair of the list, edges included.

Many predicates go to Spark as columns of one query; the scan answers them one by one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headwater
from headwater.expression.terms import PLAIN, Terms
from headwater.plan.scan import ScanPlan, scan_plan
from headwater.sql import dialect
from headwater.sql.literals import sql_text
from tests.harness.cases import CountedRuns

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
VALUES: dict[str, list[Any]] = {
    "b": [True, False],
    "i1": [-128, -1, 0, 1, 127],
    "i2": [-32768, -1, 0, 1, 32767],
    "i4": [-(2**31), -1, 0, 1, 2**31 - 1],
    "i8": [-(2**63), -1, 0, 1, 2**53 + 1, 2**63 - 1],
    "d": [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.5, -1.5, 5e-324, 1.7976931348623157e308, 0.1],
    "s": ["", " ", "a", "A", "aa", "é", "z", "水", "🌊", "\x00", "\uffff", "it's", "10", "9"],
    "day": [
        date(1, 1, 1),
        date(1969, 12, 31),
        date(1970, 1, 1),
        date(2024, 2, 29),
        date(9999, 12, 31),
    ],
    "ts": [EPOCH, EPOCH - timedelta(microseconds=1), datetime(2024, 7, 1, 12, tzinfo=UTC)],
    "n": [
        datetime(1970, 1, 1),
        datetime(1969, 12, 31, 23, 59, 59, 999999),
        datetime(2024, 7, 1, 12),
    ],
}
TYPES = {
    "b": "BOOLEAN", "i1": "TINYINT", "i2": "SMALLINT", "i4": "INT", "i8": "BIGINT", "d": "DOUBLE",
    "s": "STRING", "day": "DATE", "ts": "TIMESTAMP", "n": "TIMESTAMP_NTZ",
}  # fmt: skip
ROW_COUNT = 45


def literal_texts(column: str) -> list[str]:
    """Literals that are compared with a column without a cast, NULL among them."""
    if column == "d":
        finite = [v for v in VALUES["d"] if math.isfinite(v)]
        return [f"{v!r}D" for v in finite] + ["0", "1", "-7L", "0.1", "-1.5", "1e300", "NULL"]
    texts = [sql_text(v).strip("()") for v in VALUES[column]]
    if column.startswith("i"):
        texts = [t for t in texts if t != str(-(2**63))] + ["5", "-5", "100"]
    return [*texts, "NULL"]


def simple(column: str) -> st.SearchStrategy[str]:
    literal = st.sampled_from(literal_texts(column))
    op = st.sampled_from(["=", "==", "<>", "!=", "<", "<=", ">", ">="])
    return st.one_of(
        st.builds(lambda o, v: f"{column} {o} {v}", op, literal),
        st.builds(lambda o, v: f"{v} {o} {column}", op, literal),
        st.sampled_from([f"{column} IS NULL", f"{column} IS NOT NULL"]),
        st.builds(
            lambda n, vs: f"{column} {n}IN ({', '.join(vs)})",
            st.sampled_from(["", "NOT "]),
            st.lists(literal, min_size=1, max_size=4),
        ),
        st.builds(
            lambda n, a, b: f"{column} {n}BETWEEN {a} AND {b}",
            st.sampled_from(["", "NOT "]), literal, literal,
        ),
    )  # fmt: skip


def combined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        parts,
        st.builds(lambda a, b: f"({a} AND {b})", parts, parts),
        st.builds(lambda a, b: f"({a}) OR ({b})", parts, parts),
        st.builds(lambda a: f"NOT ({a})", parts),
        st.builds(lambda a, b, c: f"{a} AND {b} OR NOT {c}", parts, parts, parts),
    )


SIMPLE = st.sampled_from(sorted(VALUES)).flatmap(simple)
PREDICATE = combined(combined(SIMPLE))
ORDER = st.lists(
    st.tuples(
        st.sampled_from(sorted(VALUES.keys() - {"d"})), st.sampled_from(["", " ASC", " DESC"])
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda part: part[0],
)


@pytest.fixture(scope="module")
def db() -> Iterator[headwater.Database]:
    """A table whose columns go through their values out of step, in several files."""
    with headwater.connect(":memory:") as db:
        columns = ", ".join(f"{name} {type_}" for name, type_ in TYPES.items())
        db.sql(f"CREATE TABLE t (id INT, {columns})")
        rows = []
        for number in range(ROW_COUNT):
            row: dict[str, Any] = {"id": number}
            for position, (name, values) in enumerate(VALUES.items()):
                choices = [*values, None]
                row[name] = choices[(number * (position + 1) + number // 7) % len(choices)]
            rows.append(row)
        # Files in which a float column is constant but for NaN: their bounds are misleading.
        rows += [{"id": ROW_COUNT, "d": 1.5}, {"id": ROW_COUNT + 1, "d": math.nan}]
        for start in (0, 20, ROW_COUNT):
            db.insert("t", rows[start : {0: 20, 20: ROW_COUNT}.get(start)])
        yield db


def compare(db: headwater.Database, predicates: list[str]) -> None:
    wanted = db.sql(
        "SELECT id, " + ", ".join(f"({p}) AS p{i}" for i, p in enumerate(predicates)) + " FROM t"
    ).arrow()
    runs = CountedRuns(db)
    for number, predicate in enumerate(predicates):
        runs.count = 0
        found = db.sql(f"SELECT id FROM t WHERE {predicate}").arrow().column("id").to_pylist()
        assert runs.count == 0, f"not plain: {predicate}"
        chosen = wanted.filter(wanted.column(f"p{number}")).column("id").to_pylist()
        assert sorted(found) == sorted(chosen), predicate


def by_hypothesis(examples: int) -> Any:
    return settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@by_hypothesis(2)
@given(st.lists(PREDICATE, min_size=40, max_size=40, unique=True))
def test_random_predicates(db: headwater.Database, predicates: list[str]) -> None:
    compare(db, predicates)


@pytest.mark.large
@by_hypothesis(60)
@given(st.lists(PREDICATE, min_size=60, max_size=60, unique=True))
def test_many_random_predicates(db: headwater.Database, predicates: list[str]) -> None:
    compare(db, predicates)


def test_every_operator_with_every_literal(db: headwater.Database) -> None:
    predicates = [
        f"{column} {op} {text}"
        for column in VALUES
        for op in ("=", "!=", "<", "<=", ">", ">=")
        for text in literal_texts(column)
    ]
    for start in range(0, len(predicates), 150):
        compare(db, predicates[start : start + 150])


@by_hypothesis(2)
@given(st.lists(ORDER, min_size=10, max_size=10, unique_by=str), st.integers(0, 60))
def test_random_orders(
    db: headwater.Database, orders: list[list[tuple[str, str]]], limit: int
) -> None:
    texts = [", ".join(c + d for c, d in order) + ", id" for order in orders]
    ranks = ", ".join(
        f"row_number() OVER (ORDER BY {text}) AS r{i}" for i, text in enumerate(texts)
    )
    wanted = db.sql(f"SELECT id, {ranks} FROM t").arrow()
    runs = CountedRuns(db)
    for number, text in enumerate(texts):
        runs.count = 0
        found = db.sql(f"SELECT id FROM t ORDER BY {text} LIMIT {limit}").rows()
        assert runs.count == 0, f"not plain: {text}"
        chosen = wanted.sort_by(f"r{number}").column("id").to_pylist()[:limit]
        assert [i for (i,) in found] == chosen, text


SUMS = [
    (column, where)
    for column in ("i1", "i2", "i4")
    for where in ("i4 = 1", "b = TRUE AND i4 > 0", "s = 'nowhere'", "i4 = 1 AND i4 IS NULL")
]
SCHEMA = pa.schema(
    [("a", pa.int32()), ("b", pa.string()), ("f", pa.float32()), ("l", pa.list_(pa.int32()))]
)


def planned(sql: str) -> ScanPlan | None:
    """The plain scan that a query is, over a few columns."""
    tree = dialect.parse_tree(sql)
    return None if isinstance(tree, Exception) else scan_plan(tree, PLAIN, SCHEMA)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a + 1 FROM t",
        "SELECT DISTINCT a FROM t",
        "SELECT count(*) FROM t",
        "SELECT sum(a) AS s FROM t",
        "SELECT sum(a) AS s FROM t WHERE a > 1 OR a = 1",
        "SELECT sum(a) FROM t WHERE a = 1",
        "SELECT sum(f) AS s FROM t WHERE a = 1",
        "SELECT sum(DISTINCT a) AS s FROM t WHERE a = 1",
        "SELECT sum(a) AS s, a FROM t WHERE a = 1",
        "SELECT sum(a) + 1 AS s FROM t WHERE a = 1",
        "SELECT sum(a) AS s FROM t WHERE a = 1 GROUP BY b",
        "SELECT sum(a) AS s FROM t WHERE a = 1 LIMIT 1",
        "SELECT coalesce(sum(a), NULL) AS s FROM t WHERE a = 1",
        "SELECT coalesce(sum(a), 1.5) AS s FROM t WHERE a = 1",
        "SELECT coalesce(a, 1) AS s FROM t WHERE a = 1",
        "SELECT a FROM t WHERE a = 1 + 1",
        "SELECT a FROM t WHERE a = 1.0",
        "SELECT a FROM t WHERE a = '1'",
        "SELECT a FROM t WHERE a = 2147483648",
        "SELECT a FROM t WHERE f > 1",
        "SELECT a FROM t WHERE b LIKE 'x'",
        "SELECT a FROM t WHERE a <=> 1",
        "SELECT a FROM t WHERE a = b",
        "SELECT a FROM t WHERE upper(b) = 'X'",
        "SELECT a FROM t WHERE a = 1 COLLATE x",
        "SELECT a FROM t WHERE nothing = 1",
        "SELECT nothing FROM t",
        "SELECT u.a FROM t",
        "SELECT a FROM t JOIN u",
        "SELECT a FROM t, u",
        "SELECT a FROM t UNION SELECT 1",
        "SELECT a FROM t GROUP BY a",
        "SELECT a FROM t ORDER BY f",
        "SELECT a FROM t ORDER BY l",
        "SELECT a FROM t ORDER BY a NULLS LAST",
        "SELECT a FROM t ORDER BY 1",
        "SELECT b AS a FROM t ORDER BY a",
        "SELECT a, b AS a FROM t ORDER BY a",
        "SELECT a FROM t LIMIT ALL",
        "SELECT a FROM t LIMIT 1 + 1",
        "SELECT a FROM t LIMIT 1 OFFSET 1",
        "SELECT l[0] FROM t",
        "SELECT t.* FROM t",
        "SELECT a FROM t TABLESAMPLE (5 ROWS)",
        "SELECT a FROM t VERSION AS OF 1",
        "SELECT a FROM t WHERE a IN (SELECT 1)",
        "SELECT a FROM t WHERE (a, b) = (1, 'x')",
        "SELECT a FROM t WHERE NOT EXISTS (SELECT 1)",
        "WITH t AS (SELECT 1 AS a) SELECT a FROM t",
    ],
)
def test_what_is_left_to_spark(sql: str) -> None:
    assert planned(sql) is None


def test_sums_of_few_rows(db: headwater.Database) -> None:
    """The type and value that Spark gives, without it; NULL or the default where there is no row."""
    wanted = [f"sum(CASE WHEN {where} THEN {column} END)" for column, where in SUMS]
    expected = db.sql(f"SELECT {', '.join(wanted)} FROM t").rows()[0]
    runs = CountedRuns(db)
    for (column, where), value in zip(SUMS, expected, strict=True):
        found = db.sql(f"SELECT sum({column}) AS total FROM t WHERE {where}").arrow()
        assert found.to_pydict() == {"total": [value]}
        assert found.schema.field("total").type == pa.int64()
        found = db.sql(f"SELECT coalesce(SUM(x.{column}), -7) AS s FROM t x WHERE {where}").arrow()
        assert found.to_pydict() == {"s": [-7 if value is None else value]}
    assert runs.count == 0


def test_long_lists_are_left_to_spark() -> None:
    def listed(count: int) -> str:
        return f"SELECT a FROM t WHERE a IN ({', '.join(map(str, range(count)))})"

    assert planned(listed(1000)) is not None
    assert planned(listed(1001)) is None


TYPED = pa.schema(
    [
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("d", pa.float64()),
        ("m", pa.decimal128(5, 2)),
        ("s", pa.string()),
        ("b", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("wall", pa.timestamp("us")),
    ]
)
TEXTS = (
    "5", " -5", "0", "2147483648", "9223372036854775808", "5L", "1.50BD", "0.5", "1.5D", "0F", "1e3",
    "'x'", "'it''s'", "'5'", "''", r"'a\\b'", "'2024-01-01'", "'2024-01-01 10:00:00'",
    "TRUE", "NULL", "DATE '2024-01-01'", "TIMESTAMP '2024-01-01 00:00:00+00:00'",
    "TIMESTAMP '2024-01-01 00:00:00'", "TIMESTAMP_NTZ '2024-01-01 00:00:00'", "X'00'",
    "CAST('NaN' AS DOUBLE)", "INTERVAL '0' SECOND",
)  # fmt: skip
FORMS = (
    "{c} = {v}",
    "{v} <= {c}",
    "{c} <> {v}",
    "{c} IN ({v}, {v})",
    "NOT {c} BETWEEN {v} AND {v}",
)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_a_value_means_what_its_text_means(zone: str) -> None:
    """`$1` with a value is the scan that the text with the value in it is."""
    plans = 0
    for column, form, text in itertools.product(TYPED.names, FORMS, TEXTS):
        written = scan_of(
            f"SELECT i FROM t WHERE {form.format(c=column, v=text)}", Terms(frozenset(), zone)
        )
        asked = f"SELECT i FROM t WHERE {form.format(c=column, v='$1')}"
        given = scan_of(asked, Terms(frozenset(), zone, (text,)))
        assert given == written, (column, form, text)
        assert repr(given) == repr(written)  # -0.0 is not 0.0, TRUE is not 1
        plans += given is not None
        assert scan_of(asked, Terms(frozenset(), zone)) is None, "no value, no scan"
    assert plans > 200


def scan_of(sql: str, terms: Terms) -> ScanPlan | None:
    tree = dialect.parse_tree(sql)
    assert not isinstance(tree, Exception)
    return scan_plan(tree, terms, TYPED)


@pytest.mark.parametrize(
    ("text", "limit"), [("7", 7), ("0", 0), (" -1", None), ("NULL", None), ("'7'", None), ("7L", 7)]
)
def test_a_limit_may_be_a_value(text: str, limit: int | None) -> None:
    found = scan_of("SELECT i FROM t LIMIT $1", Terms(values=(text,)))
    assert (None if found is None else found.limit) == limit
