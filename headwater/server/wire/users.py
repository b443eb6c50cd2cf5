"""Who may log in, as the wire server asks it."""

from __future__ import annotations

from typing import Protocol

from headwater.execute.users import Login
from headwater.sql.statements.user import Role

__all__ = ["FixedUsers", "Login", "NoUsers", "WireUsers"]


class WireUsers(Protocol):
    """The users of a database; asked at every login, from the event loop: it must not block."""

    def verifier_of(self, user: str) -> Login | None:
        """The verifier and role of a user, or None."""

    def role_of(self, user: str) -> Role | None:
        """The role that a user has now, or None; asked before every statement."""

    def __len__(self) -> int:
        """How many users there are; with none, the server's own OS user is trusted."""


class NoUsers:
    """Nobody: the server's own OS user is trusted, others are refused."""

    def verifier_of(self, user: str) -> Login | None:  # noqa: ARG002
        """None, for every name."""
        return None

    def role_of(self, user: str) -> Role | None:  # noqa: ARG002
        """None, for every name."""
        return None

    def __len__(self) -> int:
        return 0


class FixedUsers:
    """Users that are given when the server starts."""

    def __init__(self, logins: dict[str, Login]) -> None:
        self._logins = dict(logins)

    def verifier_of(self, user: str) -> Login | None:
        """The verifier and role of a user, or None."""
        return self._logins.get(user)

    def role_of(self, user: str) -> Role | None:
        """The role of a user, or None."""
        found = self._logins.get(user)
        return None if found is None else found.role

    def __len__(self) -> int:
        return len(self._logins)
