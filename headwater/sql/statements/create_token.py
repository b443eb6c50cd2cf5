"""`CREATE TOKEN t [ROLE …]`: a key for programs that speak HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from headwater.sql.cursor import Cursor
from headwater.sql.statements.base import Statement, refuse_replace
from headwater.sql.statements.user import ROLES, Role
from headwater.sql.text import Name


@dataclass(frozen=True)
class CreateToken(Statement):
    """A token; its text is made by the server and shown once."""

    name: Name
    role: Role


def parse(cursor: Cursor, replace: bool) -> CreateToken:
    """The rest after CREATE TOKEN."""
    refuse_replace(cursor, replace, "token")
    name = cursor.new_name("the name of a token")
    role: Role = "reader"
    cursor.accept("WITH")
    if cursor.accept("ROLE"):
        role = cast(Role, cursor.choice(*ROLES).lower())
    return CreateToken(cursor.text, name, role)
