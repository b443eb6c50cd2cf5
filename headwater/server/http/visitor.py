"""A connection of HTTP from its first moment: it is counted before a byte is read, TLS or not.

Owns the way from a socket to asyncio's streams. Must never let a handshake be free: it takes a place among
those that wait, and ends when it takes longer than a login may.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, cast

from headwater.server.peers import Peer, peer_of

if TYPE_CHECKING:
    from headwater.server.http.connection import HttpConnection
    from headwater.server.http.server import HttpServer

HEAD_BYTES = 64 << 10  # what asyncio reads ahead of us


class Visitor(asyncio.Protocol):
    """One client; `connection` is there once the streams are."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self.connection: HttpConnection | None = None
        self.peer = Peer("gone")

    @property
    def is_idle(self) -> bool:
        """Whether no request of it is under way."""
        return self.connection is None or self.connection.is_idle

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has come."""
        server = self._server
        self._transport = cast(asyncio.Transport, transport)
        with_user = not len(server.authenticator.users)
        self.peer = peer_of(transport.get_extra_info("socket"), with_user=with_user)
        server.greet(self)
        reader = asyncio.StreamReader(limit=HEAD_BYTES)
        streams = asyncio.StreamReaderProtocol(reader, self._connected)
        if server.options.tls is None:
            self._transport.set_protocol(streams)
            streams.connection_made(transport)
        else:
            self._transport.pause_reading()  # the handshake's first bytes belong to TLS
            server.in_background(self._encrypted(streams, server.options.tls))

    async def _encrypted(self, streams: asyncio.Protocol, context: ssl.SSLContext) -> None:
        assert self._transport is not None
        try:
            found = await asyncio.get_running_loop().start_tls(
                self._transport,
                streams,
                context,
                server_side=True,
                ssl_handshake_timeout=self._server.login_s,
            )
        except (OSError, ssl.SSLError):
            found = None
        if found is None:
            self.abort()
            self._server.forget(self)
        else:
            streams.connection_made(found)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._server.converse(self, reader, writer)

    def abort(self) -> None:
        """Cuts the client off."""
        if self._transport is not None:
            self._transport.abort()
