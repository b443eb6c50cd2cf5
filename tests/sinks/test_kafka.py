"""Kafka out, against the mock cluster inside librdkafka: transactions, places, keys. No Spark needed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headwater.sinks import runner
from headwater.sinks.kafka import KafkaTarget
from headwater.sinks.manifest import Manifest
from tests.sinks.flowing import Connect, expected, feed, make_query, wait_for_rows

kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")


@pytest.fixture(scope="module")
def brokers() -> Iterator[str]:
    """The address of a cluster of one broker, which lives as long as its client."""
    host = kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = host.list_topics(timeout=10).brokers.values()
    yield f"{broker.host}:{broker.port}"
    host.flush(1)


def read(brokers: str, topic: str, count: int) -> list[tuple[bytes | None, dict[str, Any]]]:
    """All committed messages of a topic; fails if there are others than `count`."""
    settings = {
        "bootstrap.servers": brokers,
        "group.id": f"reader-of-{topic}",
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
    }
    consumer = kafka.Consumer(settings)
    found, ends = [], set()
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([kafka.TopicPartition(topic, number, 0) for number in partitions])
    while len(ends) < len(partitions):
        message = consumer.poll(10)
        assert message is not None, f"{len(found)} of {count}"
        if message.error() is not None:
            ends.add(message.partition())
        else:
            found.append((message.key(), json.loads(message.value())))
    consumer.close()
    assert len(found) == count
    return sorted(found, key=lambda pair: (pair[1]["_t"], pair[1]["k"]))


def test_written_once_over_restarts_and_lost_answers(
    connect: Connect, folder: Path, brokers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a transaction was committed and the sink did not hear of it, and made no note.

    The mock cluster takes offsets in a transaction and forgets them: they are committed beside it.
    """
    monkeypatch.setattr(runner, "FIRST_PAUSE_S", 0.001)
    write, lost = KafkaTarget.write, [False, True, False]

    def answer_lost(self: KafkaTarget, batch: Any) -> None:
        if not lost or not lost.pop():
            write(self, batch)
            return
        with monkeypatch.context() as patch:
            patch.setattr(Manifest, "replace", lambda *_: None)
            write(self, batch)
        text = f"{batch.progress.row_count} {batch.progress.token}"
        place = kafka.TopicPartition("out", 0, batch.position + 1, text)
        assert self._consumer is not None
        self._consumer.commit(offsets=[place], asynchronous=False)
        raise ConnectionError("no answer")

    monkeypatch.setattr(KafkaTarget, "write", answer_lost)
    with connect(folder) as db:
        make_query(db)
        feed(db, 0, 3)
        db.sql(
            f"CREATE SINK k FROM q INTO 'kafka://{brokers}/out' WITH (key = 'k', batch_rows = 1)"
        )
        wait_for_rows(db, "k", 6)
    with connect(folder) as db:
        feed(db, 3, 1)
        wait_for_rows(db, "k", 8)
    assert lost == []
    found = read(brokers, "out", 8)
    assert [(m["k"], m["s"], m["_t"]) for _, m in found] == expected(0, 4)
    assert {key for key, _ in found} == {b"1", b"2"}
