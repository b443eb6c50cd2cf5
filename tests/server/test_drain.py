"""`headwater serve` told to stop: what is under way may end, nothing new begins, nothing is lost."""

from __future__ import annotations

import contextlib
import http.client
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater
from tests.harness.patience import PATIENCE_S
from tests.server.served import Served

psycopg: Any = pytest.importorskip("psycopg", reason="psycopg is not installed")

OFFLINE = {"eager_spark": False}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a table and a query that has one result."""
    path = tmp_path / "data"
    with headwater.connect(path, settings=OFFLINE) as db:
        db.sql("CREATE STREAMING TABLE t (at INT) TIMESTAMP BY at")
        db.sql("CREATE CONTINUOUS QUERY q AS SELECT * FROM t [ROWS 1] SAMPLE 1 ROWS")
        db.insert("t", [(1,)])
        db.flush()
    return path


def connected(server: Served) -> Any:
    host, port = server.address
    dsn = f"host={host} port={port} user=tester sslmode=disable"
    return psycopg.connect(dsn, autocommit=True)


def rows_of(folder: Path) -> list[tuple[Any, ...]]:
    with headwater.connect(folder, settings=OFFLINE) as db:
        return db.sql("SELECT at FROM t").rows()


def subscribed(client: Any) -> Iterator[tuple[Any, ...]]:
    """The rows of a subscription that has begun: the first one is there."""
    rows = client.cursor().stream("SUBSCRIBE q EARLIEST")
    assert next(rows)[0] == 1
    return rows  # type: ignore[no-any-return]


@contextlib.contextmanager
def events_of(server: Served) -> Iterator[http.client.HTTPResponse]:
    """A subscription over HTTP that has begun: the first result was read."""
    asking = http.client.HTTPConnection(*server.http_address, timeout=PATIENCE_S)
    with contextlib.closing(asking):
        asking.request("GET", "/subscribe/q?after=earliest")
        with asking.getresponse() as answer:
            while answer.readline() != b"data: ]}\n":
                pass
            yield answer


def test_what_is_under_way_may_end(folder: Path) -> None:
    """A COPY ends after the signal and is durable; idle clients, and new statements, are refused.

    Subscribers, over both protocols, come to an end without an error.
    """
    with Served(folder, drain_s=120) as server, contextlib.ExitStack() as open_:
        copying, idle, reading = (open_.enter_context(connected(server)) for _ in range(3))
        rows, events = subscribed(reading), open_.enter_context(events_of(server))
        with copying.cursor() as cursor:
            with cursor.copy("COPY t FROM STDIN") as copy:
                copy.write(b"2\n")
                server.ask_to_stop()
                assert list(rows) == []
                assert b"data:" not in events.read()
                with pytest.raises(psycopg.errors.AdminShutdown, match="the server stops"):
                    idle.execute("SELECT 1")
                with pytest.raises(psycopg.OperationalError):
                    connected(server)
                assert server.is_running
                copy.write(b"3\n")
            assert cursor.rowcount == 2
        with pytest.raises(psycopg.OperationalError):  # the word came with the end of the COPY
            copying.execute("SELECT 1")
        assert server.exit_code() == 0
    assert sorted(rows_of(folder)) == [(1,), (2,), (3,)]


def test_what_takes_too_long_is_cancelled(folder: Path) -> None:
    """After drain_s a COPY that has not ended is dropped, its client told, and the server stops."""
    with Served(folder, drain_s=0.2) as server, connected(server) as client:
        under_way = contextlib.ExitStack()
        copy = under_way.enter_context(client.cursor().copy("COPY t FROM STDIN"))
        copy.write(b"2\n")
        server.ask_to_stop()
        assert server.exit_code() == 0
        with pytest.raises(psycopg.errors.AdminShutdown, match="the server stops"):
            under_way.close()
    assert rows_of(folder) == [(1,)]
