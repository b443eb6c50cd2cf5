"""`CREATE SOURCE src INTO t FROM 'url' [WITH (…)]`."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.errors import SettingError
from headwater.sql.cursor import Cursor
from headwater.sql.statements.base import (
    Options,
    Statement,
    if_not_exists,
    parse_with_options,
    refuse_replace,
)
from headwater.sql.text import Name


@dataclass(frozen=True)
class CreateSource(Statement):
    """Rows from outside into a table, until the source is dropped."""

    name: Name
    table: Name
    url: str
    options: Options
    if_not_exists: bool


def parse(cursor: Cursor, replace: bool) -> CreateSource:
    """The rest after CREATE SOURCE."""
    return CreateSource(*parse_ends(cursor, replace, "source", ("INTO", "a table", "FROM")))


def parse_ends(
    cursor: Cursor, replace: bool, what: str, ends: tuple[str, str, str]
) -> tuple[str, Name, Name, str, Options, bool]:
    """What a source or sink connects: a name, a word, what is inside, a word, and the address outside."""
    refuse_replace(cursor, replace, what)
    unless = if_not_exists(cursor)
    name = cursor.new_name(f"the name of a {what}")
    first, inside, second = ends
    cursor.expect(first)
    connected = cursor.path(inside)
    cursor.expect(second)
    url = parse_url(cursor)
    options = parse_with_options(cursor)
    return cursor.text, name, connected, url, options, unless


def parse_url(cursor: Cursor) -> str:
    """The address of a source or sink: a string `kind:…`."""
    token = cursor.peek()
    url = cursor.string("an address in quotes, such as 'csv:/data/in'")
    if ":" not in url:
        raise SettingError(
            f"not an address: '{url}'",
            hint="an address starts with its kind, such as 'csv:/data/in' or 'kafka://host/topic'",
            place=token.span.place(cursor.text),
        )
    return url
