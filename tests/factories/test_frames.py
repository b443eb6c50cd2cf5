"""Frames over a socket: whole, in order, in pieces, and cut off."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater import errors
from headwater.factories.frames import Frame, encoded, error_from_json, error_to_json, received

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Both ends of a connection."""
    near, far = socket.socketpair()
    with near, far:
        yield near, far


def _bytes(frame: Frame) -> bytes:
    return b"".join(map(bytes, encoded(frame)))


def test_rows_and_words_arrive_as_they_were_sent(pair: Pair) -> None:
    tables = [
        pa.table({"k": ["a", None], "v": pa.array([1, 2], pa.int16())}),
        pa.table({"x": pa.array([], pa.timestamp("us", "UTC"))}),
        pa.table({}),
    ]
    pair[0].sendall(_bytes(Frame({"kind": "append", "note": {"é": None}}, tables)))
    pair[0].sendall(_bytes(Frame({"kind": "functions"}, data=b"\x00\xff")))
    pair[0].sendall(_bytes(Frame({"kind": "pulse"})))
    first, second, third = filter(None, (received(pair[1]) for _ in range(3)))
    assert (first.kind, first.head["note"]) == ("append", {"é": None})
    assert first.rows() == tables
    assert [table.schema for table in first.rows()] == [table.schema for table in tables]
    assert [bytes(body) for body in second.bodies] == [b"\x00\xff"]
    assert (third.kind, third.bodies) == ("pulse", [])


@given(st.lists(st.integers(0, 200), max_size=4), st.data())
def test_a_frame_is_whole_or_not_there(sizes: list[int], data: st.DataObject) -> None:
    """Whatever pieces it comes in; cut off anywhere, it is the end of the line."""
    tables = [pa.table({"v": list(range(size))}) for size in sizes]
    whole = _bytes(Frame({"kind": "x"}, tables))
    cut = data.draw(st.integers(0, len(whole)))
    near, far = socket.socketpair()
    with near, far:
        near.sendall(whole[:cut])
        near.shutdown(socket.SHUT_WR)
        frame = received(far)
        assert (frame is None) == (cut < len(whole))
        if frame is not None:
            assert frame.rows() == tables
            assert received(far) is None


@pytest.mark.parametrize(
    "error",
    [
        errors.StorageError("no room", sqlstate="53100", detail="d", hint="h"),
        errors.BindError("no such column", sqlstate="42703"),
    ],
)
def test_an_error_arrives_as_what_it_was(error: errors.Error) -> None:
    error.__cause__ = OSError(28, "No space left on device")
    again = error_from_json(error_to_json(error))
    assert type(again) is type(error)
    for name in ("message", "sqlstate", "detail", "hint"):
        assert getattr(again, name) == getattr(error, name)
    assert isinstance(again.__cause__, OSError)
    assert again.__cause__.errno == 28


def test_an_error_of_python_is_named() -> None:
    again = error_from_json(error_to_json(ZeroDivisionError("division by zero")))
    assert type(again) is errors.Error
    assert again.message == "ZeroDivisionError: division by zero"
    assert type(error_from_json({"type": "socket", "message": "m"})) is errors.Error


def test_a_stranger_cannot_make_room_for_as_much_as_he_likes() -> None:
    """A hello has a bound: its length is read before anybody knows who sent it."""
    near, far = socket.socketpair()
    with near, far:
        for head, body in ((1 << 31, 0), (10, 1 << 62)):
            far.sendall(struct.pack("<IQ", head, body))
            with pytest.raises(ValueError, match="a frame of"):
                received(near, 1 << 16)
        far.sendall(struct.pack("<IQ", 2, 0) + b"[]")
        with pytest.raises(ValueError, match="no object"):
            received(near, 1 << 16)
