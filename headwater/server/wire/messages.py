"""Bytes from a client → messages.

Owns the layout of frontend messages and the limits on their size. Must never do I/O, and must
never take more memory than one message of the permitted size. Names follow PostgreSQL's manual,
"Message Formats".
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from headwater.errors import Error
from headwater.settings import Live, current

PROTOCOL_3 = 3
SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102
LARGEST_STARTUP = 10_000  # bytes; PostgreSQL's own limit
SMALL = 16_384  # bytes of a message that is no text, no value and no data
MEBIBYTE = 1 << 20
QUERY, SYNC = ord("Q"), ord("S")


class ProtocolError(Error):
    """The client broke the protocol; where a message ends is no longer sure, or makes no sense."""

    default_sqlstate = "08P01"


@dataclass(frozen=True, slots=True)
class Message:
    """The root of all messages of a client."""


@dataclass(frozen=True, slots=True)
class Startup(Message):
    """The first message: protocol version and parameters such as user and database."""

    major: int
    minor: int
    parameters: dict[str, str]


@dataclass(frozen=True, slots=True)
class SslRequest(Message):
    """May we speak TLS?"""


@dataclass(frozen=True, slots=True)
class GssRequest(Message):
    """May we speak GSSAPI encryption?"""


@dataclass(frozen=True, slots=True)
class CancelRequest(Message):
    """Stop what the connection of this process number and key does."""

    process: int
    secret: bytes


@dataclass(frozen=True, slots=True)
class Password(Message):
    """A step of SASL; what is in it depends on the step."""

    data: bytes


@dataclass(frozen=True, slots=True)
class QueryMessage(Message):
    """Run a script (the simple protocol)."""

    text: str


@dataclass(frozen=True, slots=True)
class Parse(Message):
    """Prepare a statement; type numbers may be 0 or left out."""

    name: str
    text: str
    types: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bind(Message):
    """Make a portal of a prepared statement and values."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DescribeMessage(Message):
    """What does a statement ("S") or portal ("P") take and give?"""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Execute(Message):
    """Run a portal, at most `limit` rows of it; 0 for all."""

    portal: str
    limit: int


@dataclass(frozen=True, slots=True)
class Close(Message):
    """Forget a statement ("S") or portal ("P")."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class FlushMessage(Message):
    """Send what you have."""


@dataclass(frozen=True, slots=True)
class Sync(Message):
    """The end of a series of the extended protocol."""


@dataclass(frozen=True, slots=True)
class FunctionCall(Message):
    """PostgreSQL's old fast path; refused."""


@dataclass(frozen=True, slots=True)
class CopyData(Message):
    """Part of the rows of COPY FROM STDIN."""

    data: bytes


@dataclass(frozen=True, slots=True)
class CopyDone(Message):
    """The end of the rows."""


@dataclass(frozen=True, slots=True)
class CopyFail(Message):
    """The client gives up a COPY."""

    reason: str


@dataclass(frozen=True, slots=True)
class Terminate(Message):
    """Good-bye."""


class _Reader:
    """Reads the fields of one message."""

    __slots__ = ("data", "place")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0

    def text(self) -> str:
        end = self.data.find(b"\0", self.place)
        if end < 0:
            raise ProtocolError("a text in a message has no end")
        found = self.data[self.place : end]
        self.place = end + 1
        try:
            return found.decode()
        except UnicodeDecodeError as error:
            raise ProtocolError(
                "a text in a message is not UTF-8",
                sqlstate="22021",
                hint="client_encoding is always UTF8",
            ) from error

    def take(self, count: int) -> bytes:
        end = self.place + count
        if count < 0 or end > len(self.data):
            raise ProtocolError("a message ends too early")
        found = self.data[self.place : end]
        self.place = end
        return found

    def number(self, code: str) -> int:
        width = struct.calcsize(code)
        return int(struct.unpack(code, self.take(width))[0])

    def numbers(self, code: str) -> tuple[int, ...]:
        """An int16 that counts, and so many numbers."""
        count = self.number("!H")
        width = struct.calcsize(f"!{code}")
        return struct.unpack(f"!{count}{code}", self.take(count * width))

    def values(self) -> tuple[bytes | None, ...]:
        found: list[bytes | None] = []
        for _ in range(self.number("!H")):
            length = self.number("!i")
            found.append(None if length == -1 else self.take(length))
        return tuple(found)

    def end(self) -> None:
        if self.place != len(self.data):
            raise ProtocolError("a message is longer than its fields")


def _kind(reader: _Reader) -> str:
    found = reader.take(1)
    if found not in (b"S", b"P"):
        raise ProtocolError("neither a statement (S) nor a portal (P) is named")
    return found.decode()


def _parse(r: _Reader) -> Message:
    return Parse(r.text(), r.text(), r.numbers("I"))


def _bind(r: _Reader) -> Message:
    return Bind(r.text(), r.text(), r.numbers("h"), r.values(), r.numbers("h"))


def _named(kind: type[DescribeMessage] | type[Close], r: _Reader) -> Message:
    return kind(_kind(r), r.text())


