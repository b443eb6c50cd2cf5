"""A small client of PostgreSQL's protocol that sends ready-made bytes and compares what comes back.

It costs less than a driver, so that the server is what is measured, and speaks to Headwater and
PostgreSQL alike. Logs in without a password only.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

PROTOCOL_3 = 196608
STATEMENT = "asked"
CHUNK = 1 << 18
DATA = ord("D")
PATIENCE_S = 60.0
Address = tuple[str, int] | str  # host and port, or the path of a socket


def message(kind: bytes, body: bytes = b"") -> bytes:
    """A message of a first byte and a body."""
    return kind + struct.pack("!I", len(body) + 4) + body


def simple(text: str) -> bytes:
    """A query of the simple protocol."""
    return message(b"Q", text.encode() + b"\0")


def parse(text: str) -> bytes:
    """Prepares a statement."""
    body = STATEMENT.encode() + b"\0" + text.encode() + b"\0\0\0"
    return message(b"P", body) + message(b"S")


def prepared() -> bytes:
    """Runs the prepared statement as libpq does: Bind, Describe, Execute, Sync."""
    bind = message(b"B", b"\0" + STATEMENT.encode() + b"\0" + b"\0\0" * 3)
    return bind + message(b"D", b"P\0") + message(b"E", b"\0\0\0\0\0") + message(b"S")


class Client:
    """One connection."""

    def __init__(self, address: Address, user: str, database: str) -> None:
        is_path = isinstance(address, str)
        self.socket = socket.socket(socket.AF_UNIX if is_path else socket.AF_INET)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(address)
        if not is_path:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        names = f"user\0{user}\0database\0{database}\0\0".encode()
        self.asked(struct.pack("!II", len(names) + 8, PROTOCOL_3) + names)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.socket.close()

    def asked(self, sent: bytes, until: bytes = b"Z") -> bytes:
        """Everything that comes back, up to a message of a kind; RuntimeError for an error."""
        self.socket.sendall(sent)
        found, place = bytearray(), 0
        while True:
            while len(found) < place + 5 or len(found) < place + 1 + _length(found, place):
                data = self.socket.recv(CHUNK)
                if not data:
                    raise RuntimeError("the server has closed the connection")
                found += data
            kind, length = found[place : place + 1], _length(found, place)
            if kind == b"E":
                raise RuntimeError(bytes(found[place : place + length]).decode(errors="replace"))
            place += 1 + length
            if kind == until:
                return bytes(found)

    def run(self, text: str) -> bytes:
        """A statement's answer."""
        return self.asked(simple(text))

    def cell(self, text: str) -> str | None:
        """The first value of a statement's answer; None if it has no rows."""
        found, place = self.run(text), 0
        while found[place : place + 1] not in (b"D", b"Z"):
            place += 1 + int.from_bytes(found[place + 1 : place + 5])
        length = int.from_bytes(found[place + 7 : place + 11])
        return found[place + 11 : place + 11 + length].decode() if found[place] == DATA else None

    def copy(self, table: str, rows: bytes) -> None:
        """Adds rows of CSV, and waits until they are acknowledged."""
        self.asked(simple(f"COPY {table} FROM STDIN (FORMAT csv)"), until=b"G")
        self.asked(message(b"d", rows) + message(b"c"))


def _length(data: bytearray, place: int) -> int:
    return int.from_bytes(data[place + 1 : place + 5])


@dataclass
class Waiting:
    """One connection of a load: what is sent each time, what must come, and what has come."""

    socket: socket.socket
    sent: bytes
    expected: bytes
    found: bytearray

    def took(self) -> bool:
        """Takes what is there; whether all is, and the next was sent."""
        self.found += self.socket.recv(CHUNK)
        if len(self.found) < len(self.expected):
            return False
        if self.found != self.expected:
            raise RuntimeError("an answer differs from the first one")
        self.found.clear()
        self.socket.sendall(self.sent)
        return True


def load(clients: Sequence[Client], text: str, kind: str, depth: int, seconds: float) -> float:
    """Answers per second of all clients, each with `depth` queries under way; all must be equal."""
    asked = prepared() if kind == "prepared" else simple(text)
    waiting: dict[int, Waiting] = {}
    poll = select.epoll()
    for client in clients:
        if kind == "prepared":
            client.asked(parse(text))
        client.asked(asked)  # so that the answer is known
        expected = client.asked(asked)
        one = Waiting(client.socket, asked * depth, expected * depth, bytearray())
        waiting[client.socket.fileno()] = one
        poll.register(client.socket, select.EPOLLIN)
    for one in waiting.values():
        one.socket.sendall(one.sent)
    count, started = 0, time.perf_counter()
    while (now := time.perf_counter()) - started < seconds:
        for number, _ in poll.poll(PATIENCE_S):
            if waiting[number].took():
                count += depth
    poll.close()
    return count / (now - started)
