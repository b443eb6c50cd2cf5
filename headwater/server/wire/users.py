"""Who may log in, as the wire server asks it."""

from __future__ import annotations

from typing import Protocol

from headwater.execute.users import Login
from headwater.sql.statements.user import Role

__all__ = ["Login", "NoUsers", "WireUsers"]


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
