"""Lines over TCP: JSON and CSV, parts of lines, connections that end. No Spark needed."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

import headwater
from headwater.errors import Error
from headwater.sources import tcp
from tests.sources.feeding import wait_for_rows, wait_for_state

TABLE = "CREATE STREAMING TABLE t (ts BIGINT NOT NULL, v DOUBLE, name STRING) TIMESTAMP BY ts"


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server that the test speaks for."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.settimeout(30)
        yield made


def source(db: headwater.Database, listener: socket.socket, options: str = "") -> None:
    db.sql(TABLE)
    port = listener.getsockname()[1]
    db.sql(f"CREATE SOURCE s INTO t FROM 'tcp://127.0.0.1:{port}' {options}")


def test_lines_of_json_over_several_connections(
    db: headwater.Database, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line may come in parts; the last one needs no end; what the table lacks is left out."""
    monkeypatch.setattr(tcp, "FIRST_PAUSE_S", 0.01)
    source(db, listener)
    with listener.accept()[0] as sender:
        sender.sendall(b'{"ts": 1, "v": 1.5, "more": [1]}\n{"ts": 2, "na')
        wait_for_rows(db, "s", 1)
        sender.sendall('me": "ä"}\n\n{"ts": 3}'.encode())
    with listener.accept()[0] as sender:
        sender.sendall(b'{"ts": 4, "v": null}\n')
        wait_for_rows(db, "s", 4)
        db.sql("DROP SOURCE s")
    assert db.sql("SELECT ts, v, name FROM t").rows() == [
        (1, 1.5, None),
        (2, None, "ä"),
        (3, None, None),
        (4, None, None),
    ]


def test_lines_of_csv_in_the_order_of_the_columns(
    db: headwater.Database, listener: socket.socket
) -> None:
    """A line that is no row stops the source, with what is wrong; RESUME goes on."""
    source(db, listener, "WITH (format = 'csv')")
    with listener.accept()[0] as sender:
        sender.sendall(b'1,0.5,"a,b"\n2,,\n')
        wait_for_rows(db, "s", 2)
        sender.sendall(b"3,x,y\n")
        error = wait_for_state(db, "s", "failed").last_error
    assert error is not None
    assert "cannot be read (22P04)" in error
    db.sql("RESUME SOURCE s")
    with listener.accept()[0] as sender:
        sender.sendall(b"4,1,z\n")
        wait_for_rows(db, "s", 3)
        db.sql("DROP SOURCE s")
    found = db.sql("SELECT ts, v, name FROM t").rows()
    assert found == [(1, 0.5, "a,b"), (2, None, None), (4, 1.0, "z")]


@pytest.mark.parametrize(
    "rest", ["'tcp:host:1'", "'tcp://host'", "'tcp://h:1' WITH (format = 'xml')"]
)
def test_refused(db: headwater.Database, rest: str) -> None:
    """An address without a port, a format that is not there."""
    db.sql(TABLE)
    with pytest.raises(Error) as caught:
        db.sql(f"CREATE SOURCE s INTO t FROM {rest}")
    assert caught.value.sqlstate == "22023"
