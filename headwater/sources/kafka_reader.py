"""Kafka as a data source of Spark's: offsets on the driver, messages on the executors.

Owns: what the offsets of a micro-batch are, per partition. Must never: commit offsets of a group, or skip
messages that the brokers no longer have: that is an error.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

if TYPE_CHECKING:
    from confluent_kafka import Consumer

FORMAT = "headwater_kafka"
CLIENT = "client_secret"  # the client's settings; Spark shows no option of such a name in plans
COLUMNS = "key STRING, value STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
ANSWER_S = 30.0
MESSAGES = 1000  # taken from the client at once …
TOGETHER_S = 0.02  # … or those that came in this time


@dataclass
class KafkaPart(InputPartition):
    """Messages of one partition from `first`, before `end`."""

    number: int
    first: int
    end: int


class KafkaSource(DataSource):
    """A topic as a stream of messages."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def schema(self) -> str:
        """The columns of messages."""
        return COLUMNS

    def streamReader(self, schema: Any) -> KafkaReader:  # noqa: ARG002
        """What reads the stream."""
        return KafkaReader(self.options)


class KafkaReader(DataSourceStreamReader):
    """The offsets of a topic, and its messages between two of them."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._topic, self._start = options["topic"], options["start"]
        self._client: dict[str, str] = json.loads(options[CLIENT])
        self._limit = int(options["limit"])
        self._asking: Consumer | None = None

    # On the driver

    def initialOffset(self) -> dict[str, int]:
        """The oldest or the next message of each partition."""
        place = 0 if self._start == "earliest" else 1
        marks = self._marks()
        if not marks:
            raise LookupError(f"there is no topic {self._topic}, or it may not be read")
        return {str(number): found[place] for number, found in marks.items()}

    def getDefaultReadLimit(self) -> ReadLimit:
        """How many messages one micro-batch has at most."""
        return ReadMaxRows(self._limit)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """The ends of the partitions, or less where that would be too much at once."""
        marks = self._marks()
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        share = None if most is None else max(most // max(len(marks), 1), 1)
        found = dict(start)
        for number, (low, high) in marks.items():
            first = start.get(str(number), low)
            found[str(number)] = high if share is None else max(min(high, first + share), first)
        return found

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[KafkaPart]:
        """One part for each partition that has messages."""
        parts = [KafkaPart(int(n), start.get(n, 0), last) for n, last in sorted(end.items())]
        return [part for part in parts if part.first < part.end]

    def _marks(self) -> dict[int, tuple[int, int]]:
        """The oldest offset and the next one of each partition."""
        from confluent_kafka import TopicPartition

        if self._asking is None:
            self._asking = self._consumer()
        topic = self._asking.list_topics(self._topic, timeout=ANSWER_S).topics[self._topic]
        return {
            number: self._asking.get_watermark_offsets(
                TopicPartition(self._topic, number), timeout=ANSWER_S
            )
            for number in topic.partitions
        }

    def _consumer(self) -> Consumer:
        from confluent_kafka import Consumer

        settings = {
            **self._client,
            "group.id": "headwater",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
        }
        return Consumer(settings)

    # On the executors

    def read(self, partition: KafkaPart) -> Iterator[tuple[Any, ...]]:  # type: ignore[override]
        """The messages of a part; offsets without a message are markers of transactions."""
        from confluent_kafka import TopicPartition

        consumer = self._consumer()
        try:
            consumer.assign([TopicPartition(self._topic, partition.number, partition.first)])
            place, patience = partition.first, time.monotonic() + ANSWER_S
            while place < partition.end:
                found = consumer.consume(MESSAGES, timeout=TOGETHER_S)
                if found:
                    patience = time.monotonic() + ANSWER_S
                elif time.monotonic() > patience:
                    raise TimeoutError(f"no answer from Kafka within {ANSWER_S:.0f} seconds")
                for message in found:
                    place = _after(message)
                    if place > partition.end:
                        break
                    if message.error() is None:
                        yield _row(message)
        finally:
            consumer.close()


def _after(message: Any) -> int:
    """The offset after a message, or the end of the partition."""
    from confluent_kafka import KafkaError, KafkaException

    error = message.error()
    if error is None:
        return int(message.offset()) + 1
    if error.code() != KafkaError._PARTITION_EOF:
        raise KafkaException(error)
    return int(message.offset())


def _row(message: Any) -> tuple[Any, ...]:
    kind, at_ms = message.timestamp()
    moment = datetime.fromtimestamp(at_ms / 1000, UTC) if kind else None
    return (
        _text(message.key()),
        _text(message.value()),
        message.partition(),
        message.offset(),
        moment,
    )


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()
