"""Which role may run which statement: a table, and a pure function over it.

Owns the rules. A reader reads; a writer also changes rows; an admin does everything. Statements that reach
the server's own files or the outside world are an admin's, whatever else they do. What is not in the
table is an admin's too, and a test fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from headwater.errors import AccessError
from headwater.sql import statements as all_statements
from headwater.sql.lexer import Kind, Token, tokenize
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
    all_statements.Delete: "writer",
    all_statements.Describe: "reader",
    all_statements.Drop: "admin",
    all_statements.Explain: _of_explain,
    all_statements.ExplainObject: "reader",
    all_statements.Flush: "writer",
    all_statements.Insert: "writer",
    all_statements.InsertFromStream: "admin",  # a source that lives as long as the statement
    all_statements.Merge: "writer",
    all_statements.Query: "reader",
    all_statements.ResetSetting: "admin",
    all_statements.Rollback: "reader",
    all_statements.SetSetting: "admin",
    all_statements.Show: "reader",
    all_statements.ShowSetting: "reader",
    all_statements.Subscribe: "reader",
    all_statements.Truncate: "writer",
    all_statements.Update: "writer",
    all_statements.VerifyView: "reader",
}
# Functions of Spark's that call any static method of Java, such as the one that ends the process.
CODE_FUNCTIONS = frozenset({"reflect", "try_reflect", "java_method"})
_MAY_CALL_CODE = re.compile("|".join(["identifier", "using", *sorted(CODE_FUNCTIONS)]), re.I)


def needed(statement: Statement) -> Role:
    """The least role that may run a statement."""
    if calls_code(statement.text):
        return "admin"
    rule = NEEDED.get(type(statement), "admin")
    return rule(statement) if callable(rule) else rule


def permitted(role: Role, statement: Statement) -> AccessError | None:
    """Why a role may not run a statement; None if it may."""
    return refusal(role, needed(statement), kind_of(statement))


def refusal(role: Role, least: Role, what: str) -> AccessError | None:
    """Why a role may not do what takes another one; None if it may."""
    if RANKS[role] >= RANKS[least]:
        return None
    return AccessError(
        f"role {role} may not run {what}",
        sqlstate="42501",
        hint=f"it takes the role {least}; an admin gives it: ALTER USER … ROLE {least.upper()}",
    )


def kind_of(statement: Statement) -> str:
    """What a statement is, in words; never a part of its text."""
    name = type(statement).__name__
    if name == "Query":
        return "a SELECT that runs code" if calls_code(statement.text) else "SELECT"
    return re.sub(r"(?<!^)(?=[A-Z])", " ", name).upper()


def calls_code(text: str) -> bool:
    """Whether a text runs any code in the server: by a function, or `TRANSFORM (x) USING 'script'`."""
    if _MAY_CALL_CODE.search(text) is None:
        return False
    tokens = tokenize(text)
    named = any(
        (token.is_name and token.name.lower() in CODE_FUNCTIONS and after.text == "(")
        or (token.upper == "USING" and after.kind is Kind.STRING)
        for token, after in pairwise(tokens)
    )
    return named or _calls_by_text(tokens)


def _calls_by_text(tokens: Sequence[Token]) -> bool:
    """Whether a function is called by a name that is computed: `IDENTIFIER('re' || 'flect')(…)`."""
    for start, token in enumerate(tokens):
        if token.upper != "IDENTIFIER" or tokens[start + 1].text != "(":
            continue
        depth = 0
        for index in range(start + 1, len(tokens) - 1):
            depth += {"(": 1, ")": -1}.get(tokens[index].text, 0)
            if not depth:
                if tokens[index + 1].text == "(":
                    return True
                break
    return False
