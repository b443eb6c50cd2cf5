"""`CREATE SINK k FROM q INTO 'url' [WITH (…)]`."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.cursor import Cursor
from headwater.sql.statements.base import (
    Options,
    Statement,
    if_not_exists,
    parse_with_options,
    refuse_replace,
)
from headwater.sql.statements.create_source import parse_url
from headwater.sql.text import Name


@dataclass(frozen=True)
class CreateSink(Statement):
    """The results of a continuous query to outside, until the sink is dropped."""

    name: Name
    query: Name
    url: str
    options: Options
    if_not_exists: bool


def parse(cursor: Cursor, replace: bool) -> CreateSink:
    """The rest after CREATE SINK."""
    refuse_replace(cursor, replace, "sink")
    unless = if_not_exists(cursor)
    name = cursor.new_name("the name of a sink")
    cursor.expect("FROM")
    query = cursor.path("the name of a query")
    cursor.expect("INTO")
    url = parse_url(cursor)
    options = parse_with_options(cursor)
    cursor.finish()
    return CreateSink(cursor.text, name, query, url, options, unless)
