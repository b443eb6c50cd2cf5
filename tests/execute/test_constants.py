"""A row of constants is answered without Spark, as Spark answers it."""

from __future__ import annotations

import pytest

import headwater
from headwater.execute.constants import constant_row
from headwater.execute.query import work_for
from headwater.execute.reading import reading
from headwater.sql.parser import parse
from headwater.sql.statements.query import Query

ALIKE = [
    "SELECT 1",
    "SELECT 1 + 1",
    "SELECT 2 * (3 + 4), 'a b', true",
    "SELECT 7 AS seven, 'it''s' AS `odd name`, 10000000000 AS big",
    "SELECT 5 / 2 AS half, 1.50 AS d",
    "SELECT 2e0 AS f",
    "SELECT 1 AS a, 1 AS a",
    "SELECT -1, 1.5",
    "SELECT DATE '2026-11-16' AS day",
]
LEFT_TO_SPARK = [
    "SELECT 1 WHERE false",
    "SELECT DISTINCT 1",
    "SELECT 1 UNION ALL SELECT 2",
    "SELECT NULL",
    "SELECT count(*)",
    "SELECT explode(array(1, 2))",
    "SELECT 2147483647 + 1 AS over",
    "SELECT now()",
    "SELECT x",
    "SELECT 007",
    "SELECT 1 LIMIT 0",
    "SELECT *",
    "VALUES (1)",
]


@pytest.mark.parametrize("text", ALIKE)
def test_the_row_is_sparks(db: headwater.Database, text: str) -> None:
    """Names, types and values."""
    statement = parse(text)
    assert isinstance(statement, Query)
    with reading(db._context, statement, text) as found:
        row = constant_row(found)
        with work_for(found) as work:
            by_spark = db._context.kernel.run(work)
    assert row is not None
    assert row.schema.names == by_spark.schema.names
    assert row.schema.types == by_spark.schema.types
    assert [c.to_pylist() for c in row.columns] == [c.to_pylist() for c in by_spark.columns]
    assert db.sql(text).arrow().schema.names == row.schema.names


@pytest.mark.parametrize("text", LEFT_TO_SPARK)
def test_other_queries_are_left_to_spark(db: headwater.Database, text: str) -> None:
    """Whatever is more than a row of constants."""
    statement = parse(text)
    assert isinstance(statement, Query)
    with reading(db._context, statement, text) as found:
        assert constant_row(found) is None
