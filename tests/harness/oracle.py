"""Oracles: DuckDB on the same rows, and queries in plain Python.

Spark is the judge of what a query means; these check the judge. Known differences of types, which
the queries that are compared stay clear of or which `_plain` takes out:
- DuckDB's sum of integers is HUGEINT, its avg of decimals DOUBLE;
- Spark divides by zero with an error (ANSI), DuckDB gives NULL;
- DuckDB's integer `//` and `%` round towards zero as Spark's `DIV` and `%` do;
- an aware timestamp comes from DuckDB in the session's zone: the instant is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot.errors import ErrorLevel

Row = tuple[Any, ...]


def duckdb_rows(sql: str, tables: Mapping[str, pa.Table]) -> list[Row]:
    """The rows of a Spark query as DuckDB sees it; an error if it cannot be translated."""
    text = _translated(sql)
    with _duckdb().cursor() as connection:  # a connection of its own: nobody else sees its tables
        connection.execute("SET TimeZone = 'UTC'")
        for name, table in tables.items():
            connection.register(name, table)
        return [tuple(map(_plain, row)) for row in connection.execute(text).fetchall()]


@lru_cache(maxsize=1)  # making one takes longer than most queries that are asked
def _duckdb() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(
        config={"threads": "1"}
    )  # of few rows: more threads cost more than they do


@lru_cache(maxsize=64)  # a query is asked after each step of a history
def _translated(sql: str) -> str:
    (text,) = sqlglot.transpile(
        sql, read="spark", write="duckdb", unsupported_level=ErrorLevel.RAISE
    )
    return text


def _plain(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value


def plain_rows(rows: Iterable[Row]) -> list[Row]:
    """Rows with numbers of whatever type as comparable ones: decimals as floats."""
    return [tuple(float(v) if isinstance(v, Decimal) else _plain(v) for v in row) for row in rows]


def joined(left: Iterable[Row], right: Sequence[Row], on: Callable[[Row, Row], Any]) -> list[Row]:
    """Every pair of rows for which the condition is true (None is not)."""
    return [a + b for a in left for b in right if on(a, b) is True]


def grouped(
    rows: Iterable[Row],
    key: Callable[[Row], Hashable],
    *aggregates: Callable[[list[Row]], Any],
) -> list[Row]:
    """One row per key: the key and the aggregates of its rows; NULL is a key."""
    groups: dict[Hashable, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return [(k, *(f(members) for f in aggregates)) for k, members in groups.items()]


def sum_of(position: int) -> Callable[[list[Row]], Any]:
    """SUM of a column: NULL if there are no values."""

    def total(rows: list[Row]) -> Any:
        values = [row[position] for row in rows if row[position] is not None]
        return sum(values) if values else None

    return total
