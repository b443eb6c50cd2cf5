"""What a statement is to those who carry it out: its command, whether it gives rows, what transactions do.

Owns these tables, as `permissions` owns who may run what. Whoever asks has the parsed statement; nobody
needs to look at its words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum

from headwater.sql import statements as s
from headwater.sql.statements import Statement


class InTransaction(Enum):
    """What becomes of a statement inside of a transaction."""

    AS_EVER = "it runs as outside of one"
    WAITS = "its rows wait for COMMIT"
    AT_ONCE = "it takes effect at once, with a warning"
    BEFORE_ROWS = "it is refused once rows wait"
    REFUSED = "it is refused"


# Statements that answer with rows; CALL may.
WITH_ROWS: frozenset[type[Statement]] = frozenset((
    s.Call, s.Describe, s.Explain, s.ExplainObject, s.Fetch, s.Query, s.Show, s.ShowCreate,
    s.ShowSetting,     s.Subscribe, s.VerifyView,
))  # fmt: skip
# Statements whose texts come again: those, and what is shown of views and queries for as long as they live.
COME_AGAIN = WITH_ROWS | {s.CreateContinuousQuery, s.CreateMaterializedView, s.CreateView}
AT_ONCE: tuple[type[Statement], ...] = (
    s.AlterQueryResetLandmark, s.AlterTableAddColumns, s.AlterTableDropColumns, s.AlterTableRename,
    s.AlterTableRenameColumn, s.AlterTableSetClock, s.AlterTableSetMaxClockAhead,
    s.AlterSetParts,
    s.AlterTableSetRange, s.AlterUser, s.AlterViewRefreshStatic, s.Call, s.CreateContinuousQuery,
    s.CreateFunction, s.CreateIndex, s.CreateMaterializedView, s.CreateProcedure, s.CreateSink,
    s.CreateSource, s.CreateStreamingTable, s.CreateTable, s.CreateToken, s.CreateUser,
    s.CreateView, s.Drop,
)  # fmt: skip
IN_TRANSACTION: Mapping[type[Statement], InTransaction] = {
    **dict.fromkeys(AT_ONCE, InTransaction.AT_ONCE),
    s.Advance: InTransaction.BEFORE_ROWS,
    s.Delete: InTransaction.REFUSED,
    s.Insert: InTransaction.WAITS,
    s.InsertFromStream: InTransaction.REFUSED,
    s.Merge: InTransaction.REFUSED,
    s.Truncate: InTransaction.REFUSED,
    s.Update: InTransaction.REFUSED,
}
_COMMANDS: Mapping[type[Statement], str] = {s.Query: "SELECT"}


def gives_rows(statement: Statement) -> bool:
    """Whether a statement answers with rows."""
    return type(statement) in WITH_ROWS


def in_transaction(statement: Statement) -> InTransaction:
    """What becomes of a statement inside of a transaction."""
    return IN_TRANSACTION.get(type(statement), InTransaction.AS_EVER)


def command_of(statement: Statement) -> str:
    """What a statement is, in words (CREATE TABLE); never a part of its text."""
    if isinstance(statement, s.Drop):
        return f"DROP {statement.kind.upper()}"
    kind = type(statement)
    words = re.sub(r"(?<!^)(?=[A-Z])", " ", kind.__name__)
    return _COMMANDS.get(kind, words.upper())
