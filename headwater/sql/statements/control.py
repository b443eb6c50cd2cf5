"""`PAUSE | RESUME | KILL QUERY q`, `PAUSE | RESUME SOURCE src` and `PAUSE | RESUME SINK k`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf
from typing import cast

from headwater.sql.cursor import Cursor
from headwater.sql.statements.base import Statement
from headwater.sql.text import Name

Action = OneOf["pause", "resume", "kill"]


@dataclass(frozen=True)
class ControlQuery(Statement):
    """Pause, resume or kill a continuous query."""

    action: Action
    name: Name


@dataclass(frozen=True)
class ControlSource(Statement):
    """Pause or resume a source."""

    action: OneOf["pause", "resume"]
    name: Name


@dataclass(frozen=True)
class ControlSink(Statement):
    """Pause or resume a sink."""

    action: OneOf["pause", "resume"]
    name: Name


def parse(cursor: Cursor) -> ControlQuery | ControlSource | ControlSink:
    """PAUSE, RESUME, KILL …"""
    action = cast(Action, cursor.choice("PAUSE", "RESUME", "KILL").lower())
    if action == "kill":
        cursor.expect("QUERY")
        kind = "QUERY"
    else:
        kind = cursor.choice("QUERY", "SOURCE", "SINK")
    name = cursor.path(f"the name of a {kind.lower()}")
    if kind == "SOURCE" and action != "kill":
        return ControlSource(cursor.text, action, name)
    if kind == "SINK" and action != "kill":
        return ControlSink(cursor.text, action, name)
    return ControlQuery(cursor.text, action, name)
