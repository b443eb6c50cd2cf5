"""What statements are to those who carry them out."""

from __future__ import annotations

import pytest

from headwater.sql import parser
from headwater.sql import statements as s
from headwater.sql.kinds import (
    IN_TRANSACTION,
    WITH_ROWS,
    InTransaction,
    command_of,
    gives_rows,
    in_transaction,
)
from tests.sql.test_permissions import LEAST, classes

# Of those that change something: what is not undone by ROLLBACK and is no surprise.
AS_EVER = {
    s.ControlQuery, s.ControlSink, s.ControlSource, s.Copy, s.Explain, s.Flush, s.ResetSetting,
    s.SetSetting,
}  # fmt: skip


def test_every_statement_that_changes_something_has_a_place_in_transactions() -> None:
    """A new one fails here until somebody has said what a transaction makes of it."""
    changing = {type(parser.parse(text)) for text, role in LEAST.items() if role != "reader"}
    assert changing - WITH_ROWS == set(IN_TRANSACTION) - {s.Call} | AS_EVER - WITH_ROWS


def test_the_tables_are_of_statements() -> None:
    assert set(IN_TRANSACTION) | WITH_ROWS <= set(classes())


@pytest.mark.parametrize(
    ("text", "command", "rows", "rule"),
    [
        ("(SELECT 1)", "SELECT", True, InTransaction.AS_EVER),
        ("WITH a AS (SELECT 1) SELECT * FROM a", "SELECT", True, InTransaction.AS_EVER),
        ("FETCH 3 FROM c", "FETCH", True, InTransaction.AS_EVER),
        ("CREATE STREAM t (a INT)", "CREATE STREAMING TABLE", False, InTransaction.AT_ONCE),
        ("DROP CONTINUOUS QUERY q", "DROP QUERY", False, InTransaction.AT_ONCE),
        ("INSERT INTO t SELECT 1", "INSERT", False, InTransaction.WAITS),
        ("INSERT INTO t FROM STREAM 'x'", "INSERT FROM STREAM", False, InTransaction.REFUSED),
        ("ADVANCE t TO 5", "ADVANCE", False, InTransaction.BEFORE_ROWS),
    ],
)
def test_kinds(text: str, command: str, rows: bool, rule: InTransaction) -> None:
    statement = parser.parse(text)
    assert (command_of(statement), gives_rows(statement)) == (command, rows)
    assert in_transaction(statement) is rule
