"""`CREATE USER u PASSWORD '…' ROLE …`, `ALTER USER u [PASSWORD '…'] [ROLE …]`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import cast

from headwater.sql.cursor import Cursor
from headwater.sql.statements.base import Statement, if_not_exists, refuse_replace
from headwater.sql.text import Name

Role = OneOf["reader", "writer", "admin"]
ROLES = ("READER", "WRITER", "ADMIN")


@dataclass(frozen=True)
class CreateUser(Statement):
    """A user; the text holds the password, so it must never be logged."""

    text: str = field(repr=False)
    name: Name
    password: str = field(repr=False)
    role: Role
    if_not_exists: bool


@dataclass(frozen=True)
class AlterUser(Statement):
    """A new password, a new role, or both."""

    text: str = field(repr=False)
    name: Name
    password: str | None = field(repr=False)
    role: Role | None


def parse_create(cursor: Cursor, replace: bool) -> CreateUser:
    """The rest after CREATE USER."""
    refuse_replace(cursor, replace, "user")
    unless = if_not_exists(cursor)
    name = cursor.new_name("the name of a user")
    cursor.accept("WITH")
    password, role = _attributes(cursor)
    if password is None:
        cursor.fail("PASSWORD", words=("PASSWORD",))
    return CreateUser(cursor.text, name, password, role or "reader", unless)


def parse_alter(cursor: Cursor) -> AlterUser:
    """The rest after ALTER USER."""
    name = cursor.name("the name of a user")
    cursor.accept("WITH")
    cursor.accept("SET")
    password, role = _attributes(cursor)
    if password is None and role is None:
        cursor.fail("PASSWORD or ROLE", words=("PASSWORD", "ROLE"))
    return AlterUser(cursor.text, name, password, role)


def _attributes(cursor: Cursor) -> tuple[str | None, Role | None]:
    password: str | None = None
    role: Role | None = None
    while not cursor.at_end:
        if password is None and cursor.accept("PASSWORD"):
            password = cursor.string("a password in quotes")
        elif role is None and cursor.accept("ROLE"):
            role = cast(Role, cursor.choice(*ROLES).lower())
        else:
            cursor.fail("PASSWORD, ROLE or the end of the statement", words=("PASSWORD", "ROLE"))
    return password, role
