"""Kafka out: each batch is one transaction of the brokers, the sink's place among its messages.

A row is a message of JSON, with the values of the key's columns as its key. The place is kept as the
committed offset of a consumer group of the sink's own: the position of the next result, with the token as
its metadata, in the same transaction as the rows. Brokers forget offsets that were not touched for some days:
a note in the data folder, written after the transaction, remembers. The later of both is where the sink is.
Readers that read committed messages see each row once.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from headwater.connectors.servers import QUIET, kafka_topic
from headwater.sinks.files import json_lines
from headwater.sinks.manifest import Manifest, Note
from headwater.sinks.options import SinkOptions
from headwater.sinks.target import SinkBatch, SinkName, SinkProgress, write_error
from headwater.storage.modes import make_folder

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer, TopicPartition

CONNECT_S = 10.0
ANSWER_S = 30.0  # how long one answer of the brokers is waited for …
STEP_S = 0.5  # … in steps, so that a sink can be stopped meanwhile
POLL_S = 0.1
Answer = TypeVar("Answer")


class KafkaTarget:
    """A topic."""

    def __init__(self, rest: str, sink: SinkName, options: SinkOptions, notes: Path) -> None:
        self._brokers, self._topic = kafka_topic(rest)
        self._group = f"headwater-sink-{sink.key}"
        self._options = options
        self._notes = notes
        self._manifest = Manifest(notes, sink.plain)
        self._producer: Producer | None = None
        self._consumer: Consumer | None = None
        self._interrupted = threading.Event()

    def open(self, schema: pa.Schema) -> SinkProgress | None:  # noqa: ARG002  # messages name columns
        """Ends what an earlier process began, then reads the place."""
        from confluent_kafka import Consumer, Producer

        common = {**QUIET, **self._options.client, "bootstrap.servers": self._brokers}
        with self._told("connect"):
            self._producer = producer = Producer({**common, "transactional.id": self._group})
            self._consumer = consumer = Consumer(
                {**common, "group.id": self._group, "enable.auto.commit": False}
            )
            self._answer(lambda s: producer.list_topics(self._topic, timeout=s), CONNECT_S)
            self._answer(producer.init_transactions)
            (found,) = self._answer(lambda s: consumer.committed([self._place()], timeout=s))
        if found.error is not None:
            raise write_error("Kafka: could not read the sink's place", Exception(found.error))
        return self._later(found)

    def _later(self, found: TopicPartition) -> SinkProgress | None:
        """The place that the brokers know or the one that we noted, whichever is later."""
        make_folder(self._notes)
        notes = self._manifest.read()
        if found.metadata and (not notes or found.offset > notes[-1].position):
            row_count, _, token = found.metadata.partition(" ")
            return SinkProgress(token, int(row_count))
        return notes[-1].progress if notes else None

    def _place(self, offset: int = -1001, metadata: str | None = None) -> TopicPartition:
        from confluent_kafka import TopicPartition

        if metadata is None:
            return TopicPartition(self._topic, 0)
        return TopicPartition(self._topic, 0, offset, metadata)

    def write(self, batch: SinkBatch) -> None:
        """One transaction: the messages, and the place."""
        producer, consumer = self._producer, self._consumer
        assert producer is not None
        assert consumer is not None
        progress = batch.progress
        place = self._place(batch.position + 1, f"{progress.row_count} {progress.token}")
        with self._told("write"):
            producer.begin_transaction()
            for key, line in _messages(batch.rows, self._options.key):
                self._produce(producer, key, line)
            producer.send_offsets_to_transaction(
                [place], consumer.consumer_group_metadata(), ANSWER_S
            )
            self._answer(producer.commit_transaction)
        self._manifest.replace(Note(progress.token, progress.row_count, batch.position))

    def _produce(self, producer: Producer, key: str | None, line: str) -> None:
        """Waits for room where the client's own queue is full."""
        while True:
            try:
                producer.produce(self._topic, value=line, key=key)
                producer.poll(0)
                return
            except BufferError:
                if self._interrupted.is_set():
                    raise
                producer.poll(POLL_S)

    def _answer(self, ask: Callable[[float], Answer], most_s: float | None = None) -> Answer:
        """What the brokers say; a question that took too long is asked again, up to a bound."""
        from confluent_kafka import KafkaError, KafkaException

        late = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT)
        until = time.monotonic() + (ANSWER_S if most_s is None else most_s)
        while True:
            try:
                return ask(STEP_S)
            except KafkaException as error:
                ended = self._interrupted.is_set() or time.monotonic() > until
                if ended or error.args[0].code() not in late:
                    raise

    @contextlib.contextmanager
    def _told(self, action: str) -> Iterator[None]:
        """Kafka's errors as ours; a transaction under way ends with the producer."""
        from confluent_kafka import KafkaException

        try:
            yield
        except KafkaException as error:
            raise write_error(f"Kafka: could not {action}", error) from error

    def interrupt(self) -> None:
        """Ends the wait for an answer at its next step."""
        self._interrupted.set()

    def close(self) -> None:
        """Undoes what was not committed and ends the connections."""
        from confluent_kafka import KafkaException

        if self._producer is not None:
            with contextlib.suppress(KafkaException):  # none under way, or the brokers do it
                self._producer.abort_transaction(POLL_S)
        if self._consumer is not None:
            self._consumer.close()
        self._producer = self._consumer = None


def _messages(rows: pa.Table, key: Sequence[str]) -> Iterator[tuple[str | None, str]]:
    lines = json_lines(rows)
    if not key:
        return ((None, line) for line in lines)
    keys: list[Any] = [list(json.loads(line).values()) for line in json_lines(rows.select(key))]
    texts = (json.dumps(k[0] if len(k) == 1 else k, ensure_ascii=False) for k in keys)
    return zip(texts, lines, strict=True)
