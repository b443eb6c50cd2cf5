"""Kafka out, against the mock cluster inside librdkafka: transactions, places, keys. No Spark needed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater
from headwater.connectors import runner
from headwater.errors import Error
from headwater.sinks import kafka as kafka_sink
from headwater.sinks.kafka import KafkaTarget
from headwater.sinks.manifest import Manifest
from headwater.sinks.options import SinkOptions
from headwater.sinks.target import SinkBatch, SinkName, SinkProgress
from tests.harness.patience import PATIENCE_S
from tests.sinks.flowing import Connect, expected, feed, make_query, wait_for_rows

kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")


@pytest.fixture(scope="module")
def brokers() -> Iterator[str]:
    """The address of a cluster of one broker, which lives as long as its client."""
    host = kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = host.list_topics(timeout=PATIENCE_S).brokers.values()
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
    partitions = consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions
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


def test_a_process_that_was_replaced_is_shut_out(brokers: str, tmp_path: Path) -> None:
    """It had begun a transaction and thinks it may go on: only the newer process can write."""
    schema = pa.schema([("k", pa.int64()), ("_t", pa.int64())])
    rows = pa.table({"k": [1, 2], "_t": [0, 0]}, schema)
    first = made_target(brokers, "unfinished", tmp_path)
    assert first.open(schema) is None
    assert first._producer is not None
    first._producer.begin_transaction()
    first._produce(first._producer, None, '{"k": 0, "_t": 0}')
    first._producer.flush(10)
    second = made_target(brokers, "unfinished", tmp_path)
    assert second.open(schema) is None
    second.write(SinkBatch(rows, 0, SinkProgress("token", 2)))
    with pytest.raises(Error, match="could not write"):
        first.write(SinkBatch(rows, 0, SinkProgress("token", 2)))
    first.close()
    second.close()
    again = made_target(brokers, "unfinished", tmp_path)
    assert again.open(schema) == SinkProgress("token", 2)
    again.close()


def test_a_sink_that_waits_for_brokers_can_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody answers there, and it would wait for long."""
    monkeypatch.setattr(kafka_sink, "CONNECT_S", 10_000.0)
    monkeypatch.setattr(kafka_sink, "STEP_S", 0.05)
    target = made_target("127.0.0.1:1", "t", tmp_path)
    found: list[BaseException] = []

    def opened() -> None:
        try:
            target.open(pa.schema([]))
        except Error as error:
            found.append(error)

    thread = threading.Thread(target=opened)
    thread.start()
    target.interrupt()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert "could not connect" in str(found[0])
    target.close()


def test_settings_that_the_client_does_not_take_are_refused(db: headwater.Database) -> None:
    """Before anything is made, and without their values."""
    make_query(db)
    with pytest.raises(Error, match="does not take its settings") as caught:
        db.sql("CREATE SINK k FROM q INTO 'kafka://h:1/t' WITH (sasl_pasword = 'hunter2')")
    assert 'No such configuration property: "sasl.pasword"' in (caught.value.detail or "")
    assert "hunter2" not in f"{caught.value} {caught.value.detail}"
    assert db.sql("SHOW SINKS").rows() == []


def made_target(brokers: str, topic: str, notes: Path) -> KafkaTarget:
    """One run of a sink."""
    return KafkaTarget(f"//{brokers}/{topic}", SinkName("k", f"{topic}-key"), SinkOptions(), notes)
