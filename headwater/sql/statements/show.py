"""`SHOW TABLES | STREAMS | VIEWS | …`, `SHOW CREATE x` and `SHOW setting`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf
from typing import cast

from headwater.sql.cursor import Cursor
from headwater.sql.statements.base import Statement
from headwater.sql.statements.setting import setting_name
from headwater.sql.text import Name

KINDS = (
    "TABLES", "STREAMS", "VIEWS", "QUERIES", "SOURCES", "SINKS", "INDEXES", "FUNCTIONS",
    "PROCEDURES", "SETTINGS", "USERS", "TOKENS",
)  # fmt: skip
# Names of several words: the setting, and the parameter of a session.
_LONG = {
    ("TIME", "ZONE"): ("time_zone", "timezone"),
    ("TRANSACTION", "ISOLATION", "LEVEL"): ("transaction_isolation", "transaction_isolation"),
    ("SESSION", "AUTHORIZATION"): ("session_authorization", "session_authorization"),
}


@dataclass(frozen=True)
class Show(Statement):
    """A list of objects; `kind` is one of KINDS in lower case."""

    kind: str


@dataclass(frozen=True)
class ShowCreate(Statement):
    """The statement that makes an object."""

    kind: OneOf["table", "view", "query", "index", "function", "procedure"] | None
    name: Name


@dataclass(frozen=True)
class ShowSetting(Statement):
    """The value of a setting; `parameter`: of which parameter of a session, if it is one's."""

    name: Name
    parameter: str


def parse(cursor: Cursor) -> Show | ShowCreate | ShowSetting:
    """SHOW …"""
    cursor.expect("SHOW")
    if cursor.accept("CREATE"):
        return _create(cursor)
    if cursor.accept("MATERIALIZED", "VIEWS") or cursor.accept("ALL"):
        kind = "views" if cursor.tokens[cursor.index - 1].upper == "VIEWS" else "settings"
        return Show(cursor.text, kind)
    for words, (name, parameter) in _LONG.items():
        if cursor.accept(*words):
            return ShowSetting(cursor.text, Name(name), parameter)
    if cursor.peek().upper in KINDS:
        kind = cursor.take().text.lower()
        return Show(cursor.text, kind)
    if not cursor.peek().is_name:
        cursor.fail("TABLES, STREAMS, VIEWS, … or the name of a setting")
    setting = setting_name(cursor)
    return ShowSetting(cursor.text, setting, setting.lower())


_CREATED = ("TABLE", "STREAM", "VIEW", "QUERY", "INDEX", "FUNCTION", "PROCEDURE")


def _create(cursor: Cursor) -> ShowCreate:
    """The rest after SHOW CREATE."""
    kind = None
    if cursor.at_any(("STREAMING", "MATERIALIZED", "CONTINUOUS")) and cursor.peek(1).is_name:
        cursor.take()
    if cursor.at_any(_CREATED) and cursor.peek(1).is_name:
        word = cursor.take().text.lower()
        kind = "table" if word == "stream" else word
    name = cursor.path("the name of a table, view or query")
    return ShowCreate(cursor.text, cast("OneOf['table'] | None", kind), name)
