"""What was acknowledged is there after a restart and after the death of the process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.actions import Action, Expect, ExpectError, Insert, Kill, Restart, Sql, run

MADE: list[Action] = [
    Sql("CREATE TABLE t (a INT NOT NULL, s STRING)"),
    Insert("t", [(1, "x"), (2, None)], batch_id="first"),
    Sql("INSERT INTO t VALUES (3, 'literal')"),
    Sql("CREATE PROCEDURE p(n INT) AS BEGIN INSERT INTO t (a, s) VALUES (n, 'by p'); END"),
    Sql("CREATE TABLE gone (a INT)"),
    Sql("DROP TABLE gone"),
    Sql("ALTER TABLE t ADD COLUMN c DOUBLE"),
    Insert("t", [(4, "y", 1.5)]),
]
THERE: list[Action] = [
    Expect(
        "SELECT a, s, c FROM t",
        [(1, "x", None), (2, None, None), (3, "literal", None), (4, "y", 1.5)],
    ),
    Insert("t", [(1, "x", None), (2, None, None)], batch_id="first", added=0),
    ExpectError("SELECT * FROM gone", "42P01"),
    ExpectError("CREATE TABLE T (b INT)", "42P07"),
    ExpectError("INSERT INTO t VALUES (NULL, 'x', 1)", "23502"),
]


@pytest.mark.parametrize("end", [Restart(), Kill()], ids=["restart", "kill"])
def test_tables_survive(folder: Path, end: Action) -> None:
    run(
        [*MADE, end, *THERE, Sql("CALL p(9)"), Expect("SELECT a FROM t WHERE s = 'by p'", [(9,)])],
        folder,
    )


def test_truncate_and_replace_survive(folder: Path) -> None:
    run(
        [
            *MADE,
            Sql("TRUNCATE TABLE t"),
            Sql("CREATE OR REPLACE TABLE u (x INT)"),
            Sql("INSERT INTO u VALUES (1)"),
            Sql("CREATE OR REPLACE TABLE u (y STRING)"),
            Sql("ALTER TABLE t RENAME TO v"),
            Restart(),
            Expect("SELECT * FROM v", []),
            Expect("SELECT y FROM u", []),
            ExpectError("SELECT * FROM t", "42P01"),
            Restart(),
            Insert("u", [("new",)]),
            Restart(),
            Expect("SELECT * FROM u", [("new",)]),
        ],
        folder,
    )


def test_functions_and_changes_through_spark_survive(folder: Path) -> None:
    run(
        [
            *MADE,
            Sql("CREATE FUNCTION twice(x INT) RETURNS INT RETURN x * 2"),
            Sql(
                "CREATE FUNCTION big(n INT) RETURNS TABLE (a INT) RETURN SELECT a FROM t WHERE twice(a) > n"
            ),
            Sql("UPDATE t SET s = 'changed' WHERE a = 1"),
            Sql("DELETE FROM t WHERE a = 2"),
            Restart(),
            Expect("SELECT a, s FROM t", [(1, "changed"), (3, "literal"), (4, "y")]),
            Expect("SELECT 1 + 1", [(2,)]),
            Expect("SELECT twice(a) FROM big(6)", [(8,)]),
        ],
        folder,
    )


def test_the_driver_sees_what_is_wrong(folder: Path) -> None:
    for wrong in (
        Expect("SELECT name FROM headwater.tables", [("x",)]),
        ExpectError("SELECT name FROM headwater.tables", "42P01"),
        ExpectError("SELECT * FROM nothing", "42000"),
    ):
        with pytest.raises(AssertionError) as caught:
            run([wrong], folder)
        assert "in action 0" in caught.value.__notes__[0]
    with pytest.raises(AssertionError, match="AssertionError"):
        run([Expect("SELECT name FROM headwater.tables", [("x",)]), Kill()], folder)
