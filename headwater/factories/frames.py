"""Frames between the driver and a factory: a head of plain data, and rows as Arrow streams.

Owns: the bytes of a frame. Must never: read code from a frame that comes from a factory; heads are JSON.

    length of the head u32 | length of the body u64 | head | body

The body is the tables one after another; the head's `sizes` says where each ends.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from headwater import errors

_LENGTHS = struct.Struct("<IQ")


@dataclass(frozen=True)
class Frame:
    """One message: what it says, and the rows or bytes that it carries."""

    head: dict[str, Any]
    tables: Sequence[pa.Table] = ()
    data: bytes = b""  # of frames without tables
    bodies: Sequence[memoryview] = field(default=(), repr=False)  # of a frame that was received

    @property
    def kind(self) -> str:
        """What the frame is about."""
        return str(self.head["kind"])

    def rows(self) -> list[pa.Table]:
        """The tables of a frame that was received."""
        return [pa.ipc.open_stream(pa.py_buffer(body)).read_all() for body in self.bodies]


def encoded(frame: Frame) -> list[bytes | pa.Buffer]:
    """The buffers of a frame, to be written one after another."""
    bodies: list[Any] = [_stream(table) for table in frame.tables] or (
        [frame.data] if frame.data else []
    )
    head = dict(frame.head)
    if bodies:
        head["sizes"] = [len(body) for body in bodies]
    text = json.dumps(head, separators=(",", ":")).encode()
    return [_LENGTHS.pack(len(text), sum(map(len, bodies))), text, *bodies]


def _stream(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def received(connection: socket.socket, most: int | None = None) -> Frame | None:
    """The next frame; None at the end of the line. ValueError for one that is larger than `most`."""
    lengths = _exactly(connection, _LENGTHS.size)
    if lengths is None:
        return None
    head_length, body_length = _LENGTHS.unpack(lengths)
    if most is not None and head_length + body_length > most:
        raise ValueError(f"a frame of {head_length + body_length} bytes")
    text = _exactly(connection, head_length)
    body = _exactly(connection, body_length) if body_length else memoryview(b"")
    if text is None or body is None:
        return None
    head = json.loads(bytes(text))
    if not isinstance(head, dict):
        raise ValueError("the head of a frame is no object")
    bodies, start = [], 0
    for size in head.pop("sizes", ()):
        bodies.append(body[start : start + size])
        start += size
    return Frame(head, bodies=bodies)


def _exactly(connection: socket.socket, length: int) -> memoryview | None:
    buffer = bytearray(length)
    view, got = memoryview(buffer), 0
    while got < length:
        count = connection.recv_into(view[got:])
        if not count:
            return None
        got += count
    return view


def error_to_json(error: BaseException) -> dict[str, Any]:
    """An error as plain data."""
    if not isinstance(error, errors.Error):
        return {"type": "Error", "message": f"{type(error).__name__}: {error}"}
    cause = error.__cause__
    return {
        "type": type(error).__name__,
        "message": error.message,
        "sqlstate": error.sqlstate,
        "detail": error.detail,
        "hint": error.hint,
        "errno": cause.errno if isinstance(cause, OSError) else None,
    }


def error_from_json(said: dict[str, Any]) -> errors.Error:
    """The error that `error_to_json` told of."""
    kind = getattr(errors, str(said["type"]), errors.Error)
    if not (isinstance(kind, type) and issubclass(kind, errors.Error)):
        kind = errors.Error
    parts = {name: said.get(name) for name in ("sqlstate", "detail", "hint")}
    error: errors.Error = kind(str(said["message"]), **parts)
    if said.get("errno") is not None:
        error.__cause__ = OSError(said["errno"], "")
    return error
