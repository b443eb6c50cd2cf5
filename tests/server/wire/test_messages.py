"""Messages of clients: round trips in any pieces, limits, and bodies that do not fit."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.server.wire import messages as m
from headwater.server.wire.messages import MessageReader, ProtocolError
from tests.server.frontend import encoded, typed, untyped

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
NAME = TEXT
SMALL = st.lists(st.integers(0, 1), max_size=3).map(tuple)
CELLS = st.lists(st.none() | st.binary(max_size=9), max_size=4).map(tuple)
KIND = st.sampled_from(["S", "P"])
TYPED = st.one_of(
    st.builds(m.Password, st.binary(max_size=20)),
    st.builds(m.QueryMessage, TEXT),
    st.builds(m.Parse, NAME, TEXT, st.lists(st.integers(0, 2**32 - 1), max_size=3).map(tuple)),
    st.builds(m.Bind, NAME, NAME, SMALL, CELLS, SMALL),
    st.builds(m.DescribeMessage, KIND, NAME),
    st.builds(m.Execute, NAME, st.integers(-(2**31), 2**31 - 1)),
    st.builds(m.Close, KIND, NAME),
    st.builds(m.CopyData, st.binary(max_size=40)),
    st.builds(m.CopyFail, TEXT),
    st.sampled_from([m.FlushMessage(), m.Sync(), m.FunctionCall(), m.CopyDone(), m.Terminate()]),
)
STARTUP = st.one_of(
    st.builds(
        m.Startup,
        st.integers(0, 9),
        st.integers(0, 9),
        st.dictionaries(TEXT.filter(bool), TEXT, max_size=3),
    ),
    st.sampled_from([m.SslRequest(), m.GssRequest()]),
    st.builds(m.CancelRequest, st.integers(0, 2**32 - 1), st.binary(max_size=32)),
)


@settings(deadline=None, max_examples=150)
@given(STARTUP, st.lists(TYPED, max_size=6), st.lists(st.integers(1, 30), min_size=1))
def test_messages_come_out_as_they_went_in(
    first: m.Message, rest: list[m.Message], cuts: list[int]
) -> None:
    """Whatever pieces the bytes come in, the same messages come out, and nothing stays behind."""
    data = b"".join(map(encoded, [first, *rest]))
    reader, found, place, turn = MessageReader(), [], 0, 0
    while place < len(data):
        size = cuts[turn % len(cuts)]
        reader.feed(data[place : place + size])
        place, turn = place + size, turn + 1
        while (message := reader.next()) is not None:
            found.append(message)
            reader.starting = False
    assert found == [first, *rest]
    assert reader.waiting == 0


def reading(data: bytes, *, starting: bool = False, largest: int = 1000) -> m.Message | None:
    reader = MessageReader(largest)
    reader.starting = starting
    reader.feed(data)
    return reader.next()


@pytest.mark.parametrize(
    ("data", "starting"),
    [
        (typed(b"Q", b"no end"), False),
        (typed(b"Q", b"SELECT\0more"), False),
        (typed(b"Q", b"\xff\xfe\0"), False),
        (typed(b"Z"), False),
        (typed(b"Q", b"x" * 2000), False),  # beyond the limit for texts
        (typed(b"S", b"x" * 20_000), False),  # beyond the limit for others
        (b"Q" + struct.pack("!I", 3), False),
        (typed(b"D", b"Xname\0"), False),
        (typed(b"B", b"\0\0" + struct.pack("!HHi", 0, 1, -2)), False),
        (typed(b"B", b"\0\0" + struct.pack("!HHi", 0, 1, 100)), False),
        (typed(b"E", b"\0\0"), False),
        (typed(b"P", b"\0\0" + struct.pack("!H", 9)), False),
        (untyped(b""), True),
        (struct.pack("!I", 100_000), True),
        (untyped(struct.pack("!I", 196608) + b"user\0me"), True),
        (untyped(struct.pack("!I", m.SSL_REQUEST) + b"more"), True),
    ],
)
def test_what_does_not_fit_is_refused(data: bytes, starting: bool) -> None:
    """Cut, overlong, unknown and senseless messages are ProtocolErrors, never anything else."""
    with pytest.raises(ProtocolError):
        reading(data, starting=starting)


def test_a_message_at_the_limit() -> None:
    """The largest message passes; one byte more does not."""
    text = "x" * (1000 - 4 - 1)
    assert reading(encoded(m.QueryMessage(text))) == m.QueryMessage(text)
    with pytest.raises(ProtocolError, match="1001 bytes"):
        reading(encoded(m.QueryMessage(text + "x")))
