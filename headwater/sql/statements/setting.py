"""`SET name = value`, `RESET name`; SHOW name stands with SHOW.

Sessions of PostgreSQL's protocol have parameters of their own. A statement says under which name one of
these would be meant (`parameter`): `SET TIME ZONE` is our `time_zone` and their `timezone`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from headwater.sql.cursor import Cursor
from headwater.sql.lexer import Kind, Token
from headwater.sql.literals import string_value
from headwater.sql.statements import transaction
from headwater.sql.statements.base import OptionValue, Statement, option_value
from headwater.sql.text import Name


@dataclass(frozen=True)
class SetSetting(Statement):
    """Give a setting a value; values of `spark.` settings are text as written."""

    name: Name
    value: OptionValue
    parameter: str
    parts: tuple[str, ...]  # what stands between the commas, without quotes


@dataclass(frozen=True)
class ResetSetting(Statement):
    """Give a setting its default again; all settings if there is no name."""

    name: Name | None
    parameter: str  # "all" for RESET ALL, "" for RESET alone
    sets: bool = False  # written as SET … DEFAULT


def parse_set(cursor: Cursor) -> SetSetting | ResetSetting | transaction.SetTransaction:
    """SET …"""
    cursor.expect("SET")
    modes = cursor.at("TRANSACTION") and cursor.peek(1).upper not in ("=", "TO")
    if modes or cursor.at("SESSION", "CHARACTERISTICS"):
        return transaction.parse_set(cursor)
    if cursor.peek(1).is_name:
        cursor.accept_any(("SESSION", "LOCAL"))
    if cursor.at("TIME", "ZONE"):
        start = cursor.start
        cursor.expect("TIME", "ZONE")
        name, parameter = Name("time_zone", cursor.span_from(start)), "timezone"
    else:
        name = setting_name(cursor)
        parameter = name.lower()
        if not cursor.accept("=") and not cursor.accept("TO"):
            cursor.fail("=", hint=f"SHOW {name} shows a setting")
    if cursor.accept("DEFAULT") or (parameter == "timezone" and cursor.accept("LOCAL")):
        return ResetSetting(cursor.text, name, parameter, sets=True)
    first = cursor.index
    value = _value(cursor, name)
    parts = _parts(cursor.tokens[first : cursor.index])
    return SetSetting(cursor.text, name, value, parameter, parts)


def parse_reset(cursor: Cursor) -> ResetSetting:
    """RESET name | ALL"""
    cursor.expect("RESET")
    name, parameter = None, ""
    if cursor.accept("ALL"):
        parameter = "all"
    elif not cursor.at_end:
        name = setting_name(cursor)
        parameter = name.lower()
    return ResetSetting(cursor.text, name, parameter)


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


def _parts(tokens: Sequence[Token]) -> tuple[str, ...]:
    """What stands between commas: the value of a string, else the words."""
    found: list[list[Token]] = [[]]
    for token in tokens:
        if token.text == ",":
            found.append([])
        else:
            found[-1].append(token)
    return tuple(map(_part, found))


def _part(tokens: Sequence[Token]) -> str:
    if len(tokens) == 1 and tokens[0].kind is Kind.STRING:
        return string_value(tokens[0].text) or ""
    words = [token.name for token in tokens[:1]]
    for before, token in pairwise(tokens):
        words += [" " * (before.end < token.start), token.text]
    return "".join(words)
