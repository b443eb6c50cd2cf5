"""Series of messages that come again: answered by the same bytes, and never by those of an old answer."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import headwater
from benchmarks.serve.loader import Client
from headwater.server.wire import messages as m
from headwater.server.wire.series import LONGEST_SERIES, MOST_SERIES
from tests.server.frontend import encoded, replies_of
from tests.server.live import LiveServer

TEXTS = ("SELECT * FROM v", "SELECT n FROM v", "SELECT k FROM w;", "SELECT * FROM v WHERE k = 7")
VIEWS = (
    "CREATE OR REPLACE VIEW v AS SELECT k, count(*) AS n FROM s GROUP BY k",
    "CREATE OR REPLACE VIEW v AS SELECT k, sum(k) AS n FROM s GROUP BY k",
    "CREATE OR REPLACE VIEW v AS SELECT k, avg(k) AS n FROM s GROUP BY k",
)


@pytest.fixture
def live() -> Iterator[LiveServer]:
    """A server over a stream and two views."""
    settings = {"eager_spark": False}
    with headwater.connect(":memory:", settings=settings) as db, LiveServer(db) as server:
        db.sql("CREATE STREAMING TABLE s (k INT)")
        db.sql("INSERT INTO s VALUES (7), (8)")
        db.sql(VIEWS[0])
        db.sql("CREATE VIEW w AS SELECT k, count(*) AS n FROM s GROUP BY k")
        yield server


def client_of(live: LiveServer, *, repeats: bool) -> tuple[Client, list[int]]:
    """A connection, and how often one of its series was answered without reading it."""
    before = set(live.server.connections)
    client = Client((live.host, live.port), "tester", "headwater")
    (number,) = set(live.server.connections) - before
    connection = live.server.connections[number]
    found: list[int] = []
    if not repeats:
        connection._repeats = None
        return client, found
    original = connection.machine.repeat

    def repeat(length: int, reply: bytes) -> None:
        found.append(length)
        original(length, reply)

    connection.machine.repeat = repeat
    return client, found


def asked(client: Client, *series: m.Message) -> list[tuple[str, bytes]]:
    """What comes back for some messages, of which each Sync and Query ends a series."""
    client.socket.sendall(b"".join(map(encoded, series)))
    due = sum(isinstance(message, m.Sync | m.QueryMessage) for message in series)
    data = b""
    while data.count(b"Z\0\0\0\x05") < due:
        data += client.socket.recv(1 << 16)
    return replies_of(data)


def bound(name: str, formats: tuple[int, ...] = (), *, describe: bool = True) -> list[m.Message]:
    """Bind, Describe, Execute and Sync."""
    middle = [m.DescribeMessage("P", "")] if describe else []
    return [m.Bind("", name, (), (), formats), *middle, m.Execute("", 0), m.Sync()]


def test_the_second_series_is_a_repeat(live: LiveServer) -> None:
    """Each usual shape is answered without reading it once it is known; rows of text and of bytes."""
    client, repeats = client_of(live, repeats=True)
    with client:
        text = TEXTS[0]
        asked(client, m.Parse("x", text, ()), m.Sync())
        shapes = (
            [m.QueryMessage(text)],
            bound("x"),
            bound("x", (1,)),
            bound("x", describe=False),
            [*bound("x")[:-1] * 5, m.Sync()],
            [m.Parse("", text, ()), *bound("")],
        )
        asked(client, m.QueryMessage(text))
        for shape in shapes:
            first = asked(client, *shape)
            repeats.clear()
            assert asked(client, *shape, *shape) == [*first, *first]
            assert len(repeats) == 2
        assert [kind for kind, _ in first] == list("12TDDCZ")


def test_an_old_answer_is_never_repeated(live: LiveServer) -> None:
    """After an insert, in a transaction, and with another statement of the name, series are read."""
    client, repeats = client_of(live, repeats=True)
    with client:
        asked(client, m.Parse("x", TEXTS[1], ()), m.Sync())
        for _ in range(3):
            old = asked(client, *bound("x"))
        assert repeats
        live.server.database.sql("INSERT INTO s VALUES (7)")
        assert asked(client, *bound("x")) != old
        asked(client, m.Close("S", "x"), m.Parse("x", TEXTS[0], ()), m.Sync())
        asked(client, *bound("x"))
        assert len(asked(client, *bound("x"))[2][1]) > len(old[2][1])  # three columns, not one
        asked(client, m.QueryMessage("BEGIN"))
        assert asked(client, *bound("x"))[-1] == ("Z", b"T")


def test_columns_stay_as_promised(live: LiveServer) -> None:
    """A client that was told of columns gets these types, though the view has others now."""
    client, _ = client_of(live, repeats=True)
    with client:
        asked(client, m.Parse("x", TEXTS[1], ()), m.DescribeMessage("S", "x"), m.Sync())
        asked(client, *bound("x", (1,), describe=False))
        live.server.database.sql(VIEWS[2])
        live.server.database.sql(TEXTS[1])
        asked(client, m.QueryMessage(TEXTS[1]))  # its answer is known, as a double
        for _ in range(2):
            found = asked(client, *bound("x", (1,), describe=False))
            assert found[1] == ("D", b"\0\1\0\0\0\x08" + (7).to_bytes(8))


def test_random_series(live: LiveServer) -> None:
    """What a connection answers is what one answers that reads every message."""
    chance = random.Random(5)
    with_, repeats = client_of(live, repeats=True)
    without, _ = client_of(live, repeats=False)
    database = live.server.database
    names = ("x", "y")

    def one() -> list[m.Message]:
        name, text = chance.choice(names), chance.choice(TEXTS)
        usual = bound(name, chance.choice([(), (), (1,)]), describe=chance.random() < 0.7)
        return chance.choice(
            [
                usual, usual, usual, usual, [*usual[:-1] * 2, m.Sync()],
                [m.QueryMessage(text)], [m.QueryMessage(text)],
                [m.Parse("", text, ()), *bound("")],
                bound(""),
                [m.Parse(name, text, ()), m.Sync()],
                [m.Close("S", name), m.Parse(name, text, ()), m.Sync()],
                [m.DescribeMessage("S", name), m.Sync()],
                [m.Bind("", name, (), (), ()), m.Execute("", 1), m.Execute("", 0), m.Sync()],
                [m.QueryMessage(chance.choice(["BEGIN", "COMMIT", "COMMIT", "DEALLOCATE ALL"]))],
            ]
        )  # fmt: skip

    with with_, without:
        for _ in range(600):
            if chance.random() < 0.03:
                database.sql("INSERT INTO s VALUES (7)")
            if chance.random() < 0.02:
                database.sql(chance.choice(VIEWS))
            series = [message for _ in range(chance.choice([1, 1, 3])) for message in one()]
            assert asked(with_, *series) == asked(without, *series), series
    assert len(repeats) > 40


def test_bounds(live: LiveServer) -> None:
    """The last few series are remembered, and none that is long."""
    client, repeats = client_of(live, repeats=True)
    with client:
        texts = [TEXTS[0] + " " * n for n in range(MOST_SERIES + 1)]
        for _ in range(2):
            for text in texts:
                asked(client, m.QueryMessage(text))
        repeats.clear()
        for text in reversed(texts):
            asked(client, m.QueryMessage(text))
        assert len(repeats) == MOST_SERIES
        long = m.QueryMessage(TEXTS[0] + " " * LONGEST_SERIES)
        repeats.clear()
        for _ in range(3):
            asked(client, long)
        assert not repeats
