"""The wire protocol as a machine without I/O: bytes in, actions out; answers in, bytes out.

Owns the state of one connection and what is answered to a message (`states.TABLE`). Whoever drives it
calls `feed`, takes actions from `next` until there is none, writes `taken_output`, and reports how each
action ended with `done`, `fail`, `copy_rows` and so on. Must never: touch a socket, a thread, a clock
or a statement; the nonce and the secrets are passed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headwater.errors import Error, NotSupportedError
from headwater.server.wire import messages as m
from headwater.server.wire import replies
from headwater.server.wire.messages import MessageReader, ProtocolError
from headwater.server.wire.scram import MECHANISM, Exchange, LoginError, Verifier
from headwater.server.wire.states import TABLE, Reaction, State
from headwater.settings import Live

NEWEST_MINOR = 0


@dataclass(frozen=True, slots=True)
class StartTls:
    """Start TLS; then `tls_started`."""


@dataclass(frozen=True, slots=True)
class CancelOther:
    """Cancel what another connection does; this one has ended."""

    process: int
    secret: bytes


@dataclass(frozen=True, slots=True)
class LogIn:
    """Look up a user; then `challenge`, `welcome` or `end`."""

    user: str
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """The password was right, of which the client knows nothing yet; then `welcome` or `end`."""


@dataclass(frozen=True, slots=True)
class LoginFailed:
    """The password was wrong, of which the client knows nothing yet; then `end`."""

    error: LoginError


@dataclass(frozen=True, slots=True)
class End:
    """Close the connection once everything is written; a statement under way is cancelled."""


# Messages of the client that somebody outside acts on are their own actions.
Action = (
    StartTls
    | CancelOther
    | LogIn
    | LoggedIn
    | LoginFailed
    | End
    | m.QueryMessage
    | m.Parse
    | m.Bind
    | m.DescribeMessage
    | m.Execute
    | m.Close
    | m.Sync
    | m.CopyData
    | m.CopyDone
    | m.CopyFail
)


class Machine:
    """One connection's protocol."""

    def __init__(self, largest_message: Live[int], *, tls: bool = False) -> None:
        self.state = State.STARTUP
        self.user = ""
        self._largest = largest_message
        self._reader = MessageReader(m.SMALL)  # of a stranger nothing large is kept
        self._offers_tls = tls
        self._encrypted = False
        self._out = bytearray()
        self._extended = False  # a series of the extended protocol has begun, and no Sync ended it
        self._exchange: Exchange | None = None
        self._signature = b""  # of a login that went well: goes out when the user is let in

    # Bytes

    def feed(self, data: bytes) -> None:
        """Bytes have come."""
        if self.state is not State.ENDED:
            self._reader.feed(data)

    def write(self, data: bytes) -> None:
        """Puts the bytes of an answer behind those that wait to be sent."""
        if self.state is not State.ENDED:
            self._out += data

    def _become(self, state: State) -> None:
        """The next state; a connection that has ended stays so, whatever the work still reports."""
        if self.state is not State.ENDED:
            self.state = state

    def taken_output(self) -> bytes:
        """What is to be sent now."""
        found = bytes(self._out)
        self._out.clear()
        return found

    @property
    def waiting(self) -> int:
        """Bytes that came and are not acted on yet."""
        return self._reader.waiting

    @property
    def is_encrypted(self) -> bool:
        """Whether TLS is there."""
        return self._encrypted

    @property
    def unsent(self) -> int:
        """Bytes that wait to be sent."""
        return len(self._out)

    @property
    def is_between(self) -> bool:
        """Whether the next message begins a series: all before it were answered."""
        return self.state is State.READY and not self._extended

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way, nor a series of messages half done."""
        return self.is_between or self.state in (State.STARTUP, State.FIRST, State.FINAL)

    def starts_with(self, messages: bytes) -> bool:
        """Whether the next messages are these."""
        return self._reader.starts_with(messages)

    def upcoming(self, longest: int) -> bytes | None:
        """The next series as it came; None if it is not there whole, or longer."""
        return self._reader.series(longest)

    def repeat(self, length: int, reply: bytes) -> None:
        """A series of so many bytes was answered without reading it."""
        self._reader.drop(length)
        self._out += reply

    @property
    def is_busy(self) -> bool:
        """Whether an action is under way."""
        return self.state in (State.LOOKUP, State.WORKING, State.STREAMING)

    # Messages

    def next(self) -> Action | None:
        """The next thing to do; None if more bytes, or the end of the work under way, must come first."""
        while self.state is not State.ENDED:
            if self.is_busy:
                return self._left()
            try:
                message = self._reader.next()
            except Error as error:
                return self.end(error)
            if message is None:
                return None
            action = self._react(message)
            if action is not None:
                return action
        return None

    def _left(self) -> End | None:
        """End, if the client leaves while work is under way; everything else waits."""
        if not self._reader.starting and self._reader.peek_kind() == ord("X"):
            return self.end(None)
        return None

    def _react(self, message: m.Message) -> Action | None:
        reaction = TABLE[self.state][type(message)]
        if reaction is Reaction.TAKE:
            return self._take(message)
        if reaction is Reaction.SKIP:
            return None
        if reaction is Reaction.LEAVE:
            return self.end(None)
        if reaction is Reaction.REFUSE:
            return self._refuse(message)
        return self.end(self._out_of_place(message))

    def _out_of_place(self, message: m.Message) -> ProtocolError:
        name, state = type(message).__name__.removesuffix("Message"), self.state.value
        return ProtocolError(f"the message {name} does not belong here", detail=f"state: {state}")

    def _refuse(self, message: m.Message) -> Action | None:
        if isinstance(message, m.FunctionCall) and self.state is State.READY:
            self.write(replies.error(NotSupportedError("function calls are not supported")))
            self.state = State.WORKING
            return m.Sync()
        self.state = State.WORKING
        return m.CopyFail(self._out_of_place(message).message)

    def _take(self, message: m.Message) -> Action | None:
        if self.state is State.STARTUP:
            return self._start(message)
        if isinstance(message, m.Password):
            return self._password(message)
        if isinstance(message, m.FlushMessage):
            return None
        if self.state is not State.COPY_IN:
            self._extended = not isinstance(message, m.QueryMessage)
        self.state = State.WORKING
        return message  # type: ignore[return-value]

    # Startup

    def _start(self, message: m.Message) -> Action | None:
        if isinstance(message, m.CancelRequest):
            self.state = State.ENDED
            return CancelOther(message.process, message.secret)
        if isinstance(message, m.SslRequest) and self._offers_tls and not self._encrypted:
            return self._start_tls()
        if isinstance(message, m.SslRequest | m.GssRequest):
            self.write(replies.NO_TLS)
            return None
        assert isinstance(message, m.Startup)
        return self._start_session(message)

    def _start_tls(self) -> Action:
        if self._reader.waiting:  # plain bytes behind the request would pass for encrypted ones
            return self.end(ProtocolError("bytes came before TLS was there"))
        self.write(replies.TLS)
        self.state = State.LOOKUP
        return StartTls()

    def tls_started(self) -> None:
        """TLS is there."""
        self._encrypted = True
        self.state = State.STARTUP

    def _start_session(self, message: m.Startup) -> Action:
        if message.major != m.PROTOCOL_3:
            text = f"protocol {message.major}.{message.minor} is not supported"
            return self.end(ProtocolError(text, sqlstate="0A000", hint="use protocol 3.0"))
        options = [name for name in message.parameters if name.startswith("_pq_.")]
        if message.minor > NEWEST_MINOR or options:
            self.write(replies.negotiate(NEWEST_MINOR, options))
        self.user = message.parameters.get("user", "")
        if not self.user:
            return self.end(ProtocolError("no user is named", sqlstate="28000"))
        self._reader.starting = False
        self.state = State.LOOKUP
        return LogIn(self.user, message.parameters)

    def challenge(self, verifier: Verifier, nonce: str) -> None:
        """The user must show the password."""
        self._exchange = Exchange(verifier, nonce)
        self.write(replies.sasl_start())
        self.state = State.FIRST

    def _password(self, message: m.Password) -> Action | None:
        assert self._exchange is not None
        try:
            if self.state is State.FIRST:
                answer = self._exchange.first(_initial_response(message.data))
                self.write(replies.sasl_continue(answer))
                self.state = State.FINAL
                return None
            self._signature = replies.sasl_final(self._exchange.final(message.data))
        except LoginError as error:
            if error.sqlstate != LoginError.default_sqlstate:
                return self.end(error)
            error.message = f"password authentication failed for user {self.user}"
            self.state = State.LOOKUP
            return LoginFailed(error)
        self.state = State.LOOKUP
        return LoggedIn()

    def welcome(self, parameters: Mapping[str, str], process: int, secret: bytes) -> None:
        """The user is in."""
        self._reader.largest = self._largest
        self.write(self._signature)
        self.write(replies.AUTHENTICATION_OK)
        for name, value in parameters.items():
            self.write(replies.parameter_status(name, value))
        self.write(replies.backend_key(process, secret))
        self.write(replies.ready("I"))
        self.state = State.READY

    # Work

    def streams(self) -> None:
        """The work under way sends rows as it goes."""
        self._become(State.STREAMING)

    def copy_rows(self, reply: bytes) -> None:
        """The work under way wants rows of COPY FROM STDIN, or the next ones of them."""
        self.write(reply)
        self._become(State.COPY_IN)

    def resumes(self) -> None:
        """The rows of a COPY are in, and the work goes on."""
        self._become(State.WORKING)

    def done(self, status: str, *, synced: bool = False) -> None:
        """The work under way has ended well; `status` is that of the transaction.

        `synced`: it was a Sync, which is answered even where messages before it were skipped.
        """
        self._become(State.READY)
        if synced or not self._extended:
            self._extended = False
            self.write(replies.ready(status))

    def fail(self, error: Error, status: str) -> None:
        """The work under way has failed."""
        self.write(replies.error(error))
        if self._extended:
            self._become(State.SKIPPING)
        else:
            self.done(status)

    def end(self, error: Error | None) -> End:
        """The connection ends, with an error or without a word."""
        if error is not None:
            self.write(replies.error(error, fatal=True))
        self.state = State.ENDED
        return End()


def _initial_response(data: bytes) -> bytes:
    """The first message of SCRAM out of SASLInitialResponse."""
    mechanism, found, rest = data.partition(b"\0")
    if mechanism.decode("latin-1") != MECHANISM or not found or len(rest) < 4:
        raise LoginError("only SCRAM-SHA-256 is supported", sqlstate="28000")
    length = int.from_bytes(rest[:4], signed=True)
    if length != len(rest) - 4:
        raise LoginError("a login message makes no sense", sqlstate="08P01")
    return rest[4:]
