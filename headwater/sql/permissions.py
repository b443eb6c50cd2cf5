"""Which role may run which statement: a table, and a pure function over it.

Owns the rules. A reader reads; a writer also changes rows; an admin does everything. Statements that reach
the server's own files or the outside world are an admin's, whatever else they do, and so are functions of
Spark's that do (`judgement`). What is not in the table is an admin's too, and a test fails.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

from headwater.errors import AccessError, BindError, Error
from headwater.sql import statements as s
from headwater.sql.judgement import Judgement, judged
from headwater.sql.kinds import command_of
from headwater.sql.lexer import Token
from headwater.sql.masking import masked
from headwater.sql.names import did_you_mean
from headwater.sql.spark_functions import ALLOWED, WITH_OPTIONS
from headwater.sql.statements import Copy, Explain, Statement
from headwater.sql.statements.user import Role

RANKS: Mapping[Role, int] = {"reader": 0, "writer": 1, "admin": 2}


def _of_copy(statement: Copy) -> Role:
    """Files of the server are an admin's; rows of the connection are the client's own."""
    if statement.path is not None:
        return "admin"
    return "writer" if statement.direction == "from" else "reader"


def _of_explain(statement: Explain) -> Role:
    """EXPLAIN ANALYZE runs the statement."""
    return needed(statement.statement) if statement.analyze else "reader"


# Statements that hold others (CALL, DECLARE … CURSOR) are a reader's: what is inside is checked as it runs.
READERS: tuple[type[Statement], ...] = (
    s.Begin, s.Call, s.CloseCursor, s.Commit, s.Deallocate, s.DeclareCursor, s.Describe, s.Discard,
    s.ExplainObject, s.Fetch, s.Query, s.ReleaseSavepoint, s.Rollback, s.RollbackToSavepoint,
    s.Savepoint, s.SetTransaction, s.Show, s.ShowCreate, s.ShowSetting, s.Subscribe, s.Unlisten, s.VerifyView,
)  # fmt: skip
WRITERS: tuple[type[Statement], ...] = (
    s.Advance, s.Delete, s.Flush, s.Insert, s.Merge, s.Truncate, s.Update,
)  # fmt: skip
# INSERT FROM STREAM is a source that lives as long as the statement.
ADMINS: tuple[type[Statement], ...] = (
    s.AlterQueryResetLandmark, s.AlterTableAddColumns, s.AlterTableDropColumns, s.AlterTableRename,
    s.AlterTableRenameColumn, s.AlterTableSetClock, s.AlterTableSetMaxClockAhead,
    s.AlterSetParts,
    s.AlterTableSetRange, s.AlterUser, s.AlterViewRefreshStatic, s.ControlQuery, s.ControlSink,
    s.ControlSource, s.CreateContinuousQuery, s.CreateFunction, s.CreateIndex,
    s.CreateMaterializedView, s.CreateProcedure, s.CreateSink, s.CreateSource,
    s.CreateStreamingTable, s.CreateTable, s.CreateToken, s.CreateUser, s.CreateView, s.Drop,
    s.InsertFromStream, s.ResetSetting, s.SetSetting,
)  # fmt: skip
NEEDED: Mapping[type[Statement], Role | Callable[[Any], Role]] = {
    **dict.fromkeys(READERS, "reader"),
    **dict.fromkeys(WRITERS, "writer"),
    **dict.fromkeys(ADMINS, "admin"),
    s.Copy: _of_copy,
    s.Explain: _of_explain,
}


def needed(statement: Statement) -> Role:
    """The least role that may run a statement of this kind, whatever it calls."""
    rule = NEEDED.get(type(statement), "admin")
    return rule(statement) if callable(rule) else rule


def permitted(role: Role, statement: Statement, own: Container[str] = ()) -> Error | None:
    """Why a role may not run a statement; None if it may. `own`: the users' functions, in lower case."""
    if role == "admin":
        return None
    why = refusal(role, needed(statement), command_of(statement))
    return why or _refusal_of(role, judgement_of(statement), statement.text, own)


def judgement_of(statement: Statement) -> Judgement:
    """What a statement asks of Spark that takes an admin."""
    return statement.fact(_judged)


def _judged(statement: Statement) -> Judgement:
    return judged(statement.text)


def text_refusal(role: Role, text: str, own: Container[str] = ()) -> Error | None:
    """Why a role may not have Spark run a text, whatever statement it is; None if it may."""
    return None if role == "admin" else _refusal_of(role, judged(text), text, own)


def _refusal_of(role: Role, judgement: Judgement, text: str, own: Container[str]) -> Error | None:
    for found in judgement.admin_only:
        return AccessError(
            f"role {role} may not use {found.what}",
            detail=found.why,
            hint="it takes the role admin",
        )
    for token in judgement.unknown:
        if token.name.lower() not in own:
            return _unknown_function(token, text)
    return None


def _unknown_function(token: Token, text: str) -> BindError:
    hint = did_you_mean(token.name, [*ALLOWED, *WITH_OPTIONS])
    return BindError(
        f"function {token.name} does not exist",
        sqlstate="42883",
        hint=hint or "SHOW FUNCTIONS lists the users' own; before the columns of an alias goes AS",
        place=token.span.place(masked(text)),
    )


def refusal(role: Role, least: Role, what: str) -> AccessError | None:
    """Why a role may not do what takes another one; None if it may."""
    if RANKS[role] >= RANKS[least]:
        return None
    return AccessError(
        f"role {role} may not run {what}",
        sqlstate="42501",
        hint=f"it takes the role {least}; an admin gives it: ALTER USER … ROLE {least.upper()}",
    )
