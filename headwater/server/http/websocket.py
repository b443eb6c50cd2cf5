"""WebSockets over a connection that has left HTTP; the frames are those of the library websockets.

Owns the handshake's answer and the two directions: messages go out in fragments as the client takes
them; what it sends is read only for pings and its goodbye. Must never keep more of a message than
two fragments.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from http.client import SWITCHING_PROTOCOLS
from typing import TYPE_CHECKING

from websockets.datastructures import Headers
from websockets.exceptions import InvalidState
from websockets.frames import CloseCode
from websockets.http11 import Request as Asked
from websockets.protocol import SERVER, Protocol
from websockets.server import ServerProtocol

from headwater.server.http.failure import HttpError
from headwater.server.http.request import Request

if TYPE_CHECKING:
    from headwater.server.http.connection import HttpConnection

LARGEST_MESSAGE = 64 << 10  # of the client's: it has nothing to say
READ_BYTES = 16 << 10


def is_asked_for(request: Request) -> bool:
    """Whether a request wants to go on as a WebSocket."""
    return request.header("upgrade").lower() == "websocket"


def accepted(request: Request) -> dict[str, str]:
    """The headers of the answer to a handshake; HttpError if it makes no sense."""
    asked = Asked("/", Headers(request.headers))
    answer = ServerProtocol().accept(asked)
    if answer.status_code != SWITCHING_PROTOCOLS:
        raise HttpError(400, "this is no handshake of a WebSocket", hint="version 13, with a key")
    return {n: answer.headers[n] for n in ("Upgrade", "Connection", "Sec-WebSocket-Accept")}


class WebSocket:
    """One client."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection
        self._protocol = Protocol(SERVER, max_size=LARGEST_MESSAGE)

    async def open(self) -> None:
        """Answers the handshake."""
        early = await self._connection.switch(accepted(self._connection.request))
        if early:
            self._protocol.receive_data(early)

    async def gone(self) -> None:
        """Answers pings and the goodbye; returns when the client has gone."""
        while True:
            await self._flush()
            self._protocol.events_received()
            if self._protocol.close_expected() or self._protocol.eof_sent:
                return
            data = await self._connection.reader.read(READ_BYTES)
            if not data:
                return
            self._protocol.receive_data(data)

    async def send(self, fragments: AsyncIterator[Sequence[str]]) -> None:
        """One message, in fragments as the client takes them; one that is short is one frame."""
        put: Callable[..., None] = self._protocol.send_text
        held: bytes | None = None
        async for pieces in fragments:
            if held is not None:
                put(held, fin=False)
                await self._flush()
                put = self._protocol.send_continuation
            held = "".join(pieces).encode()
        if held is not None:
            put(held, fin=True)
            await self._flush()

    async def ping(self) -> None:
        """Shows the network that both are there."""
        self._protocol.send_ping(b"")
        await self._flush()

    async def close(self, code: int = CloseCode.NORMAL_CLOSURE, reason: str = "") -> None:
        """Says goodbye."""
        try:
            self._protocol.send_close(code, reason[:100])
        except InvalidState:
            return  # the client has said it first
        await self._flush()

    async def _flush(self) -> None:
        await self._connection.write(b"".join(self._protocol.data_to_send()))
