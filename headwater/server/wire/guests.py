"""The connections of the wire server: those that wait for their login, and those that are logged in.

Owns their bounds and numbers. Those that wait are counted apart, so that sockets which say nothing take no
place of a client that logs in, nor of one that only comes to cancel.
"""

from __future__ import annotations

import hmac
import itertools
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Generic, Protocol, TypeVar

from headwater.errors import Error, OverloadError
from headwater.server.counts import Counts
from headwater.server.peers import Peer
from headwater.server.waiting import Waiting, places

Values = Callable[[str], int | float | bool | str]


class Guest(Protocol):
    """A connection, as far as it matters here."""

    peer: Peer
    secret: bytes

    @property
    def counts(self) -> Counts:
        """What its statements did."""

    def cancel(self, reason: str) -> None:
        """Cancels the statement under way."""

    def give_up(self, error: Error) -> None:
        """Ends the connection before its login."""


Kind = TypeVar("Kind", bound=Guest)


class Guests(Generic[Kind]):
    """All connections; changed on the event loop alone, counted from any thread."""

    def __init__(self, setting: Values) -> None:
        self._setting = setting
        self.most = int(setting("connections"))
        self.inside: dict[int, Kind] = {}
        self._waiting: Waiting[Kind] = Waiting()
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._ended_counts = Counts()
        self._accepted = self._refused = self._dropped = 0

    def greet(self, guest: Kind) -> None:
        """Somebody has come, and may log in; where too many wait, the oldest of the largest crowd goes."""
        most, of_address = (
            max(int(self._setting(name)), self.most)
            for name in ("waiting_logins", "waiting_logins_per_address")
        )
        with self._lock:
            address = guest.peer.address
            gone = self._waiting.add(guest, address, most=most, most_of_address=of_address)
        if gone is not None:
            why = "too many connections that do not log in"
            self.drop(gone, OverloadError(why, sqlstate="53300", hint="log in sooner, or again"))

    def drop(self, guest: Kind, why: Error) -> None:
        """Ends a connection that has not logged in."""
        with self._lock:
            self._dropped += 1
        guest.give_up(why)

    def admit(self, guest: Kind, *, admin: bool) -> int | None:
        """The number of a connection that has logged in; None if there is no place for it."""
        reserved = int(self._setting("connections_reserved"))
        with self._lock:
            if len(self.inside) >= places(self.most, reserved, admin=admin):
                self._refused += 1
                return None
            self._waiting.remove(guest)
            self._accepted += 1
            number = next(self._numbers)
            self.inside[number] = guest
        return number

    def leave(self, guest: Kind, number: int | None) -> None:
        """A connection has ended."""
        with self._lock:
            self._waiting.remove(guest)
            found = self.inside.pop(number, None) if number is not None else None
            if found is not None:
                self._ended_counts.add(found.counts)

    def all(self) -> list[Kind]:
        """Everybody who is there."""
        with self._lock:
            return [*self._waiting, *self.inside.values()]

    def cancel(self, process: int, secret: bytes) -> None:
        """Cancels what a connection does, if the key is right."""
        found = self.inside.get(process)
        if found is not None and hmac.compare_digest(found.secret, secret):
            found.cancel("the statement was cancelled by the client")

    def numbers(self) -> Mapping[str, int]:
        """What `headwater.metrics` says about this listener; asked for by any thread."""
        counts = Counts()
        with self._lock:
            for each in (self._ended_counts, *(c.counts for c in self.inside.values())):
                counts.add(each)
            found = {
                "connections": len(self.inside),
                "waiting_logins": len(self._waiting),
                "accepted_connections": self._accepted,
                "refused_connections": self._refused,
                "dropped_logins": self._dropped,
                **asdict(counts),
            }
        return {f"wire.{name}": value for name, value in found.items()}
