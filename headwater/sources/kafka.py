"""`kafka://host:port/topic`: messages of JSON, or whatever `columns` makes of them.

Spark reads them by way of `kafka_reader.py`. Which offsets a micro-batch has stands in Spark's checkpoint
before it is read, so it can be repeated, and is committed once.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from headwater.connectors.servers import QUIET, client_settings, kafka_topic
from headwater.sources.frames import fitted, spark_schema
from headwater.sources.runner import SourceFeed
from headwater.sources.stream import StreamKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VIEW = "messages_of_the_source"


class Kafka(StreamKind):
    """A topic; a message that does not parse stops the source."""

    def frame(self, session: SparkSession, feed: SourceFeed) -> DataFrame:
        """The streaming frame, with the table's columns."""
        from headwater.sources.kafka_reader import CLIENT, FORMAT, KafkaSource

        session.dataSource.register(KafkaSource)
        brokers, topic = kafka_topic(feed.address.rest)
        options = feed.options
        client = {**QUIET, **client_settings(options.spark), "bootstrap.servers": brokers}
        reader = session.readStream.format(FORMAT).option("topic", topic)
        reader = reader.option(CLIENT, json.dumps(client))
        reader = reader.option("start", options.start).option("limit", options.batch_rows)
        frame = reader.load()
        if options.columns is not None:
            frame.createOrReplaceTempView(VIEW)
            frame = session.sql(f"SELECT {options.columns} FROM {VIEW}")
        else:
            schema = spark_schema(feed.table.definition.schema).replace("'", "\\'")
            parsed = f"from_json(value, '{schema}', map('mode', 'FAILFAST')) AS row"
            frame = frame.selectExpr(parsed).selectExpr("row.*")
        return fitted(frame, feed.table.definition)
