"""One HTTP client: requests in, answers out, over asyncio streams; the protocol itself is h11's.

Owns the limits of a connection: the size of heads and bodies, how long a client may take to send
and to take. An answer's parts are sent one by one, each waiting for room, so that a slow client
costs one part of memory. Must never run a statement on the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import h11

from headwater.errors import Error
from headwater.server.attempts import ThrottledError
from headwater.server.http.failure import HttpError, as_error, body_of, status_of
from headwater.server.http.request import Request, split_target
from headwater.server.http.rows_out import JSON, compact

if TYPE_CHECKING:
    from headwater.server.http.server import HttpServer
    from headwater.server.http.visitor import Visitor

LARGEST_HEAD = 32 << 10
READ_BYTES = 64 << 10
WRITE_AHEAD = 128 << 10  # bytes of an answer that wait for the client
LINGER_S = 1.0
LARGEST_LEFT = 4 << 20  # bytes of a refused request that are read and dropped
LARGEST_AHEAD = 64 << 10  # bytes of a next request that are read while one is answered
ALWAYS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


class HttpConnection:
    """One client's connection, and what routes may do with it while it answers one request."""

    request: Request

    def __init__(
        self,
        server: HttpServer,
        visitor: Visitor,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.server = server
        self.visitor = visitor
        self.reader, self.writer = reader, writer
        self.is_idle = True
        self.status = 0
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=LARGEST_HEAD)
        self._headers: dict[str, str] = {}  # of every answer to the present request
        self._held = b""  # a head, which goes out with the first part
        self._has_left = False
        self._peer = visitor.peer.address
        writer.transport.set_write_buffer_limits(high=WRITE_AHEAD)

    async def run(self) -> None:
        """Answers requests until one side has had enough."""
        try:
            while await self._one():
                self._http.start_next_cycle()
        except (ConnectionError, TimeoutError, h11.LocalProtocolError):
            pass  # the client has gone, or takes nothing
        else:
            await self._linger()
        finally:
            await self.close()

    async def _linger(self) -> None:
        """Reads on a little where a request was refused half read: else its answer may be lost."""
        if self.status < 400 or self.writer.is_closing() or not self.writer.can_write_eof():
            return
        with contextlib.suppress(OSError, TimeoutError):
            self.writer.write_eof()
            async with asyncio.timeout(LINGER_S):
                left = LARGEST_LEFT
                while left > 0 and (data := await self.reader.read(READ_BYTES)):
                    left -= len(data)

    async def close(self) -> None:
        """Closes the connection; a client that does not take the rest is cut off."""
        self.writer.close()
        with contextlib.suppress(OSError, TimeoutError, asyncio.CancelledError):
            async with asyncio.timeout(1.0):
                await self.writer.wait_closed()

    def abort(self) -> None:
        """Cuts the client off."""
        self.writer.transport.abort()

    @property
    def _patience_s(self) -> float:
        """How long the client may take to send: less before a request of it was let in."""
        return self.server.idle_s if self in self.server.connections else self.server.login_s

    # One request

    async def _one(self) -> bool:
        """One request; whether another may follow."""
        self.status, self._headers = 0, {}
        try:
            event = await self._read_head()
            if event is None:
                return False
            self.is_idle = False
            self.request = self._request(event)
            await self.server.answer(self)
        except (Error, h11.RemoteProtocolError) as error:
            await self._fail(_from_protocol(error))
        except (ConnectionError, TimeoutError, h11.LocalProtocolError):
            raise
        except Exception as error:
            await self._fail(as_error(error))
        finally:
            self.is_idle = True
        return await self._may_follow()

    async def _read_head(self) -> h11.Request | None:
        """The head of the next request; None if no more comes."""
        try:
            async with asyncio.timeout(self._patience_s):
                while True:
                    event = self._http.next_event()
                    if isinstance(event, h11.Request):
                        return event
                    if event is h11.NEED_DATA:
                        self._http.receive_data(await self.reader.read(READ_BYTES))
                    else:
                        return None
        except TimeoutError:
            if not self._http.trailing_data[0]:
                return None  # an idle connection: nobody waits for an answer
            raise HttpError(408, "the request did not come in time") from None

    def _request(self, event: h11.Request) -> Request:
        headers: dict[str, str] = {}
        for raw, value in event.headers:
            name, text = raw.decode("latin-1"), value.decode("latin-1")
            if name in headers and name in ("host", "content-length", "authorization"):
                raise HttpError(400, f"the header {name} occurs twice")
            headers[name] = f"{headers[name]}, {text}" if name in headers else text
        if "transfer-encoding" in headers and "content-length" in headers:
            raise HttpError(400, "a body has a length or comes in chunks, not both")
        self.request = Request(event.method.decode(), (), {}, headers, self._peer)
        segments, parameters = split_target(event.target)
        return Request(event.method.decode(), segments, parameters, headers, self._peer)

    async def _may_follow(self) -> bool:
        if self._http.our_state is not h11.DONE or self._has_left or self.server.stopping:
            return False
        if self._http.their_state is h11.SEND_BODY:
            with contextlib.suppress(Error, h11.RemoteProtocolError):
                await self._skip_body()
        return self._http.their_state is h11.DONE

    async def _skip_body(self) -> None:
        """Reads the rest of a small body that nobody wanted; a large one ends the connection."""
        left = READ_BYTES
        while left > 0:
            event = await self._next_event()
            if not isinstance(event, h11.Data):
                return
            left -= len(event.data)

    async def _next_event(self) -> Any:
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            if self._http.they_are_waiting_for_100_continue:
                go_on = h11.InformationalResponse(status_code=100, headers=[])
                await self._write(self._http.send(go_on))
            try:
                async with asyncio.timeout(self._patience_s):
                    self._http.receive_data(await self.reader.read(READ_BYTES))
            except TimeoutError:
                raise HttpError(408, "the body did not come in time") from None

    # What routes use

    async def body(self) -> bytes:
        """The whole body of the request; HttpError 413 if it is too large."""
        largest = self.server.largest_body
        length = self.request.header("content-length")
        if length and int(length) > largest:
            raise _too_large(largest)
        data = bytearray()
        while True:
            event = await self._next_event()
            if not isinstance(event, h11.Data):
                if isinstance(event, h11.EndOfMessage):
                    return bytes(data)
                raise ConnectionResetError
            data += event.data
            if len(data) > largest:
                raise _too_large(largest)

    def always(self, headers: Mapping[str, str]) -> None:
        """Headers that every answer to this request has."""
        self._headers |= headers

    async def head(self, status: int, headers: Mapping[str, str]) -> None:
        """Starts an answer whose body comes in parts."""
        self.status = status
        whole = ALWAYS | self._headers | dict(headers)
        if self.server.stopping:
            whole["Connection"] = "close"
        response = h11.Response(
            status_code=status,
            headers=_encoded(whole),
            reason=HTTPStatus(status).phrase.encode(),
        )
        self._held = self._http.send(response) or b""

    async def send(self, data: bytes) -> None:
        """Sends a part; waits until the client has room for more."""
        if data and self.request.method != "HEAD":
            await self._write(self._http.send(h11.Data(data=data)))

    async def finish(self) -> None:
        """Ends the answer."""
        await self._write(self._http.send(h11.EndOfMessage()) or b"")

    async def answer(self, status: int, data: bytes, headers: Mapping[str, str]) -> None:
        """A whole answer at once."""
        await self.head(status, {"Content-Length": str(len(data)), **headers})
        if data and self.request.method != "HEAD":
            self._held += self._http.send(h11.Data(data=data)) or b""
        await self.finish()

    async def gone(self) -> None:
        """Returns when the client has gone; what it sends meanwhile is kept for later."""
        kept = 0
        while kept < LARGEST_AHEAD:
            data = await self.reader.read(READ_BYTES)
            if not data:
                self._has_left = True
                return
            kept += len(data)
            self._http.receive_data(data)
        await asyncio.Event().wait()  # a client that talks on while it waits has not gone

    async def switch(self, headers: Mapping[str, str]) -> bytes:
        """Leaves HTTP for another protocol; the bytes of it that have come already."""
        self.status = 101
        answer = h11.InformationalResponse(
            status_code=101,
            headers=_encoded(headers),
            reason=b"Switching Protocols",
        )
        await self._write(self._http.send(answer))
        self._has_left = True  # for HTTP
        return bytes(self._http.trailing_data[0])

    async def write(self, data: bytes) -> None:
        """Sends bytes of another protocol; waits until the client has room for more."""
        await self._write(data)

    # Sending

    async def _write(self, data: bytes | None) -> None:
        whole, self._held = self._held + (data or b""), b""
        if not whole:
            return
        self.writer.write(whole)
        try:
            async with asyncio.timeout(self.server.stall_s):
                await self.writer.drain()
        except TimeoutError:
            self.abort()
            raise

    async def _fail(self, error: Error) -> None:
        """Answers with an error, if an answer can still be given; else the client is cut off."""
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.abort()  # the head said 200: an answer that breaks off must be seen to
            raise ConnectionAbortedError
        status = status_of(error)
        headers = {"Content-Type": JSON}
        if status == 401:
            headers["WWW-Authenticate"] = 'Basic realm="headwater", charset="UTF-8", Bearer'
        if status in (429, 503):
            wait_s = error.wait_s if isinstance(error, ThrottledError) else 1.0
            headers["Retry-After"] = str(math.ceil(wait_s))
        if self._http.their_state is h11.ERROR or status in (400, 408, 413):
            headers["Connection"] = "close"  # what follows may be anything
        if not hasattr(self, "request"):
            self.request = Request("GET", (), {}, {}, self._peer)
        await self.answer(status, compact(body_of(error)).encode(), headers)


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(n.encode("latin-1"), v.encode("latin-1", "replace")) for n, v in headers.items()]


def _too_large(largest: int) -> HttpError:
    return HttpError(
        413,
        f"the body is larger than {largest >> 20} MiB",
        sqlstate="54000",
        hint="send it in several parts, or SET message_mb",
    )


def _from_protocol(error: Exception) -> Error:
    if isinstance(error, h11.RemoteProtocolError):
        return HttpError(431 if error.error_status_hint == 431 else 400, str(error)[:200])
    return as_error(error)
