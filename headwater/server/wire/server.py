"""PostgreSQL's wire protocol on asyncio: sockets, TLS, threads for statements, cancellation.

Owns the connections. A connection's bytes go through its `Machine`; what that asks for is done here: at
once where the answer is known, else by the session in a thread, one part of the result after the other,
each waiting until the client has taken the one before. Must never run a statement on the event loop.
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from headwater.database import Database
from headwater.errors import Error
from headwater.kernel.cancellation import Cancellation
from headwater.server.attempts import Attempts, key_of
from headwater.server.counts import Counts
from headwater.server.peers import Peer, peer_of, refusal
from headwater.server.serve import address_of
from headwater.server.waiting import too_many
from headwater.server.wire import machine as actions
from headwater.server.wire import messages as m
from headwater.server.wire import replies
from headwater.server.wire.catalog.engine import CatalogEngine
from headwater.server.wire.commands import Commands
from headwater.server.wire.copying import IncomingRows
from headwater.server.wire.guests import Guests
from headwater.server.wire.machine import Machine
from headwater.server.wire.outcome import Sent
from headwater.server.wire.scram import LoginError, mock_verifier
from headwater.server.wire.series import Repeats
from headwater.server.wire.session import Session
from headwater.server.wire.states import State
from headwater.server.wire.users import Login, NoUsers, WireUsers

MEBIBYTE = 1 << 20
READ_AHEAD = 1 * MEBIBYTE  # bytes of a client that wait while its statement runs
LARGE_TEXT = 32 << 10  # characters; longer texts and values are read in a thread
SECRET_BYTES = 4
STOP_PATIENCE_S = (
    5.0  # for clients that do not take their last words, and then for their statements
)


@dataclass(frozen=True)
class WireOptions:
    """Where to listen, and whom to let in."""

    host: str = "127.0.0.1"
    port: int = 5433
    tls: ssl.SSLContext | None = None
    trust_anyone: bool = False  # without users, from other machines too
    trust_loopback: bool = False  # without users, every OS user of this machine


class WireServer:
    """A listener for PostgreSQL's protocol; `start` and `stop` belong to one event loop."""

    def __init__(
        self,
        database: Database,
        options: WireOptions | None = None,
        users: WireUsers | None = None,
        attempts: Attempts | None = None,
    ) -> None:
        """`attempts`: the wrong passwords that all listeners count together."""
        self.database = database
        self.options = options or WireOptions()
        self.users: WireUsers = users if users is not None else NoUsers()
        self.attempts = attempts if attempts is not None else Attempts()
        self.guests: Guests[WireConnection] = Guests(database.setting)
        self.connections = self.guests.inside
        self.mock_secret = database.login_secret
        self._server: asyncio.Server | None = None
        self.stopping = False

    async def start(self) -> None:
        """Listens."""
        self.catalog = CatalogEngine(self.database)
        threads = self.guests.most + 4
        self.threads = ThreadPoolExecutor(threads, thread_name_prefix="headwater-wire")
        loop = asyncio.get_running_loop()
        o = self.options
        self._server = await loop.create_server(lambda: WireConnection(self), o.host, o.port)
        self._take_back_numbers = self.database.add_numbers(self.guests.numbers)

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        return address_of(self._server)

    async def stop(self) -> None:
        """Takes no more statements, lets those under way end, cancels what takes longer than `drain_s`."""
        if self._server is None:
            return
        self.stopping = True
        self._server.close()
        for connection in self.guests.all():
            connection.drain()
        ended = await self._all_ended(float(self.database.setting("drain_s")))
        for connection in self.guests.all():
            connection.shut_down()
        ended = ended or await self._all_ended(STOP_PATIENCE_S)
        for connection in self.guests.all():
            connection.abort()  # its client does not take what was sent
        ended = ended or await self._all_ended(STOP_PATIENCE_S)
        await self._server.wait_closed()
        self.threads.shutdown(wait=ended, cancel_futures=True)
        self._take_back_numbers()
        self.catalog.close()

    def largest_message(self) -> int:
        """How many bytes a message may have."""
        return int(self.database.setting("message_mb")) * MEBIBYTE

    async def _all_ended(self, patience_s: float) -> bool:
        """Whether all connections end in time."""
        waiting = [asyncio.create_task(c.ended.wait()) for c in self.guests.all()]
        if not waiting:
            return True
        _, late = await asyncio.wait(waiting, timeout=patience_s)
        for task in late:
            task.cancel()
        return not late


