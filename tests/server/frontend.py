"""A client's side of the wire protocol, for tests: messages → bytes, and replies cut apart."""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct
from collections.abc import Sequence

from headwater.server.wire import messages as m


def typed(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def untyped(body: bytes) -> bytes:
    return struct.pack("!I", len(body) + 4) + body


def _text(value: str) -> bytes:
    return value.encode() + b"\0"


def _numbers(code: str, values: Sequence[int]) -> bytes:
    return struct.pack(f"!H{len(values)}{code}", len(values), *values)


def _cells(values: Sequence[bytes | None]) -> bytes:
    found = struct.pack("!H", len(values))
    for value in values:
        found += b"\xff\xff\xff\xff" if value is None else struct.pack("!I", len(value)) + value
    return found


def encoded(message: m.Message) -> bytes:
    """The bytes in which a client sends a message."""
    match message:
        case m.Startup(major, minor, parameters):
            named = b"".join(_text(k) + _text(v) for k, v in parameters.items())
            return untyped(struct.pack("!HH", major, minor) + named + b"\0")
        case m.SslRequest():
            return untyped(struct.pack("!I", m.SSL_REQUEST))
        case m.GssRequest():
            return untyped(struct.pack("!I", m.GSS_REQUEST))
        case m.CancelRequest(process, secret):
            return untyped(struct.pack("!II", m.CANCEL_REQUEST, process) + secret)
        case m.Password(data):
            return typed(b"p", data)
        case m.QueryMessage(text):
            return typed(b"Q", _text(text))
        case m.Parse(name, text, types):
            return typed(b"P", _text(name) + _text(text) + _numbers("I", types))
        case m.Bind(portal, statement, formats, values, results):
            body = _text(portal) + _text(statement) + _numbers("h", formats)
            return typed(b"B", body + _cells(values) + _numbers("h", results))
        case m.DescribeMessage(kind, name):
            return typed(b"D", kind.encode() + _text(name))
        case m.Execute(portal, limit):
            return typed(b"E", _text(portal) + struct.pack("!i", limit))
        case m.Close(kind, name):
            return typed(b"C", kind.encode() + _text(name))
        case m.CopyData(data):
            return typed(b"d", data)
        case m.CopyFail(reason):
            return typed(b"f", _text(reason))
    plain = {
        m.FlushMessage: b"H", m.Sync: b"S", m.FunctionCall: b"F", m.CopyDone: b"c", m.Terminate: b"X",
    }  # fmt: skip
    return typed(plain[type(message)])


def replies_of(data: bytes) -> list[tuple[str, bytes]]:
    """Messages of a server: first bytes and bodies; fails if the last one is cut off."""
    found = []
    place = 0
    while place < len(data):
        kind = chr(data[place])
        if kind in "N" and len(data) == 1:  # no TLS
            return [("N", b"")]
        length = int.from_bytes(data[place + 1 : place + 5])
        body = data[place + 5 : place + 1 + length]
        assert len(body) == length - 4, "a reply is cut off"
        found.append((kind, body))
        place += 1 + length
    return found


def kinds(data: bytes) -> str:
    """The first bytes of a server's messages."""
    return "".join(kind for kind, _ in replies_of(data))


def error_fields(body: bytes) -> dict[str, str]:
    """The fields of an error or notice."""
    parts = [part.decode() for part in body.split(b"\0") if part]
    return {part[0]: part[1:] for part in parts}


class ScramClient:
    """The client's side of SCRAM-SHA-256."""

    def __init__(self, password: str, nonce: str = "clientnonce") -> None:
        self._password = password
        self._nonce = nonce
        self._bare = f"n=,r={nonce}"

    def first(self) -> bytes:
        message = f"n,,{self._bare}".encode()
        return b"SCRAM-SHA-256\0" + struct.pack("!I", len(message)) + message

    def final(self, answer: bytes) -> bytes:
        fields = dict(part.split("=", 1) for part in answer.decode().split(","))
        salt, iterations = base64.b64decode(fields["s"]), int(fields["i"])
        salted = hashlib.pbkdf2_hmac("sha256", self._password.encode(), salt, iterations)
        key = hmac.digest(salted, b"Client Key", "sha256")
        without = f"c=biws,r={fields['r']}"
        signed = f"{self._bare},{answer.decode()},{without}".encode()
        signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        return f"{without},p={base64.b64encode(proof).decode()}".encode()