def _ignored(kind: type[Message], r: _Reader) -> Message:
    r.place = len(r.data)
    return kind()


# By first byte: how to read it, and whether it may be large.
READERS: dict[int, tuple[Callable[[_Reader], Message], bool]] = {
    ord("p"): (lambda r: Password(r.take(len(r.data))), False),
    ord("Q"): (lambda r: QueryMessage(r.text()), True),
    ord("P"): (_parse, True),
    ord("B"): (_bind, True),
    ord("D"): (partial(_named, DescribeMessage), False),
    ord("E"): (lambda r: Execute(r.text(), r.number("!i")), False),
    ord("C"): (partial(_named, Close), False),
    ord("H"): (lambda _: FlushMessage(), False),
    ord("S"): (lambda _: Sync(), False),
    ord("F"): (partial(_ignored, FunctionCall), True),
    ord("d"): (lambda r: CopyData(r.take(len(r.data))), True),
    ord("c"): (lambda _: CopyDone(), False),
    ord("f"): (lambda r: CopyFail(r.text()), False),
    ord("X"): (lambda _: Terminate(), False),
}


def read_message(kind: int, body: bytes) -> Message:
    """The message of a first byte and a body; ProtocolError if the body does not fit."""
    reader = _Reader(body)
    message = READERS[kind][0](reader)
    reader.end()
    return message


def read_all(data: bytes) -> list[Message]:
    """The messages of bytes that end where a message ends."""
    found, place = [], 0
    while place < len(data):
        end = place + 1 + int.from_bytes(data[place + 1 : place + 5])
        found.append(read_message(data[place], data[place + 5 : end]))
        place = end
    return found


def read_startup(body: bytes) -> Message:
    """The message that a connection starts with, which has no first byte."""
    reader = _Reader(body)
    code = reader.number("!I")
    if code in (SSL_REQUEST, GSS_REQUEST):
        reader.end()
        return SslRequest() if code == SSL_REQUEST else GssRequest()
    if code == CANCEL_REQUEST:
        return CancelRequest(reader.number("!I"), reader.take(len(body) - reader.place))
    parameters: dict[str, str] = {}
    while (name := reader.text()) != "":
        parameters[name] = reader.text()
    reader.end()
    return Startup(code >> 16, code & 0xFFFF, parameters)


class MessageReader:
    """Cuts a stream of bytes into messages."""

    def __init__(self, largest: Live[int] = 64 * MEBIBYTE) -> None:
        self.largest = largest
        self._data = bytearray()
        self._place = 0
        self.starting = True  # the next message has no first byte

    @property
    def waiting(self) -> int:
        """Bytes that are not read yet."""
        return len(self._data) - self._place

    def feed(self, data: bytes) -> None:
        """More bytes have come."""
        if self._place:
            del self._data[: self._place]
            self._place = 0
        self._data += data

    def peek_kind(self) -> int | None:
        """The first byte of the next message, if it is there."""
        return self._data[self._place] if self.waiting else None

    def starts_with(self, messages: bytes) -> bool:
        """Whether the next messages are these."""
        return self._data.startswith(messages, self._place)

    def series(self, longest: int) -> bytes | None:
        """The next messages up to a Sync or Query, with it; None if they are not there, or longer."""
        data, end = self._data, self._place
        while end + 5 <= len(data):
            kind = data[end]
            end += 1 + int.from_bytes(data[end + 1 : end + 5])
            if end > len(data) or end - self._place > longest:
                return None
            if kind in (SYNC, QUERY):
                return bytes(data[self._place : end])
        return None

    def drop(self, count: int) -> None:
        """Leaves out so many bytes, which were `starts_with`."""
        self._place += count
        if self._place == len(self._data):
            self._data.clear()
            self._place = 0

    def next(self) -> Message | None:
        """The next message, or None if it has not come whole; ProtocolError if it makes no sense."""
        return self._next_startup() if self.starting else self._next_typed()

    def _next_startup(self) -> Message | None:
        if self.waiting < 4:
            return None
        length = int.from_bytes(self._data[self._place : self._place + 4])
        if not 8 <= length <= LARGEST_STARTUP:
            raise ProtocolError("the length of the first message makes no sense")
        if self.waiting < length:
            return None
        return read_startup(self._take(4, length))

    def _next_typed(self) -> Message | None:
        start, data = self._place, self._data
        there = len(data) - start
        if there < 5:
            return None
        kind = data[start]
        length = int.from_bytes(data[start + 1 : start + 5])
        if kind not in READERS:
            raise ProtocolError(f"there is no message of type {chr(kind)!r}")
        largest = current(self.largest) if READERS[kind][1] else SMALL
        if not 4 <= length <= largest:
            raise ProtocolError(
                f"a message of {length} bytes is too long or too short",
                detail=f"messages of this type have at most {largest} bytes",
                hint="SET message_mb, or send the rows in several statements or by COPY",
            )
        if there < length + 1:
            return None
        return read_message(kind, self._take(5, length + 1))

    def _take(self, head: int, length: int) -> bytes:
        start = self._place
        body = bytes(memoryview(self._data)[start + head : start + length])
        self.drop(length)
        return body
