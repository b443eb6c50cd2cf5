"""`CALL p(arguments)`."""

from __future__ import annotations

from dataclasses import dataclass

from headwater.sql.cursor import Cursor
from headwater.sql.literals import Literal, literal
from headwater.sql.statements.base import Statement
from headwater.sql.text import Name, Span


@dataclass(frozen=True)
class Call(Statement):
    """Run a procedure; `values` are the arguments if all of them are plain literals."""

    name: Name
    arguments: tuple[Span, ...]
    values: tuple[Literal, ...] | None


def parse(cursor: Cursor) -> Call:
    """CALL …"""
    cursor.expect("CALL")
    name = cursor.path("the name of a procedure")
    arguments = cursor.arguments()
    found = [literal(span.of(cursor.text), cursor.time_zone) for span in arguments]
    plain = tuple(value for value in found if value is not None)
    return Call(cursor.text, name, arguments, plain if len(plain) == len(found) else None)
