"""Messages as frames: a short one is one, a long one comes in fragments."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from websockets.frames import Frame, Opcode
from websockets.protocol import CLIENT, Protocol

from headwater.server.http.failure import HttpError
from headwater.server.http.request import Request
from headwater.server.http.subscribe import in_parts
from headwater.server.http.websocket import WebSocket, accepted

HANDSHAKE = {
    "upgrade": "websocket",
    "connection": "keep-alive, Upgrade",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-version": "13",
}


class Wire:
    """Takes what is written."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []

    async def write(self, data: bytes) -> None:
        self.writes.append(data)


async def _given(parts: Sequence[str]) -> AsyncIterator[Sequence[str]]:
    for part in parts:
        yield list(part)


@pytest.mark.parametrize(
    ("parts", "frames"),
    [
        (["one"], [(Opcode.TEXT, b"one", True)]),
        (
            ["a", "b", "c"],
            [(Opcode.TEXT, b"a", False), (Opcode.CONT, b"b", False), (Opcode.CONT, b"c", True)],
        ),
        ([], []),
    ],
)
def test_parts_are_fragments(parts: list[str], frames: list[tuple[Any, bytes, bool]]) -> None:
    wire: Any = Wire()
    asyncio.run(WebSocket(wire).send(_given(parts)))
    client = Protocol(CLIENT)
    client.receive_data(b"".join(wire.writes))
    found = [frame for frame in client.events_received() if isinstance(frame, Frame)]
    assert [(frame.opcode, bytes(frame.data), frame.fin) for frame in found] == frames
    assert len(wire.writes) == len(frames)


def _asked(headers: dict[str, str]) -> Request:
    return Request("GET", (), {}, headers, "")


def test_the_handshake() -> None:
    """The key and the proof are those of RFC 6455 §1.3."""
    assert accepted(_asked(HANDSHAKE)) == {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Accept": "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"sec-websocket-version": "12"},
        {"sec-websocket-key": "short"},
        {"sec-websocket-key": "c2hvcnQ="},
        {"connection": "close"},
    ],
)
def test_no_handshake(wrong: dict[str, str]) -> None:
    with pytest.raises(HttpError, match="no handshake"):
        accepted(_asked(HANDSHAKE | wrong))


def test_parts_are_put_together_up_to_a_size() -> None:
    assert list(in_parts(["ab", "cd", "ef", "g"], 3)) == [["ab", "cd"], ["ef", "g"]]
    assert list(in_parts(["abcdef"], 3)) == [["abcdef"]]
    assert list(in_parts([], 3)) == []
