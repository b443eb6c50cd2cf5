"""Who may log in to the server: the database's users and tokens, and those given when it starts.

Owns the check of a password against a verifier, and the memory of checks that went well: a check
costs milliseconds, a program asks many times a second. Must never remember a password, only a keyed
hash of it.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
import threading
from collections import OrderedDict
from typing import Protocol

from headwater.errors import AccessError
from headwater.execute.users import Login, Users
from headwater.execute.verifiers import fits, mock_verifier
from headwater.server.attempts import Attempts, key_of
from headwater.server.http.request import Identity
from headwater.sql.statements.user import Role

REMEMBERED = 1024
LONGEST = 4096  # characters of an Authorization header that are looked at
GIVEN_USER = "headwater"  # the user whose password is given when the server starts


class Logins(Protocol):
    """Users and tokens; asked from the event loop, so it must not block."""

    def verifier_of(self, user: str) -> Login | None:
        """The verifier and role of a user, or None."""

    def token(self, text: str) -> tuple[str, Role] | None:
        """The name and role of a token, or None."""

    def __len__(self) -> int:
        """How many users there are; with none, the server's own OS user is trusted."""


class ServerUsers:
    """The users of the database, and one that was given when the server started."""

    def __init__(self, stored: Users, given: Login | None = None) -> None:
        self._stored, self._given = stored, given

    def verifier_of(self, user: str) -> Login | None:
        """The verifier and role of a user, or None; the given one comes first."""
        if self._given is not None and user.casefold() == GIVEN_USER:
            return self._given
        return self._stored.verifier_of(user)

    def role_of(self, user: str) -> Role | None:
        """The role that a user has now, or None."""
        if self._given is not None and user.casefold() == GIVEN_USER:
            return self._given.role
        return self._stored.role_of(user)

    def token(self, text: str) -> tuple[str, Role] | None:
        """The name and role of a token, or None."""
        return self._stored.token(text)

    def __len__(self) -> int:
        return len(self._stored) + (self._given is not None)


class Authenticator:
    """Checks `Authorization` headers; safe to share between threads."""

    def __init__(self, users: Logins, attempts: Attempts | None = None) -> None:
        self.users = users
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._passed: OrderedDict[bytes, None] = OrderedDict()
        self._attempts = attempts if attempts is not None else Attempts()

    def known(self, header: str, *, trusted: bool) -> Identity | None:
        """Who asks, if that is known without a password's check; None if it must be checked."""
        if header[:6].lower() == "basic ":
            return None
        return self.identify(header, trusted=trusted)

    def identify(self, header: str, *, trusted: bool, peer: str = "") -> Identity:
        """Who asks, from which address; AccessError if that is nobody. May take milliseconds.

        `trusted`: whoever comes so is an admin as long as there are no users.
        """
        if not header:
            if trusted and not len(self.users):
                return Identity("", "admin")
            raise AccessError(
                "a login is needed", sqlstate="28000", hint="Authorization: Basic or Bearer"
            )
        scheme, _, rest = header[:LONGEST].partition(" ")
        if scheme.lower() == "bearer":
            found = self.users.token(rest.strip())
            if found is not None:
                return Identity(*found)
        elif scheme.lower() == "basic":
            return self._password(rest.strip(), peer)
        raise failed()

    def _password(self, text: str, peer: str) -> Identity:
        try:
            decoded = base64.b64decode(text, validate=True).decode()
        except (binascii.Error, ValueError) as error:
            raise failed() from error
        user, _, password = decoded.partition(":")
        key = key_of(peer, user)
        self._attempts.check(key)
        login = self.users.verifier_of(user)
        verifier = mock_verifier(user, self._key) if login is None else login.verifier
        proof = hmac.digest(self._key, f"{verifier}\0{user}\0{password}".encode(), "sha256")
        known = proof in self._passed
        right = (known or fits(password, verifier)) and login is not None
        self._attempts.settle(key, right=right)
        if login is None or not right:
            raise failed()
        with self._lock:
            self._passed[proof] = None
            while len(self._passed) > REMEMBERED:
                self._passed.popitem(last=False)
        return Identity(user, login.role)


def failed() -> AccessError:
    """The one answer to every wrong login: it tells nobody who exists."""
    return AccessError("the login failed", sqlstate="28P01", hint="check the name and the password")
