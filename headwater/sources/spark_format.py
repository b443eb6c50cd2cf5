"""`spark:FORMAT`: whatever Spark can read as a stream, with its own columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.sources.frames import fitted
from headwater.sources.runner import SourceFeed
from headwater.sources.stream import StreamKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VIEW = "rows_of_the_source"


class SparkFormat(StreamKind):
    """A format of Spark's or of a registered Python data source; `columns` renames and computes."""

    def frame(self, session: SparkSession, feed: SourceFeed) -> DataFrame:
        """The streaming frame, with the table's columns."""
        reader = session.readStream.format(feed.address.rest)
        for name, value in feed.options.spark.items():
            if "_" in name and "." not in name:  # rows_per_second is rowsPerSecond, in any case
                reader = reader.option(name.replace("_", ""), value)
            reader = reader.option(name, value)
        frame = reader.load()
        if feed.options.columns is not None:
            frame.createOrReplaceTempView(VIEW)
            frame = session.sql(f"SELECT {feed.options.columns} FROM {VIEW}")
        return fitted(frame, feed.table.definition)
