"""Kafka in, against the mock cluster inside librdkafka: offsets, restarts, messages that are no rows."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from headwater.sources.kafka_reader import CLIENT, KafkaPart, KafkaReader
from tests.harness.patience import PATIENCE_S
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


@pytest.fixture
def client(host: Any) -> dict[str, str]:
    """What reaches the cluster."""
    (broker,) = host.list_topics(timeout=PATIENCE_S).brokers.values()
    return {"bootstrap.servers": f"{broker.host}:{broker.port}"}


def send(host: Any, topic: str, first: int, count: int, partitions: int) -> None:
    """Messages over some partitions of the topic."""
    for number in range(first, first + count):
        row = {"ts": number, "v": number / 2, "name": f"n{number}", "more": [number]}
        host.produce(topic, value=json.dumps(row), key=f"k{number}", partition=number % partitions)
    host.flush(10)


def reader(client: Mapping[str, str], topic: str, start: str = "earliest") -> KafkaReader:
    """What Spark makes of the source's options."""
    options = {"topic": topic, "start": start, "limit": "60", CLIENT: json.dumps(client)}
    return KafkaReader(options)


def numbers(found: KafkaReader, start: dict[str, int], end: dict[str, int]) -> list[int]:
    """`ts` of the messages between two offsets."""
    rows = [row for part in found.partitions(start, end) for row in found.read(part)]
    assert all(row[0] == f"k{json.loads(row[1])['ts']}" for row in rows)
    return sorted(json.loads(row[1])["ts"] for row in rows)


def test_micro_batches_have_each_message_once(host: Any, client: dict[str, str]) -> None:
    """Bounded ones, one after the other, whichever reader asks; one that is repeated is the same."""
    send(host, "batches", 0, 100, 4)
    ends = [reader(client, "batches").initialOffset()]
    limit = reader(client, "batches").getDefaultReadLimit()
    found = []
    for _ in range(3):
        ends.append(reader(client, "batches").latestOffset(ends[-1], limit))
        found.append(numbers(reader(client, "batches"), ends[-2], ends[-1]))
        assert numbers(reader(client, "batches"), ends[-2], ends[-1]) == found[-1]
        send(host, "batches", 100, 5, 1)
    assert [len(part) for part in found] == [60, 45, 5]
    assert sorted({number for part in found for number in part}) == list(range(105))
    assert reader(client, "batches", "next").initialOffset() == {**ends[-1], "0": 40}


def test_what_is_not_there_is_an_error(host: Any, client: dict[str, str]) -> None:
    """Messages that the brokers do not have (any more) are not passed over."""
    send(host, "short", 0, 4, 1)
    with pytest.raises(kafka.KafkaException, match=r"[Oo]ffset"):
        list(reader(client, "short").read(KafkaPart(0, 90, 100)))


def test_each_message_is_stored_once_over_restarts(
    connect: Connect, folder: Path, host: Any, client: dict[str, str]
) -> None:
    """With Spark: a restart, and one message that is no row, which stops the source."""
    address = f"kafka://{client['bootstrap.servers']}/rows"
    send(host, "rows", 0, 100, 2)
    with connect(folder) as db:
        db.sql(f"{TABLE} WATERMARK INTERVAL '1000' SECONDS")
        db.sql(f"CREATE SOURCE s INTO t FROM '{address}' WITH ({QUICK})")
        wait_for_rows(db, "s", 100)
    send(host, "rows", 100, 20, 2)
    with connect(folder) as db:
        wait_for_rows(db, "s", 120)
        rows = db.sql("SELECT ts, v, name FROM t ORDER BY ts").rows()
        host.produce("rows", value="no row", partition=0)
        host.flush(10)
        found = wait_for_state(db, "s", "failed")
    assert rows == [(n, n / 2, f"n{n}") for n in range(120)]
    assert found.row_count == 120
    assert "JSON" in (found.last_error or "").upper()
