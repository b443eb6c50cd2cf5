"""`CREATE INDEX [IF NOT EXISTS] i ON t [USING BTREE | HASH] (col)`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf
from typing import cast

from headwater.sql.cursor import Cursor
from headwater.sql.statements.base import Statement, if_not_exists, refuse_replace
from headwater.sql.text import Name
from headwater.sql.type_parser import check_distinct

Method = OneOf["btree", "hash"]


@dataclass(frozen=True)
class CreateIndex(Statement):
    """A value index on columns of a table."""

    name: Name
    table: Name
    columns: tuple[Name, ...]
    method: Method
    if_not_exists: bool


def parse(cursor: Cursor, replace: bool) -> CreateIndex:
    """The rest after CREATE INDEX."""
    refuse_replace(cursor, replace, "index")
    unless = if_not_exists(cursor)
    name = cursor.new_name("the name of an index")
    cursor.expect("ON")
    table = cursor.path("a table")
    method: Method = "btree"
    if cursor.accept("USING"):
        method = cast(Method, cursor.choice("BTREE", "HASH").lower())
    columns = cursor.names("a column")
    check_distinct(cursor, columns)
    return CreateIndex(cursor.text, name, table, columns, method, unless)
