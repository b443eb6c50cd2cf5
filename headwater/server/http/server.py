"""The HTTP listener: connections, logins, routes, and the order in which it stops.

Owns the threads in which statements run, and the rules about who is let in: a login where there are
users; without any, the OS user of the server on this machine only, and never a page of another site
(Origin, Host). A connection takes a place once a request of it was let in; what needs no login, such as
/health, needs no place. Must never block the event loop.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from headwater.database import Database
from headwater.errors import Error
from headwater.kernel.cancellation import Cancellation
from headwater.server.attempts import Attempts
from headwater.server.counts import Counts
from headwater.server.http.connection import HttpConnection
from headwater.server.http.failure import HttpError, status_of
from headwater.server.http.request import Request
from headwater.server.http.routes import Route, allowed_methods, find
from headwater.server.http.visitor import Visitor
from headwater.server.peers import is_local
from headwater.server.peers import refusal as stranger
from headwater.server.serve import address_of
from headwater.server.users import Authenticator, Logins, ServerUsers
from headwater.server.waiting import Waiting, places, too_many
from headwater.settings import MEBIBYTE
from headwater.sql.permissions import refusal

T = TypeVar("T")
BACKLOG = 128
OTHER_SITES = ("cross-site", "same-site")  # of Sec-Fetch-Site; another port is the same site


@dataclass(frozen=True)
class HttpOptions:
    """Where to listen, and whom to let in."""

    host: str = "127.0.0.1"
    port: int = 8080
    tls: ssl.SSLContext | None = None
    trust_anyone: bool = False  # without users, from other machines too
    trust_loopback: bool = False  # without users, every OS user of this machine
    origins: frozenset[str] = frozenset()  # sites whose pages may ask; none by default


class HttpServer:
    """A listener for HTTP; `start` and `stop` belong to one event loop."""

    def __init__(
        self,
        database: Database,
        options: HttpOptions | None = None,
        users: Logins | None = None,
        shows: Mapping[str, Callable[[], Any]] | None = None,
        attempts: Attempts | None = None,
    ) -> None:
        """`shows`: what the program around it has to show, as JSON: further pages of the console.

        `attempts`: the wrong passwords that all listeners count together.
        """
        self.database = database
        self.shows = shows or {}
        self.options = options or HttpOptions()
        self.authenticator = Authenticator(users or ServerUsers(database.users), attempts)
        self.stopping = False
        self.connections: set[HttpConnection] = set()  # of which a request was let in
        self.waiting: Waiting[Visitor] = Waiting()  # the others
        self.requests: Counter[tuple[str, int]] = Counter()
        self.watchers = 0  # open pages of the console
        self.refused_connections = self.dropped_logins = 0
        self.counts = Counts()  # touched by the event loop alone
        self.started_at = time.time()
        self.cancellations: set[Cancellation] = set()
        self._most = int(database.setting("connections"))
        self._ends: set[Callable[[], None]] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._server: asyncio.Server | None = None

    # Limits, as they are set now

    @property
    def idle_s(self) -> float:
        """How long a client may take to send."""
        return float(self.database.setting("http_idle_s"))

    @property
    def login_s(self) -> float:
        """How long a client may take to send before it was let in."""
        return min(float(self.database.setting("login_timeout_s")), self.idle_s)

    @property
    def stall_s(self) -> float:
        """How long a client may take nothing."""
        return float(self.database.setting("http_stall_s"))

    @property
    def largest_body(self) -> int:
        """Bytes of a request's body."""
        return int(self.database.setting("message_mb")) * MEBIBYTE

    # Starting and stopping

    async def start(self) -> None:
        """Listens."""
        self.threads = ThreadPoolExecutor(self._most + 4, thread_name_prefix="headwater-http")
        o = self.options
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Visitor(self), o.host, o.port, backlog=BACKLOG
        )
        self._take_back_numbers = self.database.add_numbers(self.numbers)

    def numbers(self) -> Mapping[str, int]:
        """What `headwater.metrics` says about this listener; asked for by any thread."""
        found = {
            "connections": len(self.connections),
            "waiting_logins": len(self.waiting),
            "refused_connections": self.refused_connections,
            "dropped_logins": self.dropped_logins,
            "requests": sum(self.requests.copy().values()),
            **asdict(self.counts),
        }
        return {f"http.{name}": value for name, value in found.items()}

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        return address_of(self._server)

    async def stop(self) -> None:
        """Takes no more requests, lets those under way end, cancels what takes too long."""
        if self._server is None:
            return
        self.stopping = True
        self._server.close()
        for end in list(self._ends):
            end()
        for client in self._all():
            if client.is_idle:
                client.abort()
        await self._drained(float(self.database.setting("drain_s")))
        for cancellation in list(self.cancellations):
            self.threads.submit(cancellation.cancel, "the server stops")
        await self._drained(1.0)
        for client in self._all():
            client.abort()
        await self._drained(None)
        await self._server.wait_closed()
        self.threads.shutdown(wait=True)
        self._take_back_numbers()

    def _all(self) -> list[HttpConnection | Visitor]:
        return [*self.connections, *self.waiting]

    async def _drained(self, seconds: float | None) -> None:
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=seconds)

    def on_stop(self, end: Callable[[], None]) -> Callable[[], None]:
        """Has `end` called when the server stops; returns what takes that back."""
        self._ends.add(end)
        if self.stopping:
            end()
        return lambda: self._ends.discard(end)

    # Connections and requests

    def in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs something that the server waits for when it stops."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def greet(self, visitor: Visitor) -> None:
        """Somebody has come, and may ask; where too many wait, the oldest of the largest crowd goes."""
        most, of_address = (
            max(int(self.database.setting(name)), self._most)
            for name in ("waiting_logins", "waiting_logins_per_address")
        )
        address = visitor.peer.address
        gone = self.waiting.add(visitor, address, most=most, most_of_address=of_address)
        if gone is not None:
            self.dropped_logins += 1
            gone.abort()

    def forget(self, visitor: Visitor) -> None:
        """A client has gone."""
        self.waiting.remove(visitor)
        if visitor.connection is not None:
            self.connections.discard(visitor.connection)

    async def converse(
        self, visitor: Visitor, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Answers a client until one side has had enough."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            visitor.connection = HttpConnection(self, visitor, reader, writer)
            await visitor.connection.run()
        finally:
            self.forget(visitor)
            self._tasks.discard(task)

    def _admit(self, connection: HttpConnection, *, admin: bool) -> None:
        """A request of a client is let in: the client takes a place, if there is one."""
        if connection in self.connections:
            return
        reserved = int(self.database.setting("connections_reserved"))
        if len(self.connections) >= places(self._most, reserved, admin=admin):
            self.refused_connections += 1
            raise too_many()
        self.waiting.remove(connection.visitor)
        self.connections.add(connection)

    async def answer(self, connection: HttpConnection) -> None:
        """Answers one request."""
        request = connection.request
        name = "none"
        try:
            connection.always(self._cors(request))
            if request.method == "OPTIONS":
                await self._preflight(connection)
                return
            route = self._route(request)
            name = route.path
            await self._let_in(connection, route)
            await route.handler(self, connection)
        except Error as error:
            self.requests[name, status_of(error)] += 1
            raise
        self.requests[name, connection.status] += 1

    def _route(self, request: Request) -> Route:
        found = find(request)
        if found is not None:
            return found
        methods = allowed_methods(request.segments)
        if not methods:
            raise HttpError(
                404, "there is nothing here", sqlstate="42704", hint="GET /openapi.json lists all"
            )
        raise HttpError(
            405, f"{request.method} is not allowed here", hint=f"use {' or '.join(methods)}"
        )

    async def _let_in(self, connection: HttpConnection, route: Route) -> None:
        if route.least is None:
            return
        request = connection.request
        if not request.header("origin") and request.header("sec-fetch-site") in OTHER_SITES:
            raise _other_site()  # an image or a link of another page: browsers send no Origin
        header, asks = request.header("authorization"), self.authenticator
        trusted = self._is_trusted(connection, header)
        identity = asks.known(header, trusted=trusted)
        if identity is None:
            identity = await self.in_thread(
                lambda: asks.identify(header, trusted=trusted, peer=request.peer)
            )
        request.identity = identity
        why = refusal(identity.role, route.least, f"{route.method} {route.path}")
        if why is not None:
            raise why
        self._admit(connection, admin=identity.role == "admin")

    def _is_trusted(self, connection: HttpConnection, header: str) -> bool:
        """Whether a client gets in where there are no users; AccessError if that is what it tries."""
        options, peer = self.options, connection.visitor.peer
        if options.trust_anyone:
            return True
        near = peer.is_own or (options.trust_loopback and peer.is_local)
        if not near and not header and not len(self.authenticator.users):
            raise stranger(peer)
        return near and _names_us(connection.request)

    # Pages of other sites

    def _cors(self, request: Request) -> Mapping[str, str]:
        """Headers for a page's request; HttpError 403 for a page of a site that is not allowed."""
        origin = request.header("origin")
        if not origin or _same_site(origin, request.header("host")):
            return {}
        if origin not in self.options.origins:
            raise _other_site()
        return {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}

    async def _preflight(self, connection: HttpConnection) -> None:
        methods = allowed_methods(connection.request.segments)
        if not methods:
            raise HttpError(404, "there is nothing here", sqlstate="42704")
        headers = {"Allow": ", ".join(methods)}
        if connection.request.header("origin"):
            headers["Access-Control-Allow-Methods"] = ", ".join(methods)
            headers["Access-Control-Allow-Headers"] = (
                "Authorization, Content-Type, Accept, Batch-Id, Last-Event-ID"
            )
            headers["Access-Control-Max-Age"] = "600"
        await connection.answer(200, b"", headers)

    # Threads

    async def in_thread(self, act: Callable[[], T]) -> T:
        """Runs something that may take long."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, act)

    async def cancellable(
        self, connection: HttpConnection, act: Callable[[Cancellation], T], timeout_s: float | None
    ) -> T:
        """Runs a statement in a thread; it is cancelled when the client goes, or takes too long."""
        cancellation = Cancellation()
        self.cancellations.add(cancellation)
        work: asyncio.Future[Any] = asyncio.ensure_future(self.in_thread(lambda: act(cancellation)))
        gone: asyncio.Future[Any] = asyncio.ensure_future(connection.gone())
        try:
            done, _ = await asyncio.wait(
                [work, gone], timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
            if work not in done:
                late = (
                    f"the statement took longer than timeout_s = {timeout_s:g}" if timeout_s else ""
                )
                reason = "the client has gone" if gone in done else late
                await self.in_thread(lambda: cancellation.cancel(reason))
            return cast(T, await work)
        finally:
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
            self.cancellations.discard(cancellation)


def _other_site() -> HttpError:
    return HttpError(
        403,
        "pages of other sites may not ask here",
        sqlstate="42501",
        hint="headwater serve --cors ORIGIN lets one in",
    )


def _names_us(request: Request) -> bool:
    """Whether the client meant this machine: a page whose name was bent to us names its own."""
    host = urlsplit(f"//{request.header('host')}").hostname or ""
    return host == "localhost" or (host != "" and is_local(host))


def _same_site(origin: str, host: str) -> bool:
    try:
        return urlsplit(origin).netloc.lower() == host.lower() != ""
    except ValueError:
        return False
