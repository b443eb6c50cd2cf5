"""Connections that have not shown who they are: bounded, in all and for each address.

Owns who has to go when there are too many. That is never the newest: a client that means it logs in within
moments, so whoever holds many silent connections loses the oldest of them, and nobody else is shut out. Also
how many may be logged in: the last places are an admin's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from headwater.errors import OverloadError
from headwater.server.peers import neighbourhood

Client = TypeVar("Client")


class Waiting(Generic[Client]):
    """Clients by the place that they come from, in the order in which they came."""

    def __init__(self) -> None:
        self._places: dict[str, dict[Client, None]] = {}
        self._place_of: dict[Client, str] = {}

    def add(
        self, client: Client, address: str, *, most: int, most_of_address: int
    ) -> Client | None:
        """Takes a client in; returns the one that has to go for it, if one has to."""
        place = neighbourhood(address)
        own = self._places.get(place, {})
        gone: Client | None = None
        if len(own) >= most_of_address:
            gone = next(iter(own))
        elif len(self) >= most:
            largest = max(self._places, key=lambda place: len(self._places[place]))
            gone = next(iter(self._places[largest]))
        if gone is not None:
            self.remove(gone)
        self._places.setdefault(place, {})[client] = None
        self._place_of[client] = place
        return gone

    def remove(self, client: Client) -> bool:
        """A client has logged in or left; whether it was waiting."""
        place = self._place_of.pop(client, None)
        if place is None:
            return False
        own = self._places[place]
        del own[client]
        if not own:
            del self._places[place]
        return True

    def __len__(self) -> int:
        return len(self._place_of)

    def __iter__(self) -> Iterator[Client]:
        return iter(list(self._place_of))


def places(connections: int, reserved: int, *, admin: bool) -> int:
    """How many may be logged in for one more to come in: the last places are kept for admins, never all."""
    return connections if admin else max(1, connections - reserved)


def too_many() -> OverloadError:
    """The answer to a client for whom there is no place."""
    return OverloadError(
        "too many connections",
        sqlstate="53300",
        detail="the last places are kept for admins (connections_reserved)",
        hint="close some, or headwater serve --set connections=N",
    )
