"""Kafka in, against the mock cluster inside librdkafka: offsets, restarts, messages that are no rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sinks.flowing import Connect
from tests.sources.feeding import QUICK, wait_for_rows, wait_for_state

kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

TABLE = "CREATE STREAMING TABLE t (ts BIGINT NOT NULL, v DOUBLE, name STRING) TIMESTAMP BY ts"


@pytest.fixture(scope="module")
def host() -> Iterator[Any]:
    """A cluster of one broker, which lives as long as this client of it."""
    made = kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
    yield made
    made.flush(1)


def send(host: Any, first: int, count: int) -> None:
    """Messages over all partitions of the topic."""
    for number in range(first, first + count):
        row = {"ts": number, "v": number / 2, "name": f"n{number}", "more": [number]}
        host.produce("rows", value=json.dumps(row), partition=number % 4)
    host.flush(10)


def test_each_message_is_stored_once_over_restarts(
    connect: Connect, folder: Path, host: Any
) -> None:
    """Several micro-batches, a restart, and one message that is no row: it stops the source."""
    (broker,) = host.list_topics("rows", timeout=10).brokers.values()
    address = f"kafka://{broker.host}:{broker.port}/rows"
    send(host, 0, 100)
    with connect(folder) as db:
        db.sql(f"{TABLE} WATERMARK INTERVAL '1000' SECONDS")
        db.sql(f"CREATE SOURCE s INTO t FROM '{address}' WITH (batch_rows = 60, {QUICK})")
        wait_for_rows(db, "s", 100)
    send(host, 100, 20)
    with connect(folder) as db:
        wait_for_rows(db, "s", 120)
        rows = db.sql("SELECT ts, v, name FROM t ORDER BY ts").rows()
        host.produce("rows", value="no row", partition=0)
        host.flush(10)
        found = wait_for_state(db, "s", "failed")
    assert rows == [(n, n / 2, f"n{n}") for n in range(120)]
    assert found.row_count == 120
    assert "JSON" in (found.last_error or "").upper()
