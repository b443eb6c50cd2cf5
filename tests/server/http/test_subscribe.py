"""Subscriptions over HTTP: events and WebSockets, resumed where they broke off; queries that end."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect as connect_socket

import headwater
from headwater.server.http.connection import WRITE_AHEAD
from headwater.server.http.rows_out import PART_BYTES
from headwater.server.http.server import HttpOptions, HttpServer
from tests.harness.patience import PATIENCE_S
from tests.server.http.client import Client
from tests.server.live import Live


@pytest.fixture
def following(db: headwater.Database) -> Iterator[Live]:
    """A server over a database with a continuous query that gives one result a second."""
    db.sql("CREATE STREAMING TABLE e (t BIGINT, v STRING) TIMESTAMP BY t")
    db.sql(
        "CREATE CONTINUOUS QUERY q AS SELECT count(*) AS n, max(v) AS v"
        " FROM e [INTERVAL '1' SECOND BEFORE] SAMPLE INTERVAL '1' SECOND"
    )
    with Live(HttpServer(db, HttpOptions(port=0))) as live:
        yield live


def feed(db: headwater.Database, first: int, last: int, text: str = "x") -> None:
    """Rows at the seconds from `first` to `last`, and everything up to then is complete."""
    db.insert("e", [{"t": second, "v": text} for second in range(first, last + 1)])
    db.advance("e", last)
    db.flush()


class Events:
    """A reader of server-sent events."""

    def __init__(self, live: Live, path: str, **headers: str) -> None:
        self.connection = http.client.HTTPConnection(live.host, live.port, timeout=PATIENCE_S)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.connection.request("GET", path, headers=named)
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.read()
        assert self.answer.getheader("Content-Type") == "text/event-stream"

    def next(self) -> tuple[str, str, Any] | None:
        """The kind, id and data of the next event; None at the end."""
        found = {"event": "", "id": ""}
        data: list[str] = []
        while line := self.answer.readline().decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if name == "data":
                data.append(value)
            elif name:
                found[name] = value
            elif data:
                return found["event"], found["id"], json.loads("\n".join(data))
        return None

    def close(self) -> None:
        """Drops the connection."""
        self.answer.close()
        self.connection.close()


def test_events_go_on_where_they_broke_off(following: Live, db: headwater.Database) -> None:
    """A dropped connection that comes again with the last id misses nothing and sees nothing twice."""
    feed(db, 0, 5)
    events = Events(following, "/subscribe/q?after=earliest")
    seen = [events.next() for _ in range(3)]
    events.close()
    feed(db, 6, 9)
    last = seen[-1]
    assert last is not None
    events = Events(following, "/subscribe/q", Last_Event_ID=last[1])
    seen += [events.next() for _ in range(5)]
    feed(db, 10, 10)
    seen.append(events.next())
    events.close()
    found = [event[2] for event in seen if event is not None]
    times = [result["time"] for result in found]
    assert times == list(range(times[0], times[0] + 9))
    assert [result["token"] for result in found] == [event[1] for event in seen if event]
    assert [column["name"] for column in found[0]["columns"]] == ["n", "v", "_t"]
    assert found[3]["rows"] == [[1, "x", times[3]]]
    events = Events(following, "/subscribe/q?timeout_s=0.01", Last_Event_ID=found[-2]["token"])
    rest = [event[2]["time"] for event in iter(events.next, None)]
    assert rest == list(range(times[-1], 11))
    events.close()


@pytest.mark.parametrize("options", ["", " WITH (parts = 2)"], ids=["whole", "in parts"])
def test_a_view_may_be_subscribed_to(following: Live, db: headwater.Database, options: str) -> None:
    """First its rows, then what each commit changes; after a dropped connection what came since."""
    db.sql("CREATE STREAMING TABLE s (t INT, k INT) TIMESTAMP BY t")
    db.sql(f"CREATE VIEW counted{options} AS SELECT k, count(*) AS n FROM s GROUP BY k")
    db.insert("s", [(1, 1), (2, 2)])
    events = Events(following, "/subscribe/counted")
    first = events.next()
    events.close()
    assert first is not None
    assert sorted(row[:2] + row[-1:] for row in first[2]["rows"]) == [[1, 1, "+"], [2, 1, "+"]]
    db.insert("s", [(3, 1)])
    events = Events(following, "/subscribe/counted", Last_Event_ID=first[1])
    later = events.next()
    events.close()
    assert later is not None
    assert sorted(row[:2] + row[-1:] for row in later[2]["rows"]) == [[1, 1, "-"], [1, 2, "+"]]


def opened(live: Live, path: str) -> Any:
    """A WebSocket, open while inside."""
    return connect_socket(f"ws://{live.host}:{live.port}{path}", open_timeout=PATIENCE_S)


def test_web_sockets_do_the_same(following: Live, db: headwater.Database) -> None:
    """Messages, a ping, a goodbye, and going on after a token; `emit` is the client's choice."""
    feed(db, 0, 5)
    with opened(following, "/subscribe/q?after=earliest") as client:
        first = [json.loads(client.recv(PATIENCE_S)) for _ in range(2)]
        assert client.ping().wait(PATIENCE_S)
        client.send("nobody listens")
    with opened(following, f"/subscribe/q?after={first[-1]['token']}&emit=changes") as client:
        second = json.loads(client.recv(PATIENCE_S))
        feed(db, 6, 6, "y")
        changes = [json.loads(client.recv(PATIENCE_S)) for _ in range(3)]
    assert second["time"] == first[-1]["time"] + 1
    assert [column["name"] for column in second["columns"]][-1] == "_op"
    assert changes[0]["rows"] == []
    with opened(following, "/subscribe/q") as client:
        closing = threading.Thread(target=lambda: db.sql("DROP QUERY q"))
        closing.start()
        with pytest.raises(ConnectionClosed):
            client.recv(PATIENCE_S)
        closing.join()


