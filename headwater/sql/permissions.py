"""Which role may run which statement: a table, and a pure function over it.

Owns the rules. A reader reads; a writer also changes rows; an admin does everything. Statements that reach
the server's own files or the outside world are an admin's, whatever else they do, and so are functions of
Spark's that do (`judgement`). What is not in the table is an admin's too, and a test fails.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Any

from headwater.errors import AccessError, BindError, Error
from headwater.sql import statements as all_statements
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


NEEDED: Mapping[type[Statement], Role | Callable[[Any], Role]] = {
    all_statements.Advance: "writer",
    all_statements.AlterQueryResetLandmark: "admin",
    all_statements.AlterTableAddColumns: "admin",
    all_statements.AlterTableDropColumns: "admin",
    all_statements.AlterTableRename: "admin",
    all_statements.AlterTableRenameColumn: "admin",
    all_statements.AlterTableSetClock: "admin",
    all_statements.AlterTableSetMaxClockAhead: "admin",
    all_statements.AlterTableSetRange: "admin",
    all_statements.AlterUser: "admin",
    all_statements.AlterViewRefreshStatic: "admin",
    all_statements.Begin: "reader",
    all_statements.CloseCursor: "reader",
    all_statements.Call: "reader",  # the statements inside are checked one by one
    all_statements.Commit: "reader",
    all_statements.ControlQuery: "admin",
    all_statements.ControlSink: "admin",
    all_statements.ControlSource: "admin",
    all_statements.Copy: _of_copy,
    all_statements.CreateContinuousQuery: "admin",
    all_statements.CreateFunction: "admin",
    all_statements.CreateIndex: "admin",
    all_statements.CreateMaterializedView: "admin",
    all_statements.CreateProcedure: "admin",
    all_statements.CreateSink: "admin",
    all_statements.CreateSource: "admin",
    all_statements.CreateStreamingTable: "admin",
    all_statements.CreateTable: "admin",
    all_statements.CreateToken: "admin",
    all_statements.CreateUser: "admin",
    all_statements.CreateView: "admin",
    all_statements.Deallocate: "reader",
    all_statements.DeclareCursor: "reader",  # the query inside is checked when it is run
    all_statements.Delete: "writer",
    all_statements.Describe: "reader",
    all_statements.Discard: "reader",
    all_statements.Drop: "admin",
    all_statements.Explain: _of_explain,
    all_statements.ExplainObject: "reader",
    all_statements.FetchRows: "reader",
    all_statements.Flush: "writer",
    all_statements.Insert: "writer",
    all_statements.InsertFromStream: "admin",  # a source that lives as long as the statement
    all_statements.Merge: "writer",
    all_statements.Query: "reader",
    all_statements.ReleaseSavepoint: "reader",
    all_statements.ResetSetting: "admin",
    all_statements.Rollback: "reader",
    all_statements.RollbackToSavepoint: "reader",
    all_statements.Savepoint: "reader",
    all_statements.SetSetting: "admin",
    all_statements.SetTransaction: "reader",
    all_statements.Show: "reader",
    all_statements.ShowSetting: "reader",
    all_statements.Subscribe: "reader",
    all_statements.Truncate: "writer",
    all_statements.Unlisten: "reader",
    all_statements.Update: "writer",
    all_statements.VerifyView: "reader",
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
