"""What sqlglot reads and Spark does not is told apart by words, signs and numbers of arguments."""

from __future__ import annotations

import pytest

from headwater.sql.spark_text import reads_as_spark
from headwater.sql.statements.query import make_query

KNOWN = (
    "SELECT count(*) AS n FROM s GROUP BY k HAVING max(v) > 1 ORDER BY n DESC NULLS LAST LIMIT 3 OFFSET 1",
    "SELECT DISTINCT text, `limit` AS `group`, s.isnull FROM s WHERE text LIKE 'a!%' ESCAPE '!' -- from here",
    "SELECT CAST(v AS DECIMAL(10, 2)), v::INT, try_cast(k AS DOUBLE), TIMESTAMP '2026-01-01', 1.5e3 FROM s",
    "SELECT sum(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM s",
    "SELECT sum(v) FILTER (WHERE v > 1) FROM s",
    "SELECT listagg(k, ',') WITHIN GROUP (ORDER BY v), first(k, true), last(v) IGNORE NULLS FROM s",
    "WITH a (x) AS (SELECT k FROM s) SELECT * EXCEPT (v) FROM a LEFT OUTER JOIN s ON a.x = s.k",
    "SELECT k FROM s WHERE k IN (SELECT k FROM r ORDER BY k LIMIT 1) AND NOT EXISTS (SELECT 1 FROM r)",
    "SELECT ts + INTERVAL '1' DAY, nvl(k, '') FROM s LATERAL VIEW OUTER explode(a) x AS e",
    "SELECT a[0], m['k'], p.x, $1 FROM s [INTERVAL '3' SECOND] UNION ALL SELECT 1, 2, 3, 4 FROM s [ROWS 2]",
    "SELECT k, count(*) FROM s GROUP BY GROUPING SETS ((k, v), (k), ()) QUALIFY rank() OVER (ORDER BY k) = 1",
)
NOT_KNOWN = (
    "SELECT k, FROM s",
    "SELECT k FROM s GROUP BY k, ORDER BY k",
    "SELECT k FROM s WHERE v IN (1, 2,)",
    "SELECT CAST(v AS text) FROM s",
    "SELECT v::int4, v::bool FROM s",
    "SELECT CAST(v AS DOUBLE PRECISION) FROM s",
    "SELECT SAFE_CAST(v AS INT) FROM s",
    "SELECT count(*) AS 'n' FROM s",
    'SELECT count(*) AS n FROM s "x"',
    "SELECT k FROM s WHERE k ISNULL",
    "SELECT k FROM s WHERE k IS NOT NULL IS TRUE",
    "SELECT k FROM s WHERE k IN (SELECT k FROM r) IS NULL",
    "SELECT k FROM s LIMIT 1, 2",
    "SELECT k FROM s LIMIT 2 OFFSET 1 ROWS",
    "SELECT k FROM s OFFSET 1 LIMIT 2",
    "SELECT k FROM s LIMIT 2 BY k",
    "SELECT k FROM s GROUP BY DISTINCT k",
    "SELECT arg_max(k, v), group_concat(k), countif(v > 1) FROM s",
    "SELECT IIF(v > 1, 1, 2) FROM s",
    "SELECT nvl(k) FROM s",
    "SELECT ifnull(k, 1, 2) FROM s",
    "SELECT mod(v, 2, 3) FROM s",
    "SELECT collect_list(k, v) FROM s",
    "SELECT first(k, v) FROM s",
    "SELECT string_agg(k, ',' ORDER BY v) FROM s",
    "SELECT sum(v) FILTER (v > 1) FROM s",
    "SELECT s.k FROM s OUTER JOIN r ON s.k = r.k",
    "SELECT s.k FROM s RIGHT SEMI JOIN r ON s.k = r.k",
    "SELECT s.k FROM s LEFT INNER JOIN r ON s.k = r.k",
    "WITH x AS MATERIALIZED (SELECT k FROM s) SELECT k FROM x",
    "SELECT p:x FROM s",
    "SELECT k FROM s WITH (NOLOCK)",
)


@pytest.mark.parametrize("text", KNOWN)
def test_what_people_write_is_known(text: str) -> None:
    assert reads_as_spark(make_query(text))


@pytest.mark.parametrize("text", NOT_KNOWN)
def test_what_is_not_known_is_for_spark_to_read(text: str) -> None:
    assert not reads_as_spark(make_query(text))
