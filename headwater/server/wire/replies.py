"""Messages to a client → bytes.

Owns the layout of backend messages. Must never do I/O or know what a statement is.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headwater.errors import Error

AUTHENTICATION_OK = b"R\0\0\0\x08\0\0\0\0"
PARSE_COMPLETE = b"1\0\0\0\x04"
BIND_COMPLETE = b"2\0\0\0\x04"
CLOSE_COMPLETE = b"3\0\0\0\x04"
NO_DATA = b"n\0\0\0\x04"
PORTAL_SUSPENDED = b"s\0\0\0\x04"
EMPTY_QUERY = b"I\0\0\0\x04"
COPY_DONE = b"c\0\0\0\x04"
NO_TLS, TLS = b"N", b"S"
SCRAM = b"SCRAM-SHA-256"


@dataclass(frozen=True)
class Field:
    """A column as RowDescription shows it."""

    name: str
    oid: int
    size: int = -1
    modifier: int = -1
    format: int = 0


def message(kind: bytes, body: bytes) -> bytes:
    """A message of a first byte and a body."""
    return kind + struct.pack("!I", len(body) + 4) + body


def text(value: str) -> bytes:
    """A text with its end; a zero byte, which would end it early, is left out."""
    return value.encode("utf-8", "replace").replace(b"\0", b"") + b"\0"


def sasl_start() -> bytes:
    """Which ways to log in there are."""
    return message(b"R", struct.pack("!I", 10) + SCRAM + b"\0\0")


def sasl_continue(data: bytes) -> bytes:
    """The server's first message of SCRAM."""
    return message(b"R", struct.pack("!I", 11) + data)


def sasl_final(data: bytes) -> bytes:
    """The server's last message of SCRAM."""
    return message(b"R", struct.pack("!I", 12) + data)


def parameter_status(name: str, value: str) -> bytes:
    """A parameter of the session that clients like to know."""
    return message(b"S", text(name) + text(value))


def backend_key(process: int, secret: bytes) -> bytes:
    """What a client needs to cancel."""
    return message(b"K", struct.pack("!I", process) + secret)


def negotiate(minor: int, unknown: Sequence[str]) -> bytes:
    """The newest minor version that we speak, and options that we do not know."""
    names = b"".join(text(name) for name in unknown)
    return message(b"v", struct.pack("!II", minor, len(unknown)) + names)


def ready(status: str) -> bytes:
    """Ready for a query: I outside of transactions, T inside, E in a failed one."""
    return b"Z\0\0\0\x05" + status.encode()


def row_description(fields: Sequence[Field]) -> bytes:
    """The columns of the rows that follow."""
    parts = [struct.pack("!H", len(fields))]
    for f in fields:
        numbers = struct.pack("!IHIhih", 0, 0, f.oid, f.size, f.modifier, f.format)
        parts.append(text(f.name) + numbers)
    return message(b"T", b"".join(parts))


def parameter_description(types: Sequence[int]) -> bytes:
    """The types of a statement's parameters."""
    return message(b"t", struct.pack(f"!H{len(types)}I", len(types), *types))


def complete(tag: str) -> bytes:
    """A statement is done."""
    return message(b"C", text(tag))


def copy_in(columns: int) -> bytes:
    """Send rows now."""
    return message(b"G", struct.pack(f"!bH{columns}H", 0, columns, *([0] * columns)))


def copy_out(columns: int) -> bytes:
    """Rows come now."""
    return message(b"H", struct.pack(f"!bH{columns}H", 0, columns, *([0] * columns)))


def _fields(severity: str, fields: Mapping[str, str | None]) -> bytes:
    found = [text(f"S{severity}"), text(f"V{severity}")]
    found += [text(code + value) for code, value in fields.items() if value]
    return b"".join(found) + b"\0"


def error(failure: Error, *, fatal: bool = False) -> bytes:
    """An error with SQLSTATE, message, detail, hint and position."""
    place = failure.place
    return message(
        b"E",
        _fields(
            "FATAL" if fatal else "ERROR",
            {
                "C": failure.sqlstate,
                "M": failure.message or type(failure).__name__,
                "D": failure.detail,
                "H": failure.hint,
                "P": None if place is None else str(place.start + 1),
            },
        ),
    )


def notice(words: str) -> bytes:
    """What is worth knowing beside a result."""
    return message(b"N", _fields("NOTICE", {"C": "00000", "M": words}))
