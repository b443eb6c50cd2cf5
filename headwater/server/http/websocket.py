"""WebSockets over a connection that has left HTTP; the frames are those of the library websockets.

Owns the handshake's answer and the two directions: messages go out in fragments as the client takes
them; what it sends is read only for pings and its goodbye. Must never keep more of a message than
one fragment.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING

from websockets.exceptions import InvalidState
from websockets.frames import CloseCode
from websockets.protocol import SERVER, Protocol

from headwater.server.http.failure import HttpError
from headwater.server.http.request import Request

if TYPE_CHECKING:
    from headwater.server.http.connection import Connection

MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455 §1.3
LARGEST_MESSAGE = 64 << 10  # of the client's: it has nothing to say
READ_BYTES = 16 << 10


def is_asked_for(request: Request) -> bool:
    """Whether a request wants to go on as a WebSocket."""
    return request.header("upgrade").lower() == "websocket"


def accepted(request: Request) -> dict[str, str]:
    """The headers of the answer to a handshake; HttpError if it makes no sense."""
    key = request.header("sec-websocket-key")
    try:
        is_key = len(base64.b64decode(key, validate=True)) == 16
    except (binascii.Error, ValueError):
        is_key = False
    words = {word.strip().lower() for word in request.header("connection").split(",")}
    if not is_key or "upgrade" not in words or request.header("sec-websocket-version") != "13":
        raise HttpError(400, "this is no handshake of a WebSocket", hint="version 13, with a key")
    proof = base64.b64encode(hashlib.sha1(key.encode() + MAGIC).digest()).decode()
    return {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Accept": proof}


class WebSocket:
    """One client."""

    def __init__(self, connection: Connection) -> None:
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

    async def send(self, fragments: AsyncIterator[str]) -> None:
        """One message, in fragments as the client takes them."""
        started = False
        async for text in fragments:
            if started:
                self._protocol.send_continuation(text.encode(), fin=False)
            else:
                self._protocol.send_text(text.encode(), fin=False)
            started = True
            await self._flush()
        if started:
            self._protocol.send_continuation(b"", fin=True)
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
        await self._connection.write(b"".join(_bytes(self._protocol.data_to_send())))


def _bytes(parts: Iterable[bytes]) -> Iterable[bytes]:
    """What is to be sent; the empty part that stands for the end is left out."""
    return (part for part in parts if part)
