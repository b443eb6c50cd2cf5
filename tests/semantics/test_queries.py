"""One-time queries over random rows: Spark, DuckDB and plain Python agree."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import headwater
from tests.harness.oracle import duckdb_rows, grouped, joined, plain_rows, sum_of
from tests.harness.rows import check_same, same_rows

Row = tuple[Any, ...]

QUERIES = [
    "SELECT k, count(*), count(v), sum(v), min(v), max(v), avg(v) FROM a GROUP BY k",
    "SELECT s, sum(d), stddev_samp(d), var_pop(d) FROM a WHERE d IS NOT NULL GROUP BY s",
    "SELECT a.k, a.v, b.w FROM a JOIN b ON a.k = b.k",
    "SELECT a.k, b.w FROM a LEFT JOIN b ON a.k = b.k AND b.w > 5",
    "SELECT count(*) FROM a FULL OUTER JOIN b ON a.k = b.k",
    "SELECT v FROM a WHERE k IN (SELECT k FROM b WHERE w > 3)",
    "SELECT v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    "SELECT k, v, rank() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST) FROM a",
    "SELECT v, sum(v) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM a",
    "SELECT k, v FROM a UNION SELECT k, w FROM b",
    "SELECT k FROM a EXCEPT SELECT k FROM b",
    "SELECT k, s, sum(v) FROM a GROUP BY ROLLUP (k, s)",
    "SELECT count(DISTINCT k), count(DISTINCT s) FROM a",
    "WITH m AS (SELECT k, max(v) AS v FROM a GROUP BY k) SELECT id FROM a JOIN m USING (k, v)",
    "SELECT CASE WHEN v > 0 THEN 'up' WHEN v < 0 THEN 'down' ELSE 'none' END, count(*) FROM a GROUP BY 1",
    "SELECT date_trunc('DAY', ts), count(*) FROM a GROUP BY 1",
    "SELECT id, coalesce(v, -1), nullif(k, 2), abs(v), v % 7 FROM a",
    "SELECT upper(s), length(s), s || '!' FROM a WHERE s <> 'b'",
    "SELECT sum(m), max(m) FROM a",
    "SELECT id FROM a ORDER BY v NULLS LAST, id LIMIT 5",
]  # fmt: skip


def random_tables(seed: int) -> dict[str, pa.Table]:
    r = random.Random(seed)
    start = datetime(2024, 1, 1, tzinfo=UTC)

    def some(value: Any) -> Any:
        return None if r.random() < 0.15 else value

    a = [
        {
            "id": i,
            "k": some(r.randrange(5)),
            "v": some(r.randrange(-10, 10)),
            "s": some(r.choice("abc")),
            "d": some(r.uniform(-1, 1)),
            "ts": some(start + timedelta(hours=r.randrange(96))),
            "m": some(Decimal(r.randrange(-999, 999)) / 100),
        }
        for i in range(60)
    ]
    b = [{"k": some(r.randrange(7)), "w": r.randrange(10)} for _ in range(20)]
    types = [pa.int32(), pa.int32(), pa.int32(), pa.string(), pa.float64()]
    types += [pa.timestamp("us", "UTC"), pa.decimal128(10, 2)]
    schema = pa.schema(list(zip(a[0], types, strict=True)))
    return {
        "a": pa.Table.from_pylist(a, schema),
        "b": pa.Table.from_pylist(b, pa.schema([("k", pa.int32()), ("w", pa.int32())])),
    }


TABLES = random_tables(seed=7)


@pytest.fixture(scope="module")
def db() -> Iterator[headwater.Database]:
    with headwater.connect(":memory:") as db:
        db.sql(
            "CREATE TABLE a (id INT, k INT, v INT, s STRING, d DOUBLE, ts TIMESTAMP, m DECIMAL(10, 2))"
        )
        db.sql("CREATE TABLE b (k INT, w INT)")
        for name, table in TABLES.items():
            half = table.num_rows // 2
            db.insert(name, table.slice(0, half))
            db.insert(name, table.slice(half))
        yield db


@pytest.mark.parametrize("sql", QUERIES)
def test_duckdb_agrees(db: headwater.Database, sql: str) -> None:
    check_same(plain_rows(db.sql(sql).rows()), plain_rows(duckdb_rows(sql, TABLES)))


def rows_of(name: str) -> list[Row]:
    return [tuple(row.values()) for row in TABLES[name].to_pylist()]


def test_brute_force_agrees(db: headwater.Database) -> None:
    pairs = joined(
        rows_of("a"), rows_of("b"), lambda x, y: x[1] == y[0] if None not in (x[1], y[0]) else None
    )
    wanted = grouped(pairs, lambda row: row[3], sum_of(8), len)
    found = db.sql("SELECT s, sum(w), count(*) FROM a JOIN b ON a.k = b.k GROUP BY s").rows()
    check_same(found, wanted)


def test_the_comparison_itself() -> None:
    nan = float("nan")
    assert same_rows([(1, nan), (None, 2.0)], [(None, 2.0 + 1e-12), (1, nan)])
    assert not same_rows([(1,)], [(1,), (1,)])
    assert not same_rows([(1,)], [(1.0,)])
    assert not same_rows([(0.0,)], [(1e-12,)])
    assert same_rows([(1.0, "b"), (1.0 + 1e-15, "a")], [(1.0, "a"), (1.0, "b")])
    assert same_rows([([1, None], {"x": nan})], [([1, None], {"x": nan})])
    assert not same_rows([(None,)], [(0,)])
