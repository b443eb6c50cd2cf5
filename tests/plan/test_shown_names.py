"""A column without a name is called as Spark calls it, or is left to Spark."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import headwater
from headwater.plan.shown_names import FUNCTIONS, shown_name
from headwater.sql.statements.query import make_query

PLAIN = (
    "place",
    "r.place",
    "r.place + 1",
    "at.place",
    "PLACE",
    "R.Place",
    "`place`",
    "(place)",
    "7",
    "'text'",
    "''",
    "TRUE",
    "false",
    "place + 1",
    "place - (1 - 2)",
    "1 + 2 * place",
    "(1 + 2) * place",
    "v / 2",
    "place % 2",
    "-place",
    "- (place + 1)",
    "place = 1",
    "place == 1",
    "place <=> 1",
    "place <> 1",
    "place != 1",
    "place < 1 AND v >= 2 OR name = 'a'",
    "NOT place > 1",
    "name IS NULL",
    "NOT name IS NULL",
    "place IN (1, 2)",
    "NOT place IN (1, place + 1)",
    "place BETWEEN 1 AND 2",
    "1.5",
    "place * 0.50",
    "place + 0.000001",
    "-1",
    "- 1",
    "abs(-1)",
    "abs(-place)",
    "CAST(place AS STRING)",
    "place::BIGINT",
    "try_cast(name AS INT)",
    "CAST(place + 1 AS STRING)",
    "(place + 1)::DOUBLE",
    "CAST(place AS DECIMAL(10, 2))",
    "upper(CAST(place AS STRING))",
    "CASE WHEN place > 1 THEN 'big' ELSE 'small' END",
    "CASE WHEN place > 1 THEN 1 WHEN v > 1 THEN 2 END",
    "UPPER(r.Name)",
    "lower(upper(name))",
    "length(name)",
    "trim(name)",
    "substring(name, 1, 2)",
    "substr(name, 1)",
    "substr(name, 1, 2)",
    "substring(name, 2)",
    "replace(name, 'a', 'b')",
    "regexp_replace(name, 'a', 'b')",
    "lpad(name, 3, '*')",
    "rpad(name, 3, '*')",
    "ltrim(name)",
    "rtrim(name)",
    "reverse(name)",
    "concat(name, '!', name)",
    "coalesce(v, 0)",
    "nvl(place, 0)",
    "ifnull(place, 0)",
    "nullif(place, 1)",
    "greatest(place, 2)",
    "least(place, 2)",
    "abs(place)",
    "round(v)",
    "round(v, 1)",
    "size(parts)",
    "year(ts)",
    "month(ts)",
    "day(ts)",
    "hour(ts)",
    "minute(ts)",
    "second(ts)",
    "to_date(ts)",
    "now()",
    "current_date()",
    "current_date",
    "current_timestamp()",
)
OF_GROUPS = (
    "count(*)",
    "COUNT( * )",
    "count(1)",
    "count(place)",
    "count(DISTINCT place)",
    "count(DISTINCT place, name)",
    "sum(DISTINCT place)",
    "SUM(r.place)",
    "sum(place) + 1",
    "(sum(place) + 1) * 2",
    "avg(v)",
    "mean(v)",
    "min(ts)",
    "max(PLACE)",
    "max_by(name, ts)",
    "min_by(name, ts)",
    "median(v)",
    "percentile(v, 0.25)",
    "mode(place)",
    "std(v)",
    "stddev(v)",
    "stddev_pop(v)",
    "stddev_samp(v)",
    "variance(v)",
    "var_pop(v)",
    "var_samp(v)",
    "corr(v, place)",
    "first(name)",
    "last(name)",
    "any_value(name)",
    "bool_and(place > 1)",
    "bool_or(place > 1)",
    "every(place > 1)",
    "some(place > 1)",
    "collect_list(place)",
    "collect_set(place)",
)
# What is not named here, but might be taken for something that is.
NOT_NAMED = (
    "007",
    ".5",
    "00.5",
    "-(1)",
    "- -1",
    "initcap(name)",
    "any_value(place, true) OVER ()",
    "date_trunc('MINUTE', ts)",
    "place /* = */ = 1",
    "place NOT IN (1, 2)",
    "place NOT BETWEEN 1 AND 2",
    "1 = ANY_VALUE(1) OVER ()",
    "EXISTS (SELECT 1 FROM r)",
    "place IN (SELECT 1)",
    "year(to_date(ts))",
    "year(ts::DATE)",
    "hour(TIMESTAMP '2024-01-01 00:00:00')",
    "round(v, 1 + 1)",
    "place = 1 = true",
    "1L",
    "1e3",
    "X'00'",
    "NULL",
    "DATE '2024-01-01'",
    "INTERVAL '1' DAY",
    "ts + INTERVAL '1' DAY",
    "name IS NOT NULL",
    "name LIKE 'a%'",
    "name || '!'",
    "CASE place WHEN 1 THEN 'x' ELSE 'y' END",
    "if(place > 1, 1, 2)",
    "date(ts)",
    "extract(YEAR FROM ts)",
    "parts[0]",
    "place DIV 2",
    "mod(place, 2)",
    "trim(BOTH 'a' FROM name)",
    "lpad(name, 3)",
    "replace(name, 'a')",
    "upper(try_cast(place AS STRING))",
    "substring(name FROM 1 FOR 2)",
    "substr(name FROM 1)",
    "coalesce(name, 'a' || 'b')",
    "concat(name, 'a' 'b')",
    "upper('it''s')",
    "upper('a\\nb')",
    'upper("a")',
    "nvl2(place, 1, 2)",
    "ceil(v)",
    "floor(v)",
    "year(DATE '2024-01-01')",
    "round(-v, 1)",
    "abs(- 1)",
    "+place",
    "~place",
    "place & 1",
    "(place, name)",
    "ts::DATE::STRING",
    "name IS NOT DISTINCT FROM 'a'",
    "name RLIKE 'a'",
    "char_length(name)",
    "0.0000001",
    "place + 0.0000000",
    "at.place + 1",
    "r.at.place + 1",
    "upper(at.place)",
    "CAST(at.place AS STRING)",
    "at.place::STRING",
)
NOT_NAMED_OF_GROUPS = (
    "percentile(v, array(0.25, 0.5))",
    "any(place > 1)",
    "sum(place) FILTER (WHERE v > 1)",
    "first(name) IGNORE NULLS",
    "first(name, true)",
    "listagg(name, ',')",
    "string_agg(name)",
    "count_if(v > 1)",
    "approx_count_distinct(place)",
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY v)",
    "row_number() OVER (ORDER BY count(*))",
    "sum(count(*)) OVER ()",
    "array_agg(place)",
    "collect_list(DISTINCT place)",
    "max(place) + min(DISTINCT place)",
    "mode() WITHIN GROUP (ORDER BY place)",
    "max(at.place)",
)


@pytest.fixture(scope="module")
def spark() -> Iterator[headwater.Database]:
    with headwater.connect(settings={"factories": 0, "select_rows": 0}) as db:
        db.sql(
            "CREATE TABLE r (ts TIMESTAMP, place INT, v DOUBLE, name STRING, parts ARRAY<INT>,"
            " at STRUCT<place: INT>)"
        )
        yield db


def _names(items: tuple[str, ...]) -> list[str | None]:
    query = make_query(f"SELECT {', '.join(items)} FROM r")
    assert query.tree is not None
    assert len(query.tree.selects) == len(items)
    return [shown_name(item, query.text) for item in query.tree.selects]


@pytest.mark.parametrize("items", [PLAIN, OF_GROUPS], ids=["rows", "groups"])
def test_a_name_is_that_of_spark(spark: headwater.Database, items: tuple[str, ...]) -> None:
    wanted = spark.sql(f"SELECT {', '.join(items)} FROM r").arrow().schema.names
    assert dict(zip(items, _names(items), strict=True)) == dict(zip(items, wanted, strict=True))


@pytest.mark.parametrize("items", [NOT_NAMED, NOT_NAMED_OF_GROUPS], ids=["rows", "groups"])
def test_a_name_is_not_guessed(spark: headwater.Database, items: tuple[str, ...]) -> None:
    """There is no name, or it is Spark's."""
    wanted = spark.sql(f"SELECT {', '.join(items)} FROM r").arrow().schema.names
    guessed = {
        item: (name, spark_name)
        for item, name, spark_name in zip(items, _names(items), wanted, strict=True)
        if name is not None and name != spark_name
    }
    assert not guessed


def test_each_function_is_compared() -> None:
    text = " ".join((*PLAIN, *OF_GROUPS)).lower()
    names = sorted(frozenset().union(*FUNCTIONS.values()))
    assert [name for name in names if f"{name}(" not in text] == []
