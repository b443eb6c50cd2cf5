"""`CREATE SINK k FROM q INTO 'url' [WITH (…)]`."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.cursor import Cursor
from headwater.sql.statements.base import Options, Statement
from headwater.sql.statements.create_source import parse_ends
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
    ends = ("FROM", "the name of a query", "INTO")
    return CreateSink(*parse_ends(cursor, replace, "sink", ends))
