"""`GET /subscribe/{query}`: results as they come, as server-sent events or over a WebSocket.

Owns a subscriber's loop: take a result in a thread, send it in parts as the client takes them, then
the next. A slow client stays behind in the query's log of results, never in memory; when the log
has moved on, the error says so. An event's id is the result's token: a client that comes again with
it misses nothing and sees nothing twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, cast

import pyarrow as pa
from websockets.frames import CloseCode

from headwater import values
from headwater.engine.subscription import Out, Subscription
from headwater.errors import Error
from headwater.server.http import websocket
from headwater.server.http.failure import as_error, body_of
from headwater.server.http.rows_out import columns_of, compact, rows_as_json
from headwater.sql.caller import Caller
from headwater.sql.extensions import Emit

if TYPE_CHECKING:
    from headwater.server.http.connection import HttpConnection
    from headwater.server.http.server import HttpServer

QUIET_S = 15.0  # after so long without a result, something is sent to show that both are there
PART = 64 << 10  # characters of a result that are sent at once
EVENTS = "text/event-stream"


class Way(Protocol):
    """A way to send results."""

    async def result(self, parts: AsyncIterator[Sequence[str]], token: str) -> None:
        """Sends a result; its pieces make one JSON object."""

    async def quiet(self) -> None:
        """Shows that the server is there."""

    async def failed(self, error: Error) -> None:
        """The query failed, or its results are gone: the last that is said."""

    async def gone(self) -> None:
        """Returns when the client has gone."""

    async def end(self) -> None:
        """Ends in order."""


async def subscribe(server: HttpServer, connection: HttpConnection) -> None:
    """GET /subscribe/{query}"""
    request = connection.request
    text = request.given["query"]
    identity = request.identity
    assert identity is not None
    server.database.authorise_text(text, identity.role)
    after = request.parameters.get("after") or request.header("last-event-id") or None
    emit = request.parameters.get("emit")
    timeout_s = request.number("timeout_s")
    upgrade = websocket.is_asked_for(request)
    if upgrade:
        websocket.accepted(request)  # what is wrong with it is said before the query starts
    caller = Caller(identity.role, identity.name)

    def opened() -> Subscription:
        with server.database.acting_for(caller, text):
            found = server.database.subscribe(
                text, emit=cast("Emit | None", emit), after=after, timeout=timeout_s
            )
        return cast(Subscription, found)

    def shown(error: BaseException) -> Error:
        return server.database.told(as_error(error), caller, text)

    subscription = await server.in_thread(opened)
    take_back = server.on_stop(subscription.close)
    try:
        way: Way = await _web_socket(connection) if upgrade else await _events(connection)
        await follow(server, subscription, way, shown)
    finally:
        take_back()
        await server.in_thread(subscription.close)


async def follow(
    server: HttpServer,
    subscription: Subscription,
    way: Way,
    shown: Callable[[BaseException], Error] = as_error,
) -> None:
    """Sends results until the client goes, the query ends or the server stops; `shown`: of a failure."""
    gone: asyncio.Future[Any] = asyncio.ensure_future(way.gone())
    waiting: asyncio.Future[Any] | None = None
    try:
        while True:
            if waiting is None:
                waiting = asyncio.ensure_future(server.in_thread(lambda: next(subscription, None)))
            done, _ = await asyncio.wait(
                [waiting, gone], timeout=QUIET_S, return_when=asyncio.FIRST_COMPLETED
            )
            if gone in done:
                return
            if waiting not in done:
                await way.quiet()
                continue
            out = waiting.result()
            waiting = None
            if out is None:
                await way.end()
                return
            server.counts.rows_out += out.arrow().num_rows
            await way.result(_parts(server, out), out.token)
    except Exception as error:
        if isinstance(error, ConnectionError | TimeoutError):
            raise
        await way.failed(shown(error))
    finally:
        subscription.close()
        gone.cancel()
        await asyncio.gather(gone, *([waiting] if waiting else []), return_exceptions=True)


async def _parts(server: HttpServer, out: Out) -> AsyncIterator[Sequence[str]]:
    """A result as JSON, a bounded part at a time; a small one is one part, of several pieces."""
    parts = in_parts(_json_pieces(out), PART)
    while (part := await server.in_thread(lambda: next(parts, None))) is not None:
        yield part


def _json_pieces(out: Out) -> Iterator[str]:
    table = out.arrow()
    head = {"token": out.token, "time": time_json(out.time), "columns": columns_of(table.schema)}
    yield compact(head)[:-1] + ',"rows":['
    between = ""
    for part in rows_as_json(table):
        yield between + part
        between = ","
    yield "]}"


def in_parts(pieces: Iterable[str], size: int) -> Iterator[Sequence[str]]:
    """Pieces put together until they are so large."""
    held: list[str] = []
    for piece in pieces:
        held.append(piece)
        if sum(map(len, held)) > size:
            yield held
            held = []
    if held:
        yield held


def time_json(value: Any) -> Any:
    """A result's time as JSON can hold it."""
    kind = pa.timestamp("us", "UTC") if isinstance(value, datetime) else pa.int64()
    return values.json_of(kind)(value)


class _Events:
    """Server-sent events: a piece of a result is a `data:` line, which clients join."""

    def __init__(self, connection: HttpConnection) -> None:
        self._connection = connection

    async def result(self, parts: AsyncIterator[Sequence[str]], token: str) -> None:
        """One event."""
        held = f"id: {token}\nevent: result\n"
        async for part in parts:
            held += "".join(f"data: {piece}\n" for piece in part)
            if len(held) > PART:
                await self._connection.send(held.encode())
                held = ""
        await self._connection.send(f"{held}\n".encode())

    async def quiet(self) -> None:
        """A comment."""
        await self._connection.send(b": quiet\n\n")

    async def failed(self, error: Error) -> None:
        """An event `error`."""
        text = f"event: error\ndata: {compact(body_of(error))}\n\n"
        await self._connection.send(text.encode())
        await self._connection.finish()

    async def gone(self) -> None:
        """Returns when the client has gone."""
        await self._connection.gone()

    async def end(self) -> None:
        """The end of the answer; a client asks again."""
        await self._connection.finish()


class _Messages:
    """A WebSocket: a result is a message."""

    def __init__(self, socket: websocket.WebSocket) -> None:
        self._socket = socket

    async def result(self, parts: AsyncIterator[Sequence[str]], token: str) -> None:  # noqa: ARG002
        """One message; the token is in it."""
        await self._socket.send(parts)

    async def quiet(self) -> None:
        """A ping."""
        await self._socket.ping()

    async def failed(self, error: Error) -> None:
        """A message with the error, then goodbye."""
        await self._socket.send(_one(compact(body_of(error))))
        await self._socket.close(CloseCode.INTERNAL_ERROR, error.message)

    async def gone(self) -> None:
        """Returns when the client has gone."""
        await self._socket.gone()

    async def end(self) -> None:
        """Goodbye."""
        await self._socket.close(CloseCode.GOING_AWAY)


async def _one(text: str) -> AsyncIterator[Sequence[str]]:
    yield [text]


async def _events(connection: HttpConnection) -> Way:
    await connection.head(200, {"Content-Type": EVENTS})
    await connection.send(b": follows\n\n")
    return _Events(connection)


async def _web_socket(connection: HttpConnection) -> Way:
    socket = websocket.WebSocket(connection)
    await socket.open()
    return _Messages(socket)
