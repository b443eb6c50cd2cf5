"""`SET name = value`, `RESET name`; SHOW name stands with SHOW."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.cursor import Cursor
from headwater.sql.lexer import Kind
from headwater.sql.statements.base import OptionValue, Statement, option_value
from headwater.sql.text import Name


@dataclass(frozen=True)
class SetSetting(Statement):
    """Give a setting a value; values of `spark.` settings are text as written."""

    name: Name
    value: OptionValue


@dataclass(frozen=True)
class ResetSetting(Statement):
    """Give a setting its default again; all settings if there is no name."""

    name: Name | None


def parse_set(cursor: Cursor) -> SetSetting | ResetSetting:
    """SET …"""
    cursor.expect("SET")
    if cursor.peek(1).is_name:
        cursor.accept_any(("SESSION", "LOCAL"))
    if cursor.at("TIME", "ZONE"):
        start = cursor.start
        cursor.expect("TIME", "ZONE")
        name = Name("time_zone", cursor.span_from(start))
    else:
        name = setting_name(cursor)
        if not cursor.accept("=") and not cursor.accept("TO"):
            cursor.fail("=", hint=f"SHOW {name} shows a setting")
    if cursor.accept("DEFAULT"):
        cursor.finish()
        return ResetSetting(cursor.text, name)
    value = _value(cursor, name)
    cursor.finish()
    return SetSetting(cursor.text, name, value)


def parse_reset(cursor: Cursor) -> ResetSetting:
    """RESET name | ALL"""
    cursor.expect("RESET")
    name = None
    if not cursor.accept("ALL") and not cursor.at_end:
        name = setting_name(cursor)
    cursor.finish()
    return ResetSetting(cursor.text, name)


def setting_name(cursor: Cursor) -> Name:
    """A setting's name; ours in lower case, `spark.` names as written."""
    path = cursor.path("the name of a setting")
    return path if "." in path else Name(path.lower(), path.span)


def _value(cursor: Cursor, name: Name) -> OptionValue:
    """One literal or word, else the text as written up to the end."""
    start = cursor.index
    if cursor.peek().kind is Kind.STRING or not name.startswith("spark."):
        value = option_value(cursor)
        if cursor.at_end:
            return value
        cursor.index = start
    span = cursor.expression("a value", ";")
    return span.of(cursor.text)
