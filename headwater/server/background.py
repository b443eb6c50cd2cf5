"""A listener beside a program that does something else: its event loop has a thread of its own.

Owns that thread. Inside the `with` the listener listens; at its end it stops in order. Must never be
entered from an event loop: starting and stopping wait.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from headwater.server.serve import Listener

START_S = 60.0  # that a listener has to start
Kind = TypeVar("Kind", bound=Listener)


class Background(Generic[Kind]):
    """A listener that listens while inside."""

    def __init__(self, server: Kind) -> None:
        self.server = server
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="headwater-listens")

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.wait(self.server.start())
        except BaseException:
            self._end()
            raise
        self.host, self.port = self.server.address
        return self

    def wait(self, work: Coroutine[Any, Any, None], seconds: float | None = START_S) -> None:
        """Runs something in the listener's loop, and waits for it."""
        asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.wait(self.server.stop(), None)  # it has a bound of its own: drain_s
        finally:
            self._end()