class WireConnection(asyncio.Protocol):
    """One client."""

    def __init__(self, server: WireServer) -> None:
        self._server = server
        self.machine = Machine(server.largest_message, tls=server.options.tls is not None)
        self.secret = secrets.token_bytes(SECRET_BYTES)
        self.ended = asyncio.Event()
        self.login: Login | None = None
        self.peer = Peer("")
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._session: Session | None = None
        self._repeats: Repeats | None = None
        self._number: int | None = None
        self._running: Sent | None = None  # a statement, stopped while rows of COPY come in
        self._incoming: IncomingRows | None = None
        self._task: asyncio.Task[None] | None = None
        self._given: dict[str, str] = {}
        self._is_reading = True
        self._patience: asyncio.TimerHandle | None = None

    @property
    def counts(self) -> Counts:
        """What its statements did."""
        return Counts() if self._session is None else self._session.counts

    # What asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has come."""
        self._transport = cast(asyncio.Transport, transport)
        server = self._server
        self.peer = peer_of(transport.get_extra_info("socket"), with_user=not len(server.users))
        patience_s = float(server.database.setting("login_timeout_s"))
        late = LoginError(f"the login took longer than {patience_s:g} s", sqlstate="57014")
        self._patience = self._loop.call_later(patience_s, server.guests.drop, self, late)
        server.guests.greet(self)

    def give_up(self, error: Error) -> None:
        """Ends the connection before its login, with a word where one is due."""
        if self.machine.state in (State.FIRST, State.FINAL):
            self._refuse(error)
        else:
            self.abort()

    def _refuse(self, error: Error) -> None:
        self.machine.end(error)
        self._leave()

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        self.machine.feed(data)
        self._pump()

    def eof_received(self) -> bool:
        """The client has closed its side; so do we."""
        return False

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        """The client is gone: what runs for it is cancelled."""
        self.machine.end(None)
        self._writable.set()
        self.cancel("the client has gone")
        if self._task is None:
            self._forget()

    def pause_writing(self) -> None:
        """The client does not take what we send."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The client takes what we send again."""
        self._writable.set()
        self._pump()

    def abort(self) -> None:
        """Ends the connection at once, whatever is still to be sent."""
        if self._transport is not None:
            self._transport.abort()

    def _forget(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self._server.guests.leave(self, self._number)
        if self._running is not None:
            close = getattr(self._running, "close", None)
            if close is not None:
                close()
            self._running = None
        self.ended.set()

    # Acting

    def cancel(self, reason: str) -> None:
        """Cancels the statement under way."""
        session = self._session
        if session is not None and self._task is not None:
            self._server.threads.submit(session.cancellation.cancel, reason)

    def drain(self) -> None:
        """The server stops: what is under way goes on, a subscription ends, nothing else begins."""
        session = self._session
        if session is not None and self._task is not None:
            self._server.threads.submit(session.cancellation.finish)
        self._pump()

    def shut_down(self) -> None:
        """Ends the connection with a word to the client, and cancels what is under way."""
        self.cancel("the server stops")
        if self._transport is not None and not self._transport.is_closing():
            self._write()
            gone = Error("the server stops", sqlstate="57P01", hint="connect again in a while")
            self._transport.write(replies.error(gone, fatal=True))
            self._transport.close()

    def _pump(self) -> None:
        """Does what the client asked for, as far as that goes without waiting."""
        machine = self.machine
        while self._writable.is_set():
            if self._server.stopping and machine.is_idle:
                self.shut_down()
                return
            if not (machine.is_between and self._repeats and self._repeats.answered(machine)):
                action = machine.next()
                if action is None:
                    break
                if isinstance(action, actions.End):
                    self._leave()
                    return
                self._act(action)
            if machine.unsent > MEBIBYTE:
                self._write()
        self._write()
        self._read_or_not()

    def _write(self) -> None:
        data = self.machine.taken_output()
        if data and self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def _read_or_not(self) -> None:
        """Stops reading while much waits to be acted on."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        wanted = self.machine.waiting < READ_AHEAD or not self.machine.is_busy
        if wanted and not self._is_reading:
            transport.resume_reading()
        elif not wanted and self._is_reading:
            transport.pause_reading()
        self._is_reading = wanted

    def _leave(self) -> None:
        self._write()
        self.cancel("the client has left")
        if self._transport is not None:
            self._transport.close()

    def _act(self, action: actions.Action) -> None:
        if isinstance(action, m.CopyData | m.CopyDone | m.CopyFail):
            self._copy(action)
        elif isinstance(action, actions.StartTls):
            self._write()
            self._start(self._start_tls())
        elif isinstance(action, actions.CancelOther):
            self._server.guests.cancel(action.process, action.secret)
            self._leave()
        elif isinstance(action, actions.LogIn):
            self._log_in(action)
        elif isinstance(action, actions.LoggedIn | actions.LoginFailed):
            self._settle(action)
        else:
            self._statement(action)

    def _start(self, work: Any) -> None:
        self._task = self._loop.create_task(work)

    # Logging in

    async def _start_tls(self) -> None:
        assert self._transport is not None
        assert self._server.options.tls is not None
        try:
            found = await self._loop.start_tls(
                self._transport, self, self._server.options.tls, server_side=True
            )
        except (OSError, ssl.SSLError):
            found = None
        self._task = None
        if found is None:
            self.abort()
            self._forget()  # asyncio tells nobody of the end of a connection in its handshake
            return
        self._transport = found
        self._is_reading = True
        self.machine.tls_started()
        self._pump()

    def _log_in(self, action: actions.LogIn) -> None:
        self._given = dict(action.parameters)
        server, options = self._server, self._server.options
        near = self.peer.is_local or options.trust_anyone
        if options.tls is not None and not self.machine.is_encrypted and not near:
            why = "connections from other machines need TLS"
            self._refuse(LoginError(why, sqlstate="28000", hint="sslmode=require"))
        elif not len(server.users):
            if self._is_trusted():
                self._welcome()
            else:
                self._refuse(refusal(self.peer))
        else:
            self._ask_password(action.user)

    def _is_trusted(self) -> bool:
        """Whether a client gets in where there are no users."""
        options, peer = self._server.options, self.peer
        return options.trust_anyone or peer.is_own or (options.trust_loopback and peer.is_local)

    def _ask_password(self, user: str) -> None:
        server = self._server
        try:
            server.attempts.check(key_of(self.peer.address, user))
        except Error as error:
            self._refuse(error)
            return
        self.login = server.users.verifier_of(user)
        verifier = self.login.verifier if self.login else mock_verifier(user, server.mock_secret)
        self.machine.challenge(verifier, secrets.token_urlsafe(18))

    def _settle(self, action: actions.LoggedIn | actions.LoginFailed) -> None:
        """The password was looked at: what the client is told of it."""
        right = isinstance(action, actions.LoggedIn)
        try:
            key = key_of(self.peer.address, self.machine.user)
            self._server.attempts.settle(key, right=right)
            if isinstance(action, actions.LoginFailed):
                raise action.error
        except Error as error:
            self._refuse(error)
            return
        self._welcome()

    def _welcome(self) -> None:
        server, user = self._server, self.machine.user
        is_admin = self.login is None or self.login.role == "admin"
        self._number = server.guests.admit(self, admin=is_admin)
        if self._number is None:
            self._refuse(too_many())
            return
        if self._patience is not None:
            self._patience.cancel()
        name = self._given.get("database") or user
        commands = Commands(self._given, user, name)
        commands.process = self._number
        role_of = None if self.login is None else partial(server.users.role_of, user)
        self._session = Session(server.database, server.catalog, commands, role_of)
        self._repeats = Repeats(self._session)
        self.machine.welcome(commands.reported, self._number, self.secret)

    # Statements

    def _statement(self, action: actions.Action) -> None:
        """Answers at once where that needs no work, else starts a thread."""
        session, machine = self._session, self.machine
        assert session is not None
        try:
            if isinstance(action, m.QueryMessage):
                answer = session.answer_now(action.text)
                work = session.script(action.text) if answer is None else None
            elif isinstance(action, m.Execute):
                answer = session.execute_now(action.portal, action.limit)
                work = session.execute(action.portal, action.limit) if answer is None else None
            elif isinstance(action, m.DescribeMessage) and action.kind == "P":
                answer = session.describe_now(action.name)
                work = session.describe_portal(action.name) if answer is None else None
            elif isinstance(action, m.DescribeMessage):
                answer, work = None, session.describe_statement(action.name)
            elif isinstance(action, m.Parse | m.Bind) and _is_large(session, action):
                answer, work = None, session.prepare(action)
            else:
                self._small(session, action)
                return
        except Exception as error:  # a defect ends a statement, never the connection
            session.transaction.fail()
            machine.fail(as_error(error), session.status)
            return
        if work is None:
            machine.write(answer or b"")
            machine.done(session.status)
            return
        if session.cancellation.requested:  # else portals that are open go on under it
            session.cancellation = Cancellation()
        self._running = work
        self._start(self._run())

    def _small(self, session: Session, action: actions.Action) -> None:
        """What never waits: Parse, Bind, Close, Sync."""
        machine = self.machine
        if isinstance(action, m.Parse):
            session.parse(action.name, action.text, action.types)
            machine.write(replies.PARSE_COMPLETE)
        elif isinstance(action, m.Bind):
            session.bind(action)
            machine.write(replies.BIND_COMPLETE)
        elif isinstance(action, m.Close):
            session.close(action.kind, action.name)
            machine.write(replies.CLOSE_COMPLETE)
        else:
            session.sync()
            machine.done(session.status, synced=True)
            return
        machine.done(session.status)

    async def _run(self) -> None:
        """Takes the parts of a statement's answer from its thread, and sends each."""
        session, machine = self._session, self.machine
        assert session is not None
        try:
            while self._running is not None:
                part = await self._in_thread(next, self._running, None)
                if machine.state is State.ENDED:
                    break
                if part is None:
                    self._running = None
                    machine.done(session.status)
                elif isinstance(part, IncomingRows):
                    self._incoming = part
                    machine.copy_rows(replies.copy_in(len(part.schema)))
                    break
                else:
                    machine.write(part)
                    machine.streams()
                    self._write()
                    await self._writable.wait()
        except Exception as error:
            self._running = None
            session.transaction.fail()
            machine.fail(as_error(error), session.status)
        self._finish()

    def _finish(self) -> None:
        """A statement, or a part of a COPY, is done: on with what waits."""
        self._task = None
        if self.machine.state is State.ENDED:
            self._write()
            if self._transport is None or self._transport.is_closing():
                self._forget()
        else:
            self._pump()

    async def _in_thread(self, function: Any, *arguments: Any) -> Any:
        return await self._loop.run_in_executor(self._server.threads, function, *arguments)

    # COPY FROM STDIN

    def _copy(self, action: m.CopyData | m.CopyDone | m.CopyFail) -> None:
        incoming = self._incoming
        assert incoming is not None
        if isinstance(action, m.CopyData):
            if incoming.take(action.data):
                self._start(self._read_rows(incoming))
            else:
                self.machine.copy_rows(b"")
            return
        if isinstance(action, m.CopyFail):
            incoming.failure = Error(f"COPY from stdin failed: {action.reason}", sqlstate="57014")
        self._incoming = None
        self.machine.resumes()
        self._start(self._run())

    async def _read_rows(self, incoming: IncomingRows) -> None:
        """Reads what came of a COPY; an error ends the statement at once."""
        try:
            await self._in_thread(incoming.read)
            self.machine.copy_rows(b"")
            self._finish()
        except Exception as error:
            incoming.failure = as_error(error)
            self._incoming = None
            self.machine.resumes()
            await self._run()


def _is_large(session: Session, action: m.Parse | m.Bind) -> bool:
    """Whether reading a message's text and values would hold up the other clients."""
    if isinstance(action, m.Parse):
        return len(action.text) > LARGE_TEXT
    prepared = session.prepared.get(action.statement)
    text = len(prepared.text) if prepared is not None else 0
    return text + sum(len(value) for value in action.values if value is not None) > LARGE_TEXT


def as_error(error: BaseException) -> Error:
    """Any failure as one that has an SQLSTATE."""
    if isinstance(error, Error):
        return error
    return Error(
        f"an internal error: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}",
        hint="this is a defect of Headwater; please report it",
    )
