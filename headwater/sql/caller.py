"""For whom this thread runs a statement: the role, the name, and the limit that a session set itself.

Owns the one place where that is kept. It is asked deep inside, where rows of the system, errors and
settings of Spark depend on who will see them. Threads of the database's own, and programs that opened the
folder, act for an admin.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from headwater.sql.statements.user import Role


@dataclass(frozen=True)
class Caller:
    """Who asked for a statement."""

    role: Role = "admin"
    name: str = ""
    limit_s: float = 0.0  # how long a statement may take by the session's own wish; 0: no wish

    @property
    def is_admin(self) -> bool:
        """Whether nothing is kept from the caller."""
        return self.role == "admin"


CURRENT: ContextVar[Caller] = ContextVar("headwater_caller", default=Caller())  # noqa: B039


def current() -> Caller:
    """Whom this thread acts for."""
    return CURRENT.get()


@contextmanager
def acting_for(caller: Caller) -> Iterator[None]:
    """While inside, this thread acts for a caller."""
    token = CURRENT.set(caller)
    try:
        yield
    finally:
        CURRENT.reset(token)
