"""What listeners count: connections, statements, rows in and out, in SQL and for Prometheus alike."""

from __future__ import annotations

import http.client
import json
import re
from contextlib import closing
from typing import Any

import pytest

import headwater
from headwater.server.http.server import HttpOptions, HttpServer
from tests.harness.patience import PATIENCE_S
from tests.server.live import Live, LiveServer


def numbers(db: headwater.Database, listener: str) -> dict[str, int]:
    rows = db.sql("SELECT name, value FROM headwater.metrics").rows()
    head = f"{listener}."
    return {name.removeprefix(head): value for name, value in rows if name.startswith(head)}


def ask(live: Live, method: str, path: str, body: str = "") -> bytes:
    with closing(http.client.HTTPConnection(live.host, live.port, timeout=PATIENCE_S)) as asking:
        asking.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        with asking.getresponse() as answer:
            assert answer.status == 200
            return answer.read()


def test_wire_counts() -> None:
    """Rows of INSERT and COPY, rows sent, answers that were known too; what has ended stays counted."""
    psycopg: Any = pytest.importorskip("psycopg", reason="psycopg is not installed")
    settings = {"eager_spark": False, "connections": 1}
    with headwater.connect(":memory:", settings=settings) as db:
        db.sql("CREATE STREAMING TABLE t (at INT) TIMESTAMP BY at")
        with LiveServer(db) as live:
            with psycopg.connect(live.dsn, autocommit=True) as client:
                client.execute("INSERT INTO t VALUES (1), (2), (3)")
                with client.cursor() as cursor, cursor.copy("COPY t FROM STDIN") as copy:
                    copy.write(b"4\n5\n")
                for _ in range(5):
                    assert len(client.execute("SELECT at FROM t").fetchall()) == 5
                with pytest.raises(psycopg.OperationalError, match="too many"):
                    psycopg.connect(live.dsn)
                ended = next(iter(live.server.connections.values())).ended
                live.wait_until(lambda: len(live.server.guests.all()) == 1)
                found = numbers(db, "wire")
            assert found == {
                "connections": 1, "waiting_logins": 0, "accepted_connections": 1,
                "refused_connections": 1, "dropped_logins": 0, "statements": 7, "rows_in": 5, "rows_out": 25,
            }  # fmt: skip
            live.wait_for(ended)
            assert numbers(db, "wire") == {**found, "connections": 0}
        assert numbers(db, "wire") == {}


def test_known_answers_are_counted(db: headwater.Database) -> None:
    """A view that has not changed is answered from bytes that are there: these rows count as well."""
    psycopg: Any = pytest.importorskip("psycopg", reason="psycopg is not installed")
    db.sql("CREATE STREAMING TABLE t (at INT, v INT) TIMESTAMP BY at")
    db.sql("CREATE VIEW sums AS SELECT v, sum(at) AS total FROM t GROUP BY v")
    db.insert("t", [(1, 1), (2, 2)])
    with LiveServer(db) as live, psycopg.connect(live.dsn, autocommit=True) as client:
        for _ in range(6):
            assert len(client.execute("SELECT * FROM sums").fetchall()) == 2
        found = numbers(db, "wire")
        assert (found["statements"], found["rows_out"]) == (6, 12)


def test_http_counts() -> None:
    """The same over HTTP; `/metrics` tells requests apart by route, and agrees with SQL."""
    with headwater.connect(":memory:", settings={"eager_spark": False}) as db:
        db.sql("CREATE STREAMING TABLE t (at INT) TIMESTAMP BY at")
        with Live(HttpServer(db, HttpOptions(port=0))) as live:
            ask(live, "POST", "/tables/t", json.dumps([{"at": 1}, {"at": 2}]))
            ask(live, "POST", "/sql", json.dumps({"sql": "INSERT INTO t VALUES (3)"}))
            ask(live, "POST", "/sql", json.dumps({"sql": "SELECT at FROM t"}))
            # A request is counted when its answer is out: the client may have it a moment before.
            live.wait_until(lambda: sum(live.server.requests.values()) == 3)
            found = numbers(db, "http")
            for name in ("connections", "waiting_logins"):
                del found[name]
            assert found == {
                "refused_connections": 0, "dropped_logins": 0, "requests": 3, "statements": 2, "rows_in": 3,
                "rows_out": 3,
            }  # fmt: skip
            text = ask(live, "GET", "/metrics").decode()
    shown = dict(re.findall(r"^headwater_(http\S*) (\S+)$", text, re.MULTILINE))
    assert shown["http_rows_in_total"] == shown["http_rows_out_total"] == "3.0"
    assert shown['http_requests_total{route="/sql",status="200"}'] == "2.0"
    assert text.count("# TYPE headwater_http_requests_total counter") == 1
