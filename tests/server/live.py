"""A server on a free port of this machine, in a thread of the test's own process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from headwater.database import Database
from headwater.server.serve import Listener
from headwater.server.wire.server import WireOptions, WireServer
from headwater.server.wire.users import Users


class Live:
    """A listener that listens while inside."""

    def __init__(self, server: Listener) -> None:
        self._loop = asyncio.new_event_loop()
        self.server: Any = server
        self._thread = threading.Thread(target=self._loop.run_forever, name="live-server")

    def __enter__(self) -> Self:
        self._thread.start()
        self._wait(self.server.start())
        self.host, self.port = self.server.address
        return self

    def _wait(self, work: object) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(60)  # type: ignore[arg-type]

    def wait_for(self, event: asyncio.Event) -> None:
        """Waits for an event of the server's loop."""
        self._wait(event.wait())

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Waits until something is so in the server's loop."""

        async def wait() -> None:
            while not condition():
                await asyncio.sleep(0.01)  # not a wait for progress: nothing announces it

        self._wait(wait())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._wait(self.server.stop())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


class LiveServer(Live):
    """A wire server."""

    def __init__(
        self, database: Database, users: Users | None = None, options: WireOptions | None = None
    ) -> None:
        super().__init__(WireServer(database, options or WireOptions(port=0), users))

    @property
    def dsn(self) -> str:
        return f"host={self.host} port={self.port} user=tester dbname=headwater sslmode=disable"
