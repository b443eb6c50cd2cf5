"""SHOW CREATE gives the statement that makes an object: made anew by it, the object says the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import headwater

MADE = (
    ("s", "CREATE STREAMING TABLE s (id INT, ts TIMESTAMP NOT NULL, `odd name` ARRAY<STRUCT<x: INT>>)"
          "\n  TIMESTAMP BY ts\n  RANGE INTERVAL '1' DAY\n  WATERMARK INTERVAL '5' SECOND\n  LATE DROP"
          "\n  UPDATE KEY (id)\n  WITH (compartments = 4, max_clock_step = INTERVAL '1' HOUR)"
          "\n  COMMENT 'it\\'s'"),
    ("n", "CREATE STREAMING TABLE n (at BIGINT, v DOUBLE)\n  TIMESTAMP BY at\n  RANGE INTERVAL '10' MINUTE"),
    ("plain", "CREATE STREAM plain (id INT, v STRING)"),
    ("t", "CREATE TABLE t (a INT NOT NULL, d DECIMAL(10,2))\n  COMMENT 'a table'"),
    ("i", "CREATE INDEX i ON n USING HASH (v)"),
    ("v", "CREATE VIEW v (x, `the number`)\n  WITH (maintenance = 'eager')\n"
          "  AS SELECT id, count(*) FROM plain GROUP BY id"),
    ("later", "CREATE VIEW later\n  AS SELECT count(*) AS n FROM n"),
    ("p", "CREATE VIEW p\n  AS SELECT a FROM t"),
    ("m", "CREATE MATERIALIZED VIEW m\n  AS SELECT v, count(*) AS c FROM n GROUP BY v"),
    ("w", "CREATE MATERIALIZED VIEW w\n  RANGE INTERVAL '5' MINUTE\n"
          "  AS SELECT sum(v) AS v FROM n [INTERVAL 1 MINUTE] SAMPLE INTERVAL 1 MINUTE"),
    ("q", "CREATE CONTINUOUS QUERY q FROM BEGINNING\n"
          "  WITH (mode = 'fold', priority = 3, max_wait = INTERVAL '100' MILLISECOND)\n"
          "  AS SELECT sum(v) AS v FROM n [INTERVAL 1 MINUTE] SAMPLE INTERVAL 1 MINUTE"),
    ("f", "CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1"),
    ("pr", "CREATE PROCEDURE pr(x INT) AS BEGIN\n  INSERT INTO t VALUES (x, NULL);\n"
           "  DELETE FROM t WHERE a = x;\nEND"),
)  # fmt: skip
KINDS = {"i": "INDEX ", "f": "FUNCTION ", "pr": "PROCEDURE "}


def _shown(db: headwater.Database, name: str) -> tuple[str, str]:
    return db.sql(f"SHOW CREATE {KINDS.get(name, '')}{name}").rows()[0]


def test_a_statement_that_is_shown_makes_the_same(
    connect: Callable[..., headwater.Database],
) -> None:
    db = connect(settings={"eager_spark": False, "factories": 0})
    for name, statement in MADE:
        db.sql(statement)
        assert _shown(db, name) == (name, statement)
    db.sql("SHOW CREATE MATERIALIZED VIEW w")
    db.sql("SHOW CREATE STREAMING TABLE s")


def test_what_has_rows_already(connect: Callable[..., headwater.Database]) -> None:
    """FROM NOW is part of a view that counts later rows only; renamed columns are shown as they are."""
    db = connect(settings={"eager_spark": False, "factories": 0})
    db.sql("CREATE STREAMING TABLE s (id INT)")
    db.sql("INSERT INTO s VALUES (1)")
    db.sql("CREATE VIEW v FROM NOW AS SELECT count(*) AS n FROM s")
    assert _shown(db, "v")[1] == "CREATE VIEW v FROM NOW\n  AS SELECT count(*) AS n FROM s"
    db.sql("CREATE TABLE t (a INT)")
    db.sql("ALTER TABLE t RENAME COLUMN a TO b")
    assert _shown(db, "t")[1] == "CREATE TABLE t (b INT)"


@pytest.mark.parametrize(
    ("statement", "state", "message"),
    [
        ("SHOW CREATE nothing", "42704", "table, view or query nothing does not exist"),
        ("SHOW CREATE VIEW t", "42704", "view t does not exist"),
        ("SHOW CREATE FUNCTION py", "42704", "function py does not exist"),
        ("SHOW CREATE", "42601", "syntax error at end of input"),
    ],
)
def test_what_cannot_be_shown(
    connect: Callable[..., headwater.Database], statement: str, state: str, message: str
) -> None:
    db = connect(settings={"eager_spark": False, "factories": 0})
    db.sql("CREATE TABLE t (a INT)")
    db.create_function("py", lambda x: x, returns="INT")
    with pytest.raises(headwater.Error) as caught:
        db.sql(statement)
    assert (caught.value.sqlstate, caught.value.message) == (state, message)
