"""`FLUSH`: wait until everything acknowledged and complete has been processed."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.cursor import Cursor
from headwater.sql.statements.base import Statement


@dataclass(frozen=True)
class Flush(Statement):
    """Wait for the engine."""


def parse(cursor: Cursor) -> Flush:
    """FLUSH"""
    cursor.expect("FLUSH")
    return Flush(cursor.text)
