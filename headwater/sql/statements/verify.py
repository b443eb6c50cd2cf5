"""`VERIFY VIEW v`: compare a view with the query over the stored rows."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.cursor import Cursor
from headwater.sql.statements.base import Statement
from headwater.sql.text import Name


@dataclass(frozen=True)
class VerifyView(Statement):
    """Recompute a view and compare."""

    name: Name


def parse(cursor: Cursor) -> VerifyView:
    """VERIFY …"""
    cursor.expect("VERIFY", "VIEW")
    name = cursor.path("the name of a view")
    return VerifyView(cursor.text, name)
