"""Lines over TCP: JSON and CSV, parts of lines, connections that end. No Spark needed."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

import headwater
from headwater.connectors import runner as attempts
from headwater.errors import Error
from tests.harness.patience import PATIENCE_S
from tests.sources.feeding import wait_for_rows, wait_for_state

TABLE = "CREATE STREAMING TABLE t (ts BIGINT NOT NULL, v DOUBLE, name STRING) TIMESTAMP BY ts"


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A server that the test speaks for."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.settimeout(PATIENCE_S)
        yield made


def source(db: headwater.Database, listener: socket.socket, options: str = "") -> None:
    db.sql(TABLE)
    port = listener.getsockname()[1]
    db.sql(f"CREATE SOURCE s INTO t FROM 'tcp://127.0.0.1:{port}' {options}")


def test_lines_of_json_over_several_connections(
    db: headwater.Database, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line may come in parts; the last one needs no end; what the table lacks is left out."""
    monkeypatch.setattr(attempts, "FIRST_PAUSE_S", 0.01)
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


def test_values_of_every_type_as_json_and_csv(
    db: headwater.Database, listener: socket.socket
) -> None:
    """As sinks write them: times, dates and decimals are texts, bytes base64, NaN is NaN, not NULL."""
    db.sql(
        "CREATE STREAMING TABLE t (ts BIGINT NOT NULL, x DOUBLE, n DECIMAL(9, 2), d DATE,"
        " at TIMESTAMP, name STRING, b BINARY, a ARRAY<INT>) TIMESTAMP BY ts"
    )
    port = listener.getsockname()[1]
    db.sql(f"CREATE SOURCE s INTO t FROM 'tcp://127.0.0.1:{port}'")
    with listener.accept()[0] as sender:
        sender.sendall(
            b'{"TS": 1, "x": "NaN", "n": "1.50", "d": "2026-01-02", "at": "2026-01-02T03:04:05Z",'
            b' "name": "NA", "b": "AAE=", "a": [1, null], "other": {}}\n'
        )
        wait_for_rows(db, "s", 1)
        db.sql("DROP SOURCE s")
    ((ts, x, *rest),) = db.sql("SELECT * FROM t").rows()
    assert (ts, x != x) == (1, True)
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert rest == [Decimal("1.50"), date(2026, 1, 2), moment, "NA", b"\x00\x01", [1, None]]
    db.sql("CREATE STREAMING TABLE c (ts BIGINT NOT NULL, x DOUBLE, at TIMESTAMP, name STRING)")
    db.sql(f"CREATE SOURCE s INTO c FROM 'tcp://127.0.0.1:{port}' WITH (format = 'csv')")
    with listener.accept()[0] as sender:
        sender.sendall(b'1,NaN,2026-01-02 03:04:05,NA\n2,,,""\n3,,2026-01-02T04:04:05+01:00,\n')
        wait_for_rows(db, "s", 3)
        db.sql("DROP SOURCE s")
    first, second, third = db.sql("SELECT ts, x, at, name FROM c ORDER BY ts").rows()
    assert first[1] != first[1]
    assert first[2:] == (moment, "NA")
    assert second == (2, None, None, "")
    assert third == (3, None, moment, None)


def test_lines_before_one_that_is_no_row_are_stored(
    db: headwater.Database, listener: socket.socket
) -> None:
    """They came together; the error names the line."""
    source(db, listener)
    with listener.accept()[0] as sender:
        sender.sendall(b'{"ts": 1}\n{"ts": 2, "v": 1}\n{"ts": "x", "name": "bad"}\n{"ts": 4}\n')
        error = wait_for_state(db, "s", "failed").last_error or ""
    assert '{"ts": "x", "name": "bad"}' in error
    assert db.sql("SELECT ts FROM t").rows() == [(1,), (2,)]
