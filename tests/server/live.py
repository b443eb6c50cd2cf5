"""A server on a free port of this machine, in a thread of the test's own process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from headwater.database import Database
from headwater.server.attempts import Attempts
from headwater.server.background import Background
from headwater.server.wire.server import WireOptions, WireServer
from headwater.server.wire.users import WireUsers


class Live(Background[Any]):
    """A listener that listens while inside."""

    def wait_for(self, event: asyncio.Event) -> None:
        """Waits for an event of the server's loop."""

        async def wait() -> None:
            await event.wait()

        self.wait(wait())

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Waits until something is so in the server's loop."""

        async def wait() -> None:
            while not condition():
                await asyncio.sleep(0.01)  # not a wait for progress: nothing announces it

        self.wait(wait())


class LiveServer(Live):
    """A wire server."""

    def __init__(
        self,
        database: Database,
        users: WireUsers | None = None,
        options: WireOptions | None = None,
        attempts: Attempts | None = None,
    ) -> None:
        super().__init__(WireServer(database, options or WireOptions(port=0), users, attempts))

    @property
    def dsn(self) -> str:
        return f"host={self.host} port={self.port} user=tester dbname=headwater sslmode=disable"