def test_refusals_come_before_anything_starts(following: Live) -> None:
    """An unknown query, a wrong token, a wrong emit, a handshake without a key."""
    with Client(following) as client:
        assert client.ask("GET", "/subscribe/zzz").status == 404
        assert client.ask("GET", "/subscribe/q?after=zzz").sqlstate == "22023"
        assert client.ask("GET", "/subscribe/q?emit=zzz").sqlstate == "22023"
        assert client.ask("GET", "/subscribe/q?timeout_s=zzz").sqlstate == "22023"
        wrong = client.ask("GET", "/subscribe/q", Upgrade="websocket", Connection="Upgrade")
        assert wrong.status == 400


def test_a_select_may_be_subscribed_to(following: Live, db: headwater.Database) -> None:
    """A continuous select in place of a name lives as long as its reader."""
    text = "SELECT%20v%20FROM%20e%20[ROWS%201]%20SAMPLE%201%20ROWS"
    events = Events(following, f"/subscribe/{text}")
    feed(db, 0, 0, "hello")
    found = events.next()
    assert found is not None
    assert found[2]["rows"][0][0] == "hello"
    events.close()


def test_events_end_when_the_server_stops(db: headwater.Database) -> None:
    """Subscribers do not hold a server up; they come again with their token."""
    db.sql("CREATE STREAMING TABLE e (t BIGINT, v STRING) TIMESTAMP BY t")
    db.sql("CREATE CONTINUOUS QUERY q AS SELECT v FROM e [ROWS 1] SAMPLE 1 ROWS")
    with contextlib.ExitStack() as later:
        with Live(HttpServer(db, HttpOptions(port=0))) as live:
            events = Events(live, "/subscribe/q")
            later.callback(events.close)
            messages = later.enter_context(opened(live, "/subscribe/q"))
        assert events.next() is None
        with pytest.raises(ConnectionClosed):
            messages.recv(PATIENCE_S)


def test_a_slow_subscriber_costs_bounded_memory(following: Live, db: headwater.Database) -> None:
    """One that takes nothing stays behind in the query's results; nothing of its own piles up."""
    server = following.server
    assert isinstance(server, HttpServer)
    with socket.create_connection((following.host, following.port)) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(b"GET /subscribe/q?after=earliest HTTP/1.1\r\nHost: localhost\r\n\r\n")
        for start in range(0, 40, 10):
            feed(db, start, start + 9, "y" * 400_000)
        held = [c.writer.transport.get_write_buffer_size() for c in list(server.connections)]
        assert max(held) <= WRITE_AHEAD + 8 * PART_BYTES
        with Client(following) as other:
            assert other.ask("GET", "/health").status == 200
