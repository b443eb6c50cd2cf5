"""Views of a workload, and DuckDB's answers over the same rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

import headwater
from headwater.sql.type_parser import parse_type
from tests.harness.workloads.queries import WorkloadQuery

Row = tuple[Any, ...]
CLOSE = 1e-9


class Judge:
    """DuckDB over the rows that came so far."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        self._schemas = {name: _schema(text) for name, text in columns.items()}
        self._rows: dict[str, list[Row]] = {name: [] for name in columns}

    def add(self, name: str, rows: Iterable[Row]) -> None:
        """Rows of a table."""
        self._rows[name] += rows

    def answers(self, queries: Sequence[WorkloadQuery]) -> dict[str, list[Row]]:
        """What each query gives now."""
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            for name, schema in self._schemas.items():
                columns = (
                    zip(*self._rows[name], strict=True) if self._rows[name] else [[]] * len(schema)
                )
                arrays = [pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)]
                connection.register(name, pa.Table.from_arrays(arrays, schema=schema))
            return {one.name: connection.execute(one.in_duckdb()).fetchall() for one in queries}


def wrong_views(
    db: headwater.Database, queries: Sequence[WorkloadQuery], answers: Mapping[str, list[Row]]
) -> list[str]:
    """The views that are not what DuckDB says, with a row that tells them apart."""
    wrong = []
    for one in queries:
        mine, right = db.sql(f"SELECT * FROM {one.name}").rows(), answers[one.name]
        difference = _difference(mine, right)
        if difference is not None:
            wrong.append(f"{one.name}: {difference}")
    return wrong


def _schema(columns: str) -> pa.Schema:
    found = parse_type(f"STRUCT<{columns}>")
    return pa.schema([found.field(number) for number in range(found.num_fields)])


def check_views(
    db: headwater.Database,
    judge: Judge,
    queries: Sequence[WorkloadQuery],
    chunks: Iterable[Mapping[str, Sequence[Row]]],
) -> None:
    """Each query as a view is kept without Spark, and right after each chunk."""
    made = {one.name: db.sql(f"CREATE VIEW {one.name} AS {one.text}").notice for one in queries}
    assert {name: notice for name, notice in made.items() if notice is not None} == {}
    answers: dict[str, list[Row]] = {}
    for chunk in chunks:
        for name, rows in chunk.items():
            db.insert(name, rows)
            judge.add(name, rows)
        answers = judge.answers(queries)
        assert wrong_views(db, queries, answers) == []
    assert [name for name, rows in answers.items() if not rows] == []  # each query gives rows
    by_spark = (
        "SELECT name FROM headwater.views WHERE maintenance = 're-evaluated' OR tier <> 'operators'"
    )
    assert db.sql(by_spark).rows() == []


def _difference(mine: list[Row], right: list[Row]) -> str | None:
    if len(mine) != len(right):
        return f"{len(mine)} rows, not {len(right)}"
    pairs = zip(sorted(mine, key=_order), sorted(right, key=_order), strict=True)
    wrong = [(a, b) for a, b in pairs if not all(map(_same, a, b))]
    return f"{wrong[0][0]}, not {wrong[0][1]}" if wrong else None


def _order(row: Row) -> list[tuple[bool, str, float]]:
    """Rows in an order that does not tell numbers apart that are almost the same."""
    found = []
    for value in row:
        number = isinstance(value, int | float | Decimal)
        found.append(
            (value is None, "" if number else str(value), round(float(value), 4) if number else 0.0)
        )
    return found


def _same(mine: Any, right: Any) -> bool:
    """Equal, or as close as a float is; a decimal of ours is right if it is the nearest to DuckDB's float."""
    if mine is None or right is None or not isinstance(mine, float | Decimal):
        return bool(mine == right)
    least = 0.5 * 10.0 ** int(mine.as_tuple().exponent) if isinstance(mine, Decimal) else 0.0
    exact = isinstance(mine, Decimal) and isinstance(right, Decimal)
    return (
        mine == right if exact else math.isclose(mine, right, rel_tol=CLOSE, abs_tol=least + CLOSE)
    )
