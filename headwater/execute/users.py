"""CREATE USER, ALTER USER, CREATE TOKEN and their DROP; what the server asks at a login.

Owns what the catalog keeps of users and tokens: a SCRAM verifier in PostgreSQL's form, or the hash of a
token; and the role. Must never keep, log or return a password; a token is shown once, when it is made.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import cast

import pyarrow as pa

from headwater.errors import BindError, DataError
from headwater.execute.context import Context, Running
from headwater.execute.system_tables import columns
from headwater.execute.verifiers import MECHANISM, Verifier, make_verifier, parse_verifier
from headwater.result import Result
from headwater.sql.caller import current
from headwater.sql.names import nearest
from headwater.sql.statements.create_token import CreateToken
from headwater.sql.statements.drop import Drop
from headwater.sql.statements.user import AlterUser, CreateUser, Role
from headwater.storage.catalog import Catalog, CatalogObject

SALT_BYTES = 16
TOKEN_BYTES = 32
TOKEN_PREFIX = "hw_"  # so that a token is known for one where it should not be
NO_ADMIN = (
    "there is no user with the role admin: CREATE USER … ROLE ADMIN on this connection, before it ends; "
    "after that only a program that opens the folder can make one"
)


@dataclass(frozen=True)
class Login:
    """What is known of a user: the verifier of the password, and the role."""

    verifier: Verifier
    role: Role = "admin"


class Users:
    """Users and tokens as the server asks for them; never touches the disk."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def verifier_of(self, user: str) -> Login | None:
        """The verifier and role of a user, or None."""
        found = self._catalog.find(user, "user")
        if found is None:
            return None
        return Login(parse_verifier(found.definition["verifier"]), found.definition["role"])

    def role_of(self, user: str) -> Role | None:
        """The role that a user has now, or None."""
        found = self._catalog.find(user, "user")
        return None if found is None else cast(Role, found.definition["role"])

    def token(self, text: str) -> tuple[str, Role] | None:
        """The name and role of a token, or None."""
        wanted = _hash(text)
        for item in self._catalog.all("token"):
            if secrets.compare_digest(item.definition["hash"], wanted):
                return item.name, item.definition["role"]
        return None

    def __len__(self) -> int:
        return len(self._catalog.all("user"))


def create_user(running: Running, statement: CreateUser) -> Result:
    """CREATE USER."""
    context = running.context
    with context.ddl:
        if context.catalog.find(statement.name, "user") is not None and statement.if_not_exists:
            return Result("CREATE USER")
        verifier = _verifier(statement.password)
        definition = {"verifier": verifier, "role": statement.role}
        context.catalog.add("user", str(statement.name), definition)
        return Result("CREATE USER", notice=_without_admin(context))


def alter_user(running: Running, statement: AlterUser) -> Result:
    """ALTER USER: a new password, a new role, or both."""
    context = running.context
    with context.ddl:
        found = _found(context, "user", statement.name)
        definition = dict(found.definition)
        if statement.password is not None:
            definition["verifier"] = _verifier(statement.password)
        if statement.role is not None:
            definition["role"] = statement.role
        context.catalog.change(found, definition)
        return Result("ALTER USER", notice=_without_admin(context))


def create_token(running: Running, statement: CreateToken) -> Result:
    """CREATE TOKEN: the one row that it returns is all that anybody will ever see of the token."""
    text = TOKEN_PREFIX + secrets.token_urlsafe(TOKEN_BYTES)
    with running.context.ddl:
        definition = {"hash": _hash(text), "role": statement.role}
        running.context.catalog.add("token", str(statement.name), definition)
    return Result("CREATE TOKEN", pa.table({"token": [text]}), notice="it is not shown again")


def drop_user(running: Running, statement: Drop) -> Result:
    """DROP USER."""
    return _drop(running, statement, "user")


def drop_token(running: Running, statement: Drop) -> Result:
    """DROP TOKEN."""
    return _drop(running, statement, "token")


def _drop(running: Running, statement: Drop, kind: str) -> Result:
    context = running.context
    with context.ddl:
        gone = context.catalog.find(statement.name, kind)
        if gone is None and statement.if_exists:
            return Result(f"DROP {kind.upper()}")
        context.catalog.remove(_found(context, kind, statement.name))
        return Result(f"DROP {kind.upper()}", notice=_without_admin(context))


def listed(context: Context, kind: str) -> pa.Table:
    """SHOW USERS and SHOW TOKENS: names and roles, nothing to log in with; who is no admin sees itself."""
    caller = current()
    rows = [
        {"name": o.name, "role": o.definition["role"], "created_at": o.created_at}
        for o in context.catalog.all(kind)
        if caller.is_admin or o.name == caller.name
    ]
    schema = columns(name=pa.string(), role=pa.string(), created_at=pa.string())
    return pa.Table.from_pylist(rows, schema)


def _found(context: Context, kind: str, name: str) -> CatalogObject:
    found = context.catalog.find(name, kind)
    if found is None:
        near = nearest(str(name), [o.name for o in context.catalog.all(kind)])
        raise BindError(
            f"{kind} {name} does not exist",
            sqlstate="42704",
            hint=f"did you mean {near}?" if near else f"SHOW {kind.upper()}S lists what there is",
        )
    return found


def _verifier(password: str) -> str:
    """The verifier of a password; one that is given as such, as PostgreSQL's dumps do, is kept."""
    if password.startswith(f"{MECHANISM}$"):
        try:
            return str(parse_verifier(password))
        except ValueError:
            pass  # a password that looks like one
    if not password:
        raise DataError("a password is not empty", sqlstate="22023", hint="PASSWORD '…'")
    return str(make_verifier(password, secrets.token_bytes(SALT_BYTES)))


def _without_admin(context: Context) -> str | None:
    users = context.catalog.all("user")
    if context.admin_given:
        return None
    if users and all(user.definition["role"] != "admin" for user in users):
        return NO_ADMIN
    return None


def _hash(token: str) -> str:
    """Tokens are long and random: a plain hash tells nothing about them."""
    return hashlib.sha256(token.encode()).hexdigest()
