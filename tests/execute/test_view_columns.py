"""The columns of a kept view are found without Spark; they are those that Spark gives the same select."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import pytest

import headwater
from headwater.kernel.kernel import Kernel

TABLES = (
    "CREATE STREAMING TABLE s (ts TIMESTAMP, Key INT, v DOUBLE, name STRING, d DECIMAL(10, 2),"
    " p STRUCT<x: INT, y: ARRAY<STRING>>, day DATE) TIMESTAMP BY ts",
    "CREATE STREAMING TABLE u (ts TIMESTAMP, key INT, w BIGINT) TIMESTAMP BY ts",
    "CREATE TABLE t (key INT NOT NULL, place STRING)",
)
SELECTS = (
    "SELECT * FROM s",
    "SELECT key, KEY AS K2, s.Name FROM s WHERE v > 3",
    "SELECT p.x, p.y[0] AS first, `day` FROM s",
    "SELECT s.*, w FROM s JOIN u ON s.key = u.key",
    "SELECT * FROM s JOIN t USING (key)",
    "SELECT key, place FROM s LEFT JOIN t USING (KEY)",
    "SELECT d * 2 AS twice, d / 3 AS third, -key AS minus FROM s WHERE name LIKE 'a%'",
    "SELECT KEY, sum(v) AS total, count(*) AS n, avg(d) AS mean, max(ts) AS last FROM s GROUP BY key",
    "SELECT upper(name) AS name, length(name) AS n, coalesce(v, 0) AS v, day + INTERVAL '1' DAY AS w FROM s",
    "SELECT Name FROM s UNION ALL SELECT place FROM t",
    "SELECT key, v, row_number() OVER (PARTITION BY key ORDER BY ts DESC) AS n FROM s QUALIFY n <= 2",
    "SELECT name, v FROM s ORDER BY v DESC LIMIT 3",
    "WITH big AS (SELECT key, v FROM s WHERE v > 1) SELECT b.key, max(b.v) AS v FROM big b GROUP BY ALL",
    "SELECT DISTINCT name FROM s WHERE EXISTS (SELECT 1 FROM u WHERE u.key = s.key)",
    "SELECT key, median(v) AS middle, max_by(name, v) AS most, collect_list(d) AS all FROM s GROUP BY key",
    "SELECT window.start AS began, sum(w) AS w FROM u GROUP BY window(ts, '10 seconds')",
)


def test_they_are_those_of_spark(db: headwater.Database) -> None:
    for statement in TABLES:
        db.sql(statement)
    for number, select in enumerate(SELECTS):
        db.sql(f"CREATE VIEW v{number} AS {select}")
        wanted = [
            (f.name, f.type) for f in db.sql(f"SELECT * FROM ({select}) WHERE rand() >= 0").schema
        ]
        found = [(f.name, f.type) for f in db.sql(f"SELECT * FROM v{number}").schema]
        assert found == wanted, select


def test_no_view_waits_for_spark(
    connect: Callable[..., headwater.Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("this asked for Spark")

    monkeypatch.setattr(Kernel, "_started", refused)
    db = connect(settings={"eager_spark": False})
    for statement in TABLES:
        db.sql(statement)
    db.insert("s", [(datetime(2026, 3, 1, 10), 1, 2.5, "a", 1, {"x": 1, "y": ["b"]}, None)])
    for number, select in enumerate(SELECTS):
        db.sql(f"CREATE VIEW v{number} AS {select}")
        assert db.sql(f"SELECT * FROM v{number}").columns
